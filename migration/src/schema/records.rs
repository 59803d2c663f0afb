//! Audit entries and the data log.

use crate::columns::{
    CODE, NAME, chars, chars_null, number, number_null, sequence_key, small, text, text_null,
};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![audit(), data_log(), data_log_drop()]
}

/// Changes, with who made them and why.
fn audit() -> Table {
    let columns = [
        sequence_key("id"),
        number("at_ms"),
        chars("actor", NAME),
        // Of people behind a proxy, with the group that gives it.
        chars_null("role", NAME),
        chars("source", 16),
        chars("action", 32),
        number_null("task_id"),
        number_null("business_id"),
        // `task`, `schedule`, `limit` …, and the object's name.
        chars_null("object_kind", 16),
        chars_null("object_name", NAME),
        text_null("reason"),
        text_null("before_json"),
        text_null("after_json"),
        chars_null("request_id", 64),
    ];
    // The audit is read by time within an object, a task or a business; old entries are found without reading the
    // rest.
    table("audit", columns)
        .index("object", &["object_kind", "object_name", "at_ms", "id"])
        .index("task_age", &["task_id", "at_ms", "id"])
        .index("business_age", &["business_id", "at_ms", "id"])
        .index("age", &["at_ms"])
}

/// Log lines about tasks and their items.
fn data_log() -> Table {
    let columns = [
        sequence_key("id"),
        number("task_id"),
        small("shard_no"),
        number("at_ms"),
        number_null("idx"),
        chars("origin", 12),
        small("level"),
        chars_null("code", CODE),
        text("message"),
        text_null("extra"),
    ];
    table("data_log", columns)
        .index("task", &["task_id", "level", "id"])
        .index("seq", &["task_id", "id"])
}

/// Counts of log lines that were dropped.
fn data_log_drop() -> Table {
    let columns = [number("task_id"), chars("reason", 16), number("n")];
    table("data_log_drop", columns).key(&["task_id", "reason"])
}
