//! Publications of a dataset as an explicit-state model: two tasks whose generations are 1 and 2, nodes that claim their
//! publications from one another, writes that come late, twice or never, cancellations and rollbacks.
//!
//! Who may claim is the other model's matter: here anybody claims at any time, as after a fence. What a claim is worth is
//! asked by the writes.

use stateright::{Model, Property};

use crate::explore::explore;

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Left {
    /// None.
    Nothing,
    /// A write counts also under an older claim, or after the publication was given back.
    Claim,
    /// A generation is published also below the highest that ever was.
    Highest,
    /// The pointer moves in one transaction, the task ends in another.
    Together,
    /// A rollback brings the publication number of old back.
    Growth,
}

/// The bounds of a search.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    /// How often each publication is claimed at most.
    pub claims: u8,
    /// How often people roll back at most.
    pub rollbacks: u8,
    /// The rule that is left out.
    pub left: Left,
}

const NODES: usize = 2;
const TASKS: usize = 2;
/// Publication numbers that a search comes to.
const NUMBERS: usize = 8;

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum End {
    Open,
    Published,
    Withheld,
    Cancelled,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Task {
    /// Of the newest claim of its publication; 0 before the first.
    epoch: u8,
    end: End,
    is_to_be_cancelled: bool,
    /// The publication by which its generation became current first; 0 before that.
    publication: u8,
}

/// What a node believes of a publication, and has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Work {
    /// Its own claim; 0 is none.
    epoch: u8,
    /// The epoch of its write, which may be obeyed at any time, once or twice.
    written: u8,
    /// Where the rule `Together` is left out: its pointer has moved, its task has yet to end.
    moved: bool,
}

/// What must never be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Broken {
    went_back: bool,
    older_write: bool,
    published_twice: bool,
    after_cancel: bool,
    number_twice: bool,
    lost: bool,
}

/// One moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Moment {
    tasks: [Task; TASKS],
    works: [[Work; TASKS]; NODES],
    current: u8,
    highest: u8,
    publication: u8,
    /// The generation that each publication number named; 0 is none yet.
    named: [u8; NUMBERS],
    rollbacks: u8,
    broken: Broken,
}

/// One step of somebody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A node claims the publication of a task.
    Claim(usize, usize),
    /// It sends what it has worked out.
    Send(usize, usize),
    /// The database obeys that; it stays under way.
    Apply(usize, usize),
    /// The second half, where there are two.
    End(usize, usize),
    /// People cancel a task.
    Cancel(usize),
    /// A node gives back what is to be cancelled.
    GiveBack(usize, usize),
    /// People make the first generation current again.
    RollBack,
}

impl Model for Setup {
    type State = Moment;
    type Action = Step;

    fn init_states(&self) -> Vec<Moment> {
        let task = Task {
            epoch: 0,
            end: End::Open,
            is_to_be_cancelled: false,
            publication: 0,
        };
        vec![Moment {
            tasks: [task; TASKS],
            works: [[Work::default(); TASKS]; NODES],
            current: 0,
            highest: 0,
            publication: 0,
            named: [0; NUMBERS],
            rollbacks: self.rollbacks,
            broken: Broken::default(),
        }]
    }

    fn actions(&self, _: &Moment, steps: &mut Vec<Step>) {
        for task in 0..TASKS {
            for node in 0..NODES {
                steps.extend([Step::Claim(node, task), Step::Send(node, task)]);
                steps.extend([Step::Apply(node, task), Step::End(node, task)]);
                steps.push(Step::GiveBack(node, task));
            }
            steps.push(Step::Cancel(task));
        }
        steps.push(Step::RollBack);
    }

    fn next_state(&self, last: &Moment, step: Step) -> Option<Moment> {
        let mut state = *last;
        match step {
            Step::Claim(node, task) => self.claim(&mut state, node, task)?,
            Step::Send(node, task) => {
                let work = &mut state.works[node][task];
                work.written = work.epoch;
            }
            Step::Apply(node, task) => self.apply(&mut state, node, task)?,
            Step::End(node, task) => self.end(&mut state, node, task)?,
            Step::Cancel(task) => state.tasks[task].is_to_be_cancelled = true,
            Step::GiveBack(node, task) => give_back(&mut state, node, task)?,
            Step::RollBack => self.roll_back(&mut state)?,
        }
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Setup>> {
        vec![
            Property::<Setup>::always("the pointer goes back by a rollback alone", |_, state| {
                !state.broken.went_back
            }),
            Property::<Setup>::always("no publication of an older claim", |_, state| {
                !state.broken.older_write
            }),
            Property::<Setup>::always("no generation is published twice", |_, state| {
                !state.broken.published_twice
            }),
            Property::<Setup>::always("nothing is published of a cancelled task", |_, state| {
                !state.broken.after_cancel
            }),
            Property::<Setup>::always("a publication number names one generation", |_, state| {
                !state.broken.number_twice
            }),
            Property::<Setup>::always("what was published is not withheld", |_, state| {
                !state.broken.lost
            }),
            Property::<Setup>::sometimes("a take-over publishes", |_, state| {
                state.tasks[0].epoch > 1 && state.tasks[0].end == End::Published
            }),
            Property::<Setup>::sometimes("a generation comes too late", |_, state| {
                state.tasks[0].end == End::Withheld
            }),
            Property::<Setup>::sometimes("both are published, rolled back and forth", |_, state| {
                let is_published = |task: &Task| task.end == End::Published;
                state.tasks.iter().all(is_published) && state.current == 1 && state.publication == 3
            }),
            Property::<Setup>::sometimes("one is cancelled while a write of it is under way", |_, state| {
                state.tasks[1].end == End::Cancelled && state.works[0][1].written > 0
            }),
        ]
    }
}

impl Setup {
    fn claim(&self, state: &mut Moment, node: usize, task: usize) -> Option<()> {
        let of = &mut state.tasks[task];
        if of.end != End::Open || of.epoch == self.claims {
            return None;
        }
        of.epoch += 1;
        state.works[node][task] = Work {
            epoch: of.epoch,
            // What it sent under an earlier claim may still arrive.
            ..state.works[node][task]
        };
        Some(())
    }

    /// Whether a write under this epoch counts.
    fn counts(&self, task: Task, epoch: u8) -> bool {
        self.left == Left::Claim || (task.epoch == epoch && task.end == End::Open)
    }

    fn apply(&self, state: &mut Moment, node: usize, at: usize) -> Option<()> {
        let (task, written) = (state.tasks[at], state.works[node][at].written);
        if written == 0 || state.works[node][at].moved || !self.counts(task, written) {
            return None;
        }
        let no = at as u8 + 1;
        let is_late = no <= state.highest && self.left != Left::Highest;
        if is_late {
            state.broken.lost |= task.publication > 0 && task.end == End::Open;
            state.tasks[at].end = End::Withheld;
            return Some(());
        }
        state.broken.went_back |= no < state.highest;
        state.broken.older_write |= written < task.epoch;
        state.broken.published_twice |= task.publication > 0;
        state.broken.after_cancel |= task.end == End::Cancelled;
        state.highest = state.highest.max(no);
        let publication = state.publication + 1;
        move_to(state, no, publication)?;
        state.tasks[at].publication = publication;
        if self.left == Left::Together {
            state.works[node][at].moved = true;
        } else {
            state.tasks[at].end = End::Published;
        }
        Some(())
    }

    fn end(&self, state: &mut Moment, node: usize, at: usize) -> Option<()> {
        let work = &mut state.works[node][at];
        if !std::mem::take(&mut work.moved) {
            return None;
        }
        let written = work.written;
        if self.counts(state.tasks[at], written) {
            state.tasks[at].end = End::Published;
        }
        Some(())
    }

    fn roll_back(&self, state: &mut Moment) -> Option<()> {
        let first = state.tasks[0];
        if state.rollbacks == 0 || first.publication == 0 || state.current == 1 {
            return None;
        }
        state.rollbacks -= 1;
        let next = match self.left {
            Left::Growth => first.publication,
            _ => state.publication + 1,
        };
        move_to(state, 1, next)?;
        state.tasks[0].publication = next;
        Some(())
    }
}

/// Who owns the claim gives back what is to be cancelled.
fn give_back(state: &mut Moment, node: usize, at: usize) -> Option<()> {
    let (task, work) = (&mut state.tasks[at], state.works[node][at]);
    let is_own = work.epoch > 0 && work.epoch == task.epoch;
    if !is_own || task.end != End::Open || !task.is_to_be_cancelled {
        return None;
    }
    task.end = End::Cancelled;
    Some(())
}

/// Makes a generation current under a publication number; none beyond the bounds of the search.
fn move_to(state: &mut Moment, no: u8, publication: u8) -> Option<()> {
    let named = state.named.get_mut(usize::from(publication))?;
    // A number that readers know with one generation must not stand for another.
    state.broken.number_twice |= (*named != 0 && *named != no) || publication <= state.publication;
    (*named, state.current, state.publication) = (no, no, publication);
    Some(())
}

/// How many states there are, and the properties that fail or are never seen, each with the steps that show it.
pub fn search(setup: Setup) -> (usize, Vec<(&'static str, String)>) {
    explore(setup)
}
