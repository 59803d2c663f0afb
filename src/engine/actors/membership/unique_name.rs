//! Uniqueness of node names: people drain a node, and move shards to it, by its name.
//!
//! A node that starts while another session has its name waits until it knows whether that one is alive. A node that
//! was killed leaves its row; its successor need not wait for the whole lease, since nothing is taken from it here.

use std::time::Duration;

use crate::actors::runtime::begin;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::handle::NotStarted;
use windrow_core::ids::{Moment, SessionId};

/// Heartbeat intervals, plus `WAY` for delivery, within which a live session shows a new heartbeat.
const BEATS: u32 = 3;
const WAY: Duration = Duration::from_secs(1);
/// Checks within one heartbeat interval.
const LOOKS_PER_BEAT: u32 = 4;

/// Waits until no other live node can have the name.
///
/// # Errors
/// If one has it, or the store stays unavailable.
pub(crate) async fn await_name(node: &NodeContext) -> Result<(), NotStarted> {
    if node.exclusive {
        // The holder of the state directory's lock knows that older sessions are dead.
        return Ok(());
    }
    let before = same_name(node).await?;
    let patience = (node.times.heartbeat * BEATS + WAY).min(node.times.lease_ttl);
    let until: Moment = node.clock.now().plus(patience);
    if !before.is_empty() {
        tracing::info!(
            node = node.node,
            "a session of this name already exists; waiting for its heartbeat"
        );
    }
    while !before.is_empty() && node.clock.now() < until {
        tokio::time::sleep(node.times.heartbeat / LOOKS_PER_BEAT).await;
        let now = same_name(node).await?;
        if now
            .iter()
            .any(|(id, heartbeat)| before.iter().any(|(was, old)| was == id && old != heartbeat))
        {
            return Err(NotStarted::NameTaken(node.node.clone()));
        }
        if now.is_empty() {
            break;
        }
    }
    Ok(())
}

async fn same_name(node: &NodeContext) -> Result<Vec<(SessionId, i64)>, NotStarted> {
    let sessions = begin::asked(|| node.sessions.list()).await?;
    let same = sessions
        .into_iter()
        .filter(|session| !session.fenced && session.node == node.node);
    Ok(same.map(|session| (session.id, session.heartbeat)).collect())
}
