//! The ownership protocol (sessions, leases, claims, fenced writes) as an explicit-state model.
//!
//! A state is one moment of a small cluster: the rows of the database, the leases, what each node believes, and the
//! messages that are under way. An action is one step of one party, a fault, or a tick of time. The search visits
//! *every* order of steps within the bounds of a [`Setup`], so a rule that is needed shows as a path when it is bent.
//!
//! How the world is abstracted:
//! - Time is ticks. Only what remains is stored (of trust, of a lease, of a silence), so states repeat and the search
//!   ends. Nothing is urgent: a node that doesn't act is a paused node, one whose requests don't arrive, or one whose
//!   connection is cut. So pauses and partitions of any length need no fault budget.
//! - A request is answered at once or is *late*: it stays under way, is applied at any later time or never, may be
//!   applied twice, and its reply comes at any later time or never.
//! - A heartbeat is a value that differs from all others (rule 2); only equality is stored.
//! - Items are done in order, so progress is a number. Passing the gate and the answer are two steps.
//!
//! Reading order: `state` (what there is; `hash` makes it cheap to find again), `rules` (what may be bent), `store` (what database and leases do with a
//! request), `node` (what a node does), `receive` (what it makes of replies), `world` (time and faults), `steps` (which
//! actions there are), `check` (properties and the search).

pub mod blocks;
mod check;
mod explore;
mod hash;
pub mod limits;
mod node;
pub mod open;
pub mod publish;
mod receive;
mod rules;
pub mod schedules;
mod state;
mod steps;
mod store;
mod world;

pub use check::{Outcome, Sight, search};
pub use rules::{Bend, Bounds, Setup, Start, Times, Witness};
pub use state::State;
pub use steps::{Protocol, Step};
