//! A database far away: what a take-over costs is the number of times that it waits for an answer, so these are counted.

use std::time::Duration;

use windrow_core::ids::{Epoch, WallMs};
use windrow_engine::ports::ownership::run_store::ClaimOutcome;

use crate::engines::{Engine, runtime};
use crate::fixture::{Harness, NOW, request};
use crate::proxy::Proxy;
use crate::strand::through;

/// A connection is asked whether it is whole: before its use where it was idle, and after it, which nobody waits for.
const TESTS: u64 = 2;

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

        let (fenced, trips) = counted(&proxy, store.fence(owner, heartbeat, NOW)).await;
        assert!(fenced.unwrap());
        assert!(trips <= 2 + TESTS, "a fence: {trips}");
        let (claimed, trips) = counted(&proxy, store.claim(request(shard, run.epoch, heir))).await;
        assert!(matches!(claimed.unwrap(), ClaimOutcome::Claimed(_)));
        assert!(trips <= 2 + TESTS, "a claim: {trips}");
        let (task, trips) = counted(&proxy, store.get(shard.task)).await;
        assert_eq!(task.unwrap(), direct.store.get(shard.task).await.unwrap());
        assert!(trips <= 1 + TESTS, "the task: {trips}");
        let (control, trips) = counted(&proxy, store.control(shard)).await;
        control.unwrap();
        assert!(trips <= 1 + TESTS, "its control: {trips}");
        let (parked, trips) = counted(&proxy, store.parked_due(shard, WallMs(i64::MAX), None, 10)).await;
        assert_eq!(parked.unwrap(), Vec::new());
        assert!(trips <= 1 + TESTS, "what is parked: {trips}");
    });
}

/// How often the one question waited for an answer, once nothing else is under way.
async fn counted<T>(proxy: &Proxy, question: impl Future<Output = T>) -> (T, u64) {
    let mut before = None;
    while before != Some(proxy.answers()) {
        before = Some(proxy.answers());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let answer = question.await;
    (answer, proxy.answers() - before.unwrap_or_default())
}
