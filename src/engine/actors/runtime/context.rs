//! What every actor of a node is given: clocks, stores, runtimes, times. Built once by the composition root.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;

pub use crate::actors::executor::run_directory::RunDirectory;
pub use crate::actors::executor::run_view::{RunSample, RunView};
pub use crate::actors::membership::heartbeats::Heartbeats;
pub use crate::actors::membership::pots::Pots;
use crate::actors::runtime::lock;
use crate::actors::runtime::new_ids::NewIds;
use crate::actors::runtime::tree::Tree;
pub use crate::actors::upkeep::sink_follower::SinkParts;
use crate::ports::access::business_store::BusinessStore;
use crate::ports::clock::Clock;
use crate::ports::datasets::publication::{Preparer, PublicationStore};
use crate::ports::handling::data_log::DataLog;
use crate::ports::handling::hook::HookCaller;
use crate::ports::handling::meters::Meters;
use crate::ports::handling::outbox::OutboxStore;
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

/// What firing schedules needs; a node without has none.
#[derive(Clone)]
pub struct ScheduleParts {
    /// Schedules and fires.
    pub store: Arc<dyn ScheduleStore>,
    /// Makes tasks of fires; until it is there, fires are decided and wait.
    pub maker: Arc<OnceLock<Arc<dyn FireMaker>>>,
}

/// The times that ownership rests on; `config.toml` explains each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// How long a lease, and a silent heartbeat, is believed.
    pub lease_ttl: Duration,
    /// How often leases are renewed.
    pub lease_renew: Duration,
    /// How often the session's heart beats.
    pub heartbeat: Duration,
    /// How often the restorer scans.
    pub restore_scan: Duration,
    /// Older tasks don't restart by themselves.
    pub restore_window: Duration,
    /// Recoveries before `stopped(recoveries_exhausted)`.
    pub restore_max: u32,
    /// The first and the longest wait before a recovery.
    pub restore_backoff: (Duration, Duration),
    /// How often data log lines are written.
    pub data_log_flush: Duration,
    /// How long calls may take to end when the node shuts down.
    pub drain_timeout: Duration,
    /// Whether shards of a silent owner are taken over, after its lease and a TTL, while the lease store that the
    /// owner may live on can't be reached.
    pub takeover_without_leases: bool,
    /// A handler that is not reached for so long, or only ever finds fault, ends the run; none waits for it.
    pub first_contact: Option<Duration>,
}

/// How many lives of a lease may follow the last trusted heartbeat: whoever can't save must not keep its shards from nodes
/// that can.
const LEASE_ALONE_LIVES: u32 = 2;

impl Times {
    /// How long a lease alone carries its run beyond the session's trust. Where shards are taken over without a look at
    /// leases, all candidates wait for one life of a lease and no longer.
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

/// Which tasks this node takes; changes live. What runs already goes on.
#[derive(Clone, Debug, Default)]
pub struct Serving(Arc<Mutex<ServingNow>>);

/// See [`Serving`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingNow {
    /// Whether it takes any.
    pub run_tasks: bool,
    /// Of which pools; none takes all.
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
    /// Takes tasks of these pools only.
    pub fn new(run_tasks: bool, pools: Option<Vec<String>>) -> Serving {
        Serving(Arc::new(Mutex::new(ServingNow { run_tasks, pools })))
    }

    /// What is served now.
    pub fn now(&self) -> ServingNow {
        lock(&self.0).clone()
    }

    pub(crate) fn set(&self, serving: ServingNow) {
        *lock(&self.0) = serving;
    }

    /// The pools to look for (none: all), unless no task is taken.
    pub(crate) fn pools(&self) -> Option<Option<Vec<String>>> {
        let now = self.now();
        now.run_tasks.then_some(now.pools)
    }
}

/// How much of a node is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// All there is; none is unlimited.
    pub capacity: Option<Load>,
    /// What is booked.
    pub reserved: Load,
    /// By so many shards.
    pub shards: usize,
    /// Tasks that wait, as the last scan found them.
    pub waiting: usize,
}

/// Where the supervisor writes how much is taken, so that nobody has to ask it.
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

/// See the module.
pub struct NodeContext {
    /// The node's name, the root of every path.
    pub node: String,
    /// This program's version.
    pub version: String,
    /// The first part of item keys.
    pub store_id: StoreId,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What people see.
    pub tree: Tree,
    /// Where lanes, handlers and readers run.
    pub work: Handle,
    /// Where heartbeats and lease I/O run: a thread of its own, so that load can never cost the lease.
    pub vital: Handle,
    /// Lanes of a run that no rate limits.
    pub lanes_unpaced: usize,
    /// Shards.
    pub runs: Arc<dyn RunStore>,
    /// Tasks.
    pub tasks: Arc<dyn TaskStore>,
    /// Sessions, over a connection of their own.
    pub sessions: Arc<dyn SessionStore>,
    /// Limits that several tasks share on all nodes.
    pub limits: Arc<dyn LimitStore>,
    /// This node's parts of them.
    pub pots: Pots,
    /// Leases outside the database, if there are.
    pub leases: Option<Arc<dyn LeaseStore>>,
    /// The way to the other nodes' ears, if there is one.
    pub hints: Option<Arc<dyn Hints>>,
    /// Lines.
    pub data_log: Arc<dyn DataLog>,
    /// Handlers and sources.
    pub provider: Arc<dyn Provider>,
    /// Works out what stands in generations beside results.
    pub preparer: Arc<dyn Preparer>,
    /// Makes generations known.
    pub publications: Arc<dyn PublicationStore>,
    /// Times.
    pub times: Times,
    /// Which tasks this node takes.
    pub serving: Serving,
    /// Whether this process holds the state directory's lock: older sessions here are dead.
    pub exclusive: bool,
    /// The runs that are live on this node.
    pub directory: RunDirectory,
    /// How others reach this node's façade, and labels shown with it.
    pub place: NodePlace,
    /// What delivering hooks needs; none delivers none.
    pub hooks: Option<HookParts>,
    /// What firing schedules needs; none fires none.
    pub schedules: Option<ScheduleParts>,
    /// What copying datasets needs; none copies none.
    pub sinks: Option<SinkParts>,
    /// What time makes due.
    pub upkeep: Arc<dyn UpkeepStore>,
    /// Uploads, which are removed when nobody takes them.
    pub uploads: Option<Arc<dyn UploadStore>>,
    /// How long things are kept; none removes nothing.
    pub keep: Option<Keep>,
    /// How much is taken, as the supervisor writes it.
    pub room: RoomBoard,
    /// What is counted for people who watch.
    pub meters: Arc<Meters>,
    /// What the restorer saw of all sessions.
    pub heartbeats: Heartbeats,
    /// Ids of sessions and claims.
    pub new_ids: NewIds,
}

impl NodeContext {
    /// How this node's session shows itself.
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

/// Where a node is to be found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodePlace {
    /// The base of its façade's URL; none has none.
    pub address: Option<String>,
    /// Shown with the node.
    pub labels: BTreeMap<String, String>,
}

/// What delivering hooks needs.
#[derive(Clone)]
pub struct HookParts {
    /// The calls that are due.
    pub outbox: Arc<dyn OutboxStore>,
    /// Who wants to hear them.
    pub businesses: Arc<dyn BusinessStore>,
    /// Makes the calls.
    pub caller: Arc<dyn HookCaller>,
}

/// How long things are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    /// Rows of failed items of ended tasks.
    pub failures: Duration,
    /// What items of ended tasks came to.
    pub results: Duration,
    /// Ended tasks.
    pub tasks: Duration,
    /// Settled fires of schedules.
    pub fires: Duration,
    /// What deleted tasks did in each day.
    pub statistics: Duration,
    /// Appended items that are settled and didn't fail.
    pub appended: Duration,
    /// Entries of the audit.
    pub audit: Duration,
    /// Lines of the data log.
    pub log: Duration,
    /// Lines of one task.
    pub log_lines: u64,
}
