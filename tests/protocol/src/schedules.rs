//! Fires of a schedule as an explicit-state model: nodes that look, decide and make tasks, whose requests are late, lost or
//! obeyed twice, that die in between, whose clocks are wrong, and a database whose own clock is wrong for a while.
//!
//! A time is a number; one passes with each tick. Of those that are due together the newest makes a task, the others are
//! missed, which one row says of them all: only what is to make a task has a row of its own. Nothing is urgent: a node that doesn't act is one that is slow.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// None.
    Nothing,
    /// A decision is written whatever the next fire is by now.
    Compare,
    /// The next fire is advanced in one transaction, and its rows are written in another.
    Together,
    /// A time that has its row fires again.
    Rows,
    /// A task is made whatever its fire has come to by now.
    Settle,
    /// Whoever took a fire has it for ever.
    Lease,
    /// A node's own clock says what is due.
    Clock,
    /// A next fire that a wrong clock set stays.
    Mend,
}

/// The bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How many nodes.
    pub nodes: usize,
    /// How many times there are.
    pub times: usize,
    /// How many nodes die at most.
    pub deaths: u8,
    /// How often the database's clock is wrong at most.
    pub errors: u8,
    /// The rule that is left out.
    pub left: Left,
}

const NODES: usize = 2;
const TIMES: usize = 5;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
enum Fire {
    #[default]
    Absent,
    Missed,
    Pending,
    /// Somebody makes its task.
    Taken,
    Made,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Node {
    /// The next fire that it saw, and what its clock said then; the request for it may be obeyed at any time, also again.
    seen: Option<(u8, u8)>,
    /// What it would write after it advanced the next fire, where the two are apart.
    owes: Option<(u8, u8)>,
    /// The fire whose task it makes; the request may be obeyed at any time, also again.
    makes: Option<u8>,
}

/// One moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    /// What time it is.
    real: u8,
    /// What the database's clock says.
    clock: u8,
    next: u8,
    /// When the next fire was set.
    armed: u8,
    fires: [Fire; TIMES],
    /// How often each was to make a task, and how many tasks each has.
    decided: [u8; TIMES],
    tasks: [u8; TIMES],
    nodes: [Node; NODES],
    deaths: u8,
    errors: u8,
    /// A fire was decided before its time, as the database's clock said.
    is_early: bool,
    /// A node died that had taken a fire, and another one made its task.
    is_inherited: bool,
    orphans: [bool; TIMES],
    /// A clock that was ahead set the next fire; a fire was decided when it was right again.
    was_misset: bool,
    is_resumed: bool,
}

/// One step of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Time passes.
    Tick,
    /// The database's clock is set far ahead, or right again.
    Misdate,
    /// A node sees that something is due.
    Look(usize),
    /// The database obeys its decision.
    Decide(usize),
    /// The second half of it, where the halves are apart.
    DecideRest(usize),
    /// It takes a fire.
    Take(usize, u8),
    /// The database obeys that it makes the task.
    Make(usize),
    /// It hears the answers, and knows that it is done.
    Hear(usize),
    /// It dies.
    Die(usize),
    /// A lease is over.
    Lapse(u8),
}

impl Model for Setup {
    type State = Moment;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment> {
        vec![Moment {
            real: 0,
            clock: 0,
            next: 0,
            armed: 0,
            fires: [Fire::Absent; TIMES],
            decided: [0; TIMES],
            tasks: [0; TIMES],
            nodes: [Node::default(); NODES],
            deaths: self.deaths,
            errors: self.errors,
            is_early: false,
            is_inherited: false,
            orphans: [false; TIMES],
            was_misset: false,
            is_resumed: false,
        }]
    }

    fn actions(&self, _: &Moment, steps: &mut Vec<Step>) {
        steps.extend([Step::Tick, Step::Misdate]);
        for node in 0..self.nodes {
            steps.extend([
                Step::Look(node),
                Step::Decide(node),
                Step::DecideRest(node),
                Step::Make(node),
            ]);
            steps.extend([Step::Hear(node), Step::Die(node)]);
            steps.extend((0..self.times as u8).map(|time| Step::Take(node, time)));
        }
        steps.extend((0..self.times as u8).map(Step::Lapse));
    }

    fn next_state(&self, last: &Moment, step: Step) -> Option<Moment> {
        let mut state = *last;
        match step {
            Step::Tick => self.tick(&mut state)?,
            Step::Misdate => self.misdate(&mut state)?,
            Step::Look(node) => self.look(&mut state, node)?,
            Step::Decide(node) => self.decide(&mut state, node)?,
            Step::DecideRest(node) => {
                let (from, upto) = state.nodes[node].owes.take()?;
                self.write(&mut state, from, upto);
            }
            Step::Take(node, time) => self.take(&mut state, node, time)?,
            Step::Make(node) => self.make(&mut state, node)?,
            Step::Hear(node) => {
                state.nodes[node].owes.is_none().then_some(())?;
                state.nodes[node] = Node::default();
            }
            Step::Die(node) => self.die(&mut state, node)?,
            Step::Lapse(time) => {
                let fire = state.fires.get_mut(usize::from(time))?;
                (*fire == Fire::Taken && self.left != Left::Lease).then(|| *fire = Fire::Pending)?;
            }
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Setup>> {
        vec![
            Property::<Setup>::always("a fire makes one task at most", |_, state| {
                state.tasks.iter().all(|tasks| *tasks <= 1)
            }),
            Property::<Setup>::always("a fire is decided once", |_, state| {
                state.decided.iter().all(|decided| *decided <= 1)
            }),
            Property::<Setup>::always("no time is left out", |_, state| {
                let is_apart = state.nodes.iter().any(|node| node.owes.is_some());
                let mut past = state
                    .fires
                    .iter()
                    .take(usize::from(state.next.min(state.real + 1)));
                is_apart || past.all(|fire| *fire != Fire::Absent)
            }),
            Property::<Setup>::always("nothing fires before its time", |_, state| !state.is_early),
            Property::<Setup>::always(
                "what is made has its task, and nothing else has one",
                |_, state| {
                    let fires = state.fires.iter().zip(&state.tasks);
                    fires
                        .into_iter()
                        .all(|(fire, tasks)| (*fire == Fire::Made) == (*tasks > 0))
                },
            ),
            Property::<Setup>::sometimes("another makes what a dead node had taken", |_, state| {
                state.is_inherited
            }),
            Property::<Setup>::sometimes("some are missed, and a later one is made", |_, state| {
                state.fires[0] == Fire::Missed && state.fires[1] == Fire::Made
            }),
            Property::<Setup>::sometimes("it goes on after its clock was wrong", |_, state| {
                state.is_resumed
            }),
        ]
    }
}

impl Setup {
    fn last(&self) -> u8 {
        self.times as u8 - 1
    }

    fn tick(&self, state: &mut Moment) -> Option<()> {
        (state.real < self.last()).then_some(())?;
        if state.clock == state.real {
            state.clock += 1;
        }
        state.real += 1;
        Some(())
    }

    /// All the way ahead, or right again.
    fn misdate(&self, state: &mut Moment) -> Option<()> {
        if state.clock != state.real {
            state.clock = state.real;
            return Some(());
        }
        (state.errors > 0 && state.real < self.last()).then_some(())?;
        (state.clock, state.errors) = (self.last(), state.errors - 1);
        Some(())
    }

    /// Node 1's own clock is one ahead, if it is asked.
    fn time_of(&self, state: &Moment, node: usize) -> u8 {
        match (self.left, node) {
            (Left::Clock, 1) => (state.clock + 1).min(self.last()),
            _ => state.clock,
        }
    }

    fn look(&self, state: &mut Moment, node: usize) -> Option<()> {
        let now = self.time_of(state, node);
        let is_misset = state.armed > state.clock && self.left != Left::Mend;
        let is_due = state.next <= now || is_misset;
        (is_due && state.nodes[node].seen.is_none()).then_some(())?;
        state.nodes[node].seen = Some((state.next, now));
        Some(())
    }

    fn decide(&self, state: &mut Moment, node: usize) -> Option<()> {
        let (seen, then) = state.nodes[node].seen?;
        (state.next == seen || self.left == Left::Compare).then_some(())?;
        let now = match self.left {
            Left::Clock => then,
            _ => state.clock,
        };
        if state.armed > state.clock && self.left != Left::Mend {
            (state.next, state.armed) = (state.clock + 1, state.clock);
            return Some(());
        }
        (seen <= now).then_some(())?;
        (state.next, state.armed) = (now + 1, now);
        state.was_misset |= state.clock != state.real;
        match self.left {
            Left::Together => state.nodes[node].owes = Some((seen, now)),
            _ => self.write(state, seen, now),
        }
        Some(())
    }

    fn write(&self, state: &mut Moment, from: u8, upto: u8) {
        for time in from..=upto {
            let at = usize::from(time);
            let is_there = matches!(state.fires[at], Fire::Pending | Fire::Taken | Fire::Made);
            if is_there && !matches!(self.left, Left::Rows | Left::Compare) {
                continue;
            }
            state.is_early |= time > state.clock;
            if time == upto {
                // Two say as much as three.
                state.decided[at] = (state.decided[at] + 1).min(2);
                state.is_resumed |= state.was_misset && state.clock == state.real;
            }
            state.fires[at] = if time == upto { Fire::Pending } else { Fire::Missed };
        }
    }

    fn take(&self, state: &mut Moment, node: usize, time: u8) -> Option<()> {
        let fire = &mut state.fires[usize::from(time)];
        (*fire == Fire::Pending && state.nodes[node].makes.is_none()).then_some(())?;
        *fire = Fire::Taken;
        state.nodes[node].makes = Some(time);
        Some(())
    }

    fn make(&self, state: &mut Moment, node: usize) -> Option<()> {
        let at = usize::from(state.nodes[node].makes?);
        let is_open = matches!(state.fires[at], Fire::Pending | Fire::Taken);
        (is_open || self.left == Left::Settle).then_some(())?;
        // Two say as much as three.
        state.tasks[at] = (state.tasks[at] + 1).min(2);
        state.fires[at] = Fire::Made;
        state.is_inherited |= state.orphans[at];
        Some(())
    }

    fn die(&self, state: &mut Moment, node: usize) -> Option<()> {
        (state.deaths > 0 && state.nodes[node] != Node::default()).then_some(())?;
        if let Some(time) = state.nodes[node].makes {
            state.orphans[usize::from(time)] |= state.fires[usize::from(time)] == Fire::Taken;
        }
        (state.nodes[node], state.deaths) = (Node::default(), state.deaths - 1);
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
