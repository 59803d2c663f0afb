//! Random sequences of calls: each database and memory give the same answers, call by call, and end in the same state.
//!
//! A failure prints its seed; `WINDROW_TEST_SEED=… cargo test --test conformance twins` repeats it.

mod sessions;
mod tasks;
mod writes;

use uuid::Uuid;
use windrow_core::ids::{ClaimId, Epoch, ItemIndex, SessionId, ShardId, TaskId, WallMs};
use windrow_core::stats::daily::UtcDay;
use windrow_engine::ports::ownership::run_store::{ClaimRequest, ShardCheckpoint};
use windrow_engine::ports::tasks::failure_list::{FailurePage, RecordedItem};
use windrow_engine::ports::tasks::statistics::Period;
use windrow_engine::ports::tasks::store::TaskView;

use crate::crossing::Dice;
use crate::engines::{Engine, runtime};
use crate::fixture::{BUSINESS, Harness, NOW, write};

/// Calls of one sequence; most sequences horizon stopped, finished and cancelled tasks with it.
const STEPS: u32 = 250;
const TASKS: i64 = 4;
const ITEMS: u64 = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_and_memory_give_the_same_answers() {
    give_the_same_answers(8, async || Harness::sqlite().await).await;
}

#[test]
fn postgres_and_memory_give_the_same_answers() {
    let engine = Engine::postgres();
    runtime().block_on(give_the_same_answers(3, async || engine.harness().await));
}

#[test]
fn mariadb_and_memory_give_the_same_answers() {
    let engine = Engine::mariadb();
    runtime().block_on(give_the_same_answers(3, async || engine.harness().await));
}

async fn give_the_same_answers(rounds: u64, make: impl AsyncFn() -> Harness) {
    let given = std::env::var("WINDROW_TEST_SEED")
        .ok()
        .map(|seed| seed.parse().unwrap());
    let first = given.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
    let rounds = if given.is_some() { 1 } else { rounds };
    let (mut claims, mut stored) = (0, 0);
    for seed in (0..rounds).map(|round| first.wrapping_add(round)) {
        println!("WINDROW_TEST_SEED={seed}");
        let mut twins = Twins::new(seed, make().await).await;
        for step in 0..STEPS {
            twins.step(step).await;
        }
        twins.compare_everything().await;
        // A single sequence may be so unlucky that all its tasks are cancelled first.
        (claims, stored) = (claims + twins.claims, stored + twins.stored);
    }
    let proves = claims > 0 && stored > 0;
    assert!(
        proves || given.is_some(),
        "sequences that reach nothing prove nothing"
    );
}

struct Twins {
    memory: Harness,
    sql: Harness,
    dice: Dice,
    now: WallMs,
    sessions: Vec<SessionId>,
    /// Every claim that was won, old ones too: zombies write on.
    runs: Vec<Run>,
    last_claim: Option<ClaimRequest>,
    last_write: Option<ShardCheckpoint>,
    claims: u32,
    stored: u32,
}

#[derive(Clone, Copy)]
struct Run {
    shard: ShardId,
    epoch: Epoch,
    claim: ClaimId,
    seq: u64,
    start: u64,
    end: u64,
    watermark: u64,
}

/// Asks both and compares; the answer is the one that both gave.
macro_rules! both {
    ($twins:expr, $at:expr, $store:ident => $call:expr) => {{
        let $store = &$twins.memory.store;
        let in_memory = $call.await;
        let $store = &$twins.sql.store;
        let in_sql = $call.await;
        assert_eq!(in_memory, in_sql, "{}", $at);
        in_memory
    }};
}

use both;

impl Twins {
    async fn new(seed: u64, sql: Harness) -> Twins {
        let memory = Harness::memory();
        for harness in [&memory, &sql] {
            harness
                .store
                .ensure_business(BUSINESS, &write(), NOW)
                .await
                .unwrap();
        }
        Twins {
            memory,
            sql,
            dice: Dice::seeded(seed),
            now: NOW,
            sessions: Vec::new(),
            runs: Vec::new(),
            last_claim: None,
            last_write: None,
            claims: 0,
            stored: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.dice.below(bound)
    }

    fn uuid(&mut self) -> Uuid {
        Uuid::from_u64_pair(self.below(u64::MAX), self.below(u64::MAX))
    }

    fn task(&mut self) -> TaskId {
        TaskId(1 + self.below(TASKS as u64).cast_signed())
    }

    async fn step(&mut self, step: u32) {
        self.now = WallMs(self.now.0 + self.below(40).cast_signed());
        match self.below(20) {
            0 => self.create(step).await,
            1..=5 => self.command(step).await,
            6 => self.begin(step).await,
            7 => self.fence(step).await,
            8..=11 => self.claim(step).await,
            12..=17 => self.checkpoint(step).await,
            18 => self.release(step).await,
            _ => self.look(step).await,
        }
    }

    async fn look(&mut self, step: u32) {
        let shard = ShardId {
            task: self.task(),
            no: 0,
        };
        let (before, limit) = (
            WallMs(NOW.0 + self.below(50).cast_signed()),
            1 + self.below(4) as u32,
        );
        let after = Some((WallMs(NOW.0 + 5), ItemIndex(self.below(ITEMS))));
        both!(self, step, store => store.parked_due(shard, before, after, limit)).unwrap();
        both!(self, step, store => store.control(shard)).ok();
        self.compare(shard.task, "look").await;
    }

    async fn compare_everything(&mut self) {
        for id in 1..=TASKS * 10 {
            self.compare(TaskId(id), "end").await;
        }
        for session in self.sessions.clone() {
            both!(self, "end", store => store.beat(session)).unwrap();
        }
        let ever = Period {
            from: UtcDay(0),
            until: UtcDay(100_000),
            business: None,
        };
        both!(self, "end", store => store.cells(&ever)).unwrap();
        both!(self, "end", store => store.task_totals(&ever, None, 100)).unwrap();
    }

    async fn compare(&self, id: TaskId, at: &str) {
        let (memory, sqlite) = (self.memory.store.get(id).await, self.sql.store.get(id).await);
        assert_eq!(
            memory.unwrap().map(comparable),
            sqlite.unwrap().map(comparable),
            "{at}"
        );
        both!(self, at, store => store.groups(id)).unwrap();
        both!(self, at, store => store.shard_days(id)).unwrap();
        // The store in memory keeps no history.
        let plain = |item| RecordedItem {
            history: None,
            ..item
        };
        both!(self, at, store => async {
            let page = store.page(id, &FailurePage::ByIndex(None), 100).await;
            page.map(|items| items.into_iter().map(plain).collect::<Vec<RecordedItem>>())
        })
        .unwrap();
        both!(self, at, store => store.audit(id)).unwrap();
        let shards = both!(self, at, store => store.result_shards(id)).unwrap();
        both!(self, at, store => store.result_sums(id)).unwrap();
        for shard in shards {
            both!(self, at, store => store.segments(shard.shard, ItemIndex(1), None, 100)).unwrap();
            both!(self, at, store => store.output(shard.shard, ItemIndex(2))).unwrap();
        }
    }
}

/// All but the wording of why a task doesn't add up.
fn comparable(mut view: TaskView) -> TaskView {
    if view.status_reason.as_deref() == Some("proof_failed") {
        view.status_text = None;
        view.life.note = None;
    }
    // Each store makes its own.
    view.life.start_token = None;
    // Without a node that it moves to, nobody asks until when.
    for shard in &mut view.life.shards {
        shard.moves_until = None;
    }
    view
}
