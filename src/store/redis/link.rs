//! Connection to Redis for leases and hints: opened on demand, kept while it works, replaced when it fails.
//!
//! - Every call ends within the time of its [`Manner`], even if its caller is gone: a request runs in its own task,
//!   so a hanging connection is detected and dropped.
//! - An unreachable Redis is retried after 0.1 s, doubling up to 2 s; calls in between fail at once.
//! - The loss of Redis and its return are logged once each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use windrow_words::store as say;

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

/// Timeouts of a link, and whether it reports the loss of Redis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// Longest time a caller waits.
    call: Duration,
    /// Timeout for connecting, including TLS and authentication.
    connect: Duration,
    /// Timeout for a single response.
    answer: Duration,
    /// True if leases and hints depend on the link; only then is a loss reported.
    is_witness: bool,
}

impl Manner {
    /// For leases and hints: shorter than the lease keeper's timeout (1 s), so that the keeper gets the reason.
    pub(super) const WITNESS: Manner = Manner {
        call: Duration::from_millis(900),
        connect: Duration::from_millis(500),
        answer: Duration::from_millis(700),
        is_witness: true,
    };
    /// For copies, where a call carries up to a megabyte. The copier reports losses itself.
    pub(super) const COPIES: Manner = Manner {
        call: Duration::from_secs(10),
        connect: Duration::from_secs(2),
        answer: Duration::from_secs(5),
        is_witness: false,
    };
}

/// Delay before the next connection attempt; doubles with each failure up to `RETRY_MAX`.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// Connections that one call may try. It may change twice: once if the connection was closed unnoticed, once if a
/// cluster or a Sentinel names another server.
const CONNECTIONS_MAX: u32 = 3;

/// Lua script: its hash and its full text.
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

/// Request that a link can send.
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

/// Connection to Redis shared by its callers, with the state of its retries.
pub(super) struct Link {
    servers: Arc<Servers>,
    manner: Manner,
    clock: Arc<dyn Clock>,
    meters: Arc<Meters>,
    runtime: Handle,
    live: Mutex<Live>,
    /// Time of the last successful response, on the link's clock.
    answered_at: AtomicU64,
}

#[derive(Clone)]
struct Connection {
    inner: MultiplexedConnection,
    /// Number of the connection, in order of creation.
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

    /// Returns the time since the last response.
    pub(super) fn silence(&self) -> Duration {
        self.clock
            .now()
            .since(Moment(self.answered_at.load(Ordering::Relaxed)))
    }

    /// Sends a request, and repeats it if another connection may help, so a request can run twice.
    pub(super) async fn call(self: &Arc<Self>, request: Request) -> Result<Value, StoreError> {
        let link = self.clone();
        let asked = self.runtime.spawn(async move {
            let outcome = link.exchange(&request).await;
            link.tell(&outcome);
            outcome
        });
        match tokio::time::timeout(self.manner.call, asked).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(ended)) => Err(StoreError::Unavailable(
                say::redis_ended(ended.to_string()).to_string(),
            )),
            Err(_) => Err(StoreError::Unavailable(say::redis_no_answer().to_string())),
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

    /// Returns true if another connection may succeed at once where this one failed.
    fn may_help(&self, error: &RedisError, connection: &Connection) -> bool {
        let moved = error.redirect_node().filter(|_| error.code() == Some("MOVED"));
        if let Some((place, _slot)) = moved {
            return self.servers.note_moved(place, &connection.whom);
        }
        self.servers.forget();
        (error.is_io_error() && !error.is_timeout()) || error.to_string().contains("READONLY")
    }

    /// Returns the connection, opening it if necessary. Concurrent callers wait for the same attempt.
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
        // Only the first caller to fail on this connection records it.
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
                Ok(_) => tracing::info!("Redis is up: leases and hints are in use"),
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
        // Jitter of down to half the delay keeps nodes from reconnecting in step.
        let percent = 50 + (Uuid::new_v4().as_u128() % 51) as u32;
        self.not_before = now.plus(wait * percent / 100);
        self.failures = self.failures.saturating_add(1);
        self.fault = Some(fault.clone());
    }
}

/// Sends a request. A script unknown to the server is sent again in full, which makes it known.
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
