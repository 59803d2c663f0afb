//! Facts about alerts: who is told of an event, and how often.

use std::collections::BTreeSet;
use std::time::Duration;

use windrow_core::alert::{AlertKind, AlertSpec, AlertTarget, Form, Notice};
use windrow_core::ids::WallMs;
use windrow_core::limit::key::LimitKey;
use windrow_core::schedule::{Missed, Overlap};
use windrow_engine::ports::handling::alerts::{Alert, AlertError, AlertStore};
use windrow_engine::ports::handling::outbox::{OutboxStore, Settlement, Target};
use windrow_engine::ports::schedules::store::{FireOutcome, ScheduleStore};

use crate::fixture::{Harness, NOW, write};
use crate::{limits, schedules};

const LATER: WallMs = WallMs(NOW.0 + 1_000);
const HOUR: Duration = Duration::from_secs(3600);

fn alert(name: &str, on: &[AlertKind], business: Option<&str>) -> Alert {
    Alert {
        name: name.to_owned(),
        spec: AlertSpec {
            on: on.iter().copied().collect::<BTreeSet<AlertKind>>(),
            business: business.map(str::to_owned),
            target: AlertTarget::Url("https://hooks.example".to_owned()),
            form: Form::Slack,
            template: None,
        },
        sealed: Some(vec![0, 1, 255]),
        revision: 1,
        created_at: NOW,
        updated_at: NOW,
    }
}

async fn titles(harness: &Harness, name: &str) -> Vec<String> {
    let told = harness.sql().alert_deliveries(name, None, 99).await.unwrap();
    let title = |notice: &str| {
        let notice: serde_json::Value = serde_json::from_str(notice).unwrap();
        notice["title"].as_str().unwrap().to_owned()
    };
    told.iter().map(|one| title(&one.notice)).collect()
}

pub async fn alerts_are_kept_changed_and_deleted(harness: Harness) {
    let store = harness.sql();
    let ops = alert("ops", &[AlertKind::Stopped], None);
    for name in ["ops", "desk"] {
        let made = Alert {
            name: name.to_owned(),
            ..ops.clone()
        };
        assert_eq!(store.create_alert(&made, &write(), NOW).await, Ok(made));
    }
    let taken = store.create_alert(&ops, &write(), NOW).await;
    assert_eq!(taken, Err(AlertError::Taken("ops".to_owned())));
    let wanted = alert("ops", &[AlertKind::Limit80, AlertKind::Failed], Some("push"));
    let changed = store.change_alert(&wanted, &write(), LATER).await.unwrap();
    assert_eq!((changed.revision, &changed.spec), (2, &wanted.spec));
    assert_eq!(
        store.change_alert(&wanted, &write(), LATER).await,
        Err(AlertError::Changed {
            expected: 1,
            found: 2
        })
    );
    assert_eq!(store.alert("ops").await.unwrap().as_ref(), Some(&changed));
    let names = |alerts: Vec<Alert>| alerts.into_iter().map(|alert| alert.name).collect::<Vec<_>>();
    assert_eq!(names(store.alerts(None, 9).await.unwrap()), ["desk", "ops"]);
    assert_eq!(names(store.alerts(Some("desk"), 9).await.unwrap()), ["ops"]);
    store.test_alert("ops", NOW).await.unwrap();
    store.delete_alert("ops", &write(), LATER).await.unwrap();
    assert_eq!(
        store.delete_alert("ops", &write(), LATER).await,
        Err(AlertError::NotFound("ops".to_owned()))
    );
    assert!(
        store.take_due(LATER, LATER, 9).await.unwrap().is_empty(),
        "nobody is told"
    );
}

pub async fn an_event_is_told_once_and_a_handler_that_is_down_once_an_hour(harness: Harness) {
    let store = harness.sql();
    for one in [
        alert("all", &[AlertKind::HandlerDown], None),
        alert("push", &[AlertKind::HandlerDown], Some("push")),
        alert("stops", &[AlertKind::Stopped], None),
    ] {
        store.create_alert(&one, &write(), NOW).await.unwrap();
    }
    let down = Notice::handler_down("mail", "n1");
    for at in [NOW, LATER, NOW.plus(HOUR / 2), NOW.plus(HOUR)] {
        store.raise(&down, at).await.unwrap();
    }
    assert_eq!(titles(&harness, "all").await, vec!["mail: handler down"; 2]);
    assert!(titles(&harness, "push").await.is_empty() && titles(&harness, "stops").await.is_empty());
    let taken = store.take_due(NOW, LATER, 9).await.unwrap();
    assert_eq!(taken.len(), 1);
    assert_eq!(taken[0].target, Target::Alert("all".to_owned()));
    let dead = Settlement::Dead {
        error: "404".to_owned(),
    };
    assert!(store.settle(&taken[0], &dead).await.unwrap());
    let told = store.alert_deliveries("all", None, 9).await.unwrap();
    let of = |at: usize| {
        (
            told[at].state.as_str(),
            told[at].last_error.as_deref(),
            told[at].attempts,
        )
    };
    assert_eq!((of(0), of(1)), (("due", None, 0), ("dead", Some("404"), 1)));
    assert_ne!(told[0].delivery_id, told[1].delivery_id);
    let older = store.alert_deliveries("all", Some(told[0].id), 9).await.unwrap();
    assert_eq!(older, told[1..]);
}

pub async fn fires_without_a_task_and_used_totals_are_told(harness: Harness) {
    let store = harness.sql();
    let on = [AlertKind::ScheduleMissed, AlertKind::Limit80];
    store
        .create_alert(&alert("ops", &on, None), &write(), NOW)
        .await
        .unwrap();
    let schedule = schedules::due(&harness, Overlap::Skip, Missed::Latest, 5).await;
    let fires = schedules::fire(&harness, &schedule).await;
    let name = format!("{}/{}", schedule.business, schedule.name);
    assert_eq!(
        titles(&harness, "ops").await,
        [format!("{name}: missed fires: 4")]
    );
    let open = fires
        .iter()
        .find(|fire| fire.outcome == FireOutcome::Pending)
        .unwrap();
    for _ in 0..2 {
        store
            .fail_fire(schedule.id, open.time, "no file", None)
            .await
            .unwrap();
    }
    assert_eq!(
        titles(&harness, "ops").await[0],
        format!("{name}: no task created")
    );
    harness.meter_limit("openai", &["6400 calls"]).await;
    let session = harness.session().await;
    for (seq, spent) in [(1, 0), (2, 5_000), (3, 5_119), (4, 5_120), (5, 5_200)] {
        let round = limits::spending(session, seq, spent);
        let key = LimitKey::Named("openai").text();
        harness.store.play(&[(key, round)]).await.unwrap();
        let is_told = titles(&harness, "ops").await[0] == "limit openai: 80% used";
        assert_eq!(is_told, spent >= 5_120, "{spent}");
    }
    assert_eq!(titles(&harness, "ops").await.len(), 3, "each event once");
}
