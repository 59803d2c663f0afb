//! The parts of a shared limit as an explicit-state model: rounds with the database that are late, repeated or whose
//! answers are lost, sessions that fall silent, are fenced or come back, and a limit that is changed meanwhile.
//!
//! A part is a number of slots; a rate and its burst are allocated by the same steps. Trust is a flag: a session without it
//! uses nothing, and only such a one is fenced (that the clocks see to this is the other model's matter).

use stateright::{Checker, HasDiscoveries, Model, Property};

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// None.
    Nothing,
    /// Rule 1: a round sees the rows as they were when it was begun, not as the one before left them.
    Order,
    /// Rule 2: the part of a silent session is free before the session is fenced.
    Silence,
    /// Rule 2: a part counts as smaller before its session has said that it uses less.
    Acknowledgement,
    /// Rule 3: a part grows to what its session should have, whatever others hold.
    Growth,
    /// Rule 4: a round that was long under way counts.
    Lateness,
    /// Rule 5: a session uses all that its row holds, also while it is told to use less and has said so.
    Lesser,
    /// A session is fenced although it is still trusted.
    Trust,
    /// A fenced session goes on with its part when it is heard again.
    Fence,
}

/// The bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many sessions.
    pub sessions: usize,
    /// How many rounds each plays at most.
    pub rounds: u8,
    /// How often the limit is changed at most; it is 1, 2 or 3.
    pub changes: u8,
    /// The rule that is left out.
    pub left: Left,
}

const MAX: usize = 3;

/// What the database holds of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Row {
    held: u8,
    wants: bool,
    seq: u8,
    fenced: bool,
}

/// A round that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Round {
    seq: u8,
    uses: u8,
    wants: bool,
    /// What it saw, where rule 1 is left out.
    seen: Option<([Row; MAX], u8)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Answer {
    seq: u8,
    held: u8,
    target: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Session {
    /// What it uses at most.
    part: u8,
    /// What its row holds as far as it knows.
    told: Option<u8>,
    seq: u8,
    trusted: bool,
    wants: bool,
    /// Its last two rounds, each of which may still be applied, once or twice.
    rounds: [Option<Round>; 2],
    answer: Option<Answer>,
}

/// One moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    limit: u8,
    /// What may be used: the limit, or what was given out before it was lowered and isn't given up yet.
    ceiling: u8,
    rows: [Row; MAX],
    sessions: [Session; MAX],
    changes: u8,
}

/// One step of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
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
    /// Another node fences it.
    Fence(usize),
    /// People change the limit.
    Change(u8),
}

impl Model for Setup {
    type State = Moment;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment> {
        let session = Session {
            part: 0,
            told: None,
            seq: 0,
            trusted: true,
            wants: true,
            rounds: [None; 2],
            answer: None,
        };
        let changes = self.changes;
        vec![Moment {
            limit: 2,
            ceiling: 2,
            rows: [Row::default(); MAX],
            sessions: [session; MAX],
            changes,
        }]
    }

    fn actions(&self, state: &Moment, steps: &mut Vec<Step>) {
        for who in 0..self.sessions {
            steps.extend([
                Step::Send(who),
                Step::Apply(who, 0),
                Step::Apply(who, 1),
                Step::Hear(who),
            ]);
            steps.extend([
                Step::Want(who),
                Step::FallSilent(who),
                Step::ComeBack(who),
                Step::Fence(who),
            ]);
        }
        if state.changes > 0 {
            steps.extend([1, 2, 3].map(Step::Change));
        }
    }

    fn next_state(&self, last: &Moment, step: Step) -> Option<Moment> {
        let mut state = *last;
        match step {
            Step::Send(who) => self.send(&mut state, who)?,
            Step::Apply(who, which) => self.apply(&mut state, who, which)?,
            Step::Hear(who) => self.hear(&mut state.sessions[who])?,
            Step::Want(who) => state.sessions[who].wants = !state.sessions[who].wants,
            Step::FallSilent(who) => state.sessions[who].trusted = false,
            Step::ComeBack(who) => {
                let fenced = state.rows[who].fenced && self.left != Left::Fence;
                state.sessions[who].trusted |= !fenced;
            }
            Step::Fence(who) => {
                let may = !state.sessions[who].trusted || self.left == Left::Trust;
                state.rows[who].fenced |= may;
            }
            Step::Change(limit) => {
                (state.limit, state.changes) = (limit, state.changes - 1);
            }
        }
        self.tidy(&mut state);
        // What is given out under a limit stays in use until it is given up.
        let given: u8 = (0..self.sessions).map(|who| state.given(who)).sum();
        state.ceiling = state.limit.max(state.ceiling.min(given));
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Setup>> {
        vec![
            Property::<Setup>::always("no more is used than the limit", |model, state| {
                (0..model.sessions).map(|who| state.used(who)).sum::<u8>() <= state.ceiling
            }),
            Property::<Setup>::sometimes("a part moves from one to another", |_, state| {
                state.sessions[0].seq > 1 && state.sessions[0].part < state.sessions[1].part
            }),
            Property::<Setup>::sometimes("a fenced session's part is used by another", |_, state| {
                state.rows[0].fenced && state.rows[0].held > 0 && state.sessions[1].part == state.limit
            }),
            Property::<Setup>::sometimes("a lowered limit holds in the end", |_, state| {
                state.limit == 1 && state.ceiling == 1 && state.used(0) + state.used(1) == 1
            }),
        ]
    }
}

impl Moment {
    /// What a session uses now.
    fn used(&self, who: usize) -> u8 {
        if self.sessions[who].trusted {
            self.sessions[who].part
        } else {
            0
        }
    }

    /// What was given to a session and may still be used, now or when it has heard of it.
    fn given(&self, who: usize) -> u8 {
        if self.rows[who].fenced {
            0
        } else {
            self.sessions[who].part.max(self.rows[who].held)
        }
    }
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
            session.told = session.told.filter(|_| self.left == Left::Lesser);
        }
    }

    fn send(&self, state: &mut Moment, who: usize) -> Option<()> {
        let (rows, limit) = (state.rows, state.limit);
        let session = &mut state.sessions[who];
        if session.seq == self.rounds {
            return None;
        }
        session.seq += 1;
        let seen = (self.left == Left::Order).then_some((rows, limit));
        let uses = match session.told {
            Some(target) if self.left == Left::Lesser => target.min(session.part),
            _ => session.part,
        };
        session.rounds[1] = session.rounds[0];
        session.rounds[0] = Some(Round {
            seq: session.seq,
            uses,
            wants: session.wants,
            seen,
        });
        session.answer = None;
        Some(())
    }

    fn apply(&self, state: &mut Moment, who: usize, which: usize) -> Option<()> {
        let round = state.sessions[who].rounds[which]?;
        let (rows, limit) = round.seen.unwrap_or((state.rows, state.limit));
        let own = rows[who];
        if state.rows[who].fenced || (state.rows[who].seq >= round.seq && self.left != Left::Lateness) {
            return None;
        }
        let is_free = |other: usize| {
            rows[other].fenced || (self.left == Left::Silence && !state.sessions[other].trusted)
        };
        let others: Vec<usize> = (0..self.sessions).filter(|other| *other != who).collect();
        let taken: u8 = others
            .iter()
            .filter(|other| !is_free(**other))
            .map(|other| rows[*other].held)
            .sum();
        let wants = |other: &usize| {
            if *other == who {
                round.wants
            } else {
                rows[*other].wants && !is_free(*other)
            }
        };
        let target = target(limit, who, (0..self.sessions).filter(wants));
        let mut base = round.uses.min(own.held);
        if self.left == Left::Acknowledgement {
            base = base.min(target);
        }
        let free = limit.saturating_sub(taken + base);
        let free = if self.left == Left::Growth { u8::MAX } else { free };
        let held = base + target.saturating_sub(base).min(free);
        state.rows[who] = Row {
            held,
            wants: round.wants,
            seq: round.seq,
            fenced: false,
        };
        if state.sessions[who].seq == round.seq {
            state.sessions[who].answer = Some(Answer {
                seq: round.seq,
                held,
                target,
            });
        }
        Some(())
    }

    fn hear(&self, session: &mut Session) -> Option<()> {
        let answer = session.answer.take().filter(|answer| answer.seq == session.seq)?;
        session.told = Some(answer.target);
        session.part = match self.left {
            Left::Lesser => answer.held,
            _ => answer.held.min(answer.target),
        };
        Some(())
    }
}

/// Max-min in whole slots: one after the other gets one more, those that want something only.
fn target(limit: u8, who: usize, wanting: impl Iterator<Item = usize>) -> u8 {
    let wanting: Vec<usize> = wanting.collect();
    let Some(at) = wanting.iter().position(|other| *other == who) else {
        return 0;
    };
    let number = wanting.len() as u8;
    limit / number + u8::from((at as u8) < limit % number)
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
