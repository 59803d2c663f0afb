//! Shards of tasks, their runs, and daily totals.

use sea_orm_migration::prelude::ColumnDef;
use sea_orm_migration::schema::big_integer;

use crate::columns::{NAME, SLUG, UUID, bytes, chars, chars_null, number, number_null, small, text_null};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![shard(), run(), shard_day(), business_day()]
}

/// Contiguous index ranges of tasks, each owned by one node at a time.
fn shard() -> Table {
    table("shard", [range_and_owner(), progress()].concat())
        .key(&["task_id", "shard_no"])
        .index("state", &["state", "task_id", "shard_no", "epoch"])
        .index("session", &["session_id"])
        .index("day", &["day"])
}

fn range_and_owner() -> Vec<ColumnDef> {
    vec![
        number("task_id"),
        small("shard_no"),
        number("first_index"),
        number("end_index"),
        number("range_end"),
        chars("state", 12),
        chars("desired", 12),
        number("control_rev"),
        small("run_no"),
        number("epoch"),
        chars_null("claim_id", UUID),
        chars_null("session_id", UUID),
        // Node that people want the shard on, and the time until which other nodes leave it to that node.
        chars_null("move_to", NAME),
        number_null("move_until"),
        number_null("rate_share"),
        small("stall_count"),
        small("recoveries"),
        big_integer("last_claim_lw").default(-1_i64).take(),
        number("not_before"),
        number("created_at"),
        number("updated_at"),
    ]
}

fn progress() -> Vec<ColumnDef> {
    vec![
        number("ckpt_seq"),
        bytes("ckpt_blob"),
        number("watermark"),
        number("high_water"),
        // Bound of the items that may be dispatched before the next checkpoint, and the same before the latest claim:
        // the items that a dead owner may have called.
        number("horizon"),
        number("horizon_before"),
        number("succeeded"),
        number("skipped"),
        number("failed"),
        number("parked"),
        number("results"),
        // Time since which calls go unanswered, for a takeover.
        number_null("circuit_since"),
        number_null("circuit_probes"),
        // Day on which the shard last settled something, and its counters when that day began.
        number("day"),
        number("day_succeeded"),
        number("day_skipped"),
        number("day_failed"),
    ]
}

/// Runs: periods in which a session owned a shard.
fn run() -> Table {
    let columns = [
        number("task_id"),
        small("shard_no"),
        small("run_no"),
        number("epoch"),
        chars("claim_id", UUID),
        chars("session_id", UUID),
        // Name that stays when the session is gone.
        chars_null("node", NAME),
        number("started_at"),
        number_null("ended_at"),
        chars_null("end_reason", 24),
        text_null("end_text"),
        number("watermark"),
        number("succeeded"),
        number("skipped"),
        number("failed"),
        number("parked"),
    ];
    table("run", columns).key(&["task_id", "shard_no", "run_no"])
}

/// Items that shards settled on completed days. The day on which a shard last settled something is in its own row.
fn shard_day() -> Table {
    let columns = [
        number("task_id"),
        small("shard_no"),
        // Days since 1970-01-01, in UTC.
        number("day"),
        number("succeeded"),
        number("skipped"),
        number("failed"),
    ];
    table("shard_day", columns)
        .key(&["task_id", "shard_no", "day"])
        .index("day", &["day"])
}

/// Daily totals of deleted tasks, by the slug of their business, which they outlive.
fn business_day() -> Table {
    let columns = [
        chars("business", SLUG),
        number("day"),
        number("created"),
        number("finished"),
        number("cancelled"),
        number("succeeded"),
        number("skipped"),
        number("failed"),
    ];
    table("business_day", columns)
        .key(&["business", "day"])
        .index("day", &["day"])
}
