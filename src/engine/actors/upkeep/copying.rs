//! Copying of one dataset under a claim that is kept meanwhile, and checks that copies are still there.

use std::time::Duration;

use crate::actors::runtime::context::NodeContext;
use crate::actors::upkeep::sink_follower::SinkParts;
use crate::ports::datasets::sink::{Copied, SINK_LEASE, SinkEnd, SinkError, SinkJob};
use crate::ports::handling::meters::CopyFate;
use windrow_core::items::retry::doubled;

/// First and longest delay before another try, doubled with each one.
const RETRY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));
/// Copies read in one query.
const CHECKED_AT_ONCE: u32 = 100;

/// Makes or removes a copy, and records the outcome.
pub(crate) async fn copy(node: &NodeContext, parts: &SinkParts, job: SinkJob) {
    let outcome = tokio::select! {
        outcome = parts.copier.follow(&job) => outcome,
        () = keep(parts, &job) => Err(SinkError::Fenced),
    };
    // No effect if another node has the claim by now.
    let end = outcome.unwrap_or_else(|error| SinkEnd::Failed {
        text: error.to_string(),
        again: doubled(RETRY, job.attempts),
    });
    match parts.store.end_sink(&job, &end).await {
        Ok(true) => tell(node, &job, &end),
        Ok(false) => tracing::debug!(
            dataset = job.name,
            epoch = job.epoch,
            "another node copies the dataset"
        ),
        Err(error) => {
            tracing::warn!(dataset = job.name, %error, "outcome of a copy not stored; checking it again")
        }
    }
}

/// Keeps the claim; returns when this node no longer has it.
async fn keep(parts: &SinkParts, job: &SinkJob) {
    loop {
        tokio::time::sleep(SINK_LEASE / 3).await;
        match parts.store.keep_sink(job).await {
            Ok(true) => {}
            Ok(false) => return,
            // A node that takes it meanwhile has a newer claim, which is the only one that counts then.
            Err(error) => tracing::debug!(%error, "claim on a copy not extended"),
        }
    }
}

/// Logs the outcome; of several failures in a row the first one as a warning.
fn tell(node: &NodeContext, job: &SinkJob, end: &SinkEnd) {
    let (dataset, attempts) = (job.name.as_str(), job.attempts);
    match end {
        SinkEnd::Copied {
            publication,
            generation,
        } => {
            node.meters.copied(CopyFate::Copied);
            tracing::info!(dataset, publication, %generation, attempts, "dataset copied to its sink");
        }
        SinkEnd::Removed => {
            node.meters.copied(CopyFate::Removed);
            tracing::info!(dataset, "dataset removed from its sink");
        }
        SinkEnd::Failed { text, again } => {
            node.meters.copied(CopyFate::Failed);
            let wait_s = again.as_secs();
            if attempts == 0 {
                tracing::warn!(
                    dataset,
                    error = text,
                    wait_s,
                    "dataset not copied to its sink; trying again"
                );
            } else {
                tracing::debug!(
                    dataset,
                    error = text,
                    attempts,
                    wait_s,
                    "dataset not copied to its sink"
                );
            }
        }
    }
}

/// Checks that all copies are still there: their sink may have lost its data.
pub(crate) async fn check(node: &NodeContext, parts: &SinkParts) {
    let mut after = None;
    loop {
        let copied = match parts.store.sinks_copied(after, CHECKED_AT_ONCE).await {
            Ok(copied) => copied,
            Err(error) => return tracing::debug!(%error, "copies not checked"),
        };
        for one in &copied {
            match parts.copier.is_there(one).await {
                Ok(true) => {}
                Ok(false) => lose(node, parts, one).await,
                // An unreachable sink is logged where copies are made.
                Err(error) => return tracing::debug!(%error, "copies not checked"),
            }
        }
        match copied.last() {
            Some(last) if copied.len() as u32 == CHECKED_AT_ONCE => after = Some(last.dataset),
            _ => return,
        }
    }
}

async fn lose(node: &NodeContext, parts: &SinkParts, lost: &Copied) {
    match parts.store.lose_sink(lost).await {
        Ok(()) => {
            node.meters.copied(CopyFate::Lost);
            let publication = lost.publication;
            tracing::warn!(
                dataset = lost.name,
                publication,
                "copy missing from its sink; copying again"
            );
        }
        Err(error) => tracing::debug!(dataset = lost.name, %error, "missing copy not recorded"),
    }
}
