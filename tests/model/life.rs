//! Random lives of tasks: whatever commands, claims and ends of runs come in whatever order, what must always hold does.

use std::num::{NonZeroU32, NonZeroU64};

use proptest::prelude::*;
use windrow_config::Config;
use windrow_core::business::Hooks;
use windrow_core::dataset::{GenerationNo, Publish, PublishIf, Publishing, Reduce};
use windrow_core::ids::{ItemCount, ItemIndex, RunNo, SessionId, TaskId, WallMs};
use windrow_core::items::stretches::Stretches;
use windrow_core::life::{
    Circumstances, CommandRefusal, Evidence, Life, Listener, RunClose, ShardLife, StartToken, TaskCommand,
    TaskEdit,
};
use windrow_core::settings::Auto;
use windrow_core::shards::{Directives, Nodes};
use windrow_core::task::failed_codes::FailedCodes;
use windrow_core::task::lifecycle::CutOff;
use windrow_core::task::lifecycle::{Desired, ShardState, Status, StopReason, TASK_RECOVERS};
use windrow_core::task::spec::{Shards, TaskSpec};
use windrow_core::task::{Canary, CanaryThen, ShardRange};

const TOTAL: u64 = 100;

/// What happens.
#[derive(Clone, Debug)]
enum Event {
    Command(TaskCommand),
    /// A node takes a shard, if it may.
    Claimed(usize),
    /// A run settles so many items of its shard.
    Progress(usize, u64),
    /// A run ends.
    Ended(usize, RunClose),
    /// The owner of a shard is gone.
    Lost(usize),
    Told(Directives),
    CanaryPassed,
}

fn made(canary: bool, publishes: bool) -> Life {
    let config = Config::default();
    let range = ShardRange {
        start: ItemIndex(3),
        end: ItemIndex(TOTAL),
    };
    let first = Canary {
        items: NonZeroU64::new(5).expect("not zero"),
        then: CanaryThen::Continue,
    };
    Life {
        id: TaskId(1),
        spec: TaskSpec {
            skip_first: ItemIndex(3),
            shards: Shards(Auto::Fixed(NonZeroU32::new(4).expect("not zero"))),
            canary: canary.then_some(first),
            ..TaskSpec::default()
        },
        total: ItemCount(TOTAL),
        source: r#"{"kind":"range"}"#.to_owned(),
        meaning: 1,
        tuning: config.task_defaults.tuning,
        publishing: publishes.then(publishing),
        intake: None,
        failed_codes: FailedCodes::default(),
        skips: Stretches::default(),
        cut_off: CutOff::default(),
        desired: Desired::Rest,
        status: Status::Created,
        since: WallMs(1),
        note: None,
        next_at: None,
        stop_reason: None,
        result: None,
        start_no: 0,
        queued_at: WallMs(0),
        started_at: None,
        finished_at: None,
        awaiting_until: None,
        start_token: None,
        control_rev: 1,
        finish_at: None,
        pause: None,
        slow: None,
        shards: vec![ShardLife::new(0, range, Desired::Rest, WallMs(1))],
    }
}

fn publishing() -> Publishing {
    let publish = Publish {
        dataset: "board".to_owned(),
        condition: PublishIf::ALL,
        reduce: Reduce::None,
        key: None,
    };
    let generation = GenerationNo(1);
    Publishing { publish, generation }
}

fn commands() -> impl Strategy<Value = TaskCommand> {
    let edit = |edit: TaskEdit| TaskCommand::Edit(Box::new(edit));
    prop_oneof![
        5 => Just(TaskCommand::Start),
        1 => Just(TaskCommand::StartAt(WallMs(9_000))),
        2 => Just(TaskCommand::Stop { reason: StopReason::Operator }),
        1 => Just(TaskCommand::StopNow),
        1 => Just(TaskCommand::Cancel),
        2 => (10..TOTAL + 5).prop_map(|end| TaskCommand::Finish { end: ItemIndex(end) }),
        1 => Just(TaskCommand::Fail { code: "TIMEOUT".to_owned() }),
        1 => (0..TOTAL).prop_map(|at| {
            TaskCommand::Skip(Stretches::parse(&at.to_string()).expect("an index"))
        }),
        2 => Just(TaskCommand::Recover),
        1 => (90..TOTAL + 20)
            .prop_map(move |total| edit(TaskEdit { total: Some(ItemCount(total)), ..TaskEdit::default() })),
    ]
}

fn closes() -> impl Strategy<Value = RunClose> {
    prop_oneof![
        2 => Just(RunClose::Released),
        3 => Just(RunClose::Done),
        1 => Just(RunClose::stopped(StopReason::HandlerGone, "gone".to_owned())),
        1 => Just(RunClose::Recovering {
            not_before: WallMs(500), reason: "panic".to_owned(), text: "it failed".to_owned(), nth: None,
        }),
        1 => Just(RunClose::Recovering {
            not_before: WallMs(700), reason: TASK_RECOVERS.to_owned(), text: "too much failed".to_owned(), nth: Some(2),
        }),
    ]
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let finish = |end| {
        Event::Told(Directives {
            finish: Some(ItemIndex(end)),
            ..Directives::default()
        })
    };
    let one = prop_oneof![
        4 => commands().prop_map(Event::Command),
        6 => (0..5_usize).prop_map(Event::Claimed),
        4 => (0..5_usize, 1..40_u64).prop_map(|(at, items)| Event::Progress(at, items)),
        4 => (0..5_usize, closes()).prop_map(|(at, close)| Event::Ended(at, close)),
        1 => (0..5_usize).prop_map(Event::Lost),
        1 => (10..TOTAL).prop_map(finish),
        1 => Just(Event::CanaryPassed),
    ];
    proptest::collection::vec(one, 1..60)
}

/// A store that forgets nothing, and nodes that keep the rules of claims.
struct World {
    life: Life,
    now: WallMs,
    failures: u64,
}

impl World {
    fn happen(&mut self, event: &Event) -> Result<(), CommandRefusal> {
        self.now = self.now.plus(std::time::Duration::from_millis(100));
        let (now, evidence) = (
            self.now,
            Evidence {
                failures: self.failures,
                is_parked: false,
                ..Evidence::default()
            },
        );
        let before = self.life.clone();
        match event {
            Event::Command(command) => {
                let token = StartToken {
                    plain: "wst_x".to_owned(),
                    hash: "x".to_owned(),
                };
                let listener = Listener {
                    business: "push".to_owned(),
                    hooks: Hooks::default(),
                };
                let nodes = Nodes {
                    count: 2,
                    capacity_micros: None,
                };
                let around = Circumstances {
                    now,
                    listener: &listener,
                    nodes,
                    token: &token,
                    name_holder: None,
                };
                let mut life = before.clone();
                let deeds = life.obey(command, &around)?;
                assert_eq!(deeds.records.len(), 1, "a command that is obeyed is in the audit");
                if life.must_refresh(command) {
                    life.refresh(None, evidence, now);
                }
                self.life = life;
                running_shards_are_their_owners(&before, &self.life);
            }
            Event::Claimed(at) => {
                let desired = self.life.desired;
                let Some(shard) = self.life.shards.get_mut(*at) else {
                    return Ok(());
                };
                let is_timely = shard.not_before <= now || desired != Desired::Run;
                let is_open = matches!(shard.state, ShardState::Idle | ShardState::Recovering);
                if is_open && is_timely && shard.desired != Desired::Rest {
                    (shard.state, shard.run) = (ShardState::Running, RunNo(shard.run.0 + 1));
                    shard.session = Some(SessionId(uuid::Uuid::from_u128(1)));
                    shard.claimed_at = Some(shard.watermark);
                    self.life.refresh_claimed(evidence, now);
                }
            }
            Event::Progress(at, items) => {
                let Some(shard) = self.running(*at) else {
                    return Ok(());
                };
                let end = shard.end.0.min(shard.watermark.0 + items);
                shard.counters.succeeded += end - shard.watermark.0;
                shard.watermark = ItemIndex(end);
                shard.high_water = shard.high_water.max(shard.watermark);
                shard.horizon = shard.horizon.max(shard.high_water);
            }
            Event::Ended(at, close) => self.end(*at, close, evidence),
            Event::Lost(at) => {
                let Some(no) = self.running(*at).map(|shard| shard.no) else {
                    return Ok(());
                };
                let news = self.life.disown(no);
                self.life.refresh(news, evidence, now);
            }
            // Only a run reports.
            Event::Told(_) | Event::CanaryPassed if !before.standing().owned => {}
            Event::Told(told) => self.life.tell(*told, now),
            Event::CanaryPassed => self.life.pass_canary(now),
        }
        Ok(())
    }

    /// A run obeys an earlier end, and says that it is done only where nothing is left.
    fn end(&mut self, at: usize, close: &RunClose, evidence: Evidence) {
        let (finish_at, now) = (self.life.finish_at, self.now);
        let Some(shard) = self.running(at) else { return };
        if let Some(end) = finish_at {
            shard.end = shard.end.min(end.max(shard.high_water).max(shard.first));
        }
        if *close == RunClose::Done && shard.watermark != shard.end {
            shard.counters.succeeded += shard.end.0 - shard.watermark.0;
            (shard.watermark, shard.high_water) = (shard.end, shard.high_water.max(shard.end));
            shard.horizon = shard.horizon.max(shard.high_water);
        }
        let no = shard.no;
        let news = self.life.end_run(no, close, now);
        self.life.refresh(news, evidence, now);
    }

    fn running(&mut self, at: usize) -> Option<&mut ShardLife> {
        self.life
            .shards
            .get_mut(at)
            .filter(|shard| shard.state == ShardState::Running)
    }
}

/// What an owner writes, nobody else does; and no command ends a run.
fn running_shards_are_their_owners(before: &Life, after: &Life) {
    for was in before
        .shards
        .iter()
        .filter(|shard| shard.state == ShardState::Running)
    {
        let is = after
            .shards
            .iter()
            .find(|shard| shard.no == was.no)
            .expect("it is still there");
        let own = |shard: &ShardLife| {
            let ShardLife {
                state,
                session,
                first,
                watermark,
                high_water,
                end,
                ..
            } = *shard;
            (state, session, first, watermark, high_water, end, shard.counters)
        };
        // A task that runs is not lengthened, so not even its end moves.
        assert_eq!(own(was), own(is));
    }
}

fn holds(life: &Life, before: &Life) {
    let mut next = life.whole().start;
    for shard in &life.shards {
        assert_eq!(shard.first, next, "the shards meet");
        assert!(
            shard.first <= shard.watermark && shard.watermark <= shard.end && shard.end <= shard.range_end
        );
        assert!(shard.high_water <= shard.end, "what was answered is not cut off");
        assert_eq!(
            shard.session.is_some(),
            shard.state == ShardState::Running,
            "who runs is owned"
        );
        next = shard.range_end;
    }
    assert_eq!(next, life.whole().end, "the shards are the task");
    let shares = life.shards.iter().filter(|shard| shard.state != ShardState::Done);
    assert!(
        shares.filter_map(|shard| shard.share).sum::<i64>() <= 1 << 30,
        "together they keep the rate"
    );
    assert!(life.control_rev >= before.control_rev && life.start_no >= before.start_no);
    let mut again = life.clone();
    if life.shards.iter().all(|shard| shard.state != ShardState::Done) || life.status.is_terminal() {
        let deeds = again.refresh(None, Evidence::default(), life.since);
        assert_eq!(
            (again.status, deeds.records.len()),
            (life.status, 0),
            "the status is found already"
        );
    }
    assert!(
        !before.status.is_terminal() || life == before,
        "an end is for good"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn whatever_happens_to_a_task_what_must_hold_does(canary: bool, publishes: bool, events in events()) {
        let mut world = World { life: made(canary, publishes), now: WallMs(1_000), failures: 0 };
        for event in events {
            let before = world.life.clone();
            // A refusal is an answer too; then nothing has changed.
            if world.happen(&event).is_err() {
                prop_assert_eq!(&world.life, &before);
            }
            holds(&world.life, &before);
        }
    }
}
