//! Open tasks as an explicit-state model: two writers whose appends come late, twice or never, a seal, and nodes that take
//! the shard from one another and say that all is done.
//!
//! Who may claim is the other model's matter: here anybody claims at any time, as after a fence. A run is naive: it says
//! that it is done as soon as it has settled what it knows. What that is worth is asked by the store.

use stateright::{Model, Property};

use crate::explore::explore;

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// None.
    Nothing,
    /// The store believes whoever says that all is done, also of more items than it knew.
    Compare,
    /// A run may end the task before it is sealed.
    Seal,
    /// A sealed task takes items.
    Refusal,
    /// A block is kept in one transaction, the task grows in another.
    Together,
    /// The same block is added again with the same key.
    Key,
    /// A run that was taken over is believed.
    Claim,
}

/// The bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How often the shard is claimed at most.
    pub claims: u8,
    /// The rule that is left out.
    pub left: Left,
}

const NODES: usize = 2;
const WRITERS: usize = 2;
/// Places that a search comes to.
const PLACES: u8 = 4;

/// Somebody who appends one item, and sends it until there is an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Writer {
    /// A request of it is under way: it may be obeyed at any time, once or twice.
    sent: bool,
    /// How often its item was added.
    added: u8,
    /// One past its first place.
    place: u8,
    /// The item is kept and the task has yet to grow, where the rule `Together` is left out.
    is_half: bool,
    /// It was told that its item is in.
    is_acknowledged: bool,
    /// It was told that nothing is taken any more.
    is_refused: bool,
}

/// A run, as far as it knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Run {
    /// Its claim; 0 is none.
    epoch: u8,
    /// What it heard last: one past the last item.
    end: u8,
    is_sealed: bool,
    /// One past the last item that it settled.
    low: u8,
}

/// What must never be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Broken {
    added_twice: bool,
    unsealed: bool,
    passed_over: bool,
    older_write: bool,
}

/// One moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    writers: [Writer; WRITERS],
    runs: [Run; NODES],
    /// Of the newest claim; 0 before the first.
    epoch: u8,
    is_owned: bool,
    end: u8,
    low: u8,
    is_sealed: bool,
    is_finished: bool,
    gave_back: bool,
    broken: Broken,
}

/// One step of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A writer sends its item.
    Send(usize),
    /// The database obeys that; it stays under way.
    Append(usize),
    /// The second half, where there are two.
    Grow(usize),
    /// People seal the task.
    Seal,
    /// A node claims the shard and reads what is saved.
    Claim(usize),
    /// It reads how far the items go.
    Look(usize),
    /// It settles the next item.
    Settle(usize),
    /// It saves how far it is.
    Save(usize),
    /// It says that all is done.
    Done(usize),
}

impl Model for Setup {
    type State = Moment;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment> {
        vec![Moment {
            writers: [Writer::default(); WRITERS],
            runs: [Run::default(); NODES],
            epoch: 0,
            is_owned: false,
            end: 0,
            low: 0,
            is_sealed: false,
            is_finished: false,
            gave_back: false,
            broken: Broken::default(),
        }]
    }

    fn actions(&self, _: &Moment, steps: &mut Vec<Step>) {
        for writer in 0..WRITERS {
            steps.extend([Step::Send(writer), Step::Append(writer), Step::Grow(writer)]);
        }
        for node in 0..NODES {
            steps.extend([Step::Claim(node), Step::Look(node), Step::Settle(node)]);
            steps.extend([Step::Save(node), Step::Done(node)]);
        }
        steps.push(Step::Seal);
    }

    fn next_state(&self, last: &Moment, step: Step) -> Option<Moment> {
        let mut state = *last;
        match step {
            Step::Send(writer) => state.writers[writer].sent = true,
            Step::Append(writer) => self.append(&mut state, writer)?,
            Step::Grow(writer) => grow(&mut state, writer)?,
            Step::Seal => state.is_sealed = true,
            Step::Claim(node) => self.claim(&mut state, node)?,
            Step::Look(node) => {
                let (end, is_sealed) = (state.end, state.is_sealed);
                let run = &mut state.runs[node];
                (run.end, run.is_sealed) = (end, is_sealed);
            }
            Step::Settle(node) => {
                let run = &mut state.runs[node];
                run.low = (run.low + 1).min(run.end);
            }
            Step::Save(node) => self.save(&mut state, node)?,
            Step::Done(node) => self.done(&mut state, node)?,
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Setup>> {
        vec![
            Property::<Setup>::always("what was acknowledged is settled in the end", |_, state| {
                let is_passed = |one: &Writer| one.is_acknowledged && one.place > state.low;
                !(state.is_finished && state.writers.iter().any(is_passed))
            }),
            Property::<Setup>::always("an item is added once", |_, state| !state.broken.added_twice),
            Property::<Setup>::always("a task ends only once it is sealed", |_, state| {
                !state.broken.unsealed
            }),
            Property::<Setup>::always("no item is passed over", |_, state| !state.broken.passed_over),
            Property::<Setup>::always("who was taken over is not believed", |_, state| {
                !state.broken.older_write
            }),
            Property::<Setup>::sometimes("both are in, and the task is finished by an heir", |_, state| {
                let is_in = |one: &Writer| one.is_acknowledged;
                state.is_finished && state.epoch > 1 && state.writers.iter().all(is_in)
            }),
            Property::<Setup>::sometimes("one comes too late", |_, state| {
                state.is_finished && state.writers[1].is_refused && state.writers[0].is_acknowledged
            }),
            Property::<Setup>::sometimes("a run gives back what has grown", |_, state| {
                state.gave_back && state.is_finished
            }),
        ]
    }
}

impl Setup {
    /// One transaction under the task's lock: refused, known, or kept with the task's new end.
    fn append(&self, state: &mut Moment, at: usize) -> Option<()> {
        let writer = state.writers[at];
        if !writer.sent || state.end == PLACES {
            return None;
        }
        let is_known = writer.added > 0 && self.left != Left::Key;
        if is_known {
            state.writers[at].is_acknowledged = true;
            return Some(());
        }
        if state.is_sealed && self.left != Left::Refusal {
            state.writers[at].is_refused = true;
            return Some(());
        }
        state.broken.added_twice |= writer.added > 0;
        let writer = &mut state.writers[at];
        writer.added = (writer.added + 1).min(2);
        writer.is_acknowledged = true;
        if self.left == Left::Together {
            writer.is_half = true;
            // The place that it will have.
            writer.place = PLACES;
            return Some(());
        }
        state.end += 1;
        let end = state.end;
        let writer = &mut state.writers[at];
        writer.place = if writer.place == 0 { end } else { writer.place };
        Some(())
    }

    fn claim(&self, state: &mut Moment, node: usize) -> Option<()> {
        if state.is_finished || state.epoch == self.claims {
            return None;
        }
        state.epoch += 1;
        state.is_owned = true;
        state.runs[node] = Run {
            epoch: state.epoch,
            end: state.end,
            is_sealed: false,
            low: state.low,
        };
        Some(())
    }

    /// Whether a write of this run counts.
    fn counts(&self, state: &Moment, run: Run) -> bool {
        let is_own = run.epoch == state.epoch && state.is_owned && !state.is_finished;
        run.epoch > 0 && (is_own || self.left == Left::Claim)
    }

    fn save(&self, state: &mut Moment, node: usize) -> Option<()> {
        let run = state.runs[node];
        if !self.counts(state, run) {
            return None;
        }
        state.broken.older_write |= run.low < state.low || run.epoch < state.epoch;
        state.low = run.low;
        Some(())
    }

    /// The close, in the transaction of the last checkpoint.
    fn done(&self, state: &mut Moment, node: usize) -> Option<()> {
        let run = state.runs[node];
        if run.low < run.end {
            return None;
        }
        self.save(state, node)?;
        state.is_owned = false;
        state.runs[node].epoch = 0;
        let is_whole = state.low >= state.end || self.left == Left::Compare;
        let is_over = is_whole && (state.is_sealed || self.left == Left::Seal);
        if !is_over {
            state.gave_back = true;
            return Some(());
        }
        state.is_finished = true;
        state.broken.unsealed |= !state.is_sealed;
        state.broken.passed_over |= state.low < state.end;
        Some(())
    }
}

fn grow(state: &mut Moment, at: usize) -> Option<()> {
    if !std::mem::take(&mut state.writers[at].is_half) || state.end == PLACES {
        return None;
    }
    state.end += 1;
    state.writers[at].place = state.end;
    Some(())
}

/// How many states there are, and the properties that fail or are never seen, each with the steps that show it.
pub fn search(setup: Setup) -> (usize, Vec<(&'static str, String)>) {
    explore(setup)
}
