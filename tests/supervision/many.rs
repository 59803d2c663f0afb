//! Two and three nodes over one store: crash, pause, partition, lost leases, hand-over, drain and move.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;
use windrow::actors::context::ServingNow;
use windrow::adapters::memory::{Call, When};
use windrow::domain::counters::Counters;
use windrow::domain::ids::{CheckpointSeq, ClaimId, Epoch, ItemIndex, SessionId, ShardId, TaskId};
use windrow::domain::lifecycle::{Status, StopReason};
use windrow::domain::shards::Told;
use windrow::ports::run_store::{ClaimOutcome, ClaimRequest, RunClose, RunStore, ShardCheckpoint};
use windrow::ports::session_store::{NewSession, SessionFace, SessionStore};
use windrow::ports::task_store::{CommandError, MoveRefusal, TaskCommand, TaskStore};

use crate::cluster::Cluster;
use crate::link::Way;
use crate::world::actor;

const TTL: Duration = Duration::from_secs(15);
/// Longer than any test's trouble: 500 items a second.
const LONG: u64 = 60_000;
/// In flight, and what was settled in the second since the last checkpoint, with its margin.
const LOST_WITH_THE_RUN: u64 = 50 + 10 * 50 + 50;
/// What a node may settle that still trusts itself and can't save any more: the rate for a whole promise.
const LOST_WITHOUT_THE_STORE: u64 = 500 * 15 + LOST_WITH_THE_RUN;
const STOP: TaskCommand = TaskCommand::Stop { reason: StopReason::Operator };

async fn two(prefix: &str, with_leases: bool) -> (Cluster, TaskId) {
    let mut cluster = Cluster::new(prefix, with_leases);
    cluster.boot("a").await;
    let task = cluster.task(LONG, |_| {}).await;
    cluster.until_works("a").await;
    cluster.boot("b").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(cluster.turns(), ["a"]);
    (cluster, task)
}

async fn finishes(cluster: &Cluster, task: TaskId, repeats_max: u64) {
    let view = cluster.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, LONG);
    assert_eq!(cluster.deliveries().len() as u64, LONG, "every item was delivered");
    let repeats = cluster.repeats();
    assert!(repeats <= repeats_max, "{repeats} repeats, at most {repeats_max}");
}

async fn goes_on_after_a_crash(prefix: &str, with_leases: bool) {
    let (mut cluster, task) = two(prefix, with_leases).await;
    cluster.crash("a").await;
    let after = cluster.until_works("b").await;
    assert!(after <= TTL + Duration::from_secs(2), "after {after:?}");
    assert!(after >= Duration::from_secs(10), "before its owner's trust was over: {after:?}");
    finishes(&cluster, task, LOST_WITH_THE_RUN).await;
    assert_eq!(cluster.turns(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn another_node_goes_on_two_seconds_after_the_promise_of_one_that_crashed() {
    goes_on_after_a_crash("crash", false).await;
}

#[tokio::test(start_paused = true)]
async fn with_leases_too_another_node_goes_on_in_time() {
    goes_on_after_a_crash("crash-l", true).await;
}

async fn passes_no_gate_after_a_pause(prefix: &str, with_leases: bool) {
    let (cluster, task) = two(prefix, with_leases).await;
    let zombie = cluster.sessions("a").await[0];
    cluster.node("a").link.database(Way::Hangs);
    cluster.node("a").link.redis(Way::Hangs);
    cluster.until_works("b").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let opened = *cluster.node("a").handler.opened.lock().expect("ok");
    // Its late checkpoint, its late heartbeat and its late renewal arrive now.
    cluster.node("a").link.redis(Way::Open);
    cluster.node("a").link.database(Way::Open);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(cluster.turns(), ["a", "b"], "nothing left after the other began");
    let next = cluster.sessions("a").await;
    assert!(next.len() == 1 && next[0] != zombie, "it began a new session: {next:?}");
    assert_eq!(*cluster.node("a").handler.opened.lock().expect("ok"), opened, "nothing was carried over");
    finishes(&cluster, task, LOST_WITHOUT_THE_STORE).await;
    assert_eq!(cluster.turns(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_paused_beyond_its_promise_passes_no_gate_and_writes_nothing() {
    passes_no_gate_after_a_pause("pause", false).await;
}

#[tokio::test(start_paused = true)]
async fn with_leases_too_a_paused_node_passes_no_gate() {
    passes_no_gate_after_a_pause("pause-l", true).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_without_the_database_is_not_fenced_while_its_lease_lives_and_goes_on_when_it_is_back() {
    let (cluster, task) = two("cut-db", true).await;
    let session = cluster.sessions("a").await;
    cluster.node("a").link.database(Way::Cut);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(cluster.sessions("a").await, session, "whoever doesn't get the lease fences nobody");
    assert_eq!(cluster.turns(), ["a"]);
    cluster.node("a").link.database(Way::Open);
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a"]);
    assert_eq!(*cluster.node("a").handler.opened.lock().expect("ok"), 1, "one run did it all");
}

#[tokio::test(start_paused = true)]
async fn losing_the_leases_costs_nothing_while_the_database_answers() {
    let (cluster, task) = two("cut-redis", true).await;
    for name in ["a", "b"] {
        cluster.node(name).link.redis(Way::Cut);
    }
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(cluster.turns(), ["a"]);
    // A task that begins meanwhile needs no lease either.
    let other = cluster.task(100, |_| {}).await;
    let view = cluster.until(other, Status::Finished).await;
    assert_eq!(view.counters.succeeded, 100);
    for name in ["a", "b"] {
        cluster.node(name).link.redis(Way::Open);
    }
    let view = cluster.until(task, Status::Finished).await;
    assert_eq!(view.counters.succeeded, LONG);
    let runs: u32 =
        ["a", "b"].iter().map(|name| *cluster.node(name).handler.opened.lock().expect("ok")).sum();
    assert_eq!(runs, 2, "one run each");
}

#[tokio::test(start_paused = true)]
async fn after_a_wipe_of_the_leases_the_runs_set_theirs_again() {
    let (cluster, task) = two("wipe", true).await;
    for _ in 0..3 {
        cluster.leases.as_ref().expect("there are").wipe();
        tokio::time::sleep(Duration::from_secs(7)).await;
    }
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_released_shard_is_taken_although_the_leases_were_lost_a_moment_ago() {
    let mut cluster = Cluster::new("wipe-new", true);
    cluster.boot("a").await;
    cluster.leases.as_ref().expect("there are").wipe();
    let task = cluster.task(100, |_| {}).await;
    let begun = Instant::now();
    cluster.until(task, Status::Finished).await;
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

async fn waits_for_the_witness(prefix: &str, takes_over: bool) {
    let mut cluster = Cluster::new(prefix, true);
    cluster.times.takeover_without_leases = takes_over;
    cluster.boot("a").await;
    let task = cluster.task(LONG, |_| {}).await;
    cluster.until_works("a").await;
    cluster.boot("b").await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    cluster.node("b").link.redis(Way::Cut);
    cluster.crash("a").await;
    let is_down = |reason: Option<&str>| reason == Some("coordinator_down");
    let view =
        cluster.until_that(task, "coordinator_down", |view| is_down(view.status_reason.as_deref())).await;
    assert!(view.status_text.expect("has a text").contains("takeover_without_redis"));
    let begun = Instant::now();
    if takes_over {
        cluster.until_works("b").await;
        assert!((13..18).contains(&begun.elapsed().as_secs()), "a TTL more: {:?}", begun.elapsed());
    } else {
        tokio::time::sleep(Duration::from_secs(120)).await;
        assert_eq!(cluster.turns(), ["a"]);
        assert!(is_down(cluster.view(task).await.status_reason.as_deref()), "and it still says so");
        cluster.node("b").link.redis(Way::Open);
        cluster.until_works("b").await;
    }
    cluster.until_that(task, "running without a reason", |view| view.status_reason.is_none()).await;
    finishes(&cluster, task, LOST_WITH_THE_RUN).await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_owner_that_may_live_on_a_lease_is_left_alone_and_its_task_says_so() {
    waits_for_the_witness("blind", false).await;
}

#[tokio::test(start_paused = true)]
async fn where_it_is_wanted_a_silent_owner_is_followed_without_leases_after_a_longer_wait() {
    waits_for_the_witness("blind-yes", true).await;
}

async fn hands_over(prefix: &str, with_leases: bool) {
    let (mut cluster, task) = two(prefix, with_leases).await;
    let leaving = cluster.nodes.remove("a").expect("it runs");
    assert!(leaving.handle.drain(Duration::from_secs(60)).await, "everything ended in time");
    let after = cluster.until_works("b").await;
    // Without hints: the longest way to the other's next scan.
    assert!(after <= Duration::from_millis(1_400), "after {after:?}");
    assert!(cluster.sessions("a").await.is_empty(), "its session is over");
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_hands_over_at_the_next_scan_and_nothing_is_repeated() {
    hands_over("hand", false).await;
}

#[tokio::test(start_paused = true)]
async fn with_leases_too_a_hand_over_takes_a_scan_at_most() {
    hands_over("hand-l", true).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_to_be_drained_hands_over_stays_up_and_takes_nothing_until_it_is_wanted_again() {
    let (cluster, task) = two("wish", true).await;
    assert_eq!(cluster.store.wish_drain(&cluster.name("a"), true).await, Ok(true));
    let after = cluster.until_works("b").await;
    assert!(after <= Duration::from_secs(3), "after {after:?}");
    let session = cluster.sessions("a").await;
    let all = cluster.store.list().await.expect("memory");
    assert!(all.iter().any(|seen| seen.id == session[0] && seen.face.draining), "it shows that it drains");
    // Now nobody takes anything.
    cluster.store.wish_drain(&cluster.name("b"), true).await.expect("memory");
    cluster.until(task, Status::Queued).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(cluster.view(task).await.status, Status::Queued);
    assert_eq!(cluster.sessions("a").await, session, "it lives all the time");
    assert_eq!(cluster.store.wish_drain(&cluster.name("a"), false).await, Ok(true));
    let after = cluster.until_works("a").await;
    assert!(after <= Duration::from_secs(3), "after {after:?}");
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a", "b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_moved_goes_on_at_the_named_node_without_a_repeat() {
    let (mut cluster, task) = two("move", true).await;
    cluster.boot("c").await;
    let moved =
        async |to: &str| cluster.store.move_shards(task, None, to, &actor(), cluster.clock_now()).await;
    assert_eq!(moved(&cluster.name("c")).await, Ok(1));
    let after = cluster.until_works("c").await;
    assert!(after <= Duration::from_secs(3), "after {after:?}");
    let refusal = MoveRefusal::AlreadyThere(task.to_string(), cluster.name("c"));
    assert_eq!(moved(&cluster.name("c")).await, Err(CommandError::Move(refusal)));
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns(), ["a", "c"]);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_moved_to_a_node_that_has_just_died_goes_on_elsewhere() {
    let (mut cluster, task) = two("move-dead", false).await;
    cluster.crash("b").await;
    let to = cluster.name("b");
    assert_eq!(cluster.store.move_shards(task, None, &to, &actor(), cluster.clock_now()).await, Ok(1));
    cluster.until(task, Status::Queued).await;
    let after = cluster.until_works("a").await;
    assert!((28..=33).contains(&after.as_secs()), "it was left to the other for half a minute: {after:?}");
    finishes(&cluster, task, 0).await;
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_live_node_is_taken_and_that_of_a_dead_one_is_free_after_a_moment() {
    let mut cluster = Cluster::new("name", false);
    let rival = SessionId(Uuid::new_v4());
    cluster.store.begin(&session(&cluster.name("a"), rival)).await.expect("memory");
    let store = cluster.store.clone();
    let beating = tokio::spawn(async move {
        loop {
            store.beat(rival).await.expect("memory");
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let refused = cluster.try_boot("a").await.expect_err("the name is taken").to_string();
    assert!(
        refused.contains("another live node is called name-a") && refused.contains("node.id"),
        "{refused}"
    );
    beating.abort();
    let begun = Instant::now();
    cluster.boot("a").await;
    assert!(begun.elapsed() <= Duration::from_secs(5), "{:?}", begun.elapsed());
}

fn session(node: &str, id: SessionId) -> NewSession {
    NewSession {
        id,
        node: node.to_owned(),
        version: "test".into(),
        promise: TTL,
        ckpt_version_max: 1,
        started_at: windrow::domain::ids::WallMs(0),
        face: SessionFace::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_the_rows_give_to_a_node_that_does_not_run_it_is_released_and_run() {
    let mut cluster = Cluster::new("orphan", true);
    cluster.boot("a").await;
    cluster.nodes["a"].handle.set_serving(ServingNow { run_tasks: false, pools: None });
    let task = cluster.task(100, |_| {}).await;
    let request = ClaimRequest {
        shard: ShardId { task, no: 0 },
        seen: Epoch(0),
        claim: ClaimId(Uuid::new_v4()),
        session: cluster.sessions("a").await[0],
        now: cluster.clock_now(),
    };
    let claimed = cluster.store.claim(request).await.expect("memory");
    assert!(matches!(claimed, ClaimOutcome::Claimed(_)), "as one whose answer was lost");
    cluster.nodes["a"].handle.set_serving(ServingNow { run_tasks: true, pools: None });
    let begun = Instant::now();
    cluster.until(task, Status::Finished).await;
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_claim_whose_answer_was_lost_is_recognised_and_runs_once() {
    let mut cluster = Cluster::new("ack", true);
    cluster.boot("a").await;
    cluster.boot("b").await;
    cluster.store.faults().fail_next(Call::Claim, When::After, 1);
    let task = cluster.task(LONG, |_| {}).await;
    finishes(&cluster, task, 0).await;
    assert_eq!(cluster.turns().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stop_whose_owner_died_is_committed_by_another_node_without_opening_the_handler() {
    for (prefix, with_leases) in [("stop-dead-1", false), ("stop-dead-2", true)] {
        let (mut cluster, task) = two(prefix, with_leases).await;
        cluster.crash("a").await;
        cluster.command(task, STOP).await;
        tokio::time::sleep(Duration::from_secs(8)).await;
        assert_eq!(cluster.view(task).await.status, Status::Stopping, "its owner may live");
        let begun = Instant::now();
        cluster.until(task, Status::Stopped).await;
        assert!(begun.elapsed() <= Duration::from_secs(9), "{:?}", begun.elapsed());
        assert_eq!(*cluster.node("b").handler.opened.lock().expect("ok"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_dead_node_ran_is_shown_as_waiting_also_where_nobody_may_take_it() {
    for (prefix, with_leases) in [("estate-1", false), ("estate-2", true)] {
        let (mut cluster, task) = two(prefix, with_leases).await;
        cluster.node("b").handle.set_serving(ServingNow { run_tasks: false, pools: None });
        cluster.crash("a").await;
        let begun = Instant::now();
        cluster.until(task, Status::Queued).await;
        assert!(begun.elapsed() <= TTL + Duration::from_secs(4), "{:?}", begun.elapsed());
        cluster.node("b").handle.set_serving(ServingNow { run_tasks: true, pools: None });
        let after = cluster.until_works("b").await;
        assert!(after <= Duration::from_secs(2), "{after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_of_a_newer_program_is_left_to_a_newer_node_and_the_task_says_so() {
    let mut cluster = Cluster::new("newer", false);
    let task = cluster.task(100, |_| {}).await;
    let (newer, shard) = (SessionId(Uuid::new_v4()), ShardId { task, no: 0 });
    cluster.store.begin(&session("newer", newer)).await.expect("memory");
    let request = ClaimRequest {
        shard,
        seen: Epoch(0),
        claim: ClaimId(Uuid::new_v4()),
        session: newer,
        now: cluster.clock_now(),
    };
    let ClaimOutcome::Claimed(run) = cluster.store.claim(request).await.expect("memory") else {
        panic!("free")
    };
    let checkpoint = ShardCheckpoint {
        shard,
        epoch: run.epoch,
        claim: run.claim,
        seq: CheckpointSeq(1),
        low_water: ItemIndex(10),
        high_water: ItemIndex(10),
        counters: Counters { succeeded: 10, ..Counters::default() },
        blob: vec![0xB7, 2, 0, 0],
        side: Vec::new(),
        finish_at: None,
        canary_passed: false,
        told: Told::default(),
        close: Some(RunClose::Released),
        now: cluster.clock_now(),
    };
    cluster.store.checkpoint(&[checkpoint]).await.expect("memory");
    cluster.boot("a").await;
    let is_newer = |reason: Option<&str>| reason == Some("newer_version");
    cluster.until_that(task, "newer_version", |view| is_newer(view.status_reason.as_deref())).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let view = cluster.view(task).await;
    assert_eq!((view.status, view.low_water), (Status::Queued, ItemIndex(10)), "nothing was touched");
    assert!(is_newer(view.status_reason.as_deref()));
}

#[tokio::test(start_paused = true)]
async fn the_shards_of_a_dead_node_are_all_taken_over_in_time() {
    const TASKS: usize = 200;
    for (prefix, with_leases) in [("storm-1", false), ("storm-2", true)] {
        let mut cluster = Cluster::new(prefix, with_leases);
        cluster.slow = Duration::from_secs(3600);
        cluster.boot("a").await;
        for _ in 0..TASKS {
            cluster.task(10, |_| {}).await;
        }
        cluster.until_owned("a", TASKS).await;
        cluster.boot("b").await;
        cluster.boot("c").await;
        tokio::time::sleep(Duration::from_secs(2)).await;
        cluster.crash("a").await;
        let begun = Instant::now();
        while cluster.owned("b") + cluster.owned("c") < TASKS {
            assert!(
                begun.elapsed() < TTL + Duration::from_secs(5),
                "{} and {}",
                cluster.owned("b"),
                cluster.owned("c")
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(begun.elapsed() <= TTL + Duration::from_secs(2), "all after {:?}", begun.elapsed());
    }
}
