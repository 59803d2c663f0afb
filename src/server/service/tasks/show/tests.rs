use super::*;
use windrow_config::Config;
use windrow_core::ids::ItemCount;
use windrow_core::ids::SessionId;
use windrow_core::items::verdict::Outage;
use windrow_core::life::Life;
use windrow_core::meter::amount::Amount;
use windrow_core::meter::unit::Unit;
use windrow_core::task::ShardRange;
use windrow_core::task::failed_codes::FailedCodes;
use windrow_core::task::lifecycle::CutOff;
use windrow_core::task::lifecycle::Desired;
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::ownership::peers::LiveShard;
use windrow_engine::ports::tasks::report_store::SavedWindow;

/// A running task of 1,000 items, of which the first 10 are skipped.
fn task() -> TaskView {
    let life = Life {
        id: TaskId(1),
        spec: TaskSpec {
            skip_first: ItemIndex(10),
            ..TaskSpec::default()
        },
        total: ItemCount(1_000),
        source: String::new(),
        meaning: 0,
        tuning: Config::default().task_defaults.tuning,
        failed_codes: FailedCodes::default(),
        skips: Default::default(),
        desired: Desired::Run,
        status: Status::Running,
        since: WallMs(0),
        note: None,
        cut_off: CutOff::default(),
        publishing: None,
        intake: None,
        next_at: None,
        stop_reason: None,
        result: None,
        start_no: 1,
        queued_at: WallMs(0),
        started_at: None,
        finished_at: None,
        awaiting_until: None,
        start_token: None,
        control_rev: 1,
        finish_at: None,
        pause: None,
        slow: None,
        shards: Vec::new(),
    };
    TaskView {
        business: "push".to_owned(),
        version: 1,
        counters: Counters {
            succeeded: 5,
            excluded: 10,
            ..Counters::default()
        },
        watermark: ItemIndex(15),
        ..TaskView::of(life)
    }
}

/// The same with another status.
fn with(status: Status) -> TaskView {
    let mut task = task();
    task.life.status = status;
    task
}

const NOW: WallMs = WallMs(60_000);

const RANGES: [(u64, u64); 3] = [(10, 340), (340, 670), (670, 1_000)];

fn shard(no: u32) -> ShardId {
    ShardId { task: TaskId(1), no }
}

fn live(no: u32, succeeded: u64) -> LiveShard {
    let (first, end) = RANGES[no as usize];
    LiveShard {
        shard: shard(no),
        total: ItemCount(end - first),
        counters: Counters {
            succeeded,
            in_flight: 4,
            ..Counters::default()
        },
        watermark: ItemIndex(first + succeeded),
        high_water: ItemIndex(first + succeeded + 4),
        window: 64,
        concurrency: 4,
        latency_p95: Some(Duration::from_millis(u64::from(no))),
        stall: None,
        autopilot: Some(Picture {
            in_flight: no + 1,
            ..Picture::default()
        }),
        costs: Vec::new(),
        handler: HandlerState::default(),
        workers: None,
    }
}

fn stored(no: u32, state: ShardState, succeeded: u64) -> StoredShard {
    let (first, end) = RANGES[no as usize];
    let range = ShardRange {
        start: ItemIndex(first),
        end: ItemIndex(end),
    };
    StoredShard {
        shard: shard(no),
        life: ShardLife {
            state,
            end: ItemIndex(end - 20),
            watermark: ItemIndex(first + succeeded),
            high_water: ItemIndex(first + succeeded),
            counters: Counters {
                succeeded,
                ..Counters::default()
            },
            ..ShardLife::new(no, range, Desired::Run, WallMs(0))
        },
        outage: None,
    }
}

fn sum(picture: &TaskPicture) -> u64 {
    let counters = &picture.task.counters;
    counters.accounted() + counters.pending(picture.task.total)
}

fn silent() -> Unreachable {
    Unreachable {
        node: "n3".to_owned(),
        why: "it is away".to_owned(),
    }
}

fn speed(sent: f64) -> Speed {
    Speed {
        sent,
        settled: sent / 2.0,
    }
}

#[test]
fn saved_use_is_read_from_a_checkpoint_and_a_damaged_one_says_nothing() {
    let metering = r#"{"limits":["100 tokens"],"cost":["tokens = 1"]}"#;
    let mut task = with(Status::Stopped);
    task.life.spec.metering = serde_json::from_str(metering).expect("a metering");
    let extension = br#"{"meters":[{"unit":"tokens","spent":"70","unsure":"5","may_spend":"7"}]}"#;
    let saved = |blob| SavedWindow {
        shard: shard(0),
        watermark: ItemIndex(3),
        high_water: ItemIndex(3),
        horizon: ItemIndex(3),
        blob,
    };
    let used = |blob| {
        let costs = costs::of_window(&saved(blob), &task);
        costs.first().map(|meter| (meter.actual, meter.unsure))
    };
    let blob = windrow_core::checkpoint::encode(ItemIndex(3), &[], extension);
    let units = Amount::units;
    assert_eq!(used(blob.clone()), Some((units(70), units(12))));
    assert_eq!(used(Vec::new()), Some((units(0), units(0))), "before the first");
    assert_eq!(used(blob[1..].to_vec()), None);
}

#[test]
fn the_use_of_live_runs_adds_up_by_unit() {
    let part = |no, tokens| LiveShard {
        costs: vec![MeterPicture {
            unit: Unit::parse("tokens").expect("a unit"),
            actual: Amount::units(tokens),
            unsure: Amount::ONE,
            out: Amount::ZERO,
            total: None,
            is_nearly_used: false,
            allowance: None,
            is_sparse: false,
        }],
        ..live(no, 1)
    };
    let lives = Lives {
        shards: vec![("n1".to_owned(), part(0, 5)), ("n2".to_owned(), part(1, 7))],
        ..Lives::default()
    };
    let costs = drawn(with(Status::Running), lives, NOW).costs;
    assert_eq!((costs.len(), costs[0].used()), (1, Amount::units(14)));
}

#[test]
fn shards_of_several_nodes_and_saved_ones_add_up() {
    let stored = vec![
        stored(0, ShardState::Running, 1),
        stored(1, ShardState::Running, 1),
        stored(2, ShardState::Done, 310),
    ];
    let shards = vec![("n2".to_owned(), live(1, 60)), ("n1".to_owned(), live(0, 50))];
    let lives = Lives {
        shards,
        speeds: vec![Some(speed(5.0)), Some(speed(7.0))],
        stored,
        silent: Vec::new(),
        is_blind: false,
    };
    let picture = drawn(task(), lives, NOW);
    let seen = picture.live.as_ref().expect("it is live");
    assert_eq!(sum(&picture), 1_000);
    // 10 at the head, 20 cut off at the end of the shard that is done.
    let expected = Counters {
        succeeded: 420,
        in_flight: 8,
        excluded: 30,
        ..Counters::default()
    };
    assert_eq!(picture.task.counters, expected);
    assert_eq!(
        (picture.task.watermark, seen.high_water),
        (ItemIndex(60), ItemIndex(980))
    );
    assert_eq!(
        (seen.window, seen.concurrency, seen.speed),
        (128, 8, Some(speed(12.0)))
    );
    assert_eq!(seen.autopilot.map(|found| found.in_flight), Some(3));
    assert_eq!(
        (seen.nodes.as_slice(), seen.latency_p95),
        (
            &["n1".to_owned(), "n2".to_owned()][..],
            Some(Duration::from_millis(1))
        )
    );
}

#[test]
fn of_a_node_that_is_silent_a_task_has_what_was_saved_and_no_rate() {
    let stored: Vec<StoredShard> = (0..3).map(|no| stored(no, ShardState::Running, 7)).collect();
    let lives = Lives {
        shards: vec![("n1".to_owned(), live(0, 50)), ("n1".to_owned(), live(1, 50))],
        speeds: vec![Some(speed(5.0))],
        stored,
        silent: vec![silent(), silent()],
        is_blind: false,
    };
    let picture = drawn(task(), lives.clone(), NOW);
    assert_eq!((sum(&picture), picture.task.counters.succeeded), (1_000, 107));
    assert_eq!(
        picture.live.expect("a part is live").speed,
        None,
        "a sum that lacks a part is none"
    );
    assert_eq!(picture.silent, [silent()]);
    let dark = drawn(
        task(),
        Lives {
            shards: Vec::new(),
            speeds: Vec::new(),
            ..lives
        },
        NOW,
    );
    assert_eq!((dark.live, dark.task.counters), (None, task().counters));
}

#[test]
fn a_part_alone_is_no_picture_of_the_task() {
    let lives = Lives {
        shards: vec![("n1".to_owned(), live(0, 50))],
        speeds: vec![Some(speed(5.0))],
        stored: Vec::new(),
        silent: Vec::new(),
        is_blind: false,
    };
    let picture = drawn(task(), lives.clone(), NOW);
    assert_eq!(
        (picture.live, picture.task.counters),
        (None, task().counters),
        "the others' terms are unknown"
    );
    let ended = with(Status::Cancelled);
    assert_eq!(drawn(ended, lives, NOW).live, None);
}

fn down(since: i64) -> HandlerState {
    HandlerState {
        outage: Some(Outage {
            since: WallMs(since),
            probes: 2,
        }),
        ..HandlerState::default()
    }
}

#[test]
fn an_outage_is_told_by_whoever_is_asked_also_when_its_owner_is_silent() {
    let here = LiveShard {
        handler: down(20_000),
        ..live(0, 5)
    };
    let lives = Lives {
        shards: vec![("n1".to_owned(), here)],
        ..Lives::default()
    };
    let handler = drawn(task(), lives.clone(), NOW).handler;
    assert_eq!(
        (handler.down_on.join(","), handler.state.outage),
        ("n1".to_owned(), down(20_000).outage)
    );
    assert_eq!(
        handler.text().expect("a text").to_string(),
        "handler down for 40s"
    );
    let stopped = with(Status::Stopped);
    assert_eq!(drawn(stopped, lives, NOW).handler, HandlerSight::default());
    // Of the owner of the second shard only its last checkpoint is known.
    let mut row = StoredShard {
        outage: down(30_000).outage,
        ..stored(1, ShardState::Running, 3)
    };
    row.life.session = Some(SessionId(uuid::Uuid::nil()));
    let lives = Lives {
        stored: vec![row],
        silent: vec![silent()],
        ..Lives::default()
    };
    let dark = drawn(task(), lives, NOW);
    assert_eq!(
        (dark.live.is_none(), dark.handler.state.outage),
        (true, down(30_000).outage)
    );
}

#[test]
fn a_run_that_goes_on_has_the_numbers_of_its_last_checkpoint() {
    let shard = ShardId {
        task: TaskId(1),
        no: 0,
    };
    let counters = Counters {
        succeeded: 370,
        skipped: 2,
        failed: 1,
        parked: 3,
        ..Counters::default()
    };
    let range = ShardRange {
        start: ItemIndex(0),
        end: ItemIndex(1_000),
    };
    let saved = ShardLife {
        watermark: ItemIndex(375),
        high_water: ItemIndex(380),
        counters,
        ..ShardLife::new(0, range, Desired::Run, WallMs(0))
    };
    let mut run = RunRecord {
        shard,
        run: RunNo(1),
        epoch: windrow_core::ids::Epoch(1),
        node: None,
        started_at: WallMs(0),
        ended_at: None,
        end_reason: None,
        end_text: None,
        watermark: ItemIndex(0),
        settled: [0; 3],
        parked: 0,
    };
    as_saved(&mut run, std::slice::from_ref(&saved));
    assert_eq!(
        (run.watermark, run.settled, run.parked),
        (ItemIndex(375), [370, 2, 1], 3)
    );
    let ended = RunRecord {
        ended_at: Some(WallMs(9)),
        watermark: ItemIndex(7),
        ..run
    };
    let mut same = ended.clone();
    as_saved(&mut same, &[saved]);
    assert_eq!(same, ended, "what has ended stays as it ended");
}
