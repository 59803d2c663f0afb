//! A database far away: what a take-over costs is the number of times that it waits for an answer, so these are counted.

use std::time::{Duration, Instant};

use windrow_core::ids::{Epoch, WallMs};
use windrow_engine::ports::ownership::run_store::ClaimOutcome;

use crate::engines::{Engine, runtime};
use crate::fixture::{Harness, NOW, request};
use crate::proxy::{Proxy, Question};
use crate::strand::through;

/// A connection is asked whether it is whole: before its use where it was idle, and after it, which nobody waits for. So
/// these questions aren't counted, by which the store asks PostgreSQL and MariaDB.
const TESTS: [&[u8]; 2] = [
    b"transaction_timestamp() = statement_timestamp()",
    b"ROLLBACK; SELECT CAST(",
];
/// The driver's own, the last of each use: a Sync, a COM_PING.
const PINGS: [&[u8]; 2] = [b"S\0\0\0\x04", b"\x01\0\0\0\x0e"];
/// A connection doesn't take as long to come back.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_take_over_waits_for_few_answers_on_postgres() {
    a_take_over_waits_for_few_answers(&Engine::postgres());
}

#[test]
fn a_take_over_waits_for_few_answers_on_mariadb() {
    a_take_over_waits_for_few_answers(&Engine::mariadb());
}

fn a_take_over_waits_for_few_answers(engine: &Engine) {
    runtime().block_on(async {
        let direct = Harness::served(engine.store().await, engine.url());
        let shard = direct.queued(10).await;
        let (owner, heir) = (direct.session().await, direct.session().await);
        let run = direct.claimed(shard, Epoch(0), owner).await;
        let heartbeat = direct.heartbeat(owner).await;
        let proxy = Proxy::start(engine.port()).await;
        // Connections that have met no statement yet.
        let far = through(engine, &proxy).await;
        let far = Harness::served(far, engine.url());
        let store = &far.store;
        proxy.listen();
        // The first connections are opened and looked at without anybody who waits.
        drop(counted(&proxy, store.get(shard.task)).await);

        let (fenced, trips) = counted(&proxy, store.fence(owner, heartbeat, NOW)).await;
        assert!(fenced.unwrap());
        assert!(trips <= 2, "a fence: {trips}");
        let (claimed, trips) = counted(&proxy, store.claim(request(shard, run.epoch, heir))).await;
        assert!(matches!(claimed.unwrap(), ClaimOutcome::Claimed(_)));
        assert!(trips <= 2, "a claim: {trips}");
        let (task, trips) = counted(&proxy, store.get(shard.task)).await;
        assert_eq!(task.unwrap(), direct.store.get(shard.task).await.unwrap());
        assert!(trips <= 1, "the task: {trips}");
        let (control, trips) = counted(&proxy, store.control(shard)).await;
        control.unwrap();
        assert!(trips <= 1, "its control: {trips}");
        let (parked, trips) = counted(&proxy, store.parked_due(shard, WallMs(i64::MAX), None, 10)).await;
        assert_eq!(parked.unwrap(), Vec::new());
        assert!(trips <= 1, "what is parked: {trips}");
    });
}

/// How often a question waited for an answer. Its connection has come back by then: the next one needs no other.
async fn counted<T>(proxy: &Proxy, question: impl Future<Output = T>) -> (T, usize) {
    // Those of the one before.
    drop(proxy.answered());
    let answer = question.await;
    let mut answered = proxy.answered();
    let begun = Instant::now();
    loop {
        if let Some(trips) = trips(&answered) {
            return (answer, trips);
        }
        assert!(begun.elapsed() < PATIENCE, "its connection never came back");
        tokio::time::sleep(Duration::from_millis(10)).await;
        answered.append(&mut proxy.answered());
    }
}

/// The questions of the connections that were used and came back. Others may still be opened at the same time.
fn trips(answered: &[Question]) -> Option<usize> {
    let is_back = |connection: u64| {
        let mut questions = answered.iter().filter(|(of, _)| *of == connection);
        questions.any(|(_, question)| PINGS.contains(&question.as_slice()))
    };
    let asked = answered.iter().filter(|(_, question)| !is_test(question));
    let trips = asked.filter(|(connection, _)| is_back(*connection)).count();
    (trips > 0).then_some(trips)
}

fn is_test(question: &[u8]) -> bool {
    let has = |text: &[u8]| question.windows(text.len()).any(|part| part == text);
    PINGS.contains(&question) || TESTS.into_iter().any(has)
}
