//! Limits with a name, which tasks of several businesses use, some of them beside another limit.

use std::time::Duration;

use tokio::time::Instant;
use windrow::domain::ids::TaskId;
use windrow::domain::lifecycle::{Status, StopReason};
use windrow::domain::limit::Bounds;
use windrow::domain::limit::key::LimitKey;
use windrow::domain::settings::RateLimit;
use windrow::ports::clock::Clock;
use windrow::ports::limit_store::LimitStore;
use windrow::ports::task_store::{NewTask, TaskCommand, TaskStore};

use crate::cluster::Cluster;
use crate::limits::{assert_within, is_about, of_rate, seconds, sent, sent_in};
use crate::scripted::Act;
use crate::tasks::{actor, new_task};
use crate::world::World;

/// A node with these limits, whose items take 20 ms.
async fn node_with(name: &str, limits: &'static [(&'static str, Bounds)]) -> World {
    World::start_as(
        name,
        move |world| {
            limits.iter().for_each(|(name, bounds)| world.store.set_limit(LimitKey::Named(name), *bounds));
        },
        |_, _| Act::Slow(Duration::from_millis(20)),
    )
    .await
}

fn under(business: &str, limits: &[&str]) -> NewTask {
    let mut new = new_task(100_000_000, None, |tuning| tuning.rate = RateLimit::Unlimited);
    new.business = business.to_owned();
    new.limits = limits.iter().map(|&name| name.to_owned()).collect();
    new
}

/// A running task of this business under these limits, which goes as fast as they let it.
async fn endless(world: &World, business: &str, limits: &[&str]) -> TaskId {
    let now = world.clock.wall();
    world.store.ensure_business(business, &actor(), now).await.expect("memory");
    let task = world.store.create(&under(business, limits), &actor(), now).await.expect("created").id;
    world.command(task, TaskCommand::Start).await;
    world.until(task, Status::Running).await;
    task
}
