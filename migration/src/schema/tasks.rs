//! Tasks and their start tokens.

use sea_orm_migration::prelude::ColumnDef;

use crate::columns::{
    CODE, HASH, NAME, SLUG, chars, chars_null, number, number_null, sequence_key, small, text, text_null,
};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![task(), start_token()]
}

/// Passes of businesses over their items.
fn task() -> Table {
    let columns = [order(), settings(), state(), requests()].concat();
    table("task", columns)
        .unique("name", &["business_id", "name"])
        .unique("fire", &["schedule_id", "fire_time"])
        .index("status", &["status", "id"])
        .index("business", &["business_id", "id"])
        .index("parent", &["parent_id", "id"])
        .index("source", &["source_id"])
        // Ended tasks keep their deadlines; open ones are looked up every second.
        .index("deadline", &["status", "deadline"])
        // Finds a schedule's unfinished tasks.
        .index("schedule", &["schedule_id", "status"])
        .index("created", &["created_at"])
        .index("finished", &["finished_at"])
}

/// Returns the columns of identity, origin and items.
fn order() -> Vec<ColumnDef> {
    vec![
        sequence_key("id"),
        number("business_id"),
        chars_null("name", NAME),
        number_null("parent_id"),
        number_null("schedule_id"),
        number_null("fire_time"),
        number("total"),
        number("skip_first"),
        // `5-9,12`: items that people want skipped.
        text_null("skips"),
        // `open` or `sealed`; null for a task whose items were fixed at its creation.
        chars_null("intake", 16),
        number_null("source_id"),
        text("source"),
        number("meaning_hash"),
    ]
}

/// Returns the columns of settings and attributes.
fn settings() -> Vec<ColumnDef> {
    vec![
        text("tuning"),
        // Attributes that no statement queries: `{"params":null,"send_params":true,"shards":1,"canary":null}`.
        text("spec"),
        chars_null("pool", SLUG),
        small("priority"),
        text_null("labels"),
        // Names of limits, as a JSON list.
        text_null("limits"),
        // `{"dataset":"board","if":"all","reduce":"none","generation":7}`.
        text_null("publishing"),
        number("not_before"),
        number_null("deadline"),
    ]
}

/// Returns the columns of status and times.
fn state() -> Vec<ColumnDef> {
    vec![
        chars("status", 20),
        chars_null("status_reason", CODE),
        text_null("status_text"),
        number("status_since"),
        chars_null("next_action", 64),
        number_null("next_at"),
        chars_null("result", 16),
        chars_null("stop_reason", 24),
        // `{"items":3,"runs":[{"first":0,"len":3}]}`: items that the current stop cut off.
        text_null("cut_off"),
        number_null("result_version"),
        number("version"),
        small("start_no"),
        // Of the current start: the hash of its token, and the time until which the business may answer the
        // before-run hook.
        chars_null("start_token_hash", HASH),
        number_null("awaiting_until"),
        number("created_at"),
        number("updated_at"),
        number("queued_at"),
        number_null("started_at"),
        number_null("finished_at"),
    ]
}

/// Returns the columns of people's requests, and of limits that one shard sets for all.
fn requests() -> Vec<ColumnDef> {
    vec![
        chars("desired", 12),
        number("control_rev"),
        // Bound of an early finish: undispatched items at or above it are no longer sent.
        number_null("finish_at"),
        // `[{"code":"TIMEOUT","at":1700000000000}]`: retrying items with these codes fail for good.
        text_null("failed_codes"),
        // Time before which no shard dispatches, and the reason (`429`, a reply's `pause`).
        number_null("pause_until"),
        chars_null("pause_reason", CODE),
        // Time until which the task has at most this rate (millionths of an item per second).
        number_null("slow_until"),
        number_null("slow_rate"),
    ]
}

/// Tokens of all starts, to tell one of an earlier start from one that never existed.
fn start_token() -> Table {
    let columns = [
        chars("token_hash", HASH).primary_key().take(),
        number("task_id"),
        small("start_no"),
    ];
    table("start_token", columns).index("task", &["task_id", "start_no"])
}
