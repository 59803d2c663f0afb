//! The one connection over which leases are asked for and hints are sent: made when it is needed, kept while it works,
//! made anew when it doesn't.
//!
//! - Every call ends within its [`Manner`]'s time, also when its caller goes away: what is on its way runs as a task of its own, so
//!   that a connection which hangs is noticed and left.
//! - A Redis that can't be reached is tried again after 0.1 s, doubled up to 2 s; calls in between fail at once.
//! - That Redis is lost, and that it is back, is said once each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Cmd, RedisError, Script, Value};
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::fault::{ends_connection, explained, lacks_script};
use super::locate::Servers;
use windrow_core::ids::Moment;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::meters::Meters;

/// How long things may take, and whether it is told when Redis is lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// The longest wait of a caller.
    call: Duration,
    /// How long connecting takes, with TLS and the password.
    connect: Duration,
    /// How long an answer may take.
    answer: Duration,
    /// Whether leases and hints rest on it.
    is_witness: bool,
}

impl Manner {
    /// Of leases and hints: below the patience of the lease keeper (1 s), so that it hears the reason.
    pub(super) const WITNESS: Manner = Manner {
        call: Duration::from_millis(900),
        connect: Duration::from_millis(500),
        answer: Duration::from_millis(700),
        is_witness: true,
    };
    /// Of copies: a call has up to a megabyte. Whoever copies tells what is lost.
    pub(super) const COPIES: Manner = Manner {
        call: Duration::from_secs(10),
        connect: Duration::from_secs(2),
        answer: Duration::from_secs(5),
        is_witness: false,
    };
}

/// The wait before another connection is tried, doubled with each failure up to the longest.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// How often one call may change its connection: once since it was closed while nobody looked, once where a cluster or
/// a Sentinel knows another server.
const CONNECTIONS_MAX: u32 = 3;

/// A Lua script, by its hash and whole.
pub(super) struct ScriptText {
    text: String,
    hash: String,
}

impl ScriptText {
    pub(super) fn new(text: String) -> Arc<ScriptText> {
        let hash = Script::new(&text).get_hash().to_owned();
        Arc::new(ScriptText { text, hash })
    }
}

/// What can be asked.
pub(super) enum Request {
    Script {
        script: Arc<ScriptText>,
        keys: Vec<String>,
        arguments: Vec<String>,
    },
    Publish {
        channel: String,
        message: String,
    },
}

impl Request {
    fn command(&self, is_whole: bool) -> Cmd {
        match self {
            Request::Script {
                script,
                keys,
                arguments,
            } => {
                let (name, text) = if is_whole {
                    ("EVAL", &script.text)
                } else {
                    ("EVALSHA", &script.hash)
                };
                let mut command = redis::cmd(name);
                command.arg(text).arg(keys.len()).arg(keys).arg(arguments);
                command
            }
            Request::Publish { channel, message } => {
                let mut command = redis::cmd("PUBLISH");
                command.arg(channel).arg(message);
                command
            }
        }
    }
}

/// See the module.
pub(super) struct Link {
    servers: Arc<Servers>,
    manner: Manner,
    clock: Arc<dyn Clock>,
    meters: Arc<Meters>,
    runtime: Handle,
    live: Mutex<Live>,
    /// When the last call was answered.
    answered_at: AtomicU64,
}

#[derive(Clone)]
struct Connection {
    inner: MultiplexedConnection,
    /// Which connection this is, in the order that they were made.
    no: u64,
    whom: Arc<str>,
}

#[derive(Default)]
struct Live {
    connection: Option<Connection>,
    made: u64,
    failures: u32,
    not_before: Moment,
    fault: Option<StoreError>,
}

impl Link {
    pub(super) fn new(
        (servers, manner): (Arc<Servers>, Manner),
        clock: Arc<dyn Clock>,
        meters: Arc<Meters>,
        runtime: Handle,
    ) -> Arc<Link> {
        let (live, answered_at) = (Mutex::default(), AtomicU64::new(0));
        Arc::new(Link {
            servers,
            manner,
            clock,
            meters,
            runtime,
            live,
            answered_at,
        })
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    pub(super) fn meters(&self) -> &Meters {
        &self.meters
    }

    /// How long ago the last answer came.
    pub(super) fn silence(&self) -> Duration {
        self.clock
            .now()
            .since(Moment(self.answered_at.load(Ordering::Relaxed)))
    }

    /// Asks, and asks once more where another connection is the way out: whatever is asked may be asked twice.
    pub(super) async fn call(self: &Arc<Self>, request: Request) -> Result<Value, StoreError> {
        let link = self.clone();
        let asked = self.runtime.spawn(async move {
            let outcome = link.exchange(&request).await;
            link.tell(&outcome);
            outcome
        });
        match tokio::time::timeout(self.manner.call, asked).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(ended)) => Err(StoreError::Unavailable(format!(
                "the call to Redis ended: {ended}"
            ))),
            Err(_) => Err(StoreError::Unavailable("Redis did not answer in time".to_owned())),
        }
    }

    async fn exchange(&self, request: &Request) -> Result<Value, StoreError> {
        let mut changes_left = CONNECTIONS_MAX;
        loop {
            let mut connection = self.connection().await?;
            changes_left -= 1;
            let error = match ask(&mut connection.inner, request).await {
                Ok(answer) => {
                    self.answered_at.store(self.clock.now().0, Ordering::Relaxed);
                    self.live.lock().await.failures = 0;
                    return Ok(answer);
                }
                Err(error) => error,
            };
            if !ends_connection(&error) {
                return Err(explained(&error, &connection.whom, self.servers.section()));
            }
            if changes_left == 0 || !self.may_help(&error, &connection) {
                return Err(self.fail(&error, &connection).await);
            }
            self.leave(&connection).await;
        }
    }

    /// Whether another connection can do at once what this one couldn't.
    fn may_help(&self, error: &RedisError, connection: &Connection) -> bool {
        let moved = error.redirect_node().filter(|_| error.code() == Some("MOVED"));
        if let Some((place, _slot)) = moved {
            return self.servers.note_moved(place, &connection.whom);
        }
        self.servers.forget();
        (error.is_io_error() && !error.is_timeout()) || error.to_string().contains("READONLY")
    }

    /// The connection, made now if there is none. Callers that come meanwhile wait for the same one.
    async fn connection(&self) -> Result<Connection, StoreError> {
        let mut live = self.live.lock().await;
        if let Some(connection) = &live.connection {
            return Ok(connection.clone());
        }
        if let Some(fault) = live.fault.as_ref().filter(|_| self.clock.now() < live.not_before) {
            return Err(fault.clone());
        }
        match self.connect().await {
            Ok((inner, whom)) => {
                live.made += 1;
                let connection = Connection {
                    inner,
                    no: live.made,
                    whom: whom.into(),
                };
                live.connection = Some(connection.clone());
                Ok(connection)
            }
            Err(fault) => {
                self.servers.forget();
                live.fail(self.clock.now(), &fault);
                Err(fault)
            }
        }
    }

    async fn connect(&self) -> Result<(MultiplexedConnection, String), StoreError> {
        let located = self.servers.master().await?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.manner.connect))
            .set_response_timeout(Some(self.manner.answer));
        let made = located
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await;
        match made {
            Ok(connection) => Ok((connection, located.whom)),
            Err(error) => Err(explained(&error, &located.whom, self.servers.section())),
        }
    }

    async fn leave(&self, connection: &Connection) {
        let mut live = self.live.lock().await;
        live.connection.take_if(|known| known.no == connection.no);
    }

    async fn fail(&self, error: &RedisError, connection: &Connection) -> StoreError {
        let fault = explained(error, &connection.whom, self.servers.section());
        let mut live = self.live.lock().await;
        // Others that waited on the same connection have said so already.
        if live
            .connection
            .take_if(|known| known.no == connection.no)
            .is_some()
        {
            live.fail(self.clock.now(), &fault);
        }
        fault
    }

    fn tell(&self, outcome: &Result<Value, StoreError>) {
        if !self.manner.is_witness {
            return;
        }
        let state = outcome.as_ref().map(|_| ()).map_err(ToString::to_string);
        if self.meters.redis_is(state) {
            match outcome {
                Ok(_) => tracing::info!("Redis answers: leases and hints are in use"),
                Err(error) => {
                    tracing::warn!(%error, "Redis is lost: {}", self.servers.when_lost())
                }
            }
        }
    }
}

impl Live {
    fn fail(&mut self, now: Moment, fault: &StoreError) {
        let wait = RETRY_FIRST
            .saturating_mul(1 << self.failures.min(8))
            .min(RETRY_MAX);
        // Down to half of it, so that nodes don't come back in step.
        let percent = 50 + (Uuid::new_v4().as_u128() % 51) as u32;
        self.not_before = now.plus(wait * percent / 100);
        self.failures = self.failures.saturating_add(1);
        self.fault = Some(fault.clone());
    }
}

/// A script that the server doesn't know is sent whole, which makes it known.
async fn ask(connection: &mut MultiplexedConnection, request: &Request) -> Result<Value, RedisError> {
    let answer = connection
        .send_packed_command(&request.command(false))
        .await
        .and_then(Value::extract_error);
    match answer {
        Err(error) if lacks_script(&error) => connection
            .send_packed_command(&request.command(true))
            .await
            .and_then(Value::extract_error),
        answer => answer,
    }
}
