//! How the database finds what is asked for again and again: along an index, never through a whole table.

use std::sync::{Arc, Mutex};

use sea_orm::{ConnectionTrait, Statement};

use crate::sql::Store;
use crate::sql::dialect::Bounded;
use windrow_core::business::HookKind;
use windrow_core::ids::{ItemIndex, RunNo, SessionId, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::handling::data_log::{DataLog, LogQuery, LogRetention};
use windrow_engine::ports::handling::outbox::{Delivery, HookTarget, OutboxStore, Settlement, Target};
use windrow_engine::ports::ownership::run_store::{CandidateQuery, RunStore};
use windrow_engine::ports::ownership::session_store::SessionStore;
use windrow_engine::ports::sources::uploads::UploadStore;
use windrow_engine::ports::tasks::failure_list::{FailureList, FailurePage};
use windrow_engine::ports::tasks::list::{AuditFilter, TaskFilter, TaskList};
use windrow_engine::ports::tasks::report_store::ReportStore;
use windrow_engine::ports::tasks::store::{TaskStore, WaitNote};
use windrow_engine::ports::tasks::upkeep::{Sweep, UpkeepStore};

type Heard = Arc<Mutex<Vec<Statement>>>;

/// A store that writes down every statement.
async fn heard() -> (tempfile::TempDir, Store, Heard) {
    let place = tempfile::tempdir().unwrap();
    let mut store = Store::open(&place.path().join("windrow.db")).await.unwrap();
    let heard = Heard::default();
    for connection in [&mut store.writer, &mut store.readers, &mut store.pulse] {
        let (heard, mut inner) = (heard.clone(), connection.unbounded().clone());
        inner.set_metric_callback(move |info| heard.lock().unwrap().push(info.statement.clone()));
        *connection = Bounded::new(inner, None);
    }
    (place, store, heard)
}

/// The statements whose plan reads a whole table, but for those that are small by nature.
async fn scans(store: &Store, heard: &Heard) -> Vec<String> {
    let statements = std::mem::take(&mut *heard.lock().unwrap());
    let mut scans = Vec::new();
    for statement in statements {
        let sql = statement.sql.trim_start().to_ascii_uppercase();
        if !["SELECT", "UPDATE", "DELETE"]
            .iter()
            .any(|verb| sql.starts_with(verb))
        {
            continue;
        }
        let mut asked = statement.clone();
        asked.sql = format!("EXPLAIN QUERY PLAN {}", statement.sql);
        for row in store.readers.query_all_raw(asked).await.unwrap() {
            let step: String = row.try_get("", "detail").unwrap();
            let mut small = ["session", "business", "token", "meta", "upload"].iter();
            let is_small = small.any(|table| step.starts_with(&format!("SCAN {table}")));
            // Along the key up to a limit; or never begun, since nothing is asked for.
            let is_short = !sql.contains("WHERE") && sql.contains("LIMIT") || sql.contains("WHERE ? = ?");
            if step.starts_with("SCAN") && !is_small && !is_short {
                scans.push(format!("{step} in {}", statement.sql));
            }
        }
    }
    heard.lock().unwrap().clear();
    scans
}

const NOW: WallMs = WallMs(1_790_000_000_000);
const TASK: TaskId = TaskId(1);
const SHARD: ShardId = ShardId { task: TASK, no: 0 };

#[tokio::test]
async fn what_is_asked_each_second_scans_no_table() {
    let (_place, store, heard) = heard().await;
    let id = SessionId(uuid::Uuid::new_v4());
    let mut hunt = CandidateQuery {
        alive: vec![id],
        now: NOW,
        restore_window: std::time::Duration::from_secs(3600),
        pools: Some(vec!["default".to_owned()]),
        node: "n1".to_owned(),
        after: None,
        limit: 1000,
    };
    store.candidates(&hunt).await.unwrap();
    hunt.after = Some(windrow_engine::ports::ownership::run_store::CandidateCursor {
        state: windrow_engine::ports::ownership::run_store::CLAIMABLE[0],
        shard: SHARD,
    });
    store.candidates(&hunt).await.unwrap();
    store.list().await.unwrap();
    store.beat(id).await.unwrap();
    store.past_deadline(NOW, 200).await.unwrap();
    store.unanswered(NOW, 200).await.unwrap();
    store.is_start_due(NOW, NOW).await.unwrap();
    store.orphans(&[id], 200).await.unwrap();
    store.unserved(&["slow".to_owned()], NOW, 200).await.unwrap();
    store.take_due(NOW, NOW, 16).await.unwrap();
    let delivery = Delivery {
        id: 1,
        target: Target::Hook(HookTarget {
            task: TASK,
            start_no: 1,
            business: "b".to_owned(),
            kind: HookKind::Prepare,
        }),
        delivery_id: "d".to_owned(),
        body: "{}".to_owned(),
        attempts: 1,
        expires_at: NOW,
    };
    store.settle(&delivery, &Settlement::Done).await.unwrap();
    let note = WaitNote {
        task: TASK,
        reason: "capacity".to_owned(),
        text: "full".to_owned(),
    };
    store.explain_waits(&[note], NOW).await.unwrap();
    store
        .parked_due(SHARD, NOW, Some((NOW, ItemIndex(1))), 10)
        .await
        .unwrap();
    store.status_counts(100).await.unwrap();
    assert_eq!(scans(&store, &heard).await, Vec::<String>::new());
}

#[tokio::test]
async fn deadlines_of_tasks_that_ended_are_not_looked_through() {
    let (_place, store, heard) = heard().await;
    store.past_deadline(NOW, 200).await.unwrap();
    let mut asked = heard.lock().unwrap().remove(0);
    asked.sql = format!("EXPLAIN QUERY PLAN {}", asked.sql);
    let row = store.readers.query_one_raw(asked).await.unwrap().unwrap();
    let step: String = row.try_get("", "detail").unwrap();
    assert!(step.contains("(status=? AND deadline<?)"), "{step}");
}

#[tokio::test]
async fn what_is_swept_is_found_without_a_scan() {
    let (_place, store, heard) = heard().await;
    for what in Sweep::ALL {
        store.sweep(what, NOW).await.unwrap();
    }
    store.ended_before(NOW, 200).await.unwrap();
    store.expire_uploads(NOW).await.unwrap();
    store
        .expire(LogRetention {
            keep_from: NOW,
            max_per_task: 10,
        })
        .await
        .unwrap();
    assert_eq!(scans(&store, &heard).await, Vec::<String>::new());
}

#[tokio::test]
async fn pages_for_people_are_found_along_an_index() {
    let (_place, store, heard) = heard().await;
    let all = TaskFilter::default();
    let filters = [
        TaskFilter {
            statuses: vec![Status::Queued, Status::Running],
            ..all.clone()
        },
        TaskFilter {
            business: Some("b".to_owned()),
            ..all.clone()
        },
        TaskFilter {
            parent: Some(TASK),
            ..all.clone()
        },
        TaskFilter {
            name: Some("n".to_owned()),
            business: Some("b".to_owned()),
            ..all.clone()
        },
        all,
    ];
    for filter in filters {
        store.tasks(&filter, Some(TASK), 50).await.unwrap();
    }
    store.runs(TASK, Some((NOW, SHARD, RunNo(1))), 50).await.unwrap();
    for filter in [
        AuditFilter {
            task: Some(TASK),
            ..AuditFilter::default()
        },
        AuditFilter {
            business: Some("b".to_owned()),
            ..AuditFilter::default()
        },
        AuditFilter {
            object: Some(AuditObject::task(TASK)),
            since: Some(NOW),
            ..AuditFilter::default()
        },
        AuditFilter {
            since: Some(NOW),
            until: Some(NOW),
            ..AuditFilter::default()
        },
        AuditFilter::default(),
    ] {
        store.audits(&filter, Some((NOW, 9)), 50).await.unwrap();
        store.audits(&filter, None, 50).await.unwrap();
    }
    store
        .page(TASK, &FailurePage::ByIndex(Some(ItemIndex(1))), 50)
        .await
        .unwrap();
    store
        .page(TASK, &FailurePage::OfGroup("X".to_owned(), 1), 50)
        .await
        .unwrap();
    store.places(TASK, "X", 1, 50).await.unwrap();
    store.among(TASK, &[ItemIndex(1)]).await.unwrap();
    store.report_facts(TASK, 10).await.unwrap();
    store.redrives_of(TASK, 10).await.unwrap();
    store.redriven_among(&[TASK, TaskId(TASK.0 + 1)]).await.unwrap();
    store.get(TASK).await.unwrap();
    store.groups(TASK).await.unwrap();
    store.search(&LogQuery::newest(Some(TASK), 50)).await.unwrap();
    store.search(&LogQuery::newest(None, 50)).await.unwrap();
    assert_eq!(scans(&store, &heard).await, Vec::<String>::new());
}
