//! Measurements that a node keeps between scrapes.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::board::Board;
use super::requests::Requests;
use crate::service::node::actors::ActorView;

/// Sums of restarts by kind, and the last number seen by path.
type Restarts = (BTreeMap<&'static str, u64>, BTreeMap<String, u32>);

/// Measurements of a node, with the state at the last look.
#[derive(Default)]
pub(crate) struct Meter {
    pub(super) requests: Requests,
    board: Mutex<Board>,
    /// Serializes looks, so that a run is recorded first as live and then as ended.
    pub(super) looking: tokio::sync::Mutex<()>,
    /// Restarts by kind, and by path as last seen.
    restarts: Mutex<Restarts>,
}

impl Meter {
    pub(super) fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note_restarts(&self, actors: &[ActorView]) -> BTreeMap<&'static str, u64> {
        let mut restarts = self.restarts.lock().unwrap_or_else(PoisonError::into_inner);
        let (sums, seen) = &mut *restarts;
        for actor in actors {
            let before = seen.insert(actor.path.clone(), actor.restarts).unwrap_or(0);
            *sums.entry(actor.kind.as_str()).or_default() += u64::from(actor.restarts.saturating_sub(before));
        }
        seen.retain(|path, _| actors.iter().any(|actor| actor.path == *path));
        sums.clone()
    }
}
