//! Making of the task of one fire, for as long as that takes, under a lease that is kept meanwhile.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;
use windrow_words::engine as say;

use futures_util::FutureExt;

use crate::actors::runtime::context::{NodeContext, ScheduleParts};
use crate::ports::access::actor::Actor;
use crate::ports::schedules::maker::FireFault;
use crate::ports::schedules::store::{FIRE_LEASE, FireOutcome, TakenFire};
use crate::ports::tasks::store::{CommandError, TaskCommand};
use windrow_core::ids::TaskId;

/// Tries of a fire whose task is refused: its source may not be there yet.
const TRIES: u32 = 4;
/// Delay after the first try; each further one is four times as long.
const RETRY_FIRST: Duration = Duration::from_secs(5);
/// Longest time to make one task, including the fetch and count of its source.
const MAKING_MAX: Duration = Duration::from_secs(15 * 60);

/// Makes the task of a fire, or records why it failed.
pub(crate) async fn make(node: &NodeContext, parts: &ScheduleParts, fire: TakenFire) {
    let Some(maker) = parts.maker.get() else { return };
    let making = AssertUnwindSafe(maker.make(&fire)).catch_unwind();
    let making = tokio::time::timeout(MAKING_MAX, making);
    let outcome = tokio::select! {
        made = making => match made {
            Ok(made) => made.unwrap_or_else(|panic| Err(panicked(&*panic))),
            Err(_) => Err(late()),
        },
        () = keep(parts, &fire) => return,
    };
    let (schedule, at) = (fire.schedule.id, fire.time.to_rfc3339());
    match outcome {
        Ok(task) => {
            tracing::info!(%schedule, at, %task, "schedule fired");
            node.meters.fired(FireOutcome::Made, 1);
        }
        Err(FireFault::Over) => tracing::debug!(%schedule, at, "fire settled by another node"),
        Err(FireFault::Store(error)) => {
            tracing::warn!(
                %schedule,
                at,
                %error,
                "task of the fire not created; trying again after the lease"
            );
            if let Err(error) = parts.store.put_back_fire(schedule, fire.time).await {
                tracing::debug!(%error, "fire not put back; the attempt counts");
            }
        }
        Err(FireFault::Refused(text)) => fail(node, parts, &fire, (&text, again(&fire))).await,
        Err(FireFault::Bug(cause)) => {
            tracing::error!(%schedule, at, cause, "task of the fire not created because of a bug");
            fail(node, parts, &fire, (say::bug_of_fire().english(), again(&fire))).await;
        }
        Err(FireFault::NameTaken(text)) => fail(node, parts, &fire, (&text, None)).await,
    }
}

/// Returns the delay before a refused fire is tried again, or `None` after the last try.
fn again(fire: &TakenFire) -> Option<Duration> {
    (fire.attempts + 1 < TRIES).then(|| RETRY_FIRST * 4_u32.pow(fire.attempts.min(8)))
}

fn late() -> FireFault {
    FireFault::Refused(say::source_late(MAKING_MAX).to_string())
}

/// Returns the fault for a panic. Left to the lease, the fire would be pending for minutes without a reason.
fn panicked(panic: &(dyn Any + Send)) -> FireFault {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    FireFault::Bug(format!("panicked: {text}"))
}

/// Keeps the fire; returns when this node may no longer make it.
async fn keep(parts: &ScheduleParts, fire: &TakenFire) {
    loop {
        tokio::time::sleep(FIRE_LEASE / 3).await;
        match parts.store.keep_fire(fire.schedule.id, fire.time).await {
            Ok(true) => {}
            Ok(false) => return,
            // A node that takes it meanwhile makes the same task, and one of the two settles it.
            Err(error) => tracing::debug!(%error, "claim on a fire not extended"),
        }
    }
}

async fn fail(
    node: &NodeContext,
    parts: &ScheduleParts,
    fire: &TakenFire,
    (text, again): (&str, Option<Duration>),
) {
    let (schedule, at) = (fire.schedule.id, fire.time.to_rfc3339());
    if let Err(error) = parts.store.fail_fire(schedule, fire.time, text, again).await {
        tracing::warn!(%schedule, at, %error, "failure of the fire not stored; trying again after the lease");
        return;
    }
    match again {
        Some(wait) => {
            tracing::warn!(
                %schedule,
                at,
                error = text,
                wait_s = wait.as_secs(),
                "task of the fire not created; trying again"
            );
        }
        None => {
            tracing::error!(%schedule, at, error = text, "fire failed: no task created");
            node.meters.fired(FireOutcome::Failed, 1);
        }
    }
}

/// Cancels a task that is in the way of a newer fire. Returns true if it was not over before.
pub(crate) async fn cancel(node: &NodeContext, task: TaskId) -> bool {
    let write = Actor::windrow(Some(say::newer_fire().to_string())).writes();
    match node
        .tasks
        .command(task, &TaskCommand::Cancel, &write, node.clock.wall())
        .await
    {
        Ok(_) => true,
        Err(CommandError::Store(error)) => {
            tracing::warn!(%task, %error, "blocking task not cancelled; trying again");
            false
        }
        // The task ended on its own, or another cancel was first.
        Err(error) => {
            tracing::debug!(%task, %error, "blocking task needs no cancel");
            false
        }
    }
}
