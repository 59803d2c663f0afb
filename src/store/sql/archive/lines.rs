//! Lines of an archived task. `kind` names the type of each line; texts that are JSON are embedded as JSON.

use serde_json::{Value, json};

use crate::sql::entity::{failure_group, item, run, shard_head, task};
use crate::sql::run::items;
use crate::sql::task::life;
use windrow_core::ids::{ScheduleId, StoreId, TaskId, WallMs};
use windrow_core::settings::json::tree;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::statistics::ShardDay;

/// Format version; raised when a member changes its meaning.
const FORMAT: u32 = 1;

fn line(value: &Value) -> String {
    format!("{value}\n")
}

fn time(at: i64) -> String {
    WallMs(at).to_rfc3339()
}

fn maybe(at: Option<i64>) -> Option<String> {
    at.map(time)
}

fn parsed(text: Option<&str>) -> Value {
    text.map_or(Value::Null, tree)
}

/// Formats the first line: the task and its outcome.
pub(super) fn task(
    row: &task::Model,
    (store, business): (&StoreId, &str),
    shards: &[shard_head::Model],
    now: WallMs,
) -> Result<String, StoreError> {
    let life = life::read(row, shards)?;
    let counters = life.counters();
    let mut body = json!({
        "kind": "task", "format": FORMAT, "store": store.0, "archived_at": now.to_rfc3339(),
        "id": TaskId(row.id).to_string(), "business": business, "status": row.status,
        "result": row.result, "stop_reason": row.stop_reason,
        "created_at": time(row.created_at), "started_at": maybe(row.started_at), "finished_at": maybe(row.finished_at),
    });
    let items = json!({
        "total": row.total,
        "counts": {
            "succeeded": counters.succeeded, "skipped": counters.skipped, "failed": counters.failed,
            "parked": counters.parked, "excluded": counters.excluded,
        },
    });
    let made_of = json!({
        "settings": parsed(Some(&row.tuning)), "source": parsed(Some(&row.source)), "publish": parsed(row.publishing.as_deref()), "parent": row.parent_id.map(|id| TaskId(id).to_string()),
        "schedule": row.schedule_id.map(|id| ScheduleId(id).to_string()), "fire_time": maybe(row.fire_time),
    });
    let spec = life.spec.members(|_| true);
    let spec = spec
        .iter()
        .map(|(name, value)| ((*name).to_owned(), parsed(Some(value.get()))));
    for part in [items, made_of, Value::Object(spec.collect())] {
        if let (Value::Object(body), Value::Object(part)) = (&mut body, part) {
            body.extend(part);
        }
    }
    Ok(line(&body))
}

/// Formats one shard of the task.
pub(super) fn shard(row: &shard_head::Model) -> String {
    line(&json!({
        "kind": "shard", "shard": row.shard_no, "state": row.state, "first": row.first_index, "end": row.end_index,
        "range_end": row.range_end, "watermark": row.watermark, "high_water": row.high_water,
        "succeeded": row.succeeded, "skipped": row.skipped, "failed": row.failed, "parked": row.parked,
    }))
}

/// Formats one run of a shard.
pub(super) fn run(row: &run::Model) -> String {
    line(&json!({
        "kind": "run", "shard": row.shard_no, "run": row.run_no, "epoch": row.epoch, "node": row.node,
        "started_at": time(row.started_at), "ended_at": maybe(row.ended_at), "end_reason": row.end_reason,
        "end_text": row.end_text, "watermark": row.watermark, "succeeded": row.succeeded, "skipped": row.skipped,
        "failed": row.failed, "parked": row.parked,
    }))
}

/// Formats the daily total of a shard.
pub(super) fn day(day: &ShardDay) -> String {
    line(&json!({
        "kind": "day", "shard": day.shard.no, "day": day.day.to_string(), "succeeded": day.items.succeeded,
        "skipped": day.items.skipped, "failed": day.items.failed,
    }))
}

/// Formats the number of items that failed with one code.
pub(super) fn failures(row: &failure_group::Model) -> String {
    line(&json!({
        "kind": "failures", "code": row.code, "count": row.n, "unconfirmed": row.unconfirmed, "first_at": time(row.first_at), "last_at": time(row.last_at),
        "example_index": row.example_idx, "example": row.example,
    }))
}

/// Formats one failed item, with its attempts.
pub(super) fn failure(row: &item::Model) -> String {
    line(&json!({
        "kind": "failure", "index": row.idx, "shard": row.shard_no, "code": row.code, "message": row.message,
        "output": row.output, "attempts": row.attempts, "charged": items::charged(row),
        "unconfirmed": row.unconfirmed == Some(1), "others_answered": row.others_answered, "history": parsed(row.history.as_deref()),
        "first_at": time(row.first_at), "last_at": time(row.last_at),
    }))
}
