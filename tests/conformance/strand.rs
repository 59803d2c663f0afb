//! Connections that vanish without a word, as when a firewall forgets them: nobody waits for the kernel to notice.

use std::time::Duration;

use windrow_core::ids::SessionId;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::session_store::Heartbeat;
use windrow_engine::ports::tasks::store::{TaskCommand, TaskStore};
use windrow_store::sql::{ServerAddress, Store};

use crate::engines::{CONNECTIONS, Engine, runtime};
use crate::fixture::{Harness, NOW, new_session, task, write};
use crate::proxy::Proxy;

/// The kernel takes about fifteen minutes.
const PATIENCE: Duration = Duration::from_secs(60);
/// A caller's.
const MOMENT: Duration = Duration::from_secs(1);

#[test]
fn connections_that_vanish_are_replaced_on_postgres() {
    connections_that_vanish_are_replaced(&Engine::postgres());
}

#[test]
fn connections_that_vanish_are_replaced_on_mariadb() {
    connections_that_vanish_are_replaced(&Engine::mariadb());
}

fn connections_that_vanish_are_replaced(engine: &Engine) {
    runtime().block_on(async {
        let direct = engine.store().await;
        let proxy = Proxy::start(engine.port()).await;
        let harness = Harness::served(through(engine, &proxy).await, engine.url());
        let session = SessionId(uuid::Uuid::new_v4());
        harness.store.begin(&new_session(session)).await.unwrap();
        let made = harness.created(&task(10)).await;
        // All connections are there and were just used: nobody tests them before the next use.
        let read = || async { harness.store.get(made.id).await.map(drop) };
        tokio::join!(
            all_at_once(&read),
            beat(&harness, session),
            beat(&harness, session)
        );
        proxy.strand();
        // Each is caught in the middle of something that its caller gives up.
        tokio::join!(
            all_at_once(&read),
            beat(&harness, session),
            beat(&harness, session)
        );
        let beats = async { while !beat(&harness, session).await {} };
        tokio::time::timeout(PATIENCE, beats)
            .await
            .expect("the heart beats again");
        let someone = write();
        let start = || harness.store.command(made.id, &TaskCommand::Start, &someone, NOW);
        let started = async { while start().await.is_err() {} };
        tokio::time::timeout(PATIENCE, started)
            .await
            .expect("a command is obeyed again");
        let view = direct.get(made.id).await.unwrap().expect("it exists");
        assert_eq!(view.status.as_str(), "queued");
    });
}

pub(crate) async fn through(engine: &Engine, proxy: &Proxy) -> Store {
    let address = engine.address();
    let (direct, by_proxy) = (format!(":{}/", engine.port()), format!(":{}/", proxy.port()));
    assert!(address.url.contains(&direct), "{}", address.url);
    let url = address.url.replace(&direct, &by_proxy);
    let password = Some(engine.password().to_owned());
    let address = ServerAddress::new(address.kind, url, password, CONNECTIONS);
    Store::connect(&address, true).await.unwrap()
}

/// As many readers as the pool has connections, each given up after a moment.
async fn all_at_once<F>(read: &impl Fn() -> F)
where
    F: Future<Output = Result<(), StoreError>>,
{
    let readers = (0..CONNECTIONS).map(|_| tokio::time::timeout(MOMENT, read()));
    futures_util::future::join_all(readers).await;
}

/// One heartbeat, given up as early as a node does; whether it was answered.
async fn beat(harness: &Harness, session: SessionId) -> bool {
    let answer = tokio::time::timeout(MOMENT, harness.store.beat(session)).await;
    matches!(answer, Ok(Ok(Heartbeat::Alive { .. })))
}
