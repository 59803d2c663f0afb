//! Context of all actors of a node: clocks, stores, runtimes, times. The composition root builds it once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;

pub use crate::actors::executor::run_directory::RunDirectory;
pub use crate::actors::executor::run_view::{RunSample, RunView};
pub use crate::actors::membership::heartbeats::Heartbeats;
pub use crate::actors::membership::local_buckets::LocalBuckets;
use crate::actors::runtime::lock;
use crate::actors::runtime::new_ids::NewIds;
use crate::actors::runtime::tree::Tree;
pub use crate::actors::upkeep::sink_follower::SinkParts;
use crate::ports::access::business_store::BusinessStore;
use crate::ports::clock::Clock;
use crate::ports::datasets::publication::{Preparer, PublicationStore};
use crate::ports::handling::alerts::{AlertSender, AlertStore};
use crate::ports::handling::data_log::DataLog;
use crate::ports::handling::hook::HookCaller;
use crate::ports::handling::meters::Meters;
use crate::ports::handling::outbox::OutboxStore;
use crate::ports::ownership::found_store::FoundStore;
use crate::ports::ownership::hints::Hints;
use crate::ports::ownership::lease_store::LeaseStore;
use crate::ports::ownership::limit_store::LimitStore;
use crate::ports::ownership::run_store::RunStore;
use crate::ports::ownership::session_store::{SessionFace, SessionStore};
use crate::ports::schedules::maker::FireMaker;
use crate::ports::schedules::store::ScheduleStore;
use crate::ports::sources::provision::Provider;
use crate::ports::sources::uploads::UploadStore;
use crate::ports::tasks::store::TaskStore;
use crate::ports::tasks::upkeep::UpkeepStore;
use windrow_core::capacity::{Ledger, Load};
use windrow_core::ids::StoreId;

/// Dependencies for firing schedules; a node without them fires none.
#[derive(Clone)]
pub struct ScheduleParts {
    /// Store of schedules and their fires.
    pub store: Arc<dyn ScheduleStore>,
    /// Maker of tasks from fires; until it is set, fires are decided and wait.
    pub maker: Arc<OnceLock<Arc<dyn FireMaker>>>,
}

/// Times that ownership depends on; `config.toml` explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Time for which a lease, and a silent heartbeat, counts as valid.
    pub lease_ttl: Duration,
    /// Interval between renewals of the leases.
    pub lease_renew: Duration,
    /// Interval between heartbeats of the session.
    pub heartbeat: Duration,
    /// Interval between scans of the restorer.
    pub restore_scan: Duration,
    /// Time without activity after which a task no longer restarts automatically.
    pub restore_window: Duration,
    /// Recoveries in a row before a run ends as `stopped(recoveries_exhausted)`.
    pub restore_max: u32,
    /// First and longest delay before a recovery.
    pub restore_backoff: (Duration, Duration),
    /// Interval between writes of data log lines.
    pub data_log_flush: Duration,
    /// Longest time for calls to end when the node shuts down.
    pub drain_timeout: Duration,
    /// True if shards of a silent owner are taken over, after its lease and a TTL, while the lease store that the
    /// owner may live on is unreachable.
    pub takeover_without_leases: bool,
    /// Time after which a handler that was never reached, or only ever rejects, ends the run; `None` waits for it.
    pub first_contact: Option<Duration>,
}

/// Lease lifetimes that may follow the last valid heartbeat: a node that can't save must not keep its shards from
/// nodes that can.
const LEASE_ALONE_LIVES: u32 = 2;

impl Times {
    /// Returns the time that a lease alone carries its run beyond the session's validity. If shards are taken over
    /// without checking leases, all candidates wait for one lifetime of a lease and no longer.
    pub(crate) fn lease_alone(&self) -> Duration {
        self.lease_ttl
            * if self.takeover_without_leases {
                1
            } else {
                LEASE_ALONE_LIVES
            }
    }
}

impl Default for Times {
    fn default() -> Times {
        let seconds = Duration::from_secs;
        Times {
            lease_ttl: seconds(15),
            lease_renew: seconds(3),
            heartbeat: seconds(1),
            restore_scan: seconds(1),
            restore_window: seconds(30 * 24 * 3600),
            restore_max: 10,
            restore_backoff: (seconds(15), seconds(600)),
            data_log_flush: seconds(1),
            drain_timeout: seconds(30),
            takeover_without_leases: false,
            first_contact: None,
        }
    }
}

/// Tasks that this node takes; changes live. Tasks that run already continue.
#[derive(Clone, Debug, Default)]
pub struct Serving(Arc<Mutex<ServingNow>>);

/// Current value of [`Serving`], as set at start or by people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingNow {
    /// True if the node takes any tasks.
    pub run_tasks: bool,
    /// Pools whose tasks it takes; `None` takes all.
    pub pools: Option<Vec<String>>,
}

impl Default for ServingNow {
    fn default() -> ServingNow {
        ServingNow {
            run_tasks: true,
            pools: None,
        }
    }
}

impl Serving {
    /// Restricts the node to tasks of these pools.
    pub fn new(run_tasks: bool, pools: Option<Vec<String>>) -> Serving {
        Serving(Arc::new(Mutex::new(ServingNow { run_tasks, pools })))
    }

    /// Returns the setting in force now.
    pub fn now(&self) -> ServingNow {
        lock(&self.0).clone()
    }

    pub(crate) fn set(&self, serving: ServingNow) {
        *lock(&self.0) = serving;
    }

    /// Returns the pools to look for (`None`: all), unless no tasks are taken.
    pub(crate) fn pools(&self) -> Option<Option<Vec<String>>> {
        let now = self.now();
        now.run_tasks.then_some(now.pools)
    }
}

/// Capacity of a node and its use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Whole capacity; `None` is unlimited.
    pub capacity: Option<Load>,
    /// Load reserved by admitted shards.
    pub reserved: Load,
    /// Number of shards with a reservation.
    pub shards: usize,
    /// Waiting tasks found by the last scan.
    pub waiting: usize,
}

/// Board on which the supervisor writes the node's use, so that nobody has to ask it.
#[derive(Clone, Debug, Default)]
pub struct RoomBoard(Arc<Mutex<Room>>);

impl RoomBoard {
    pub(crate) fn read(&self) -> Room {
        *lock(&self.0)
    }

    pub(crate) fn write(&self, ledger: &Ledger, waiting: usize) {
        let room = Room {
            capacity: ledger.capacity(),
            reserved: ledger.held_sum(),
            shards: ledger.held_shards(),
            waiting,
        };
        *lock(&self.0) = room;
    }
}

/// Shared context of all actors of a node.
pub struct NodeContext {
    /// Name of the node, the root of every path.
    pub node: String,
    /// Version of this program.
    pub version: String,
    /// First part of item keys.
    pub store_id: StoreId,
    /// Clock that all actors use.
    pub clock: Arc<dyn Clock>,
    /// Supervision tree as shown to people.
    pub tree: Tree,
    /// Runtime of lanes, handlers and readers.
    pub work: Handle,
    /// Runtime of heartbeats and lease I/O, on a separate thread, so that load can never cost the lease.
    pub vital: Handle,
    /// Number of lanes of a run without a rate limit.
    pub lanes_unpaced: usize,
    /// Store of shards and their progress.
    pub runs: Arc<dyn RunStore>,
    /// Store that holds the tasks.
    pub tasks: Arc<dyn TaskStore>,
    /// Store of sessions, over a separate connection.
    pub sessions: Arc<dyn SessionStore>,
    /// Store of limits that several tasks share on all nodes.
    pub limits: Arc<dyn LimitStore>,
    /// Store of what autopilots found.
    pub found: Arc<dyn FoundStore>,
    /// Local buckets of these limits on this node.
    pub local_buckets: LocalBuckets,
    /// Store of leases outside the database, if there is one.
    pub leases: Option<Arc<dyn LeaseStore>>,
    /// Channel for hints to and from other nodes, if there is one.
    pub hints: Option<Arc<dyn Hints>>,
    /// Store of data log lines.
    pub data_log: Arc<dyn DataLog>,
    /// Provider of handlers and sources.
    pub provider: Arc<dyn Provider>,
    /// Maker of the parts of a generation other than its results.
    pub preparer: Arc<dyn Preparer>,
    /// Store that publishes dataset generations.
    pub publications: Arc<dyn PublicationStore>,
    /// Times that ownership depends on.
    pub times: Times,
    /// Tasks that this node takes.
    pub serving: Serving,
    /// True if this process holds the state directory's lock: older sessions here are dead.
    pub exclusive: bool,
    /// Directory of the live runs on this node.
    pub directory: RunDirectory,
    /// Address of this node's API server, and labels shown with it.
    pub place: NodePlace,
    /// Dependencies for delivering hooks; `None` delivers none.
    pub hooks: Option<HookParts>,
    /// Dependencies for firing schedules; `None` fires none.
    pub schedules: Option<ScheduleParts>,
    /// Dependencies for copying datasets; `None` copies none.
    pub sinks: Option<SinkParts>,
    /// Store of work that becomes due with time.
    pub upkeep: Arc<dyn UpkeepStore>,
    /// Store of uploads, which are removed if nobody takes them.
    pub uploads: Option<Arc<dyn UploadStore>>,
    /// Retention times; `None` removes nothing.
    pub keep: Option<Keep>,
    /// Use of the node's capacity, as written by the supervisor.
    pub room: RoomBoard,
    /// Counters of the node for its metrics.
    pub meters: Arc<Meters>,
    /// Heartbeats of all sessions as seen by the restorer.
    pub heartbeats: Heartbeats,
    /// Generator of session and claim ids.
    pub new_ids: NewIds,
}

impl NodeContext {
    /// Returns the advertised state of this node's session.
    pub(crate) fn session_face(&self, draining: bool) -> SessionFace {
        let serving = self.serving.now();
        SessionFace {
            address: self.place.address.clone(),
            pools: if serving.run_tasks {
                serving.pools
            } else {
                Some(Vec::new())
            },
            capacity: self.room.read().capacity,
            labels: self.place.labels.clone(),
            draining,
        }
    }
}

/// Address and labels of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePlace {
    /// Base URL of its API server, if it has one.
    pub address: Option<String>,
    /// Labels shown with the node.
    pub labels: BTreeMap<String, String>,
}

/// Dependencies for delivering hooks.
#[derive(Clone)]
pub struct HookParts {
    /// Store of the calls that are due.
    pub outbox: Arc<dyn OutboxStore>,
    /// Store of the businesses that receive the calls.
    pub businesses: Arc<dyn BusinessStore>,
    /// Client that makes the calls.
    pub caller: Arc<dyn HookCaller>,
    /// Dependencies for telling people of events; `None` leaves notices to other nodes.
    pub alerts: Option<AlertParts>,
}

/// Dependencies for telling people of events.
#[derive(Clone)]
pub struct AlertParts {
    /// Store of the alerts that get notices.
    pub store: Arc<dyn AlertStore>,
    /// Sender of their notices.
    pub sender: Arc<dyn AlertSender>,
}

/// Retention times of stored data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Retention of failed items of ended tasks.
    pub failures: Duration,
    /// Retention of results of ended tasks.
    pub results: Duration,
    /// Retention of ended tasks.
    pub tasks: Duration,
    /// Retention of settled fires of schedules.
    pub fires: Duration,
    /// Retention of daily totals of deleted tasks.
    pub statistics: Duration,
    /// Retention of appended items that are settled and didn't fail.
    pub appended: Duration,
    /// Retention of audit entries.
    pub audit: Duration,
    /// Retention of data log lines.
    pub log: Duration,
    /// Maximum number of data log lines kept of one task.
    pub log_lines: u64,
}
