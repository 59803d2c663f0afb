//! Facts about schedules and their fires. Time is the store's own; a schedule is moved back in it where an outage is wanted.

use std::time::Duration;

use windrow_core::dataset::{Publish, PublishIf, Reduce};
use windrow_core::ids::{ScheduleId, TaskId, WallMs};
use windrow_core::schedule::timing::Timing;
use windrow_core::schedule::{Missed, Overlap, Spec};
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::ports::schedules::store::{
    BACKFILL_MAX, Backfill, Due, Fire, FireKind, FireOutcome, InTheWay, NewSchedule, OpenFires,
    PER_BUSINESS_MAX, Schedule, ScheduleEdit, ScheduleError, ScheduleFilter, TakenFire,
};
use windrow_engine::ports::tasks::store::{CreateError, FireKey, Making, NewTask, TaskCommand, TaskView};

use crate::fixture::{BUSINESS, Harness, NOW, task, write};

const HOUR: Duration = Duration::from_secs(3600);
const HOUR_MS: i64 = 3_600_000;

fn spec(every: Duration, overlap: Overlap, missed: Missed) -> Spec {
    Spec {
        timing: Timing::every(every).unwrap(),
        start: None,
        end: None,
        jitter: Duration::ZERO,
        overlap,
        missed,
    }
}

fn new(name: &str, spec: Spec) -> NewSchedule {
    NewSchedule {
        business: BUSINESS.to_owned(),
        name: name.to_owned(),
        spec,
        template: r#"{"source":{"type":"range","total":3}}"#.to_owned(),
        is_guarded: false,
        paused: false,
    }
}

async fn business(harness: &Harness) {
    harness
        .store
        .ensure_business(BUSINESS, &write(), NOW)
        .await
        .unwrap();
}

/// A schedule of every hour.
async fn hourly(harness: &Harness, overlap: Overlap, missed: Missed) -> Schedule {
    business(harness).await;
    let new = new("hourly", spec(HOUR, overlap, missed));
    harness.store.create_schedule(&new, &write()).await.unwrap()
}

/// The same, of which so many fires are due.
pub async fn due(harness: &Harness, overlap: Overlap, missed: Missed, fires: i64) -> Schedule {
    let made = hourly(harness, overlap, missed).await;
    harness.rewind_schedule(made.id, fires * HOUR_MS).await;
    harness.store.schedule(made.id).await.unwrap().unwrap()
}

pub async fn fire(harness: &Harness, schedule: &Schedule) -> Vec<Fire> {
    let due = Due {
        id: schedule.id,
        next_fire: schedule.next_fire.unwrap(),
    };
    harness.store.fire_due(due).await.unwrap().fires
}

async fn all(harness: &Harness, id: ScheduleId) -> Vec<Fire> {
    harness.store.fires(id, None, None, 1000).await.unwrap()
}

async fn take(harness: &Harness) -> Vec<TakenFire> {
    harness.store.take_fires(100, true).await.unwrap().fires
}

/// Fires for times that are over, which publish nothing.
fn quietly(times: &[WallMs]) -> Backfill<'_> {
    Backfill {
        times,
        publishes: false,
    }
}

fn board() -> Publish {
    Publish {
        dataset: "board".to_owned(),
        condition: PublishIf::ALL,
        reduce: Reduce::None,
        key: None,
    }
}

async fn made(harness: &Harness, fire: &TakenFire) -> Result<TaskView, CreateError> {
    made_of(harness, fire, &task(3)).await
}

async fn made_of(harness: &Harness, fire: &TakenFire, new: &NewTask) -> Result<TaskView, CreateError> {
    let key = FireKey {
        schedule: fire.schedule.id,
        time: fire.time,
    };
    let how = Making {
        starts: true,
        beside: None,
        fire: Some(key),
        replay: None,
    };
    harness.store.make(new, how, &write(), NOW).await
}

/// Takes the only fire there is, and makes its task.
async fn make_only(harness: &Harness) -> TaskView {
    let taken = take(harness).await;
    assert_eq!(taken.len(), 1, "{taken:?}");
    made(harness, &taken[0]).await.unwrap()
}

fn outcomes(fires: &[Fire]) -> Vec<FireOutcome> {
    fires.iter().map(|fire| fire.outcome).collect()
}

async fn stop(harness: &Harness, id: TaskId) {
    let reason = StopReason::Operator;
    harness.command(id, TaskCommand::Stop { reason }).await;
}

pub async fn a_schedule_is_kept_as_it_was_made_and_fires_at_its_next_time(harness: Harness) {
    business(&harness).await;
    let jittered = Spec {
        jitter: Duration::from_secs(60),
        start: Some(WallMs(5 * 60_000)),
        end: Some(WallMs(4_000_000_000_000)),
        ..spec(HOUR, Overlap::CancelRunning, Missed::All(7))
    };
    let wanted = new("board", jittered.clone());
    let before = harness.store.database_time().await.unwrap();
    let made = harness.store.create_schedule(&wanted, &write()).await.unwrap();
    let found = harness.store.schedule(made.id).await.unwrap().unwrap();
    assert_eq!(found, made);
    assert_eq!(
        (found.spec.clone(), found.template.as_str()),
        (jittered, wanted.template.as_str())
    );
    let next = made.next_fire.unwrap();
    assert!(
        next > before && next.since(before) <= HOUR && next.0 % HOUR_MS == 5 * 60_000,
        "{made:?}"
    );
    assert_eq!(made.next_due, Some(made.spec.due(made.id, next)));
    assert!(all(&harness, made.id).await.is_empty());
}

pub async fn names_are_unique_within_a_business_and_a_business_must_exist(harness: Harness) {
    let wanted = new("board", spec(HOUR, Overlap::Skip, Missed::Latest));
    let nobody = harness.store.create_schedule(&wanted, &write()).await;
    assert_eq!(nobody, Err(ScheduleError::NoBusiness(BUSINESS.to_owned())));
    business(&harness).await;
    let tried = windrow_engine::ports::tasks::store::Write {
        dry_run: true,
        ..write()
    };
    harness.store.create_schedule(&wanted, &tried).await.unwrap();
    harness.store.create_schedule(&wanted, &write()).await.unwrap();
    let second = harness.store.create_schedule(&wanted, &write()).await;
    assert_eq!(
        second,
        Err(ScheduleError::Taken("board".to_owned())),
        "a dry run kept nothing"
    );
    harness
        .store
        .ensure_business("push", &write(), NOW)
        .await
        .unwrap();
    let other = NewSchedule {
        business: "push".to_owned(),
        ..wanted
    };
    harness.store.create_schedule(&other, &write()).await.unwrap();
    let of = async |business: Option<&str>, name: Option<&str>| {
        let filter = ScheduleFilter {
            business: business.map(str::to_owned),
            name: name.map(str::to_owned),
        };
        harness.store.schedules(&filter, None, 10).await.unwrap().len()
    };
    assert_eq!(of(None, None).await, 2);
    assert_eq!(of(Some("push"), None).await, 1);
    assert_eq!(of(Some("push"), Some("other")).await, 0);
    assert_eq!(of(Some("nobody"), None).await, 0);
}

pub async fn a_business_has_so_many_schedules_and_no_more(harness: Harness) {
    business(&harness).await;
    let wanted = |number: u64| new(&format!("s-{number}"), spec(HOUR, Overlap::Skip, Missed::Latest));
    for number in 0..PER_BUSINESS_MAX {
        harness
            .store
            .create_schedule(&wanted(number), &write())
            .await
            .unwrap();
    }
    let more = harness
        .store
        .create_schedule(&wanted(PER_BUSINESS_MAX), &write())
        .await;
    assert_eq!(more, Err(ScheduleError::Full(BUSINESS.to_owned())));
}

pub async fn a_change_moves_the_next_fire_and_a_pause_takes_it_away(harness: Harness) {
    let made = hourly(&harness, Overlap::Skip, Missed::Latest).await;
    let edit = |edit: ScheduleEdit, revision: u64| {
        let store = harness.store.clone();
        async move { store.change_schedule(made.id, revision, &edit, &write()).await }
    };
    let same = ScheduleEdit {
        spec: Some(made.spec.clone()),
        ..ScheduleEdit::default()
    };
    assert_eq!(
        edit(same, 1).await,
        Ok(made.clone()),
        "what is so already is left as it is"
    );
    let paused = ScheduleEdit {
        paused: Some(true),
        ..ScheduleEdit::default()
    };
    let paused = edit(paused, 1).await.unwrap();
    assert_eq!(
        (paused.next_fire, paused.next_due, paused.revision),
        (None, None, 2)
    );
    let stale = edit(ScheduleEdit::default(), 1).await;
    assert_eq!(
        stale,
        Err(ScheduleError::Changed {
            expected: 1,
            found: 2
        })
    );
    let resumed = ScheduleEdit {
        paused: Some(false),
        spec: Some(spec(HOUR * 24, Overlap::Allow, Missed::None)),
        template: Some(("{}".to_owned(), true)),
    };
    let resumed = edit(resumed, 2).await.unwrap();
    assert_eq!(resumed.next_fire.map(|next| next.0 % (24 * HOUR_MS)), Some(0));
    assert_eq!((resumed.template.as_str(), resumed.is_guarded), ("{}", true));
    let missing = ScheduleId(made.id.0 + 1);
    let missing = harness
        .store
        .change_schedule(missing, 1, &ScheduleEdit::default(), &write())
        .await;
    assert!(matches!(missing, Err(ScheduleError::NotFound(_))), "{missing:?}");
}

pub async fn a_due_fire_makes_one_task_and_the_next_one_follows(harness: Harness) {
    let schedule = due(&harness, Overlap::Skip, Missed::Latest, 1).await;
    let agenda = harness.store.agenda(10).await.unwrap();
    assert_eq!(agenda.due.len(), 1);
    assert_eq!(agenda.due[0].next_fire, schedule.next_fire.unwrap());
    let fires = fire(&harness, &schedule).await;
    assert_eq!(outcomes(&fires), [FireOutcome::Pending]);
    assert!(
        fire(&harness, &schedule).await.is_empty(),
        "whoever comes second decides nothing"
    );
    let after = harness.store.schedule(schedule.id).await.unwrap().unwrap();
    assert_eq!(after.next_fire, schedule.next_fire.map(|fire| fire.plus(HOUR)));
    assert!(harness.store.agenda(10).await.unwrap().due.is_empty());
    assert!(harness.store.agenda(10).await.unwrap().has_open);
    let taken = take(&harness).await;
    assert_eq!((taken.len(), taken[0].time), (1, schedule.next_fire.unwrap()));
    assert!(take(&harness).await.is_empty(), "it is somebody's");
    let task = made(&harness, &taken[0]).await.unwrap();
    assert_eq!(task.status, Status::Queued);
    let key = FireKey {
        schedule: schedule.id,
        time: taken[0].time,
    };
    assert_eq!(task.fire, Some(key));
    let again = made(&harness, &taken[0]).await;
    assert_eq!(
        again.map(|task| task.id),
        Err(CreateError::FireOver(key.schedule, key.time))
    );
    let fires = all(&harness, schedule.id).await;
    assert_eq!(
        (fires.len(), fires[0].task, fires[0].outcome),
        (1, Some(task.id), FireOutcome::Made)
    );
    assert!(fires[0].settled_at.is_some());
    assert!(!harness.store.agenda(10).await.unwrap().has_open);
}

pub async fn a_fire_whose_maker_died_is_taken_again_after_its_lease(harness: Harness) {
    let schedule = due(&harness, Overlap::Skip, Missed::Latest, 1).await;
    fire(&harness, &schedule).await;
    let first = take(&harness).await;
    harness.lapse_fires(schedule.id).await;
    let second = take(&harness).await;
    assert_eq!(second.len(), 1);
    assert!(
        harness
            .store
            .keep_fire(schedule.id, second[0].time)
            .await
            .unwrap()
    );
    let task = made(&harness, &first[0]).await.unwrap();
    let late = made(&harness, &second[0]).await;
    assert!(matches!(late, Err(CreateError::FireOver(..))), "{late:?}");
    assert!(
        !harness
            .store
            .keep_fire(schedule.id, second[0].time)
            .await
            .unwrap(),
        "it is settled"
    );
    assert_eq!(all(&harness, schedule.id).await[0].task, Some(task.id));
}

pub async fn of_many_that_fire_at_once_one_decides(harness: Harness) {
    let schedule = due(&harness, Overlap::Allow, Missed::All(10), 5).await;
    let due = Due {
        id: schedule.id,
        next_fire: schedule.next_fire.unwrap(),
    };
    let tries = (0..16).map(|_| {
        let store = harness.store.clone();
        tokio::spawn(async move { crate::crossing::again(|| store.fire_due(due)).await })
    });
    let mut decided = 0;
    for one in tries.collect::<Vec<_>>() {
        decided += one.await.unwrap().fires.len();
    }
    assert_eq!(decided, 5);
    let takers = (0..8).map(|_| {
        let store = harness.store.clone();
        tokio::spawn(async move { crate::crossing::again(|| store.take_fires(100, true)).await })
    });
    let mut taken = Vec::new();
    for one in takers.collect::<Vec<_>>() {
        taken.extend(one.await.unwrap().fires.into_iter().map(|fire| fire.time));
    }
    taken.sort_unstable();
    taken.dedup();
    assert_eq!(taken.len(), 5, "each was taken, by whomever");
    assert_eq!(all(&harness, schedule.id).await.len(), 5);
}

pub async fn after_an_outage_the_newest_goes_and_one_row_lists_the_others(harness: Harness) {
    let schedule = due(&harness, Overlap::Skip, Missed::Latest, 24).await;
    let fires = fire(&harness, &schedule).await;
    assert_eq!(outcomes(&fires), [FireOutcome::Missed, FireOutcome::Pending]);
    let first = schedule.next_fire.unwrap();
    assert_eq!(
        (fires[0].time, fires[0].last, fires[0].count),
        (first, first.plus(HOUR * 22), 23)
    );
    assert_eq!(fires[1].time, first.plus(HOUR * 23));
    let missed = harness
        .store
        .fires(schedule.id, Some(FireOutcome::Missed), None, 10)
        .await
        .unwrap();
    assert_eq!(missed.len(), 1);
    assert!(missed[0].settled_at.is_some());
}

pub async fn a_running_task_is_in_the_way_until_it_ends_or_stops(harness: Harness) {
    let schedule = due(&harness, Overlap::Skip, Missed::Latest, 1).await;
    fire(&harness, &schedule).await;
    let again = async |by: i64| {
        harness.rewind_schedule(schedule.id, by).await;
        let now = harness.store.schedule(schedule.id).await.unwrap().unwrap();
        fire(&harness, &now).await
    };
    let pending = again(HOUR_MS).await;
    assert!(pending.is_empty(), "the same time has its fire: {pending:?}");
    let task = make_only(&harness).await;
    harness.shift_fires(schedule.id, 100 * HOUR_MS).await;
    assert_eq!(outcomes(&again(HOUR_MS).await), [FireOutcome::Skipped]);
    stop(&harness, task.id).await;
    assert_eq!(harness.view(task.id).await.status, Status::Stopped);
    harness.shift_fires(schedule.id, 100 * HOUR_MS).await;
    assert_eq!(
        outcomes(&again(HOUR_MS).await),
        [FireOutcome::Pending],
        "a stopped task doesn't overlap"
    );
}

pub async fn a_fire_waits_for_the_one_before_it_where_they_queue(harness: Harness) {
    let schedule = due(&harness, Overlap::Queue, Missed::All(3), 4).await;
    let fires = fire(&harness, &schedule).await;
    let (missed, pending, queued) = (FireOutcome::Missed, FireOutcome::Pending, FireOutcome::Queued);
    assert_eq!(outcomes(&fires), [missed, pending, queued, queued]);
    let open = harness.store.open_fires(schedule.id).await.unwrap();
    assert_eq!(
        open,
        OpenFires {
            pending: 1,
            queued: 2
        }
    );
    let first = make_only(&harness).await;
    assert!(take(&harness).await.is_empty(), "its task runs");
    harness.command(first.id, TaskCommand::Cancel).await;
    let second = take(&harness).await;
    assert_eq!(
        (second.len(), second[0].time),
        (1, fires[2].time),
        "in their order, one at a time"
    );
    assert_eq!(second[0].previous, Some(fires[1].time));
    let second = made(&harness, &second[0]).await.unwrap();
    assert!(take(&harness).await.is_empty());
    stop(&harness, second.id).await;
    assert_eq!(
        make_only(&harness).await.fire.map(|fire| fire.time),
        Some(fires[3].time)
    );
}

pub async fn what_runs_is_cancelled_for_a_newer_fire_and_of_those_that_wait_the_newest_stays(
    harness: Harness,
) {
    let schedule = due(&harness, Overlap::CancelRunning, Missed::All(3), 3).await;
    let fires = fire(&harness, &schedule).await;
    let (pending, queued, skipped) = (FireOutcome::Pending, FireOutcome::Queued, FireOutcome::Skipped);
    assert_eq!(outcomes(&fires), [pending, skipped, queued]);
    let taken = harness.store.take_fires(10, true).await.unwrap();
    assert!(taken.cancels.is_empty());
    let first = made(&harness, &taken.fires[0]).await.unwrap();
    let next = harness.store.take_fires(10, true).await.unwrap();
    assert_eq!((next.fires.len(), next.cancels), (0, vec![first.id]));
    harness.command(first.id, TaskCommand::Cancel).await;
    let newest = make_only(&harness).await;
    assert_eq!(newest.fire.map(|fire| fire.time), Some(fires[2].time));
}

pub async fn a_fire_that_ends_each_node_which_makes_it_is_given_up_and_those_after_it_go(harness: Harness) {
    let schedule = due(&harness, Overlap::Allow, Missed::All(2), 2).await;
    let fires = fire(&harness, &schedule).await;
    let both = take(&harness).await;
    assert_eq!(both.len(), 2);
    let (killer, innocent) = (&both[0], &both[1]);
    harness
        .store
        .put_back_fire(schedule.id, innocent.time)
        .await
        .unwrap();
    for tries in 1..3 {
        // Nobody says what became of it: its node has ended.
        harness.lapse_fires(schedule.id).await;
        let again = take(&harness).await;
        let killed = again.iter().find(|fire| fire.time == killer.time);
        assert_eq!(killed.map(|fire| fire.attempts), Some(tries));
        harness
            .store
            .put_back_fire(schedule.id, innocent.time)
            .await
            .unwrap();
    }
    harness.lapse_fires(schedule.id).await;
    let busy = harness.store.take_fires(100, false).await.unwrap().fires;
    let times: Vec<_> = busy.iter().map(|fire| fire.time).collect();
    assert_eq!(
        times,
        [innocent.time],
        "what may end a node isn't made beside others"
    );
    made(&harness, &busy[0]).await.unwrap();
    for tries in 3..5 {
        let alone = take(&harness).await;
        assert_eq!((alone.len(), alone[0].attempts), (1, tries));
        harness.lapse_fires(schedule.id).await;
    }
    let last = harness.store.take_fires(100, true).await.unwrap();
    assert_eq!((last.fires.len(), last.given_up.len()), (0, 1));
    let all = all(&harness, schedule.id).await;
    let failed = all.iter().find(|fire| fire.time == fires[0].time).unwrap();
    assert_eq!((failed.outcome, failed.attempts), (FireOutcome::Failed, 5));
    let text = failed.text.as_deref().unwrap();
    assert!(
        text.starts_with("given up after 5 tries: each time the node ended"),
        "{text}"
    );
    harness.lapse_fires(schedule.id).await;
    assert!(take(&harness).await.is_empty(), "it is over");
}

pub async fn a_fire_that_can_t_be_made_is_tried_again_and_then_has_failed(harness: Harness) {
    let schedule = due(&harness, Overlap::Skip, Missed::Latest, 1).await;
    fire(&harness, &schedule).await;
    let taken = take(&harness).await;
    let fail = async |again| {
        let (id, time) = (schedule.id, taken[0].time);
        harness
            .store
            .fail_fire(id, time, "no such file", again)
            .await
            .unwrap();
    };
    fail(Some(Duration::from_secs(600))).await;
    assert!(take(&harness).await.is_empty(), "not yet");
    harness.lapse_fires(schedule.id).await;
    let second = take(&harness).await;
    assert_eq!((second.len(), second[0].attempts), (1, 1));
    fail(None).await;
    let fires = all(&harness, schedule.id).await;
    assert_eq!((fires[0].outcome, fires[0].attempts), (FireOutcome::Failed, 2));
    assert_eq!(fires[0].text.as_deref(), Some("no such file"));
    harness.lapse_fires(schedule.id).await;
    assert!(take(&harness).await.is_empty());
    let late = made(&harness, &second[0]).await;
    assert!(matches!(late, Err(CreateError::FireOver(..))), "{late:?}");
}

pub async fn people_fire_now_and_for_times_that_are_over(harness: Harness) {
    let schedule = hourly(&harness, Overlap::Skip, Missed::Latest).await;
    let now = harness.store.trigger(schedule.id, &write()).await.unwrap();
    assert_eq!(
        (now.kind, now.outcome),
        (FireKind::Triggered, FireOutcome::Pending)
    );
    let busy = harness.store.trigger(schedule.id, &write()).await;
    let way = |task| {
        let schedule = format!("{}/{}", schedule.business, schedule.name);
        Err(ScheduleError::Busy(Box::new(InTheWay {
            schedule,
            overlap: Overlap::Skip,
            task,
            waiting: 0,
        })))
    };
    assert_eq!(busy, way(None), "its task is still to be made");
    let first = make_only(&harness).await;
    let busy = harness.store.trigger(schedule.id, &write()).await;
    assert_eq!(busy, way(Some(first.id)));
    harness.command(first.id, TaskCommand::Cancel).await;
    let at = |hours: u32| WallMs(schedule.next_fire.unwrap().0 - 100 * HOUR_MS).plus(HOUR * hours);
    let times: Vec<WallMs> = (0..3).map(at).collect();
    let ordered = harness
        .store
        .backfill(schedule.id, quietly(&times), &write())
        .await
        .unwrap();
    assert_eq!(ordered.iter().map(|fire| fire.time).collect::<Vec<_>>(), times);
    assert_eq!(ordered[0].kind, FireKind::Backfilled);
    let again = harness
        .store
        .backfill(schedule.id, quietly(&times), &write())
        .await
        .unwrap();
    assert!(again.is_empty(), "those times have their fires: {again:?}");
    for time in &times {
        let task = make_only(&harness).await;
        assert_eq!(
            task.fire.map(|fire| fire.time),
            Some(*time),
            "one after the other"
        );
        harness.command(task.id, TaskCommand::Cancel).await;
    }
    let many: Vec<WallMs> = (0..=BACKFILL_MAX as u32).map(at).collect();
    let many = harness
        .store
        .backfill(schedule.id, quietly(&many), &write())
        .await;
    assert_eq!(many, Err(ScheduleError::Crowded { waiting: 0 }));
    let missing = harness
        .store
        .trigger(ScheduleId(schedule.id.0 + 1), &write())
        .await;
    assert!(matches!(missing, Err(ScheduleError::NotFound(_))), "{missing:?}");
}

pub async fn people_give_up_fires_that_wait_or_are_being_made(harness: Harness) {
    let schedule = hourly(&harness, Overlap::Queue, Missed::Latest).await;
    let at = |hours: u32| WallMs(schedule.next_fire.unwrap().0 - 100 * HOUR_MS).plus(HOUR * hours);
    let times: Vec<WallMs> = (0..3).map(at).collect();
    harness
        .store
        .backfill(schedule.id, quietly(&times), &write())
        .await
        .unwrap();
    let taken = take(&harness).await;
    assert_eq!(taken[0].time, times[0]);
    let skip = async |time| harness.store.skip_fires(schedule.id, time, &write()).await;
    let one = skip(Some(times[1])).await.unwrap();
    assert_eq!(
        (one.len(), one[0].outcome, one[0].time),
        (1, FireOutcome::Skipped, times[1])
    );
    assert!(one[0].settled_at.is_some() && one[0].text.as_deref().unwrap().starts_with("given up by "));
    assert_eq!(
        skip(Some(times[1])).await,
        Err(ScheduleError::NotOpen(times[1])),
        "it is settled"
    );
    let mut dry = write();
    dry.dry_run = true;
    let would = harness.store.skip_fires(schedule.id, None, &dry).await.unwrap();
    assert_eq!(would.len(), 2, "{would:?}");
    let rest = skip(None).await.unwrap();
    assert_eq!(
        rest.iter().map(|fire| fire.time).collect::<Vec<_>>(),
        [times[0], times[2]]
    );
    let late = made(&harness, &taken[0]).await;
    assert!(matches!(late, Err(CreateError::FireOver(..))), "{late:?}");
    assert!(!harness.store.keep_fire(schedule.id, times[0]).await.unwrap());
    assert!(skip(None).await.unwrap().is_empty(), "nothing waits any more");
    assert!(take(&harness).await.is_empty());
    let missing = ScheduleId(schedule.id.0 + 1);
    let missing = harness.store.skip_fires(missing, None, &write()).await;
    assert!(matches!(missing, Err(ScheduleError::NotFound(_))), "{missing:?}");
}

pub async fn what_is_made_up_for_publishes_if_asked_for_and_never_after_a_later_time(harness: Harness) {
    let schedule = hourly(&harness, Overlap::Allow, Missed::Latest).await;
    let at = |hours: u32| WallMs(schedule.next_fire.unwrap().0 - 100 * HOUR_MS).plus(HOUR * hours);
    let (first, by) = ([at(0)], write());
    let quiet = harness.store.backfill(schedule.id, quietly(&first), &by).await;
    assert!(!quiet.unwrap()[0].publishes);
    let times = [at(1), at(2), at(3)];
    let wanted = Backfill {
        publishes: true,
        ..quietly(&times)
    };
    let loud = harness
        .store
        .backfill(schedule.id, wanted, &write())
        .await
        .unwrap();
    assert!(loud.iter().all(|fire| fire.publishes));
    let mut taken = Vec::new();
    while taken.len() < 4 {
        taken.extend(take(&harness).await);
    }
    taken.sort_by_key(|fire| fire.time);
    assert_eq!(
        taken.iter().map(|fire| fire.publishes).collect::<Vec<_>>(),
        [false, true, true, true]
    );
    // Later ones that publish nothing are in nobody's way; of those that do, the later one was made first.
    let mut numbers = Vec::new();
    for nth in [0, 1, 3, 2] {
        let new = NewTask {
            publish: taken[nth].publishes.then(board),
            ..task(3)
        };
        let task = made_of(&harness, &taken[nth], &new).await.unwrap();
        numbers.push(task.publishing.as_ref().map(|publishing| publishing.generation.0));
    }
    assert_eq!(numbers, [None, Some(1), Some(2), None]);
    let fires = all(&harness, schedule.id).await;
    let texts: Vec<_> = fires.iter().rev().map(|fire| fire.text.clone()).collect();
    assert_eq!(texts, [None, None, Some(Fire::overtaken(at(3))), None]);
}

pub async fn a_missed_fire_is_made_up_for_and_the_rest_of_its_row_stays(harness: Harness) {
    let schedule = due(&harness, Overlap::Skip, Missed::Latest, 5).await;
    let fires = fire(&harness, &schedule).await;
    let first = fires[0].time;
    let ordered = harness
        .store
        .backfill(schedule.id, quietly(&[first, first.plus(HOUR)]), &write())
        .await
        .unwrap();
    assert_eq!(ordered.len(), 2);
    let missed = harness
        .store
        .fires(schedule.id, Some(FireOutcome::Missed), None, 10)
        .await
        .unwrap();
    assert_eq!(missed.len(), 1);
    let rest = (missed[0].time, missed[0].last, missed[0].count);
    assert_eq!(rest, (first.plus(HOUR * 2), first.plus(HOUR * 3), 2));
}

pub async fn a_next_fire_that_a_wrong_clock_set_is_computed_anew(harness: Harness) {
    let schedule = hourly(&harness, Overlap::Skip, Missed::Latest).await;
    // As if the clock had been ten hours ahead when the schedule last fired.
    harness.rewind_schedule(schedule.id, -10 * HOUR_MS).await;
    let agenda = harness.store.agenda(10).await.unwrap();
    assert_eq!(agenda.due.len(), 1);
    let fired = harness.store.fire_due(agenda.due[0]).await.unwrap();
    assert!(fired.is_mended && fired.fires.is_empty());
    let mended = harness.store.schedule(schedule.id).await.unwrap().unwrap();
    assert!(
        mended.next_fire <= schedule.next_fire.map(|next| next.plus(HOUR)),
        "{mended:?}"
    );
    assert!(harness.store.agenda(10).await.unwrap().due.is_empty());
}

pub async fn old_fires_go_and_those_that_are_open_stay(harness: Harness) {
    let schedule = due(&harness, Overlap::Queue, Missed::All(2), 4).await;
    fire(&harness, &schedule).await;
    let now = harness.store.database_time().await.unwrap();
    assert_eq!(harness.store.expire_fires(now.minus(HOUR)).await.unwrap(), 0);
    assert_eq!(harness.store.expire_fires(now.plus(HOUR)).await.unwrap(), 1);
    let left = outcomes(&all(&harness, schedule.id).await);
    assert_eq!(left, [FireOutcome::Queued, FireOutcome::Pending]);
}

pub async fn a_deleted_schedule_leaves_its_tasks_and_nothing_else(harness: Harness) {
    let schedule = due(&harness, Overlap::Allow, Missed::All(2), 2).await;
    fire(&harness, &schedule).await;
    let taken = take(&harness).await;
    let task = made(&harness, &taken[0]).await.unwrap();
    let gone = harness
        .store
        .delete_schedule(schedule.id, &write())
        .await
        .unwrap();
    assert_eq!(gone.name, "hourly");
    assert!(all(&harness, schedule.id).await.is_empty());
    assert!(harness.store.schedule(schedule.id).await.unwrap().is_none());
    let orphan = made(&harness, &taken[1]).await;
    assert!(matches!(orphan, Err(CreateError::FireOver(..))), "{orphan:?}");
    assert_eq!(
        harness.view(task.id).await.fire.map(|fire| fire.schedule),
        Some(schedule.id)
    );
    let again = harness.store.delete_schedule(schedule.id, &write()).await;
    assert_eq!(
        again.map(|gone| gone.id),
        Err(ScheduleError::NotFound(schedule.id))
    );
    let next = hourly(&harness, Overlap::Skip, Missed::Latest).await;
    assert!(next.id > schedule.id, "no number is used again");
}
