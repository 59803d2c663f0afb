//! Blocks of a shared total as an explicit-state model: rounds that are late, repeated or whose answers are lost, calls that
//! leave meanwhile, sessions that fall silent, are fenced or come back, and a total that is changed.
//!
//! A call costs one. A session's counts go up only, so that a round may be repeated: its bound is on what it has used in
//! all.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// None.
    Nothing,
    /// Calls leave beyond what the database has acknowledged, as soon as more is asked for.
    Acknowledgement,
    /// A session that gives something back goes on using it.
    GivingBack,
    /// A bound grows although others hold what it grows into.
    Growth,
    /// A round that was long under way counts.
    Lateness,
    /// Of a fenced session only what it had reported counts.
    Unsure,
    /// A fenced session's row is deleted and counts no more.
    Ledger,
    /// The part of a silent session is free before it is fenced.
    Silence,
    /// A session is fenced although it is still trusted.
    Trust,
    /// A fenced session goes on with its block when it is heard again.
    Fence,
    /// The total counts as used up although another session holds a part that may come back.
    Idle,
}

/// The bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many sessions.
    pub sessions: usize,
    /// How many rounds each plays at most.
    pub rounds: u8,
    /// How often the total is changed at most.
    pub changes: u8,
    /// The rule that is left out.
    pub left: Left,
}

const MAX: usize = 3;
const TOTAL: u8 = 2;

/// What the database holds of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Row {
    held: u8,
    used: u8,
    seq: u8,
    fenced: bool,
}

/// A round that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Round {
    seq: u8,
    uses: u8,
    used: u8,
    wants: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Answer {
    seq: u8,
    held: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Session {
    /// What it has used in all.
    used: u8,
    /// What it may use in all.
    bound: u8,
    seq: u8,
    trusted: bool,
    wants: bool,
    rounds: [Option<Round>; 2],
    answer: Option<Answer>,
}

/// One moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    total: u8,
    /// What may be used: the total, or what was given out before it was lowered.
    ceiling: u8,
    rows: [Row; MAX],
    /// What counts of sessions that are gone.
    ledger: u8,
    sessions: [Session; MAX],
    changes: u8,
    /// Set if a session was told that all is used up while a part could still come back.
    wrong: bool,
    /// Set if a session was told that all is used up.
    told: bool,
}

/// One step of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A call leaves.
    Call(usize),
    /// A session sends a round.
    Send(usize),
    /// The database obeys one of its rounds, the newest or the one before; it stays under way.
    Apply(usize, usize),
    /// The answer to its newest round arrives.
    Hear(usize),
    /// Its runs want something, or no longer.
    Want(usize),
    /// Its heartbeats no longer arrive.
    FallSilent(usize),
    /// They arrive again.
    ComeBack(usize),
    /// Another node fences it, and a round of that node counts what it held.
    Fence(usize),
    /// People change the total.
    Change(u8),
}

impl Model for Setup {
    type State = Moment;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment> {
        let session = Session {
            used: 0,
            bound: 0,
            seq: 0,
            trusted: true,
            wants: true,
            rounds: [None; 2],
            answer: None,
        };
        vec![Moment {
            total: TOTAL,
            ceiling: TOTAL,
            rows: [Row::default(); MAX],
            ledger: 0,
            sessions: [session; MAX],
            changes: self.changes,
            wrong: false,
            told: false,
        }]
    }

    fn actions(&self, state: &Moment, steps: &mut Vec<Step>) {
        for who in 0..self.sessions {
            steps.extend([Step::Call(who), Step::Send(who), Step::Hear(who), Step::Want(who)]);
            steps.extend([Step::Apply(who, 0), Step::Apply(who, 1)]);
            steps.extend([Step::FallSilent(who), Step::ComeBack(who), Step::Fence(who)]);
        }
        if state.changes > 0 {
            steps.extend([1, 3].map(Step::Change));
        }
    }

    fn next_state(&self, last: &Moment, step: Step) -> Option<Moment> {
        let mut state = *last;
        match step {
            Step::Call(who) => {
                let session = &mut state.sessions[who];
                let may = session.trusted && session.wants && session.used < session.bound;
                session.used += u8::from(may);
            }
            Step::Send(who) => self.send(&mut state.sessions[who])?,
            Step::Apply(who, which) => self.apply(&mut state, who, which)?,
            Step::Hear(who) => hear(&mut state.sessions[who])?,
            Step::Want(who) => state.sessions[who].wants = !state.sessions[who].wants,
            Step::FallSilent(who) => state.sessions[who].trusted = false,
            Step::ComeBack(who) => {
                let fenced = state.rows[who].fenced && self.left != Left::Fence;
                state.sessions[who].trusted |= !fenced;
            }
            Step::Fence(who) => self.fence(&mut state, who)?,
            Step::Change(total) => (state.total, state.changes) = (total, state.changes - 1),
        }
        self.tidy(&mut state);
        // What was given out stays in use until it is given back.
        let given = (0..self.sessions).map(|who| state.given(who)).sum::<u8>() + state.really_gone();
        state.ceiling = state.total.max(state.ceiling.min(given));
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Setup>> {
        vec![
            Property::<Setup>::always("no more is used than the total", |model, state| {
                state.really(model.sessions) <= state.ceiling
            }),
            Property::<Setup>::always("what is used is counted", |model, state| {
                state.counted(model.sessions) >= state.really(model.sessions)
            }),
            Property::<Setup>::always("used up is told only when nothing comes back", |_, state| {
                !state.wrong
            }),
            Property::<Setup>::sometimes("all of it is used by two", |_, state| {
                state.sessions[0].used == 1 && state.sessions[1].used == 1
            }),
            Property::<Setup>::sometimes("what one gives back another one uses", |_, state| {
                state.sessions[0].seq > 1 && state.sessions[1].used == TOTAL && state.total == TOTAL
            }),
            Property::<Setup>::sometimes("used up is told", |_, state| state.told),
        ]
    }
}

impl Moment {
    fn really(&self, sessions: usize) -> u8 {
        self.sessions[..sessions].iter().map(|session| session.used).sum()
    }

    fn really_gone(&self) -> u8 {
        let gone = self.rows.iter().zip(&self.sessions).filter(|(row, _)| row.fenced);
        gone.map(|(_, session)| session.used).sum()
    }

    /// What the database counts.
    fn counted(&self, sessions: usize) -> u8 {
        let live = self.rows[..sessions].iter().filter(|row| !row.fenced);
        self.ledger + live.map(|row| row.held.max(row.used)).sum::<u8>()
    }

    /// What a session was given and may still use.
    fn given(&self, who: usize) -> u8 {
        match self.rows[who].fenced {
            true => 0,
            false => self.sessions[who].bound.max(self.rows[who].held),
        }
    }
}

fn hear(session: &mut Session) -> Option<()> {
    let answer = session.answer.take().filter(|answer| answer.seq == session.seq)?;
    session.bound = answer.held.max(session.used);
    Some(())
}

impl Setup {
    /// Forgets what can have no effect any more, so that equal moments are one.
    fn tidy(&self, state: &mut Moment) {
        for (session, row) in state.sessions.iter_mut().zip(&state.rows) {
            let is_over = |round: &Round| row.fenced || (round.seq <= row.seq && self.left != Left::Lateness);
            for round in &mut session.rounds {
                *round = round.filter(|round| !is_over(round));
            }
            session.answer = session.answer.filter(|_| !row.fenced || self.left == Left::Fence);
        }
    }

    fn send(&self, session: &mut Session) -> Option<()> {
        if session.seq == self.rounds {
            return None;
        }
        session.seq += 1;
        let uses = if session.wants {
            session.bound
        } else {
            session.used
        };
        if self.left != Left::GivingBack {
            session.bound = uses;
        }
        session.rounds[1] = session.rounds[0];
        session.rounds[0] = Some(Round {
            seq: session.seq,
            uses,
            used: session.used,
            wants: session.wants,
        });
        if self.left == Left::Acknowledgement && session.wants {
            session.bound = session.used + 1;
        }
        session.answer = None;
        Some(())
    }

    fn apply(&self, state: &mut Moment, who: usize, which: usize) -> Option<()> {
        let round = state.sessions[who].rounds[which]?;
        let own = state.rows[who];
        if own.fenced || (own.seq >= round.seq && self.left != Left::Lateness) {
            return None;
        }
        let is_silent = |other: &usize| self.left == Left::Silence && !state.sessions[*other].trusted;
        let others = (0..self.sessions).filter(|other| *other != who && !state.rows[*other].fenced);
        let others: Vec<Row> = others
            .filter(|other| !is_silent(other))
            .map(|other| state.rows[other])
            .collect();
        let taken: u8 = others.iter().map(|row| row.held.max(row.used)).sum();
        let base = round.uses.min(own.held);
        let free = state
            .total
            .saturating_sub(state.ledger + taken + base.max(round.used));
        let free = if self.left == Left::Growth { u8::MAX } else { free };
        let target = round.used + u8::from(round.wants);
        let held = base + target.saturating_sub(base).min(free);
        let idle: u8 = others.iter().map(|row| row.held.saturating_sub(row.used)).sum();
        let in_vain = round.wants && held.min(target) <= round.used;
        let is_full = in_vain && (idle == 0 || self.left == Left::Idle);
        state.told |= is_full;
        state.wrong |= is_full && idle > 0;
        state.rows[who] = Row {
            held,
            used: round.used,
            seq: round.seq,
            fenced: false,
        };
        if state.sessions[who].seq == round.seq {
            state.sessions[who].answer = Some(Answer { seq: round.seq, held });
        }
        Some(())
    }

    fn fence(&self, state: &mut Moment, who: usize) -> Option<()> {
        let row = &mut state.rows[who];
        if row.fenced || (state.sessions[who].trusted && self.left != Left::Trust) {
            return None;
        }
        row.fenced = true;
        state.ledger += match self.left {
            Left::Unsure => row.used,
            Left::Ledger => 0,
            _ => row.held.max(row.used),
        };
        Some(())
    }
}

/// How many states there are, and the properties that fail or are never seen, each with the steps that show it.
pub fn search(setup: Setup) -> (usize, Vec<(&'static str, String)>) {
    let checker = setup
        .checker()
        .threads(2)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let mut faults: Vec<(&'static str, String)> = Vec::new();
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        match (&property.expectation, found) {
            (stateright::Expectation::Always, Some(path)) => {
                faults.push((property.name, format!("{:?}", path.into_actions())));
            }
            (stateright::Expectation::Sometimes, None) => faults.push((property.name, "never".to_owned())),
            _ => {}
        }
    }
    (checker.unique_state_count(), faults)
}
