//! Stores to test and the short forms that facts are written in.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement};
use tempfile::TempDir;
use uuid::Uuid;
use windrow_core::ids::{
    CheckpointSeq, ClaimId, Epoch, ItemCount, ItemIndex, ScheduleId, SessionId, ShardId, TaskId, WallMs,
};
use windrow_core::items::counters::Counters;
use windrow_core::items::verdict::{AttemptNote, FailingItem, Failure, SideRecord};
use windrow_core::limit::Bounds;
use windrow_core::limit::key::LimitKey;
use windrow_core::meter::metering::Metering;
use windrow_core::settings::{Auto, Backoff, Burst, ErrorBudget, OnExhausted, Rate, RateLimit};
use windrow_core::shards::Directives;
use windrow_core::stats::daily::Settled;
use windrow_core::task::Tuning;
use windrow_engine::ports::datasets::publication::PublicationStore;
use windrow_engine::ports::datasets::sink::SinkStore;
use windrow_engine::ports::datasets::store::DatasetStore;
use windrow_engine::ports::handling::data_log::DataLog;
use windrow_engine::ports::handling::outbox::OutboxStore;
use windrow_engine::ports::ownership::found_store::FoundStore;
use windrow_engine::ports::ownership::limit_store::LimitStore;
use windrow_engine::ports::ownership::run_store::{
    CandidateQuery, CheckpointAck, ClaimOutcome, ClaimRequest, ClaimedShard, RunClose, RunStore,
    ShardCheckpoint,
};
use windrow_engine::ports::ownership::session_store::{
    Heartbeat, NewSession, OwnedShard, SessionFace, SessionStore,
};
use windrow_engine::ports::schedules::store::ScheduleStore;
use windrow_engine::ports::sources::append::AppendStore;
use windrow_engine::ports::sources::store::SourceStore;
use windrow_engine::ports::tasks::failure_list::FailureList;
use windrow_engine::ports::tasks::results::ResultStore;
use windrow_engine::ports::tasks::statistics::StatisticsStore;
use windrow_engine::ports::tasks::store::{
    Actor, NewTask, TaskCommand, TaskStore, TaskView, WaitNote, Write,
};
use windrow_engine::ports::tasks::upkeep::UpkeepStore;
use windrow_host::start_token;
use windrow_host::vault::KeyVault;
use windrow_memory::MemoryStore;
use windrow_store::sql::inspect::Inspection;
use windrow_store::sql::{ServerAddress, Store};

/// All store ports of one adapter.
pub trait Stores:
    TaskStore
    + RunStore
    + SessionStore
    + SourceStore
    + DataLog
    + FailureList
    + ResultStore
    + DatasetStore
    + PublicationStore
    + SinkStore
    + OutboxStore
    + UpkeepStore
    + LimitStore
    + FoundStore
    + ScheduleStore
    + StatisticsStore
    + AppendStore
{
}
impl<T> Stores for T where
    T: TaskStore
        + RunStore
        + SessionStore
        + SourceStore
        + DataLog
        + FailureList
        + ResultStore
        + DatasetStore
        + PublicationStore
        + SinkStore
        + OutboxStore
        + UpkeepStore
        + LimitStore
        + FoundStore
        + ScheduleStore
        + StatisticsStore
        + AppendStore
{
}

/// A fresh store with a business, and what keeps it alive.
pub struct Harness {
    pub store: Arc<dyn Stores>,
    memory: Option<Arc<MemoryStore>>,
    place: Option<TempDir>,
    /// Of a server's database, with the password.
    url: Option<String>,
    /// The same store, where it is one of SQL.
    sql: Option<Arc<Store>>,
    /// The server's database, for whoever looks at it.
    pub address: Option<ServerAddress>,
}

/// The wall clock of the tests: late enough that epochs look like real ones.
pub const NOW: WallMs = WallMs(1_790_000_000_000);
/// The business of all tasks.
pub const BUSINESS: &str = "mail";

/// The key that every store of the tests has.
fn vault() -> Arc<KeyVault> {
    Arc::new(KeyVault::with_key([7; 32]))
}

impl Harness {
    pub fn memory() -> Harness {
        let store = Arc::new(MemoryStore::new());
        Harness {
            store: store.clone(),
            memory: Some(store),
            place: None,
            url: None,
            sql: None,
            address: None,
        }
    }

    pub async fn sqlite() -> Harness {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("windrow.db")).await.unwrap();
        Harness {
            place: Some(place),
            ..Harness::over(store)
        }
    }

    pub fn over(store: Store) -> Harness {
        let store = Arc::new(store.sealing(vault()));
        Harness {
            store: store.clone(),
            memory: None,
            place: None,
            url: None,
            sql: Some(store),
            address: None,
        }
    }

    pub fn served(store: Store, url: String) -> Harness {
        Harness {
            url: Some(url),
            ..Harness::over(store)
        }
    }

    /// The same, whose database is looked at here.
    pub fn at(self, address: ServerAddress) -> Harness {
        Harness {
            address: Some(address),
            ..self
        }
    }

    /// The store with the ports that memory hasn't.
    pub fn sql(&self) -> &Store {
        self.sql.as_deref().unwrap()
    }

    /// The database as `windrow db` looks at it.
    pub async fn looked_at(&self) -> Inspection {
        if let Some(address) = &self.address {
            return Inspection::connect(address).await.unwrap();
        }
        Inspection::open(&self.place().join("windrow.db")).await.unwrap()
    }

    /// The directory of a file.
    pub fn place(&self) -> &Path {
        self.place.as_ref().unwrap().path()
    }

    /// The database through a connection of our own; none in memory.
    async fn inspect(&self) -> Option<DatabaseConnection> {
        if let Some(url) = &self.url {
            return Some(Database::connect(url).await.unwrap());
        }
        let path = self.place.as_ref()?.path().join("windrow.db");
        Some(
            Database::connect(format!("sqlite://{}?mode=rw", path.display()))
                .await
                .unwrap(),
        )
    }

    /// The business of all tasks wants to hear of this from now on.
    pub async fn want_hooks(&self, hooks: &str) {
        if let Some(memory) = &self.memory {
            memory.set_hooks(BUSINESS, serde_json::from_str(hooks).unwrap());
        }
        if let Some(db) = self.inspect().await {
            let sql = format!("UPDATE business SET hooks = '{hooks}' WHERE slug = '{BUSINESS}'");
            db.execute_unprepared(&sql).await.unwrap();
            db.close().await.unwrap();
        }
    }

    /// The tasks of the business may have this together from now on: a rate in items per second.
    pub async fn limit(&self, per_second: Option<u64>) {
        let rate = per_second.and_then(Rate::per_second);
        if let Some(memory) = &self.memory {
            memory.limit_business(
                BUSINESS,
                Bounds {
                    rate,
                    concurrency: None,
                },
            );
        }
        if let Some(db) = self.inspect().await {
            let limits = rate.map_or_else(|| "{}".to_owned(), |rate| format!("{{\"rate\":\"{rate}\"}}"));
            let sql = format!("UPDATE business SET limits_json = '{limits}' WHERE slug = '{BUSINESS}'");
            db.execute_unprepared(&sql).await.unwrap();
            db.close().await.unwrap();
        }
    }

    /// There is a limit of this name from now on: a rate in items per second.
    pub async fn name_limit(&self, name: &str, per_second: u64) {
        let rate = Rate::per_second(per_second);
        if let Some(memory) = &self.memory {
            memory.set_limit(
                LimitKey::Named(name),
                Bounds {
                    rate,
                    concurrency: None,
                },
            );
        }
        if let Some(db) = self.inspect().await {
            let columns = "name, rate, revision, created_at, updated_at";
            let sql = format!("DELETE FROM named_limit WHERE name = '{name}'");
            db.execute_unprepared(&sql).await.unwrap();
            let sql =
                format!("INSERT INTO named_limit ({columns}) VALUES ('{name}', '{per_second}/s', 1, 0, 0)");
            db.execute_unprepared(&sql).await.unwrap();
            db.close().await.unwrap();
        }
    }

    /// There is a limit of this name with these limits in units from now on.
    pub async fn meter_limit(&self, name: &str, limits: &[&str]) {
        let limits: Vec<String> = limits.iter().map(|text| (*text).to_owned()).collect();
        let metering = Metering::parse(&limits, &[], &[], &[]).unwrap();
        let json = serde_json::to_string(&metering).unwrap();
        if let Some(memory) = &self.memory {
            memory.set_metering(LimitKey::Named(name), metering);
        }
        if let Some(db) = self.inspect().await {
            let columns = "name, metering, revision, created_at, updated_at";
            for sql in [
                format!("DELETE FROM named_limit WHERE name = '{name}'"),
                format!("INSERT INTO named_limit ({columns}) VALUES ('{name}', '{json}', 1, 0, 0)"),
            ] {
                db.execute_unprepared(&sql).await.unwrap();
            }
            db.close().await.unwrap();
        }
    }

    /// Moves what a schedule knows of time back, as if it had been left alone for so long.
    pub async fn rewind_schedule(&self, id: ScheduleId, by_ms: i64) {
        if let Some(memory) = &self.memory {
            memory.rewind_schedule(id, by_ms);
        }
        self.update(&format!(
            "UPDATE schedule SET next_fire = next_fire - {by_ms}, next_due = next_due - {by_ms}, armed_at = armed_at - {by_ms} \
             WHERE id = {}",
            id.0
        ))
        .await;
    }

    /// Moves the fires of a schedule back in time: its times are free again.
    pub async fn shift_fires(&self, id: ScheduleId, by_ms: i64) {
        if let Some(memory) = &self.memory {
            memory.shift_fires(id, by_ms);
        }
        for table in ["fire", "task"] {
            let sql = format!(
                "UPDATE {table} SET fire_time = fire_time - {by_ms} WHERE schedule_id = {}",
                id.0
            );
            self.update(&sql).await;
        }
    }

    /// Ends the leases of all fires of a schedule.
    pub async fn lapse_fires(&self, id: ScheduleId) {
        if let Some(memory) = &self.memory {
            memory.lapse_fires(id);
        }
        self.update(&format!(
            "UPDATE fire SET lease_until = 0 WHERE schedule_id = {}",
            id.0
        ))
        .await;
    }

    /// Changes rows behind the store's back; in memory there are none.
    pub async fn update(&self, sql: &str) {
        if let Some(db) = self.inspect().await {
            db.execute_unprepared(sql).await.unwrap();
            db.close().await.unwrap();
        }
    }

    /// A number as it lies in the database.
    pub async fn column(&self, table: &str, column: &str, which: &str) -> i64 {
        let db = self.inspect().await.unwrap();
        let sql = format!("SELECT {column} AS n FROM {table} WHERE {which}");
        let row = db
            .query_one_raw(Statement::from_string(db.get_database_backend(), sql))
            .await;
        let number = row.unwrap().unwrap().try_get_by_index::<i64>(0).unwrap();
        db.close().await.unwrap();
        number
    }

    /// Counts one more item of a task's first shard as succeeded, behind the store's back.
    pub async fn mend(&self, id: TaskId) {
        if let Some(memory) = &self.memory {
            memory.mend(id);
        }
        if let Some(db) = self.inspect().await {
            let sql = format!(
                "UPDATE shard SET succeeded = succeeded + 1 WHERE task_id = {} AND shard_no = 0",
                id.0
            );
            db.execute_unprepared(&sql).await.unwrap();
            db.close().await.unwrap();
        }
    }

    /// The hook calls that are left to be delivered: id and body.
    pub async fn calls_left(&self) -> Vec<(String, serde_json::Value)> {
        if let Some(memory) = &self.memory {
            return memory
                .calls_left()
                .into_iter()
                .map(|(id, body, _)| (id, body))
                .collect();
        }
        let rows = self.payloads("WHERE state = 'due'").await;
        let calls = rows.into_iter().map(|(id, payload)| {
            let mut body: serde_json::Value = serde_json::from_str(&payload).unwrap();
            if let Some(sealed) = body["start_token"].as_str() {
                let task = body["task"]["id"].as_str().unwrap().parse().unwrap();
                body["start_token"] = start_token::open(&*vault(), task, sealed).unwrap().into();
            }
            (id, body)
        });
        calls.collect()
    }

    /// The bodies of hook calls as they lie in the database; in memory there are none.
    pub async fn outbox_rows(&self) -> Vec<String> {
        match self.memory {
            Some(_) => Vec::new(),
            None => self
                .payloads("")
                .await
                .into_iter()
                .map(|(_, text)| text)
                .collect(),
        }
    }

    async fn payloads(&self, which: &str) -> Vec<(String, String)> {
        let db = self.inspect().await.unwrap();
        let sql = format!("SELECT delivery_id, payload FROM outbox {which} ORDER BY id");
        let rows = db
            .query_all_raw(Statement::from_string(db.get_database_backend(), sql))
            .await
            .unwrap();
        let text = |row: &sea_orm::QueryResult, at| row.try_get_by_index::<String>(at).unwrap();
        let rows = rows.iter().map(|row| (text(row, 0), text(row, 1))).collect();
        db.close().await.unwrap();
        rows
    }

    /// A started task.
    pub async fn queued(&self, total: u64) -> ShardId {
        self.queued_as(&task(total)).await
    }

    pub async fn queued_as(&self, new: &NewTask) -> ShardId {
        let made = self.created(new).await;
        self.command(made.id, TaskCommand::Start).await;
        ShardId { task: made.id, no: 0 }
    }

    pub async fn created(&self, new: &NewTask) -> TaskView {
        self.store.ensure_business(BUSINESS, &write(), NOW).await.unwrap();
        self.store.create(new, &write(), NOW).await.unwrap()
    }

    pub async fn command(&self, id: TaskId, command: TaskCommand) -> TaskView {
        self.store.command(id, &command, &write(), NOW).await.unwrap()
    }

    pub async fn session(&self) -> SessionId {
        let id = SessionId(Uuid::new_v4());
        self.store.begin(&new_session(id)).await.unwrap();
        id
    }

    pub async fn fence(&self, id: SessionId) {
        let heartbeat = self.heartbeat(id).await;
        assert!(self.store.fence(id, heartbeat, NOW).await.unwrap());
    }

    pub async fn heartbeat(&self, id: SessionId) -> i64 {
        let sessions = self.store.list().await.unwrap();
        sessions
            .iter()
            .find(|session| session.id == id)
            .unwrap()
            .heartbeat
    }

    /// Claims what must be claimable.
    pub async fn claimed(&self, shard: ShardId, seen: Epoch, session: SessionId) -> ClaimedShard {
        match self.store.claim(request(shard, seen, session)).await.unwrap() {
            ClaimOutcome::Claimed(claimed) => *claimed,
            other => panic!("{shard} was to be had: {other:?}"),
        }
    }

    /// A task of `total` items, started and owned by a session of its own.
    pub async fn running(&self, total: u64) -> ClaimedShard {
        let shard = self.queued(total).await;
        let session = self.session().await;
        self.claimed(shard, Epoch(0), session).await
    }

    pub async fn write(&self, checkpoint: ShardCheckpoint) -> CheckpointAck {
        self.store.checkpoint(&[checkpoint]).await.unwrap()[0]
    }

    pub async fn stored(&self, checkpoint: ShardCheckpoint) {
        assert_eq!(self.write(checkpoint).await, CheckpointAck::Stored);
    }

    /// The task, after a check that its terms and its days add up.
    pub async fn view(&self, id: TaskId) -> TaskView {
        let view = self.store.get(id).await.unwrap().unwrap();
        assert!(view.counters.accounted() <= view.total.0, "{view:?}");
        let days = self.store.shard_days(id).await.unwrap();
        let counted = days
            .iter()
            .fold(Settled::default(), |sum, day| sum.plus(day.items));
        assert_eq!(counted, Settled::of(&view.counters), "{days:?}");
        view
    }
}

pub fn write() -> Write {
    Actor {
        name: "ada".to_owned(),
        role: Some("operator by group ops".to_owned()),
        source: "cli",
        reason: Some("a test".to_owned()),
        request_id: None,
    }
    .writes()
}

pub fn wait_note(id: TaskId, text: &str) -> WaitNote {
    WaitNote {
        task: id,
        reason: "capacity".to_owned(),
        text: text.to_owned(),
    }
}

pub fn new_session(id: SessionId) -> NewSession {
    NewSession {
        id,
        node: "n1".to_owned(),
        version: "0.1.0".to_owned(),
        lease_duration: Duration::from_secs(15),
        ckpt_version_max: 1,
        started_at: NOW,
        face: SessionFace::default(),
    }
}

/// A heartbeat of a session that lives and that nobody wants drained.
pub fn alive(shards: Vec<OwnedShard>) -> Heartbeat {
    Heartbeat::Alive { shards, drain: false }
}

pub fn request(shard: ShardId, seen: Epoch, session: SessionId) -> ClaimRequest {
    ClaimRequest {
        shard,
        seen,
        claim: ClaimId(Uuid::new_v4()),
        session,
        now: NOW,
    }
}

pub fn task(total: u64) -> NewTask {
    NewTask {
        source: r#"{"kind":"range"}"#.to_owned(),
        meaning: u64::MAX - 7,
        ..NewTask::of(BUSINESS, ItemCount(total), tuning())
    }
}

/// A look at all the work there is, on one page, by a node that knows of nobody alive.
pub fn hunt() -> CandidateQuery {
    CandidateQuery {
        alive: Vec::new(),
        now: NOW,
        restore_window: Duration::from_secs(30 * 86_400),
        pools: None,
        node: "n1".to_owned(),
        after: None,
        limit: 100,
    }
}

pub fn tuning() -> Tuning {
    let one = NonZeroU32::MIN;
    Tuning {
        rate: RateLimit::Unlimited,
        burst: Burst::Span(Duration::from_millis(100)),
        concurrency: Auto::Auto,
        max_concurrency: one,
        window: Auto::Auto,
        batch: one,
        batch_linger: Duration::ZERO,
        timeout: Duration::from_secs(30),
        max_attempts: one,
        backoff: Backoff {
            first: Duration::from_secs(1),
            max: Duration::from_secs(60),
            factor: 2,
            jitter_percent: 20,
        },
        on_exhausted: OnExhausted::Fail,
        error_budget: ErrorBudget {
            failed_attempts: None,
            failed: None,
        },
        error_window: Duration::from_secs(60),
        checkpoint_interval: Duration::from_secs(1),
        unsaved_max: Auto::Auto,
        straggler_after: Duration::from_secs(1),
        park_after: Duration::from_secs(2),
        parked_max: 10_000,
        outage_patience: Duration::from_secs(24 * 3600),
        judge_after: Auto::Fixed(Duration::from_secs(600)),
        ordered: false,
        ..Tuning::default()
    }
}

/// A checkpoint in which all items below `watermark` succeeded.
pub fn at(run: &ClaimedShard, seq: u64, watermark: u64) -> ShardCheckpoint {
    let succeeded = watermark - run.range.start.0;
    ShardCheckpoint {
        shard: run.shard,
        epoch: run.epoch,
        claim: run.claim,
        seq: CheckpointSeq(seq),
        watermark: ItemIndex(watermark),
        high_water: ItemIndex(watermark),
        horizon: ItemIndex(watermark),
        counters: Counters {
            succeeded,
            ..Counters::default()
        },
        blob: Vec::new(),
        side: Vec::new(),
        finish_at: None,
        canary_passed: false,
        told: Directives::default(),
        outage: None,
        lines: Vec::new(),
        results_kept: 0,
        results: Vec::new(),
        close: None,
        now: NOW,
    }
}

/// The same, ending the run.
pub fn closing(run: &ClaimedShard, seq: u64, watermark: u64, close: RunClose) -> ShardCheckpoint {
    ShardCheckpoint {
        close: Some(close),
        ..at(run, seq, watermark)
    }
}

/// The same with side records, of which the failed ones count as such.
pub fn with(mut checkpoint: ShardCheckpoint, side: Vec<SideRecord>) -> ShardCheckpoint {
    let failed = side
        .iter()
        .filter(|record| matches!(record, SideRecord::Failed(_)))
        .count() as u64;
    checkpoint.counters.succeeded -= failed;
    checkpoint.counters.failed += failed;
    checkpoint.side = side;
    checkpoint
}

pub fn retrying(index: u64, code: &str) -> FailingItem {
    let failure = Failure::new(Cow::Owned(code.to_owned()), format!("item {index} failed"));
    let note = AttemptNote {
        attempt: 3,
        at_ms: NOW.0,
        duration_ms: 12,
        code: failure.code.clone(),
        run: 1,
    };
    FailingItem {
        index: ItemIndex(index),
        attempts: 3,
        charged: 3,
        is_unconfirmed: false,
        others_answered: 0,
        failure: Some(failure),
        at: NOW,
        history: vec![note],
    }
}

pub fn failed(index: u64, code: &str) -> SideRecord {
    SideRecord::Failed(retrying(index, code))
}

pub fn parked(index: u64, due_at: WallMs) -> SideRecord {
    SideRecord::Parked {
        retrying: retrying(index, "BUSY"),
        due_at,
    }
}
