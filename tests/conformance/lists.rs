//! What lists for people show, and remembered answers: SQL only, on each database.

use std::collections::BTreeMap;

use windrow_core::business::access::Role;
use windrow_core::ids::{RunNo, ShardId, TaskId, WallMs};
use windrow_core::limit::Bounds;
use windrow_core::meter::metering::Metering;
use windrow_core::settings::Rate;
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::access::idempotency::{IdempotencyStore, KeyState, StoredResponse};
use windrow_engine::ports::access::named_limit_store::NamedLimitStore;
use windrow_engine::ports::access::token_store::{NewToken, TokenGrant, TokenStore};
use windrow_engine::ports::ownership::run_store::{ClaimOutcome, ClaimRequest, RunClose, RunStore};
use windrow_engine::ports::ownership::session_store::{NewSession, SessionStore};
use windrow_engine::ports::tasks::list::{AuditFilter, TaskFilter, TaskList};
use windrow_engine::ports::tasks::store::{NewTask, TaskCommand, TaskStore};
use windrow_store::sql::Store;

use crate::fixture::{BUSINESS, Harness, NOW, at, closing, new_session, request, task, write};

async fn prepared(harness: &Harness) -> &Store {
    let store = harness.sql();
    store.ensure_business(BUSINESS, &write(), NOW).await.unwrap();
    store.ensure_business("backfill", &write(), NOW).await.unwrap();
    store
}

async fn made(store: &Store, new: NewTask) -> TaskId {
    store.create(&new, &write(), NOW).await.unwrap().id
}

async fn ids(store: &Store, filter: TaskFilter) -> Vec<i64> {
    let page = store.tasks(&filter, None, 50).await.unwrap();
    assert_eq!(page.next, None);
    page.tasks.iter().map(|task| task.id.0).collect()
}

fn label(key: &str, value: &str) -> BTreeMap<String, String> {
    BTreeMap::from([
        ("also".to_owned(), "x".to_owned()),
        (key.to_owned(), value.to_owned()),
    ])
}

pub async fn tasks_are_found_by_each_filter(harness: Harness) {
    let store = prepared(&harness).await;
    made(
        store,
        NewTask {
            spec: TaskSpec {
                name: Some("Night_run".to_owned()),
                labels: label("team", "growth"),
                ..TaskSpec::default()
            },
            ..task(1)
        },
    )
    .await;
    made(
        store,
        NewTask {
            business: "backfill".to_owned(),
            spec: TaskSpec {
                labels: label("team", "Growth"),
                ..TaskSpec::default()
            },
            ..task(1)
        },
    )
    .await;
    made(
        store,
        NewTask {
            parent: Some(TaskId(1)),
            spec: TaskSpec {
                name: Some("NightXrun".to_owned()),
                ..TaskSpec::default()
            },
            ..task(1)
        },
    )
    .await;
    store
        .command(TaskId(3), &TaskCommand::Start, &write(), NOW)
        .await
        .unwrap();
    let all = TaskFilter::default;
    assert_eq!(ids(store, all()).await, [3, 2, 1], "newest first");
    assert_eq!(
        ids(
            store,
            TaskFilter {
                oldest_first: true,
                ..all()
            }
        )
        .await,
        [1, 2, 3]
    );
    let of = |slug: &str| TaskFilter {
        business: Some(slug.to_owned()),
        ..all()
    };
    assert_eq!(ids(store, of("backfill")).await, [2]);
    assert_eq!(ids(store, of("nobody")).await, [0; 0]);
    let statuses = vec![Status::Queued, Status::Running];
    assert_eq!(ids(store, TaskFilter { statuses, ..all() }).await, [3]);
    let label = |value: &str| TaskFilter {
        label: Some(("team".to_owned(), value.to_owned())),
        ..all()
    };
    assert_eq!(ids(store, label("growth")).await, [1], "a label is exact");
    let text = |text: &str| TaskFilter {
        text: Some(text.to_owned()),
        ..all()
    };
    assert_eq!(
        ids(store, text("nIGHT_r")).await,
        [1],
        "an underscore is an underscore"
    );
    assert_eq!(ids(store, text("ackfil")).await, [2], "the business counts too");
    assert_eq!(ids(store, text("%")).await, [0; 0]);
    assert_eq!(
        ids(
            store,
            TaskFilter {
                parent: Some(TaskId(1)),
                ..all()
            }
        )
        .await,
        [3]
    );
    assert_eq!(
        ids(
            store,
            TaskFilter {
                created_after: Some(WallMs(NOW.0 + 1)),
                ..all()
            }
        )
        .await,
        [0; 0]
    );
    assert_eq!(
        ids(
            store,
            TaskFilter {
                created_before: Some(WallMs(NOW.0 + 1)),
                ..all()
            }
        )
        .await,
        [3, 2, 1]
    );
    let named = TaskFilter {
        name: Some("Night_run".to_owned()),
        ..of(BUSINESS)
    };
    assert_eq!(ids(store, named).await, [1]);
    let counts = store.status_counts(1).await.unwrap();
    let of = |status| counts.iter().find(|(other, _)| *other == status).unwrap().1;
    assert_eq!(
        (of(Status::Created), of(Status::Queued), of(Status::Running)),
        (1, 1, 0),
        "counted up to 1"
    );
}

pub async fn pages_meet_without_gap_or_overlap_while_tasks_are_made(harness: Harness) {
    let store = prepared(&harness).await;
    for _ in 0..5 {
        made(store, task(1)).await;
    }
    let filter = TaskFilter::default();
    let first = store.tasks(&filter, None, 2).await.unwrap();
    made(store, task(1)).await;
    let second = store.tasks(&filter, first.next, 2).await.unwrap();
    let third = store.tasks(&filter, second.next, 2).await.unwrap();
    let pages = [&first, &second, &third];
    let ids: Vec<i64> = pages
        .iter()
        .flat_map(|page| page.tasks.iter().map(|task| task.id.0))
        .collect();
    assert_eq!((ids, third.next), (vec![5, 4, 3, 2, 1], None));
}

pub async fn runs_and_audit_are_told_newest_first(harness: Harness) {
    let store = prepared(&harness).await;
    let id = made(store, task(4)).await;
    let session = windrow_core::ids::SessionId(uuid::Uuid::new_v4());
    store.begin(&new_session(session)).await.unwrap();
    let shard = ShardId { task: id, no: 0 };
    let mut seen = windrow_core::ids::Epoch(0);
    for run in 1..=3 {
        store
            .command(id, &TaskCommand::Start, &write(), NOW)
            .await
            .unwrap();
        let ClaimOutcome::Claimed(claimed) = store.claim(request(shard, seen, session)).await.unwrap() else {
            panic!("it is to be had")
        };
        seen = claimed.epoch;
        let close = RunClose::stopped(StopReason::Business, "enough".to_owned());
        store
            .checkpoint(&[closing(&claimed, 1, run, close)])
            .await
            .unwrap();
    }
    let runs = store.runs(id, None, 2).await.unwrap();
    let told: Vec<_> = runs
        .iter()
        .map(|run| (run.run.0, run.settled[0], run.node.as_deref()))
        .collect();
    assert_eq!(told, [(3, 3, Some("n1")), (2, 2, Some("n1"))]);
    let after = runs.last().map(|run| (run.started_at, run.shard, run.run));
    let rest = store.runs(id, after, 2).await.unwrap();
    assert_eq!(rest.iter().map(|run| run.run.0).collect::<Vec<_>>(), [1]);
    assert_eq!(rest[0].end_reason.as_deref(), Some("stopped"));
    assert_eq!(rest[0].end_text.as_deref(), Some("stopped (business): enough"));
    assert_eq!(store.run(shard, RunNo(1)).await.unwrap().as_ref(), rest.first());
    assert_eq!(store.run(shard, RunNo(9)).await.unwrap(), None);
    let filter = AuditFilter {
        task: Some(id),
        ..AuditFilter::default()
    };
    let newest = store.audits(&filter, None, 3).await.unwrap();
    let actions: Vec<&str> = newest.iter().map(|row| row.entry.action.as_str()).collect();
    assert_eq!(actions, ["task.stopped", "task.start", "task.stopped"]);
    let older = store
        .audits(&filter, newest.last().map(|row| (row.entry.at, row.id)), 50)
        .await
        .unwrap();
    assert_eq!(older.last().unwrap().entry.action, "task.create");
    let starts = AuditFilter {
        action: Some("task.start".to_owned()),
        actor: Some("ada".to_owned()),
        ..filter
    };
    assert_eq!(store.audits(&starts, None, 50).await.unwrap().len(), 3);
}

/// The objects of what a filter lets through, page by page of two.
async fn objects(store: &Store, filter: &AuditFilter) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.audits(filter, after, 2).await.unwrap();
        let Some(last) = page.last() else { return found };
        after = Some((last.entry.at, last.id));
        found.extend(page.into_iter().map(|row| row.object.unwrap().to_string()));
    }
}

pub async fn changes_are_found_by_their_object_and_their_time(harness: Harness) {
    let store = prepared(&harness).await;
    let at = |seconds: i64| WallMs(NOW.0 + seconds * 1000);
    let bounds = Bounds {
        rate: Rate::per_second(5),
        concurrency: None,
    };
    let id = store.create(&task(4), &write(), at(1)).await.unwrap().id;
    store
        .create_limit("mail", (bounds, &Metering::default()), &write(), at(2))
        .await
        .unwrap();
    store
        .create_limit("sms", (bounds, &Metering::default()), &write(), at(2))
        .await
        .unwrap();
    store
        .change_limit(
            "sms",
            1,
            (
                Bounds {
                    concurrency: Some(3),
                    ..bounds
                },
                &Metering::default(),
            ),
            &write(),
            at(4),
        )
        .await
        .unwrap();
    store.delete_limit("sms", &write(), at(6)).await.unwrap();
    store
        .command(id, &TaskCommand::Start, &write(), at(5))
        .await
        .unwrap();
    let token = NewToken {
        hash: "h".to_owned(),
        prefix: "wrk_h".to_owned(),
        grant: TokenGrant {
            name: "ops bot".to_owned(),
            role: Role::Viewer,
            business: None,
            expires_at: None,
        },
    };
    let token = store.add_token(&token, &write(), at(7)).await.unwrap();

    let all = AuditFilter::default();
    let (task, sms) = (&*format!("task:{id}"), "limit:sms");
    let token = &*format!("token:{}", token.id);
    let newest_first = [
        token,
        sms,
        task,
        sms,
        sms,
        "limit:mail",
        task,
        "business:backfill",
        "business:mail",
    ];
    assert_eq!(objects(store, &all).await, newest_first);
    let of = |object: &str| AuditFilter {
        object: Some(object.parse().unwrap()),
        ..AuditFilter::default()
    };
    assert_eq!(
        objects(store, &of(sms)).await,
        [sms; 3],
        "also of one that was deleted"
    );
    assert_eq!(objects(store, &of(task)).await, [task; 2]);
    for other in ["limit:SMS", "limit:sm", "schedule:sms", "token:ops"] {
        assert!(objects(store, &of(other)).await.is_empty(), "{other}");
    }
    let within = |since: i64, until: i64, rest: AuditFilter| AuditFilter {
        since: Some(at(since)),
        until: Some(at(until)),
        ..rest
    };
    let middle = within(2, 6, all.clone());
    assert_eq!(objects(store, &middle).await, [task, sms, sms, "limit:mail"]);
    assert_eq!(objects(store, &within(2, 6, of(sms))).await, [sms; 2]);
    assert!(objects(store, &within(9, 99, all)).await.is_empty());
}

pub async fn the_run_of_a_dead_node_is_ended_by_who_takes_it_and_the_names_stay(harness: Harness) {
    let store = prepared(&harness).await;
    let id = made(store, task(10)).await;
    let shard = ShardId { task: id, no: 0 };
    store
        .command(id, &TaskCommand::Start, &write(), NOW)
        .await
        .unwrap();
    let (mut seen, mut last) = (windrow_core::ids::Epoch(0), None);
    for (node, now) in [("n1", NOW), ("n2", NOW.plus(std::time::Duration::from_secs(9)))] {
        let session = windrow_core::ids::SessionId(uuid::Uuid::new_v4());
        let node = NewSession {
            node: node.to_owned(),
            ..new_session(session)
        };
        store.begin(&node).await.unwrap();
        let asked = ClaimRequest {
            now,
            ..request(shard, seen, session)
        };
        let ClaimOutcome::Claimed(claimed) = store.claim(asked).await.unwrap() else {
            panic!("free")
        };
        seen = claimed.epoch;
        store.checkpoint(&[at(&claimed, 1, 4)]).await.unwrap();
        if let Some(before) = last.replace(session) {
            store.end(before).await.unwrap();
        }
        store
            .fence_all_but(windrow_core::ids::SessionId(uuid::Uuid::new_v4()))
            .await
            .unwrap();
    }
    let runs = store.runs(id, None, 5).await.unwrap();
    let ends: Vec<_> = runs
        .iter()
        .map(|run| (run.node.as_deref(), run.end_reason.as_deref()))
        .collect();
    assert_eq!(ends, [(Some("n2"), None), (Some("n1"), Some("lost"))]);
    let lost = &runs[1];
    assert_eq!(
        (lost.settled[0], lost.watermark.0),
        (4, 4),
        "as the last checkpoint has it"
    );
    assert_eq!(lost.ended_at, Some(runs[0].started_at));
    let why = "n2 took over shard 0 from n1, which was fenced after 9s without a save";
    assert_eq!(lost.end_text.as_deref(), Some(why));
}

pub async fn an_answer_is_remembered_for_its_key_and_request(harness: Harness) {
    const STALE_MS: i64 = 60_000;
    let store = prepared(&harness).await;
    let take = async |key: &str, body: &str, now: WallMs| {
        store
            .take_key("ada POST /v1/tasks", key, body, None, STALE_MS, now)
            .await
            .unwrap()
    };
    assert_eq!(take("k", "a", NOW).await, KeyState::New);
    assert_eq!(take("k", "a", NOW).await, KeyState::InProgress);
    assert_eq!(take("k", "b", NOW).await, KeyState::Reused);
    let later = WallMs(NOW.0 + STALE_MS);
    assert_eq!(take("k", "a", later).await, KeyState::New, "its node died");
    let answer = StoredResponse {
        status: 201,
        text: "{}".to_owned(),
    };
    store
        .answer_key("ada POST /v1/tasks", "k", &answer)
        .await
        .unwrap();
    assert_eq!(take("k", "a", later).await, KeyState::Answered(answer));
    assert_eq!(take("other", "a", later).await, KeyState::New);
    store.free_key("ada POST /v1/tasks", "other").await.unwrap();
    assert_eq!(
        take("other", "b", later).await,
        KeyState::New,
        "it was given back"
    );
    let elsewhere = store
        .take_key("eve POST /v1/tasks", "k", "b", None, STALE_MS, NOW)
        .await
        .unwrap();
    assert_eq!(elsewhere, KeyState::New, "another caller's keys are their own");
    assert_eq!(store.forget_keys(WallMs(later.0 + 1), 2).await.unwrap(), 2);
    assert_eq!(store.forget_keys(WallMs(later.0 + 1), 2).await.unwrap(), 1);
    assert_eq!(take("k", "z", later).await, KeyState::New);
}

pub async fn an_open_key_is_free_as_soon_as_the_session_that_answers_it_is_over(harness: Harness) {
    let store = prepared(&harness).await;
    let (dies, leaves, lives) = (
        harness.session().await,
        harness.session().await,
        harness.session().await,
    );
    let take = async |key: &str, holder| {
        store
            .take_key("ada POST /v1/tasks", key, "a", Some(holder), 60_000, NOW)
            .await
            .unwrap()
    };
    for (key, holder) in [("k1", dies), ("k2", leaves), ("k3", lives)] {
        assert_eq!(take(key, holder).await, KeyState::New);
        assert_eq!(
            take(key, lives).await,
            KeyState::InProgress,
            "{key}: its holder lives"
        );
    }
    harness.fence(dies).await;
    harness.store.end(leaves).await.unwrap();
    for key in ["k1", "k2"] {
        assert_eq!(take(key, lives).await, KeyState::New, "{key}");
        assert_eq!(
            take(key, lives).await,
            KeyState::InProgress,
            "{key}: it has a holder again"
        );
    }
    assert_eq!(take("k3", lives).await, KeyState::InProgress);
}

pub async fn a_session_that_is_fenced_although_it_owns_nothing_is_told_once_with_its_node(harness: Harness) {
    let store = prepared(&harness).await;
    let id = windrow_core::ids::SessionId(uuid::Uuid::new_v4());
    store
        .begin(&NewSession {
            node: "n7".to_owned(),
            ..new_session(id)
        })
        .await
        .unwrap();
    let heartbeat = store.list().await.unwrap()[0].heartbeat;
    let fenced = AuditFilter {
        action: Some("node.fenced".to_owned()),
        ..AuditFilter::default()
    };
    assert!(!store.fence(id, heartbeat + 1, NOW).await.unwrap(), "it is back");
    assert_eq!(store.audits(&fenced, None, 9).await.unwrap(), []);
    for _ in 0..2 {
        assert!(store.fence(id, heartbeat, NOW).await.unwrap());
    }
    let told = store.audits(&fenced, None, 9).await.unwrap();
    assert_eq!(told.len(), 1, "{told:?}");
    let entry = &told[0].entry;
    assert_eq!((entry.actor.as_str(), entry.at), ("windrow", NOW));
    assert!(
        entry
            .reason
            .as_deref()
            .is_some_and(|why| why.starts_with("n7 stopped responding")),
        "{entry:?}"
    );
    assert!(
        entry
            .after
            .as_deref()
            .is_some_and(|after| after.contains(r#""node":"n7""#)),
        "{entry:?}"
    );
}
