//! What only servers do: connections that are cut, servers that end and come back, schemas that several nodes make at once.

use std::time::Duration;

use tokio::task::JoinSet;
use windrow_core::ids::{Epoch, SessionId, ShardId};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::idempotency::{IdempotencyStore, KeyState};
use windrow_engine::ports::ownership::run_store::{
    CheckpointAck, ClaimOutcome, ClaimedShard, RunClose, ShardCheckpoint,
};
use windrow_engine::ports::ownership::session_store::Heartbeat;
use windrow_engine::ports::sources::uploads::UploadStore;
use windrow_engine::ports::tasks::store::{TaskCommand, TaskStore};
use windrow_store::sql::{ServerAddress, Store};

use crate::crossing::{Dice, again};
use crate::engines::{CONNECTIONS, Engine, runtime};
use crate::fixture::{BUSINESS, Harness, NOW, at, closing, failed, new_session, request, task, with};

macro_rules! on_servers {
    ($($fact:ident),+ $(,)?) => {
        mod postgres {
            $(#[test]
            fn $fact() {
                super::$fact(crate::engines::Engine::postgres());
            })+
        }
        mod mariadb {
            $(#[test]
            fn $fact() {
                super::$fact(crate::engines::Engine::mariadb());
            })+
        }
    };
}

on_servers! {
    a_cut_connection_costs_no_acknowledged_write,
    a_restarted_server_is_used_again_without_a_restart_of_the_node,
    more_writers_than_connections_wait_for_one,
    many_nodes_at_once_make_one_schema,
    a_schema_that_was_cut_short_is_completed,
    a_schema_of_another_program_is_refused_before_anything_is_written,
    a_server_that_can_not_be_used_is_named_without_its_password,
    failures_of_two_shards_get_dense_places_whoever_is_first,
    of_parallel_requests_with_one_key_one_is_new,
    texts_are_compared_byte_by_byte,
    long_texts_and_bytes_come_back_whole,
    who_stores_most_comes_first,
    a_halted_server_makes_nobody_wait_for_ever,
}

/// Runs with one writer each go on while every connection is cut again and again.
fn a_cut_connection_costs_no_acknowledged_write(engine: Engine) {
    let runtime = runtime();
    let harness = runtime.block_on(engine.harness());
    let (store, mut dice) = (harness.store.clone(), Dice::new("cuts"));
    let session = runtime.block_on(harness.session());
    let mut shards = Vec::new();
    for _ in 0..3 {
        shards.push(runtime.block_on(harness.queued(1000)));
    }
    let mut writers = JoinSet::new();
    for shard in shards.clone() {
        let store = store.clone();
        writers.spawn_on(
            async move {
                let claim = request(shard, Epoch(0), session);
                let run = match again(|| store.claim(claim)).await {
                    ClaimOutcome::Claimed(run) => *run,
                    ClaimOutcome::Lost | ClaimOutcome::Newer(_) => {
                        panic!("a lost answer to a claim isn't a lost claim")
                    }
                };
                assert_eq!(run.run.0, 1, "the same claim is one run");
                let mut seq = 0;
                for round in 1..=60 {
                    seq = round;
                    let checkpoint = with(at(&run, seq, 5 * seq), vec![failed(5 * seq - 1, "BAD")]);
                    let checkpoint = counted(checkpoint, seq);
                    let ack = again(|| store.checkpoint(std::slice::from_ref(&checkpoint))).await[0];
                    assert_eq!(ack, CheckpointAck::Stored, "the owner is the owner");
                }
                let mut last = counted(closing(&run, seq + 1, 5 * seq, RunClose::Released), seq);
                last.counters.succeeded = 4 * seq;
                let last = [last];
                assert_eq!(again(|| store.checkpoint(&last)).await, [CheckpointAck::Stored]);
            },
            runtime.handle(),
        );
    }
    let mut cuts = 0;
    while !writers.is_empty() {
        // At any moment of what the writers do.
        std::thread::sleep(Duration::from_millis(20 + dice.below(150)));
        engine.cut_all();
        cuts += 1;
        while let Some(ended) = writers.try_join_next() {
            ended.unwrap();
        }
        assert!(cuts < 2000, "they never end");
    }
    println!("{cuts} cuts");
    runtime.block_on(async {
        for shard in shards {
            let view = again(|| store.get(shard.task)).await.unwrap();
            assert_eq!((view.watermark.0, view.counters.failed), (300, 60));
            let groups = again(|| store.groups(shard.task)).await;
            assert_eq!(groups[0].count, 60, "counted once each");
        }
        let beat = again(|| store.beat(session)).await;
        assert!(matches!(beat, Heartbeat::Alive { .. }));
    });
}

fn counted(mut checkpoint: ShardCheckpoint, round: u64) -> ShardCheckpoint {
    checkpoint.counters.failed = round;
    checkpoint.counters.succeeded = 4 * round;
    checkpoint
}

fn a_restarted_server_is_used_again_without_a_restart_of_the_node(mut engine: Engine) {
    let runtime = runtime();
    let harness = runtime.block_on(engine.harness());
    let run = runtime.block_on(harness.running(100));
    runtime.block_on(harness.stored(at(&run, 1, 10)));
    engine.kill();
    let gone = runtime
        .block_on(harness.store.checkpoint(&[at(&run, 2, 20)]))
        .unwrap_err();
    assert!(matches!(gone, StoreError::Unavailable(_)), "{gone}");
    engine.restart();
    runtime.block_on(async {
        let second = [at(&run, 2, 20)];
        assert_eq!(
            again(|| harness.store.checkpoint(&second)).await,
            [CheckpointAck::Stored]
        );
        let view = again(|| harness.store.get(run.shard.task)).await.unwrap();
        assert_eq!(view.watermark.0, 20);
    });
}

fn more_writers_than_connections_wait_for_one(engine: Engine) {
    let runtime = runtime();
    runtime.block_on(engine.harness());
    runtime.block_on(async {
        let narrow = Store::connect(&engine.address_of("suite", 2), false)
            .await
            .unwrap();
        let harness = Harness::over(narrow);
        let mut runs = Vec::new();
        for _ in 0..4 {
            runs.push(harness.running(1000).await);
        }
        let mut writers = JoinSet::new();
        for writer in 0..40_u64 {
            let (store, run) = (harness.store.clone(), runs[writer as usize % 4].clone());
            writers.spawn(async move {
                let checkpoint = at(&run, writer + 1, writer + 1);
                again(|| store.checkpoint(std::slice::from_ref(&checkpoint))).await;
                again(|| store.get(run.shard.task)).await.unwrap();
            });
        }
        writers.join_all().await;
        for (nth, run) in (0..).zip(&runs) {
            assert_eq!(harness.view(run.shard.task).await.watermark.0, 37 + nth);
        }
    });
}

fn who_stores_most_comes_first(engine: Engine) {
    let runtime = runtime();
    runtime.block_on(engine.harness());
    runtime.block_on(async {
        let store = engine.store().await;
        for (sender, bytes) in [
            ("business:b", 3),
            ("business:a", 2),
            ("business:a", 2),
            ("ann", 9),
        ] {
            let upload = store.begin("ndjson", "{}", sender, NOW).await.unwrap();
            store.append(upload, 0, &vec![b'1'; bytes]).await.unwrap();
        }
        let most = [("business:a".to_owned(), 4), ("business:b".to_owned(), 3)];
        assert_eq!(store.stored_most("business:", 9).await.unwrap(), most);
        assert_eq!(store.stored_by("business:a").await, Ok(4));
    });
}

fn many_nodes_at_once_make_one_schema(engine: Engine) {
    let runtime = runtime();
    for round in 0..2 {
        let name = format!("fresh{round}");
        engine.create_database(&name);
        let address = engine.address_of(&name, 2);
        let mut nodes = JoinSet::new();
        for _ in 0..4 {
            let address = address.clone();
            nodes.spawn_on(
                async move {
                    let store = Store::connect(&address, true).await.unwrap();
                    let id = store.store_id().await.unwrap();
                    store.close().await.unwrap();
                    id
                },
                runtime.handle(),
            );
        }
        let ids = runtime.block_on(nodes.join_all());
        assert!(ids.iter().all(|id| *id == ids[0]), "one store, one id: {ids:?}");
    }
}

fn a_schema_that_was_cut_short_is_completed(engine: Engine) {
    runtime().block_on(async {
        engine.store().await.close().await.unwrap();
        let whole = engine.schema();
        let id = engine.sql("SELECT val FROM meta WHERE name = 'store_id'");
        // Half a step: tables are missing, an index of one that is there too, and the step isn't noted.
        let index = match engine {
            Engine::Postgres(_) => "DROP INDEX idx_task_created",
            Engine::Mariadb(_) => "DROP INDEX idx_task_created ON task",
        };
        let tables = ["DROP TABLE start_token", "DROP TABLE upload_chunk"];
        for sql in tables.into_iter().chain([index, "DELETE FROM seaql_migrations"]) {
            engine.sql(sql);
        }
        assert_ne!(engine.schema(), whole);
        let store = engine.store().await;
        assert_eq!(store.store_id().await.unwrap().0, id);
        store.close().await.unwrap();
        assert_eq!(engine.schema(), whole);
    });
}

fn a_schema_of_another_program_is_refused_before_anything_is_written(engine: Engine) {
    runtime().block_on(async {
        let refused = Store::connect(&engine.address(), false).await.unwrap_err();
        assert_eq!(refused, StoreError::OlderSchema);
        assert!(refused.to_string().contains("windrow db migrate"), "{refused}");
        engine.store().await.close().await.unwrap();
        Store::connect(&engine.address(), false)
            .await
            .unwrap()
            .close()
            .await
            .unwrap();
        engine.sql("INSERT INTO seaql_migrations VALUES ('m9999_tomorrow', 0)");
        for migrates in [false, true] {
            let refused = Store::connect(&engine.address(), migrates).await.unwrap_err();
            assert_eq!(refused, StoreError::NewerSchema("m9999_tomorrow".to_owned()));
        }
        engine.sql("DELETE FROM seaql_migrations WHERE version IN ('m9999_tomorrow', 'm0001_schema')");
        assert_eq!(
            Store::connect(&engine.address(), false).await.unwrap_err(),
            StoreError::OlderSchema
        );
    });
}

fn a_server_that_can_not_be_used_is_named_without_its_password(mut engine: Engine) {
    const WRONG: &str = "not-the-password";
    let good = engine.address();
    let wrong = ServerAddress::new(good.kind, good.url.clone(), Some(WRONG.to_owned()), CONNECTIONS);
    runtime().block_on(async {
        let refused = Store::connect(&wrong, true).await.unwrap_err();
        assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
        assert!(refused.to_string().contains("127.0.0.1"), "{refused}");
        let unknown = Store::connect(&engine.address_of("nowhere", 2), true)
            .await
            .unwrap_err();
        assert!(matches!(unknown, StoreError::Refused(_)), "{unknown}");
        engine.kill();
        let away = Store::connect(&good, true).await.unwrap_err();
        assert!(matches!(away, StoreError::Unavailable(_)), "{away}");
        for text in [
            format!("{refused} {refused:?}"),
            format!("{away} {away:?}"),
            format!("{good:?} {wrong:?}"),
        ] {
            assert!(!text.contains(WRONG) && !text.contains("wind-row"), "{text}");
        }
    });
}

/// A second shard, as a task that is cut in two has it.
fn cut_in_two(engine: &Engine, shard: ShardId, middle: u64) {
    let id = shard.task.0;
    engine.sql(&format!(
        "INSERT INTO shard (task_id, shard_no, first_index, end_index, range_end, state, desired, control_rev, watermark, \
         high_water, ckpt_blob, last_claim_lw, created_at, updated_at) \
         SELECT task_id, 1, {middle}, end_index, range_end, state, desired, control_rev, {middle}, {middle}, ckpt_blob, -1, \
         created_at, updated_at FROM shard WHERE task_id = {id} AND shard_no = 0"
    ));
    engine.sql(&format!(
        "UPDATE shard SET end_index = {middle}, range_end = {middle} WHERE task_id = {id} AND shard_no = 0"
    ));
}

/// Two nodes give up items of one task at the same time: the ordinals of each code are 0, 1, 2 … without a gap.
fn failures_of_two_shards_get_dense_places_whoever_is_first(engine: Engine) {
    const ROUNDS: u64 = 25;
    let runtime = runtime();
    runtime.block_on(async {
        let harness = engine.harness().await;
        let low = harness.queued(1000).await;
        cut_in_two(&engine, low, 500);
        let high = ShardId {
            task: low.task,
            no: 1,
        };
        let mut nodes = JoinSet::new();
        for shard in [low, high] {
            let session = harness.session().await;
            let run = harness.claimed(shard, Epoch(0), session).await;
            let store = harness.store.clone();
            nodes.spawn(async move {
                for seq in 1..=ROUNDS {
                    let done = run.range.start.0 + 4 * seq;
                    let codes = if seq % 2 == 0 {
                        ["BAD", "ODD"]
                    } else {
                        ["ODD", "BAD"]
                    };
                    let side = vec![failed(done - 1, codes[0]), failed(done - 2, codes[1])];
                    let mut checkpoint = at(&run, seq, done);
                    (checkpoint.counters.succeeded, checkpoint.counters.failed) = (2 * seq, 2 * seq);
                    checkpoint.side = side;
                    let ack = again(|| store.checkpoint(std::slice::from_ref(&checkpoint))).await;
                    assert_eq!(ack, [CheckpointAck::Stored]);
                }
            });
        }
        nodes.join_all().await;
        for code in ["BAD", "ODD"] {
            let places = format!("SELECT grp_no FROM item WHERE grp = '{code}' ORDER BY grp_no");
            let places: Vec<u64> = engine
                .sql(&places)
                .lines()
                .map(|line| line.parse().unwrap())
                .collect();
            assert_eq!(places, (0..2 * ROUNDS).collect::<Vec<u64>>(), "{code}");
        }
        let groups = harness.store.groups(low.task).await.unwrap();
        assert!(groups.iter().all(|group| group.count == 2 * ROUNDS), "{groups:?}");
    });
}

fn of_parallel_requests_with_one_key_one_is_new(engine: Engine) {
    runtime().block_on(async {
        engine.harness().await;
        let store = std::sync::Arc::new(engine.store().await);
        for round in 0..5 {
            let mut asked = JoinSet::new();
            for _ in 0..12 {
                let store = store.clone();
                let key = format!("key {round}");
                asked.spawn(async move {
                    again(|| store.take_key("ada", &key, "POST /x", None, 60_000, NOW)).await
                });
            }
            let told = asked.join_all().await;
            let new = told.iter().filter(|state| **state == KeyState::New).count();
            let waiting = told
                .iter()
                .filter(|state| **state == KeyState::InProgress)
                .count();
            assert_eq!((new, waiting), (1, 11), "{told:?}");
        }
    });
}

fn texts_are_compared_byte_by_byte(engine: Engine) {
    runtime().block_on(async {
        let harness = engine.harness().await;
        for name in ["A", "a", "A ", "ä"] {
            let mut new = task(10);
            new.spec.name = Some(name.to_owned());
            let made = harness.created(&new).await;
            let found = TaskStore::find(&*harness.store, BUSINESS, name)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(found.id, made.id, "{name:?}");
        }
        let run = harness.running(100).await;
        let side = ["BAD", "BAD_", "BAD0"]
            .iter()
            .zip(1..)
            .map(|(code, index)| failed(index, code))
            .collect();
        harness.stored(with(at(&run, 1, 10), side)).await;
        let groups = harness.store.groups(run.shard.task).await.unwrap();
        assert_eq!(
            groups.iter().map(|group| group.code.as_str()).collect::<Vec<_>>(),
            ["BAD", "BAD0", "BAD_"]
        );
    });
}

fn long_texts_and_bytes_come_back_whole(engine: Engine) {
    runtime().block_on(async {
        let harness = engine.harness().await;
        let rows = "ж𝄞".repeat(300_000);
        let mut new = task(10);
        new.source = format!(r#"{{"kind":"inline","rows":"{rows}"}}"#);
        let made = harness.created(&new).await;
        assert_eq!(harness.view(made.id).await.source, new.source);
        let run = harness.running(1 << 20).await;
        let mut checkpoint = at(&run, 1, 10);
        checkpoint.blob = (0..131_072_u32).map(|byte| byte as u8).collect();
        harness.stored(checkpoint.clone()).await;
        harness.stored(closing_with(&run, checkpoint.blob.clone())).await;
        let session = harness.session().await;
        let next = harness.claimed(run.shard, run.epoch, session).await;
        assert_eq!(next.blob, checkpoint.blob);
    });
}

fn closing_with(run: &ClaimedShard, blob: Vec<u8>) -> ShardCheckpoint {
    let mut last = closing(run, 2, 10, RunClose::Released);
    last.blob = blob;
    last
}

/// A server that is halted answers nobody; once it goes on, so does the node, and nothing was lost.
fn a_halted_server_makes_nobody_wait_for_ever(engine: Engine) {
    let runtime = runtime();
    runtime.block_on(async {
        let harness = engine.harness().await;
        let session = SessionId(uuid::Uuid::new_v4());
        harness.store.begin(&new_session(session)).await.unwrap();
        let made = harness.created(&task(10)).await;
        engine.signal("STOP");
        let beat = tokio::time::timeout(Duration::from_millis(500), harness.store.beat(session)).await;
        assert!(beat.is_err(), "it doesn't answer");
        engine.signal("CONT");
        assert!(matches!(
            again(|| harness.store.beat(session)).await,
            Heartbeat::Alive { .. }
        ));
        harness.command(made.id, TaskCommand::Start).await;
    });
}
