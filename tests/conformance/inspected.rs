//! What `windrow db` asks of a database: every question is answered on each engine, and what is broken is found.

use windrow_core::checkpoint;
use windrow_core::execution::Extension;
use windrow_core::ids::{Epoch, ItemIndex};
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::ownership::run_store::RunClose;
use windrow_engine::ports::tasks::report_store::ReportStore as _;
use windrow_engine::ports::tasks::store::NewTask;

use crate::fixture::{Harness, NOW, at, closing, task};

/// What is broken, as `rule: the task that is named`.
async fn faults(harness: &Harness) -> Vec<String> {
    let inspection = harness.looked_at().await;
    let found = inspection.check().await.unwrap();
    inspection.close().await.unwrap();
    let broken = found.into_iter().filter(|finding| !finding.faults.is_empty());
    broken
        .map(|finding| format!("{}: {}", finding.rule, finding.faults.join(", ")))
        .collect()
}

pub async fn a_whole_database_has_no_faults_and_each_broken_rule_is_found(harness: Harness) {
    assert_eq!(faults(&harness).await, Vec::<String>::new());
    let run = harness.running(10).await;
    harness.stored(at(&run, 1, 4)).await;
    harness.stored(closing(&run, 2, 10, RunClose::Done)).await;
    let waits = harness.queued(10).await;
    assert_eq!(faults(&harness).await, Vec::<String>::new());
    let (done, waits) = (run.shard.task.0, waits.task.0);
    // The column of a table that is broken, the task, and the rules that see it, the first for certain.
    for (table, column, wrong, task, rule) in [
        (
            "task",
            "business_id",
            "business_id + 90",
            done,
            "every task has its business",
        ),
        (
            "task",
            "total",
            "total + 1",
            waits,
            "the shards of a task cover its items",
        ),
        (
            "task",
            "skip_first",
            "skip_first + 1",
            waits,
            "the shards of a task cover its items",
        ),
        (
            "shard",
            "high_water",
            "high_water - 1",
            done,
            "watermark lies within its shard",
        ),
        (
            "shard",
            "succeeded",
            "succeeded + 1",
            done,
            "no shard counts more items than it has",
        ),
        (
            "shard",
            "parked",
            "parked + 1",
            done,
            "a finished task has settled every item",
        ),
        (
            "shard",
            "day_succeeded",
            "day_succeeded + 1",
            done,
            "the days of a shard add up",
        ),
        (
            "shard",
            "task_id",
            "task_id + 90",
            waits,
            "every shard has its task",
        ),
        ("run", "task_id", "task_id + 90", done, "every run has its shard"),
    ] {
        let id = if table == "task" { "id" } else { "task_id" };
        let was = harness.column(table, column, &format!("{id} = {task}")).await;
        let moved = if column == "task_id" { task + 90 } else { task };
        harness
            .update(&format!(
                "UPDATE {table} SET {column} = {wrong} WHERE {id} = {task}"
            ))
            .await;
        let named = format!("{rule}: not so for t{moved}");
        let found = faults(&harness).await;
        assert!(found.contains(&named), "{table}.{column}: {found:?}");
        harness
            .update(&format!(
                "UPDATE {table} SET {column} = {was} WHERE {id} = {moved}"
            ))
            .await;
        assert_eq!(
            faults(&harness).await,
            Vec::<String>::new(),
            "{table}.{column} is mended"
        );
    }
}

pub async fn what_is_looked_at_beside_the_rules_is_answered(harness: Harness) {
    let (shard, session) = (harness.queued(10).await, harness.session().await);
    let run = harness.claimed(shard, Epoch(0), session).await;
    let inspection = harness.looked_at().await;
    let schema = inspection.schema().await.unwrap();
    assert!(schema.pending.is_empty() && schema.unknown.is_empty());
    assert_eq!(schema.done, ["m0001_schema"]);
    assert_eq!(inspection.quick_check().await.unwrap(), Vec::<String>::new());
    assert!(
        inspection.durability().await.unwrap().is_durable,
        "as the tests' servers are set"
    );
    let beats = inspection.heartbeats().await.unwrap();
    assert_eq!(beats.len(), 1);
    harness.store.beat(session).await.unwrap();
    let later = inspection.heartbeats().await.unwrap();
    assert!(later[0].session == beats[0].session && later[0].beat != beats[0].beat);
    if harness.address.is_none() {
        inspection.backup(&harness.place().join("copy.db")).await.unwrap();
    }
    inspection.close().await.unwrap();
    harness.fence(session).await;
    let marked = harness.sql().mark_restored(true, NOW).await.unwrap();
    assert!(marked.first_task > run.shard.task);
    assert_eq!(faults(&harness).await, Vec::<String>::new());
    assert_eq!(harness.view(run.shard.task).await.watermark, ItemIndex(0));
}

pub async fn a_restore_leaves_open_what_tasks_with_limits_in_units_used(harness: Harness) {
    let metering = serde_json::from_str(r#"{"limits":["5 eur"],"cost":["eur = 1"]}"#).unwrap();
    let metered = NewTask {
        spec: TaskSpec {
            metering,
            ..TaskSpec::default()
        },
        ..task(3)
    };
    let (metered, plain) = (
        harness.created(&metered).await.id,
        harness.created(&task(3)).await.id,
    );
    for _ in 0..2 {
        harness.sql().mark_restored(false, NOW).await.unwrap();
        for (id, is_unknown) in [(metered, true), (plain, false)] {
            let saved = harness.sql().saved_windows(id).await.unwrap().remove(0);
            let bytes = match saved.blob.is_empty() {
                true => Vec::new(),
                false => {
                    checkpoint::decode(&saved.blob, saved.watermark)
                        .unwrap()
                        .extension
                }
            };
            assert_eq!(Extension::of(&bytes).unwrap().is_restored, is_unknown);
        }
    }
}
