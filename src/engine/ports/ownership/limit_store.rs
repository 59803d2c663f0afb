//! Limits that several tasks share on all nodes, in the database: one row for each session's share.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use crate::ports::StoreError;
use windrow_core::ids::SessionId;
use windrow_core::limit::round::{Allocated, Round, Row};
use windrow_core::limit::units::{Dealt, Use};
use windrow_core::limit::{Bounds, Part};
use windrow_core::meter::metering::Metering;

/// Outcome of one round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoundOutcome {
    /// The round counts, with its allocation.
    Allocated {
        /// Current bounds of the limit.
        bounds: Bounds,
        /// Allocation of the session.
        allocated: Allocated,
        /// Limits in units as they are now, and the session's shares of them.
        units: (Box<Metering>, Vec<Dealt>),
        /// Number that grows with each round of the limit; a database that lost some shows a lower one than before.
        round_no: u64,
    },
    /// The round came later than a newer one, and changed nothing.
    Late,
    /// The session is fenced: it has no share.
    Fenced,
}

/// Share of one session, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartView {
    /// Session that has the share.
    pub session: SessionId,
    /// Name of its node.
    pub node: String,
    /// Upper bound on its use.
    pub held: Part,
    /// Number of its runs that want something now.
    pub runs: u64,
}

/// Store of the shares of shared limits. A business's own limit has the business's name.
///
/// # Errors
/// Besides the errors of each method: the store can't be read or written.
#[async_trait]
pub trait LimitStore: Send + Sync {
    /// Returns the bounds of these limits; those that limit nothing, not even a unit, are left out.
    async fn bounds(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, Bounds>, StoreError>;

    /// Plays a round of each of these limits, by `core::limit::round::play`: all of them or none. Rounds of one
    /// limit come one after the other. Outcomes are in the order of `rounds`.
    ///
    /// # Errors
    /// If the outcome is unknown: the rounds may count all the same.
    async fn play(&self, rounds: &[(String, Round)]) -> Result<Vec<RoundOutcome>, StoreError>;

    /// Returns the shares of all sessions that aren't fenced.
    async fn parts(&self, name: &str) -> Result<Vec<PartView>, StoreError>;

    /// Returns the use of the totals of a limit.
    async fn uses(&self, name: &str) -> Result<Vec<Use>, StoreError>;
}

/// Converts a row for people.
pub fn part_view(row: &Row, node: String) -> PartView {
    let demand = &row.demand;
    PartView {
        session: row.session,
        node,
        held: row.held,
        // A row of an older node counts no runs, and each of them as 1.
        runs: match demand.runs {
            0 => demand.rates.weight().max(demand.slots.weight()),
            runs => u64::from(runs),
        },
    }
}
