//! What the database holds of the limits that several tasks share on all nodes: one row for each session's part.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::SessionId;
use windrow_core::limit::round::{Dealt, Round, Row};
use windrow_core::limit::{Bounds, Part};

/// What one round came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoundOutcome {
    /// It counts.
    Dealt {
        /// What the limit allows now.
        bounds: Bounds,
        /// What the session is told.
        dealt: Dealt,
        /// Grows with each round of the limit: a database that lost some shows a lower one than before.
        round_no: u64,
    },
    /// It came later than a newer one, and changed nothing.
    Late,
    /// The session is fenced: it has no part.
    Fenced,
}

/// The part of one session, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartView {
    /// Whose.
    pub session: SessionId,
    /// Its node's name.
    pub node: String,
    /// What it may use at most.
    pub held: Part,
    /// How many of its runs want something now.
    pub runs: u64,
}

/// Keeps the parts of shared limits. A business's own limit has the business's name.
///
/// # Errors
/// Of each method, beside what it says itself: the store can't be read or written.
#[async_trait]
pub trait LimitStore: Send + Sync {
    /// What these limits allow; those that limit nothing are left out.
    async fn bounds(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, Bounds>, StoreError>;

    /// Plays a round of each of these limits, by `domain::limit::round::settle`: all of them or none. Rounds of one limit
    /// come one after the other. Answers in their order.
    ///
    /// # Errors
    /// When the outcome is unknown: the rounds may count all the same.
    async fn play(&self, rounds: &[(String, Round)]) -> Result<Vec<RoundOutcome>, StoreError>;

    /// The parts of all sessions that aren't fenced.
    async fn parts(&self, name: &str) -> Result<Vec<PartView>, StoreError>;
}

/// How people see a row.
pub fn part_view(row: &Row, node: String) -> PartView {
    let demand = &row.demand;
    PartView {
        session: row.session,
        node,
        held: row.held,
        runs: demand.rates.runs().max(demand.slots.runs()),
    }
}
