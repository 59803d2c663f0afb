//! Limits shared by tasks on all nodes.

use crate::columns::{NAME, SLUG, UUID, chars, chars_null, number, number_null, small, text, text_null};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![named_limit(), shared_limit(), limit_part(), found()]
}

/// Limits with a name of their own, by which tasks refer to them. (Those of a business are in its `limits_json`.)
fn named_limit() -> Table {
    let columns = [
        chars("name", 40).primary_key().take(),
        // Rate as people write it, and items in flight; null: unlimited.
        chars_null("rate", 64),
        number_null("concurrency"),
        // Limits in units, and what calls cost in them, as JSON; null: none.
        text_null("metering"),
        number("revision"),
        number("created_at"),
        number("updated_at"),
    ];
    table("named_limit", columns)
}

/// Limits in use, under the name of their business, or `limit/` and their own name.
fn shared_limit() -> Table {
    let columns = [
        chars("name", NAME).primary_key().take(),
        // Grows with each round, which is played under the lock of this row.
        number("round_no"),
        // Use of limits in units by sessions that are gone, as JSON; null: none.
        text_null("units"),
    ];
    table("shared_limit", columns)
}

/// Shares of sessions in a limit.
fn limit_part() -> Table {
    let columns = [
        chars("name", NAME),
        chars("session_id", UUID),
        // Place in the queue, and number of the last round.
        number("seat"),
        number("seq"),
        // Null: unlimited. Billionths of an item per second, items at once, items in flight.
        number_null("rate"),
        number_null("burst"),
        number_null("slots"),
        // Demand of the session's runs, as JSON.
        text("demand"),
        // Shares of limits in units, as JSON; null: none.
        text_null("units"),
    ];
    table("limit_part", columns).key(&["name", "session_id"])
}

/// Limits of services that the autopilot of a shard found last, for other shards and later tasks.
fn found() -> Table {
    let columns = [
        number("task_id"),
        small("shard_no"),
        chars("business", SLUG),
        // Origin of the service: a host's name has at most 253 characters.
        chars("service", 300),
        // JSON.
        text("news"),
        number("told_at"),
    ];
    table("found", columns)
        .key(&["task_id", "shard_no"])
        .index("service", &["business", "service", "told_at"])
        .index("told", &["told_at"])
}
