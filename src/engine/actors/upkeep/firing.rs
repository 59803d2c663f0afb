//! Makes the task of one fire, for as long as that takes, under a lease that is kept meanwhile.

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

/// How often a fire is tried whose task is refused: its source may not be there yet.
const TRIES: u32 = 4;
/// The wait after the first of them; each further one is four times as long.
const RETRY_FIRST: Duration = Duration::from_secs(5);
/// Longest time that making one task may take: its source is fetched and counted in it.
const MAKING_MAX: Duration = Duration::from_secs(15 * 60);

/// Makes the task of a fire, or notes why not.
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
        Err(FireFault::Over) => tracing::debug!(%schedule, at, "the fire was settled by another node"),
        Err(FireFault::Store(error)) => {
            tracing::warn!(%schedule, at, %error, "the task of a fire was not made; it is tried again after its lease");
            if let Err(error) = parts.store.put_back_fire(schedule, fire.time).await {
                tracing::debug!(%error, "a fire was not put back; the try counts");
            }
        }
        Err(FireFault::Refused(text)) => fail(node, parts, &fire, (&text, again(&fire))).await,
        Err(FireFault::Bug(cause)) => {
            tracing::error!(%schedule, at, cause, "the task of a fire was not made by a bug");
            fail(node, parts, &fire, (say::bug_of_fire().english(), again(&fire))).await;
        }
        Err(FireFault::NameTaken(text)) => fail(node, parts, &fire, (&text, None)).await,
    }
}

/// When a fire that was refused is tried again, if it is.
fn again(fire: &TakenFire) -> Option<Duration> {
    (fire.attempts + 1 < TRIES).then(|| RETRY_FIRST * 4_u32.pow(fire.attempts.min(8)))
}

fn late() -> FireFault {
    FireFault::Refused(say::source_late(MAKING_MAX).to_string())
}

/// A bug. Left to the lease, the fire would be pending for minutes, and nobody would know why.
fn panicked(panic: &(dyn Any + Send)) -> FireFault {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    FireFault::Bug(format!("panicked: {text}"))
}

/// Keeps the fire; ends when it is no longer this node's to make.
async fn keep(parts: &ScheduleParts, fire: &TakenFire) {
    loop {
        tokio::time::sleep(FIRE_LEASE / 3).await;
        match parts.store.keep_fire(fire.schedule.id, fire.time).await {
            Ok(true) => {}
            Ok(false) => return,
            // Whoever takes it meanwhile makes the same task, and one of both settles it.
            Err(error) => tracing::debug!(%error, "a fire was not kept"),
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
        tracing::warn!(%schedule, at, %error, "a failed fire was not noted; it is tried again after its lease");
        return;
    }
    match again {
        Some(wait) => {
            tracing::warn!(%schedule, at, error = text, wait_s = wait.as_secs(), "no task of a fire; trying again");
        }
        None => {
            tracing::error!(%schedule, at, error = text, "a fire failed: no task was made of it");
            node.meters.fired(FireOutcome::Failed, 1);
        }
    }
}

/// Ends a task that is in the way of a newer fire; says whether that is new.
pub(crate) async fn cancel(node: &NodeContext, task: TaskId) -> bool {
    let write = Actor::windrow(Some(say::newer_fire().to_string())).writes();
    match node
        .tasks
        .command(task, &TaskCommand::Cancel, &write, node.clock.wall())
        .await
    {
        Ok(_) => true,
        Err(CommandError::Store(error)) => {
            tracing::warn!(%task, %error, "a task in the way of a fire was not cancelled; trying again");
            false
        }
        // It ended by itself, or somebody was first.
        Err(error) => {
            tracing::debug!(%task, %error, "a task in the way of a fire needs no cancel");
            false
        }
    }
}
