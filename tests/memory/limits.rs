//! Parts of shared limits.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::state::State;
use super::{Call, MemoryStore};
use windrow_core::limit::Bounds;
use windrow_core::limit::round::{Round, Row, settle};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::limit_store::{LimitStore, PartView, RoundOutcome, part_view};

/// The parts of one limit.
#[derive(Clone, Debug, Default)]
pub(super) struct Limit {
    round_no: u64,
    rows: Vec<Row>,
}

#[async_trait]
impl LimitStore for MemoryStore {
    async fn bounds(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, Bounds>, StoreError> {
        self.act(Call::Read, |state| {
            let known = state
                .bounds
                .iter()
                .filter(|(name, bounds)| names.contains(*name) && bounds.is_limited());
            Ok(known.map(|(name, bounds)| (name.clone(), *bounds)).collect())
        })
        .await
    }

    async fn play(&self, rounds: &[(String, Round)]) -> Result<Vec<RoundOutcome>, StoreError> {
        if let Some((_, round)) = rounds.first() {
            self.faults().while_frozen(round.session).await;
        }
        self.act(Call::Limit, |state| {
            Ok(rounds
                .iter()
                .map(|(name, round)| play(state, name, round))
                .collect())
        })
        .await
    }

    async fn parts(&self, name: &str) -> Result<Vec<PartView>, StoreError> {
        self.act(Call::Read, |state| {
            let rows = state
                .limits
                .get(name)
                .map(|limit| limit.rows.clone())
                .unwrap_or_default();
            let node = |row: &Row| {
                state
                    .sessions
                    .get(&row.session)
                    .map(|session| session.node.clone())
            };
            let live = rows.iter().filter(|row| state.is_live(row.session));
            Ok(live
                .map(|row| part_view(row, node(row).unwrap_or_default()))
                .collect())
        })
        .await
    }
}

fn play(state: &mut State, name: &str, round: &Round) -> RoundOutcome {
    if !state.is_live(round.session) {
        return RoundOutcome::Fenced;
    }
    let bounds = state.bounds.get(name).copied().unwrap_or_default();
    let mut limit = state.limits.remove(name).unwrap_or_default();
    limit.rows.retain(|row| state.is_live(row.session));
    limit.round_no += 1;
    let round_no = limit.round_no;
    let settled = settle(&bounds, &limit.rows, round);
    if let Some((row, _)) = &settled {
        limit.rows.retain(|other| other.session != row.session);
        limit.rows.push(row.clone());
    }
    state.limits.insert(name.to_owned(), limit);
    settled.map_or(RoundOutcome::Late, |(_, allocated)| RoundOutcome::Allocated {
        bounds,
        allocated,
        round_no,
    })
}
