//! Parts of shared limits.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;

use super::state::State;
use super::{Call, MemoryStore};
use windrow_core::limit::Bounds;
use windrow_core::limit::round::{Round, Row, Terms, play as play_round};
use windrow_core::limit::units::settle::uses_of;
use windrow_core::limit::units::{Ledger, Use};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::limit_store::{LimitStore, PartView, RoundOutcome, part_view};

/// The parts of one limit.
#[derive(Clone, Debug, Default)]
pub(super) struct Limit {
    round_no: u64,
    rows: Vec<Row>,
    ledger: Vec<Ledger>,
}

#[async_trait]
impl LimitStore for MemoryStore {
    async fn bounds(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, Bounds>, StoreError> {
        self.act(Call::Read, |state| {
            let known = state
                .bounds
                .iter()
                .filter(|(name, bounds)| names.contains(*name) && bounds.is_limited());
            let mut found: BTreeMap<String, Bounds> =
                known.map(|(name, bounds)| (name.clone(), *bounds)).collect();
            let metered = state.meterings.keys().filter(|name| names.contains(*name));
            metered.for_each(|name| {
                found.entry(name.clone()).or_default();
            });
            Ok(found)
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

    async fn uses(&self, name: &str) -> Result<Vec<Use>, StoreError> {
        self.act(Call::Read, |state| {
            let limit = state.limits.get(name).cloned().unwrap_or_default();
            let (live, gone): (Vec<Row>, Vec<Row>) = limit
                .rows
                .iter()
                .cloned()
                .partition(|row| state.is_live(row.session));
            Ok(uses_of(&terms(state, name, &limit), &live, &gone))
        })
        .await
    }
}

fn play(state: &mut State, name: &str, round: &Round) -> RoundOutcome {
    if !state.is_live(round.session) {
        return RoundOutcome::Fenced;
    }
    let mut limit = state.limits.remove(name).unwrap_or_default();
    let terms = terms(state, name, &limit);
    let (mut live, gone): (Vec<Row>, Vec<Row>) = limit
        .rows
        .iter()
        .cloned()
        .partition(|row| state.is_live(row.session));
    limit.round_no += 1;
    let round_no = limit.round_no;
    let played = play_round(&terms, &live, &gone, round);
    if let Some(played) = &played {
        live.retain(|other| other.session != played.row.session);
        live.push(played.row.clone());
        (limit.rows, limit.ledger) = (live, played.ledger.clone());
    }
    state.limits.insert(name.to_owned(), limit);
    played.map_or(RoundOutcome::Late, |played| RoundOutcome::Allocated {
        bounds: terms.bounds,
        allocated: played.allocated,
        units: (Box::new(terms.metering), played.dealt),
        round_no,
    })
}

fn terms(state: &State, name: &str, limit: &Limit) -> Terms {
    Terms {
        bounds: state.bounds.get(name).copied().unwrap_or_default(),
        metering: state.meterings.get(name).cloned().unwrap_or_default(),
        ledger: limit.ledger.clone(),
        now: super::schedules::now(),
    }
}
