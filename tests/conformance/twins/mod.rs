//! Random sequences of calls: each database and memory give the same answers, call by call, and end in the same state.
//!
//! A failure prints its seed; `WINDROW_TEST_SEED=… cargo test --test conformance twins` repeats it.

use std::time::Duration;

use uuid::Uuid;
use windrow::domain::counters::Counters;
use windrow::domain::ids::{
    CheckpointSeq, ClaimId, Epoch, ItemCount, ItemIndex, SessionId, ShardId, TaskId, WallMs,
};
use windrow::domain::lifecycle::StopReason;
use windrow::domain::verdict::SideRecord;
use windrow::ports::run_store::{ClaimRequest, Hunt, RunClose, ShardCheckpoint};
use windrow::ports::task_store::{NewTask, TaskCommand, TaskEdit, TaskView};

use crate::engines::{Engine, runtime};
use crate::fixture::{BUSINESS, Harness, NOW, actor, new_session, parked, task, trouble, tuning, wait_note};

/// Calls of one sequence; most sequences reach stopped, finished and cancelled tasks with it.
const STEPS: u32 = 250;
const TASKS: i64 = 4;
const ITEMS: u64 = 12;
const CODES: [&str; 3] = ["BAD", "ODD", "TIMEOUT"];

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
    let given = std::env::var("WINDROW_TEST_SEED").ok().map(|seed| seed.parse().unwrap());
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
    assert!(proves || given.is_some(), "sequences that reach nothing prove nothing");
}

struct Twins {
    memory: Harness,
    sql: Harness,
    random: u64,
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
    low_water: u64,
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

impl Twins {
    async fn new(seed: u64, sql: Harness) -> Twins {
        let memory = Harness::memory();
        for harness in [&memory, &sql] {
            harness.store.ensure_business(BUSINESS, &actor(), NOW).await.unwrap();
        }
        Twins {
            memory,
            sql,
            random: seed,
            now: NOW,
            sessions: Vec::new(),
            runs: Vec::new(),
            last_claim: None,
            last_write: None,
            claims: 0,
            stored: 0,
        }
    }

    /// SplitMix64: repeatable, and good enough to choose calls.
    fn below(&mut self, bound: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
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

    async fn create(&mut self, step: u32) {
        let key = self.below(8);
        let new = NewTask {
            name: (self.below(2) == 0).then(|| format!("name{key}")),
            idempotency_key: (self.below(2) == 0).then(|| format!("key{key}")),
            skip_first: ItemIndex(self.below(3)),
            total: ItemCount(ITEMS - self.below(2)),
            priority: self.below(3) as i32,
            shards: windrow::domain::settings::Auto::Fixed(std::num::NonZeroU32::MIN),
            ..task(ITEMS)
        };
        let now = self.now;
        both!(self, step, store => store.create(&new, &actor(), now)).ok();
    }

    async fn command(&mut self, step: u32) {
        let (id, now) = (self.task(), self.now);
        let command = match self.below(20) {
            0..=9 => TaskCommand::Start,
            10..=11 => TaskCommand::Stop { reason: StopReason::Business },
            12 => TaskCommand::StopNow,
            13 => TaskCommand::Tune(Box::new(tuning())),
            14 => TaskCommand::Finish { end: ItemIndex(ITEMS / 2 + self.below(ITEMS / 2 + 1)) },
            15 => TaskCommand::Recover,
            16 => self.edit(),
            17 => self.start_or_answer(),
            _ if self.below(3) == 0 => TaskCommand::Cancel,
            _ => {
                both!(self, step, store => store.explain_waits(&[wait_note(id, "waits")], now)).unwrap();
                both!(self, step, store => store.release_name(id, &actor(), now)).ok();
                if self.below(12) == 0 {
                    both!(self, step, store => store.delete(id, &actor(), now)).ok();
                }
                return;
            }
        };
        both!(self, step, store => async {
            store.command(id, &command, &actor(), now).await.map(comparable)
        })
        .ok();
    }

    fn edit(&mut self) -> TaskCommand {
        let total = (self.below(2) == 0).then(|| ItemCount(ITEMS - 2 + self.below(4)));
        let skip_first = (self.below(3) == 0).then(|| ItemIndex(self.below(3)));
        let name = (self.below(3) == 0).then(|| format!("name{}", self.below(8)));
        TaskCommand::Edit(Box::new(TaskEdit { total, skip_first, name, ..TaskEdit::default() }))
    }

    fn start_or_answer(&mut self) -> TaskCommand {
        let start_no = 1 + self.below(3) as u32;
        match self.below(3) {
            0 => TaskCommand::StartAt(WallMs(self.now.0 + self.below(60).cast_signed())),
            1 => TaskCommand::Ready { start_no, edit: Box::default() },
            _ => TaskCommand::NotReady { start_no, text: "not today".to_owned() },
        }
    }

    async fn begin(&mut self, step: u32) {
        let id = SessionId(self.uuid());
        both!(self, step, store => store.begin(&new_session(id))).unwrap();
        self.sessions.push(id);
    }

    fn session(&mut self) -> SessionId {
        match self.below(self.sessions.len() as u64 + 1) as usize {
            0 => SessionId(Uuid::from_u128(7)),
            some => self.sessions[some - 1],
        }
    }

    async fn fence(&mut self, step: u32) {
        let id = self.session();
        if self.below(4) == 0 {
            both!(self, step, store => store.fence_all_but(id)).unwrap();
        } else if self.below(3) == 0 {
            both!(self, step, store => store.end(id)).unwrap();
        } else if self.sessions.contains(&id) {
            for harness in [&self.memory, &self.sql] {
                let sessions = harness.store.list().await.unwrap();
                if let Some(session) = sessions.iter().find(|session| session.id == id) {
                    assert!(harness.store.fence(id, session.heartbeat).await.unwrap());
                }
            }
        }
        both!(self, step, store => store.beat(id)).unwrap();
    }

    async fn claim(&mut self, step: u32) {
        let (now, limit) = (self.now, 1 + self.below(5) as u32);
        let alive: Vec<SessionId> =
            self.sessions.iter().copied().filter(|id| id.0.as_u128() % 2 == 0).collect();
        let window = Duration::from_secs(2);
        let mut hunt =
            Hunt { alive, now, restore_window: window, pools: None, node: "n1".into(), after: None, limit };
        let mut found = Vec::new();
        loop {
            let page = both!(self, step, store => store.candidates(&hunt)).unwrap();
            found.extend(page.found);
            hunt.after = page.next;
            if hunt.after.is_none() {
                break;
            }
        }
        let again = self.last_claim.filter(|_| self.below(4) == 0);
        let fresh =
            found.get(self.below(5) as usize).or_else(|| found.first()).map(|candidate| ClaimRequest {
                shard: candidate.shard,
                seen: candidate.epoch,
                claim: ClaimId(Uuid::nil()),
                session: SessionId(Uuid::nil()),
                now,
            });
        let Some(request) = again.or(fresh) else { return };
        let request = if again.is_some() {
            request
        } else {
            ClaimRequest { claim: ClaimId(self.uuid()), session: self.session(), ..request }
        };
        self.last_claim = Some(request);
        let outcome = both!(self, step, store => store.claim(request)).unwrap();
        if let windrow::ports::run_store::ClaimOutcome::Claimed(run) = outcome {
            self.claims += 1;
            let (shard, epoch, claim) = (run.shard, run.epoch, run.claim);
            let (start, end) = (run.range.start.0, run.finish_at.unwrap_or(run.range.end).0);
            self.runs.push(Run { shard, epoch, claim, seq: 0, start, end, low_water: run.low_water.0 });
        }
    }

    async fn checkpoint(&mut self, step: u32) {
        let repeats = self.below(6) == 0;
        let batch = match &self.last_write {
            Some(last) if repeats => vec![last.clone()],
            _ => {
                let mut drafts = Vec::new();
                for _ in 0..=self.below(2) {
                    drafts.extend(self.draft().await);
                }
                drafts
            }
        };
        let Some(last) = batch.last() else { return };
        self.last_write = Some(last.clone());
        let acks = both!(self, step, store => store.checkpoint(&batch)).unwrap();
        self.stored +=
            acks.iter().filter(|ack| **ack == windrow::ports::run_store::CheckpointAck::Stored).count()
                as u32;
    }

    /// A checkpoint of some run, mostly the newest; now and then one that lies.
    async fn draft(&mut self) -> Option<ShardCheckpoint> {
        let newest = self.runs.len().checked_sub(1)?;
        let at = if self.below(4) == 0 { self.below(newest as u64 + 1) as usize } else { newest };
        let moved = self.below(4);
        let run = &mut self.runs[at];
        run.seq += 1;
        run.low_water = (run.low_water + moved).min(run.end);
        let run = *run;
        let side: Vec<SideRecord> = (0..self.below(4)).map(|_| self.side()).collect();
        let parked = self.below(8) / 7;
        let close = self.close();
        if matches!(close, Some(RunClose::Done)) && self.below(4) > 0 {
            return Some(self.whole(&run).await);
        }
        let low_water = if matches!(close, Some(RunClose::Done)) { ITEMS } else { run.low_water };
        Some(ShardCheckpoint {
            shard: run.shard,
            epoch: run.epoch,
            claim: run.claim,
            seq: CheckpointSeq(run.seq - self.below(8) / 7),
            low_water: ItemIndex(low_water - self.below(10) / 9 * low_water.min(1)),
            high_water: ItemIndex(low_water),
            counters: Counters {
                succeeded: low_water - parked.min(low_water),
                parked,
                ..Counters::default()
            },
            blob: vec![1, 2, 3],
            side,
            finish_at: (self.below(10) == 0).then(|| ItemIndex(self.below(ITEMS))),
            canary_passed: false,
            told: windrow::domain::shards::Told::default(),
            close,
            now: self.now,
        })
    }

    /// The honest end of a run: everything is settled and the counters are those of the recorded failures.
    async fn whole(&self, run: &Run) -> ShardCheckpoint {
        let groups = self.memory.store.failure_groups(run.shard.task).await.unwrap();
        let abandoned = groups.iter().map(|group| group.count).sum::<u64>().min(run.end - run.start);
        let succeeded = run.end - run.start - abandoned;
        ShardCheckpoint {
            shard: run.shard,
            epoch: run.epoch,
            claim: run.claim,
            seq: CheckpointSeq(run.seq),
            low_water: ItemIndex(run.end),
            high_water: ItemIndex(run.end),
            counters: Counters { succeeded, abandoned, ..Counters::default() },
            blob: Vec::new(),
            side: (0..ITEMS).map(|index| SideRecord::Cleared(ItemIndex(index))).collect(),
            finish_at: None,
            canary_passed: false,
            told: windrow::domain::shards::Told::default(),
            close: Some(RunClose::Done),
            now: self.now,
        }
    }

    fn side(&mut self) -> SideRecord {
        let index = self.below(ITEMS);
        let code = CODES[self.below(3) as usize];
        match self.below(8) {
            0..=2 => SideRecord::Retrying(trouble(index, code)),
            3..=4 => parked(index, WallMs(NOW.0 + self.below(50).cast_signed())),
            5 => SideRecord::Abandoned(trouble(index, code)),
            _ => SideRecord::Cleared(ItemIndex(index)),
        }
    }

    fn close(&mut self) -> Option<RunClose> {
        let not_before = WallMs(self.now.0 + 60);
        match self.below(16) {
            0 => Some(RunClose::Released),
            1 => Some(RunClose::Done),
            2 => Some(RunClose::Stopped { reason: StopReason::ErrorBudget, text: "too many".into() }),
            3 => {
                Some(RunClose::Recovering { not_before, reason: "r".into(), text: "t".into(), nth: Some(1) })
            }
            _ => None,
        }
    }

    async fn release(&mut self, step: u32) {
        let Some(run) = self.runs.last().copied() else { return };
        let now = self.now;
        let close = self.close().unwrap_or(RunClose::Released);
        if self.below(3) == 0 && close != RunClose::Done {
            both!(self, step, store => store.release(run.shard, run.epoch, run.claim, &close, now)).unwrap();
        }
    }

    async fn look(&mut self, step: u32) {
        let shard = ShardId { task: self.task(), no: 0 };
        let (before, limit) = (WallMs(NOW.0 + self.below(50).cast_signed()), 1 + self.below(4) as u32);
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
    }

    async fn compare(&self, id: TaskId, at: &str) {
        let (memory, sqlite) = (self.memory.store.get(id).await, self.sql.store.get(id).await);
        assert_eq!(memory.unwrap().map(comparable), sqlite.unwrap().map(comparable), "{at}");
        both!(self, at, store => store.failure_groups(id)).unwrap();
        both!(self, at, store => store.failures(id, None, 100)).unwrap();
        both!(self, at, store => store.audit(id)).unwrap();
    }
}

/// All but the wording of why a task doesn't add up.
fn comparable(mut view: TaskView) -> TaskView {
    if view.status_reason.as_deref() == Some("proof_failed") {
        view.status_text = None;
    }
    view
}
