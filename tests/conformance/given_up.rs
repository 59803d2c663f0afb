//! Statements that nobody waits for any more, since the server hangs or their caller is gone: what is said later over the
//! same connection must count.

use std::time::Duration;

use tokio::time::timeout;
use windrow_core::ids::{SessionId, TaskId};
use windrow_core::task::lifecycle::StopReason;
use windrow_engine::ports::ownership::session_store::NewSession;
use windrow_engine::ports::tasks::store::TaskCommand;
use windrow_store::sql::{ServerAddress, Store};

use crate::engines::{Engine, runtime};
use crate::fixture::{Harness, NOW, new_session, task, write};
use crate::proxy::{Proxy, Weather};

/// Few, so that whoever comes next has the one that was given up.
const NARROW: u32 = 2;
/// Of each direction: a statement is given up on its way there, and its answer on its way back.
const LATENCY: Duration = Duration::from_millis(20);
/// How long the server hangs. Short: a connection that stays dead for seconds is thrown away anyway.
const HANG: Duration = Duration::from_millis(150);
/// Less than servers themselves bear a transaction in which nothing happens.
const PATIENCE: Duration = Duration::from_secs(4);
/// MariaDB shows its list of transactions anew only where nobody has read it for 100 ms.
const LOOK_AGAIN: Duration = Duration::from_millis(150);
/// More moments than any of the tries has.
const MOMENTS: u32 = 200;

#[test]
fn what_is_given_up_costs_nothing_later_on_postgres() {
    what_is_given_up_costs_nothing_later(&Engine::postgres());
}

#[test]
fn what_is_given_up_costs_nothing_later_on_mariadb() {
    what_is_given_up_costs_nothing_later(&Engine::mariadb());
}

/// Each statement of a transaction that writes, of one that reads, and single ones, in turn.
fn what_is_given_up_costs_nothing_later(engine: &Engine) {
    runtime().block_on(async {
        let world = World::begin(engine).await;
        let someone = write();
        let mut given_up = 0;
        for command in [
            TaskCommand::Start,
            TaskCommand::Stop {
                reason: StopReason::Operator,
            },
        ] {
            given_up += world
                .each_moment(|| async {
                    // A conflict with what an earlier try did is an answer too.
                    drop(
                        world
                            .harness
                            .store
                            .command(world.task, &command, &someone, NOW)
                            .await,
                    );
                })
                .await;
        }
        let read = || async { drop(world.harness.store.get(world.task).await) };
        given_up += world.each_moment(read).await;
        let single = || async { drop(world.harness.store.list().await) };
        given_up += world.each_moment(single).await;
        println!("{given_up} moments");
        assert!(given_up > 30, "{given_up}");
    });
}

struct World<'a> {
    engine: &'a Engine,
    proxy: Proxy,
    harness: Harness,
    task: TaskId,
}

impl World<'_> {
    async fn begin(engine: &Engine) -> World<'_> {
        drop(engine.store().await);
        engine.empty();
        let proxy = Proxy::start(engine.port()).await;
        let address = engine.address_of("suite", NARROW);
        let url = address
            .url
            .replace(&format!(":{}/", engine.port()), &format!(":{}/", proxy.port()));
        let password = Some(engine.password().to_owned());
        let address = ServerAddress::new(address.kind, url, password, NARROW);
        let store = Store::connect(&address, false).await.unwrap();
        let harness = Harness::served(store, engine.url());
        for node in ["n1", "n2"] {
            let new = new_session(SessionId(uuid::Uuid::new_v4()));
            harness
                .store
                .begin(&NewSession {
                    node: node.to_owned(),
                    ..new
                })
                .await
                .unwrap();
        }
        let task = harness.created(&task(10)).await.id;
        World {
            engine,
            proxy,
            harness,
            task,
        }
    }

    /// Does it again and again, and gives it up one moment later each time, until it is answered before; how often it was
    /// given up.
    async fn each_moment<F: Future<Output = ()>>(&self, work: impl Fn() -> F) -> u32 {
        for moment in 0..MOMENTS {
            self.proxy.set(Weather {
                latency: LATENCY,
                ..Weather::default()
            });
            let is_done = timeout(LATENCY / 2 + LATENCY * moment, work()).await.is_ok();
            self.proxy.set(Weather::held());
            tokio::time::sleep(if is_done { Duration::ZERO } else { HANG }).await;
            self.proxy.set(Weather {
                latency: LATENCY / 4,
                ..Weather::default()
            });
            self.is_sound(moment).await;
            if is_done {
                return moment;
            }
        }
        panic!("it never ends");
    }

    /// Over every connection: what is acknowledged is kept, what is asked is answered, and no transaction is left.
    async fn is_sound(&self, moment: u32) {
        let (store, drain) = (&self.harness.store, moment.is_multiple_of(2));
        let desired = |node| store.request_drain(node, drain);
        let (first, second) = tokio::join!(desired("n1"), desired("n2"));
        assert!(first.unwrap() && second.unwrap(), "moment {moment}");
        let kept = match self.engine {
            Engine::Postgres(_) => format!("SELECT count(*) FROM session WHERE drain = {drain}"),
            Engine::Mariadb(_) => format!("SELECT COUNT(*) FROM session WHERE drain = {}", u8::from(drain)),
        };
        assert_eq!(
            self.engine.sql(&kept),
            "2",
            "acknowledged and not kept, moment {moment}"
        );
        let (first, second) = tokio::join!(store.get(self.task), store.get(self.task));
        assert!(
            first.unwrap().is_some() && second.unwrap().is_some(),
            "moment {moment}"
        );
        let ended = timeout(PATIENCE, async {
            while self.transactions() != "0" {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        assert!(
            ended.await.is_ok(),
            "a transaction is left, moment {moment}: {}",
            self.connections()
        );
    }

    /// What every connection does.
    fn connections(&self) -> String {
        self.engine.sql(match self.engine {
            Engine::Postgres(_) => "SELECT pid, state, state_change, query FROM pg_stat_activity",
            Engine::Mariadb(_) => {
                "SELECT p.id, p.command, p.time_ms, p.state, p.info, t.trx_started FROM \
                 information_schema.processlist p LEFT JOIN information_schema.innodb_trx t ON p.id = t.trx_mysql_thread_id"
            }
        })
    }

    /// How many are open.
    fn transactions(&self) -> String {
        self.engine.sql(match self.engine {
            Engine::Postgres(_) => {
                "SELECT count(*) FROM pg_stat_activity WHERE datname = 'suite' AND state LIKE 'idle in%'"
            }
            Engine::Mariadb(_) => "SELECT COUNT(*) FROM information_schema.innodb_trx",
        })
    }
}
