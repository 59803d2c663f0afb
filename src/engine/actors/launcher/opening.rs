//! Steps from an offered shard to everything its run needs: lease, claim, progress, settings, handler, source.
//!
//! Plain async steps, run as a task of the launcher; nothing here blocks a mailbox.

use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use tokio::sync::OwnedSemaphorePermit;

use crate::actors::launcher::takeover;
pub(crate) use crate::actors::launcher::takeover::give_lease_back;
use crate::actors::launcher::talk;
use crate::actors::launcher::{Arguments, LauncherEnd, Unclaimable};
use crate::actors::runtime::context::NodeContext;
use crate::ports::StoreError;
use crate::ports::ownership::gate::Gate;
use crate::ports::ownership::lease_store::LeaseKey;
use crate::ports::ownership::run_store::{ClaimOutcome, ClaimRequest, ClaimedShard, Control, RunClose};
use crate::ports::sources::provision::{Provision, ProvisionError};
use crate::ports::tasks::store::TaskView;
use windrow_core::checkpoint;
use windrow_core::execution::{Extension, Restored};
use windrow_core::ids::{ClaimId, WallMs};
use windrow_core::items::verdict::ParkedItem;
use windrow_core::task::lifecycle::{Desired, KEY_MISSING, StopReason};

/// Delay between two tries of a step that failed temporarily.
pub(crate) const STEP_RETRY: Duration = Duration::from_millis(200);
/// Number of tries of a step before the shard is given back and offered again.
pub(crate) const STEP_TRIES: u32 = 25;
/// Maximum number of parked rows read per page.
const PARKED_PAGE: u32 = 2_000;
/// Delay before a shard whose handler or source was unavailable is tried again.
const UNAVAILABLE_RETRY: Duration = Duration::from_secs(5);

/// Shard that this node owns, ready to run.
pub(crate) struct Claimed {
    pub(crate) shard: ClaimedShard,
    pub(crate) gate: Arc<Gate>,
    pub(crate) key: LeaseKey,
    pub(crate) task: TaskView,
    pub(crate) control: Control,
    pub(crate) restored: Restored,
    pub(crate) provision: Provision,
}

/// Publication of a task that this node owns.
pub(crate) struct ClaimedPublication {
    pub(crate) shard: ClaimedShard,
    pub(crate) key: LeaseKey,
    pub(crate) task: TaskView,
}

/// Result of a successful claim.
pub(crate) enum Opened {
    /// Shard with items to run.
    Run(Box<Claimed>),
    /// Shard without items: the results of its task are to be published.
    Publication(Box<ClaimedPublication>),
}

impl Opened {
    /// Returns the lease taken for the shard.
    pub(crate) fn key(&self) -> LeaseKey {
        match self {
            Opened::Run(claimed) => claimed.key,
            Opened::Publication(claimed) => claimed.key,
        }
    }
}

pub(crate) enum NotClaimed {
    /// Not owned, or the store failed and the heartbeat's list will show whether it is owned.
    End(LauncherEnd),
    /// Owned but unable to run: release it with this close.
    Unfit(Box<(ClaimedShard, RunClose)>),
}

impl NotClaimed {
    /// Result if another node has the shard, or will have it.
    pub(crate) const LOST: NotClaimed = NotClaimed::End(LauncherEnd::NotOwned);

    fn unfit(shard: ClaimedShard, close: RunClose) -> NotClaimed {
        NotClaimed::Unfit(Box::new((shard, close)))
    }

    /// Returns the result for a shard that can't be taken for now.
    pub(crate) fn unclaimable(why: Unclaimable) -> NotClaimed {
        NotClaimed::End(LauncherEnd::Unclaimable(why))
    }

    fn store_failed(error: StoreError) -> NotClaimed {
        NotClaimed::End(LauncherEnd::StillOwned(error.to_string()))
    }
}

/// Takes the lease, claims the shard and gathers what its run needs. The permit is returned once the store has been
/// read, since opening a source may take long.
pub(crate) async fn claim(
    arguments: &Arguments,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Opened, NotClaimed> {
    let Arguments {
        node,
        candidate,
        life,
        ..
    } = arguments;
    let keeper = &arguments.routes.lease_keeper;
    let key = LeaseKey {
        shard: candidate.rank.shard,
        claim: ClaimId(node.new_ids.make()),
    };
    let gate = Arc::new(Gate::new(life.trust.clone()).lease_alone_for(node.times.lease_alone()));
    let hold = takeover::secure(arguments, key, &gate).await?;
    let request = ClaimRequest {
        shard: candidate.rank.shard,
        seen: candidate.epoch,
        claim: key.claim,
        session: life.id,
        now: node.clock.wall(),
    };
    let not_claimed = match takeover::claim(node, request, hold).await {
        Ok(ClaimOutcome::Claimed(shard)) => {
            let prepared = prepare(node, *shard, gate, key, permit).await;
            if prepared.is_err() {
                give_lease_back(key, keeper);
            }
            return prepared;
        }
        Ok(ClaimOutcome::Lost) => NotClaimed::LOST,
        Ok(ClaimOutcome::Newer(version)) => NotClaimed::unclaimable(Unclaimable::Newer(version)),
        Err(error) => NotClaimed::store_failed(error),
    };
    give_lease_back(key, keeper);
    Err(not_claimed)
}

async fn prepare(
    node: &NodeContext,
    shard: ClaimedShard,
    gate: Arc<Gate>,
    key: LeaseKey,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Opened, NotClaimed> {
    if shard.desired != Desired::Run {
        // Claimed only to commit its end: the parts needed to run may be gone.
        return Err(NotClaimed::unfit(shard, RunClose::Released));
    }
    if shard.shard.is_publication() {
        return publication(node, shard, key).await;
    }
    // In parallel: with a distant store, one after the other would take seconds.
    let read = tokio::try_join!(
        retrying(|| node.tasks.get(shard.shard.task)),
        retrying(|| node.runs.control(shard.shard)),
        read_parked(node, &shard),
    );
    let (task, control, parked) = read.map_err(NotClaimed::store_failed)?;
    let Some(task) = task else {
        return Err(NotClaimed::LOST);
    };
    let restored = match restore(&shard, parked) {
        Ok(restored) => restored,
        Err(text) => {
            let close = RunClose::stopped(StopReason::CheckpointCorrupt, text);
            return Err(NotClaimed::unfit(shard, close));
        }
    };
    drop(permit);
    match node.provider.provide(&task).await {
        Ok(provision) => {
            let handler = (&*task.business, provision.handler.service());
            let restored = talk::with_last_found(node, handler, &control, restored).await;
            Ok(Opened::Run(Box::new(Claimed {
                shard,
                gate,
                key,
                task,
                control,
                restored,
                provision,
            })))
        }
        Err(error) => Err(NotClaimed::unfit(shard, close_for(error, node.clock.wall()))),
    }
}

/// Prepares a publication. It needs only the task: results are read as they are processed.
async fn publication(node: &NodeContext, shard: ClaimedShard, key: LeaseKey) -> Result<Opened, NotClaimed> {
    if shard.stalls > node.times.restore_max {
        let text = say::crash_loop(shard.stalls);
        let close = RunClose::stopped(StopReason::CrashLoop, text.to_string());
        return Err(NotClaimed::unfit(shard, close));
    }
    let task = retrying(|| node.tasks.get(shard.shard.task)).await;
    match task.map_err(NotClaimed::store_failed)? {
        Some(task) => Ok(Opened::Publication(Box::new(ClaimedPublication {
            shard,
            key,
            task,
        }))),
        None => Err(NotClaimed::LOST),
    }
}

fn close_for(error: ProvisionError, now: WallMs) -> RunClose {
    match error {
        ProvisionError::SourceChanged(text) => RunClose::stopped(StopReason::SourceChanged, text),
        ProvisionError::HandlerUnusable(text) => RunClose::stopped(StopReason::HandlerRejected, text),
        ProvisionError::KeyMissing(text) => tried_again(KEY_MISSING, text, now),
        ProvisionError::Unavailable(text) => tried_again("unavailable", text, now),
    }
}

/// Returns a close that lets any node take the shard again in a moment; it doesn't count as a recovery.
fn tried_again(reason: &str, text: String, now: WallMs) -> RunClose {
    RunClose::Recovering {
        not_before: now.plus(UNAVAILABLE_RETRY),
        reason: reason.to_owned(),
        text,
        nth: None,
    }
}

async fn read_parked(node: &NodeContext, shard: &ClaimedShard) -> Result<Vec<ParkedItem>, StoreError> {
    let mut parked: Vec<ParkedItem> = Vec::new();
    loop {
        let after = parked.last().map(|item| (item.due_at, item.index));
        let page = retrying(|| {
            node.runs
                .parked_due(shard.shard, WallMs(i64::MAX), after, PARKED_PAGE)
        })
        .await?;
        let full = page.len() == PARKED_PAGE as usize;
        parked.extend(page);
        if !full {
            return Ok(parked);
        }
    }
}

/// Decodes the saved progress. Unreadable progress is an error, never an empty start.
fn restore(shard: &ClaimedShard, parked: Vec<ParkedItem>) -> Result<Restored, String> {
    let snapshot = match shard.blob.is_empty() {
        true => checkpoint::Snapshot::default(),
        false => checkpoint::decode(&shard.blob, shard.watermark).map_err(|error| error.to_string())?,
    };
    let extension = Extension::of(&snapshot.extension).map_err(|error| error.to_string())?;
    Ok(Restored {
        watermark: shard.watermark,
        high_water: shard.high_water,
        horizon: shard.horizon,
        counters: shard.counters,
        found: extension.found(),
        meters: extension.meters,
        is_use_unknown: extension.is_restored,
        above: snapshot.words,
        retrying: shard.retrying.clone(),
        parked,
        excluded: shard.finish_at,
        outage: shard.outage,
        is_proven: false,
    })
}

/// Repeats a step while the store is unavailable, up to `STEP_TRIES` times.
pub(crate) async fn retrying<T, F>(mut step: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut tries = 0;
    loop {
        match step().await {
            Err(error @ StoreError::Unavailable(_)) if tries < STEP_TRIES => {
                tracing::debug!(%error, tries, "store unavailable; trying again");
                tries += 1;
                tokio::time::sleep(STEP_RETRY).await;
            }
            outcome => return outcome,
        }
    }
}
