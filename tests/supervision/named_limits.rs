//! Limits with a name, which tasks of several businesses use, some of them beside another limit.

use std::time::Duration;

use windrow_core::ids::TaskId;
use windrow_core::limit::Bounds;
use windrow_core::limit::key::LimitKey;
use windrow_core::meter::amount::Amount;
use windrow_core::meter::metering::Metering;
use windrow_core::settings::RateLimit;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::ownership::limit_store::LimitStore;
use windrow_engine::ports::tasks::store::{NewTask, TaskCommand, TaskStore};

use crate::limits::{is_about, of_rate, seconds, sent_in};
use crate::scripted::Act;
use crate::tasks::{new_task, write};
use crate::world::World;

/// A node with these limits, whose items take 20 ms.
async fn node_with(name: &str, limits: &[(&str, &str)]) -> World {
    World::start_as(
        name,
        |world| {
            for (name, rate) in limits {
                world.store.set_limit(LimitKey::Named(name), of_rate(rate));
            }
        },
        |_, _| Act::Slow(Duration::from_millis(20)),
    )
    .await
}

fn under(business: &str, limits: &[&str]) -> NewTask {
    let mut new = new_task(100_000_000, None, |tuning| tuning.rate = RateLimit::Unlimited);
    new.business = business.to_owned();
    new.spec.limits = limits.iter().map(|&name| name.to_owned()).collect();
    new
}

/// A running task of this business under these limits, which goes as fast as they let it.
async fn endless(world: &World, business: &str, limits: &[&str]) -> TaskId {
    let now = world.clock.wall();
    world
        .store
        .ensure_business(business, &write(), now)
        .await
        .expect("memory");
    let task = world
        .store
        .create(&under(business, limits), &write(), now)
        .await
        .expect("created")
        .id;
    world.command(task, TaskCommand::Start).await;
    world.until(task, Status::Running).await;
    task
}

#[tokio::test(start_paused = true)]
async fn tasks_of_two_businesses_share_the_limit_that_both_name() {
    let world = node_with("named-two", &[("vendor-x", "300/s")]).await;
    let push = endless(&world, "push", &["vendor-x"]).await;
    let mail = endless(&world, "mail", &["vendor-x"]).await;
    let free = endless(&world, "mail", &[]).await;
    tokio::time::sleep(seconds(3)).await;
    let sent = sent_in(&world, &[push, mail, free], seconds(10)).await;
    assert!(is_about(sent[0], 1500) && is_about(sent[1], 1500), "{sent:?}");
    assert!(sent[2] > 10_000, "it doesn't name the limit: {sent:?}");
    // It is obeyed while they run.
    world
        .store
        .set_limit(LimitKey::Named("vendor-x"), of_rate("100/s"));
    tokio::time::sleep(seconds(3)).await;
    let sent = sent_in(&world, &[push, mail], seconds(10)).await;
    assert!(is_about(sent[0], 500) && is_about(sent[1], 500), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn a_task_under_two_limits_obeys_the_lower_one_and_others_have_the_rest_of_the_higher() {
    let world = node_with("named-both", &[("broad", "300/s"), ("narrow", "50/s")]).await;
    let both = endless(&world, "push", &["broad", "narrow"]).await;
    let one = endless(&world, "mail", &["broad"]).await;
    tokio::time::sleep(seconds(3)).await;
    let sent = sent_in(&world, &[both, one], seconds(10)).await;
    assert!(is_about(sent[0], 500) && is_about(sent[1], 2500), "{sent:?}");
    let held_by = |task| world.node().runs_of(task)[0].held_by.clone();
    assert_eq!(held_by(both), Some(LimitKey::Named("narrow").text()));
    assert_eq!(held_by(one), Some(LimitKey::Named("broad").text()));
    // The narrow one opens: then the two share the wide one.
    world
        .store
        .set_limit(LimitKey::Named("narrow"), of_rate("1000/s"));
    tokio::time::sleep(seconds(5)).await;
    let sent = sent_in(&world, &[both, one], seconds(10)).await;
    assert!(is_about(sent[0], 1500) && is_about(sent[1], 1500), "{sent:?}");
    assert_eq!(held_by(both), Some(LimitKey::Named("broad").text()));
}

#[tokio::test(start_paused = true)]
async fn slots_and_a_rate_of_two_limits_hold_together() {
    let world = node_with("named-slots", &[("rate", "200/s")]).await;
    let slots = Bounds {
        rate: None,
        concurrency: Some(2),
    };
    world.store.set_limit(LimitKey::Named("slots"), slots);
    let both = endless(&world, "push", &["rate", "slots"]).await;
    let one = endless(&world, "mail", &["rate"]).await;
    tokio::time::sleep(seconds(3)).await;
    // Two at a time, each 20 ms and a little: at most 100/s.
    let sent = sent_in(&world, &[both, one], seconds(10)).await;
    assert!(
        (500..=1000).contains(&sent[0]) && is_about(sent[0] + sent[1], 2000),
        "{sent:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_cleanly_leaves_nothing_unsure_of_a_total() {
    let calls = ["64000 calls".to_owned()];
    let metering = Metering::parse(&calls, &[], &[], &[]).expect("a metering");
    let key = LimitKey::Named("vendor-x");
    let mut world = World::start_as(
        "named-drained",
        |world| {
            world.store.set_metering(key, metering.clone());
            world.metering = Some(metering);
        },
        |_, _| Act::Slow(Duration::from_millis(20)),
    )
    .await;
    let task = endless(&world, "push", &["vendor-x"]).await;
    tokio::time::sleep(seconds(5)).await;
    assert!(world.in_flight(task) > 0);
    let node = world.node.take().expect("it runs");
    assert!(node.drain(seconds(60)).await, "everything ended in time");
    let used = world.store.uses(&key.text()).await.expect("memory").remove(0);
    let sent = world
        .handler
        .deliveries()
        .values()
        .map(|&count| u64::from(count))
        .sum();
    assert_eq!(
        (used.spent, used.unsure, used.held),
        (Amount::units(sent), Amount::ZERO, Amount::ZERO)
    );
}
