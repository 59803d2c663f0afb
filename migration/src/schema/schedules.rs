//! Schedules and their fires.

use crate::columns::{
    NAME, chars, chars_null, flag, number, number_null, sequence_key, small, text, text_null,
};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![schedule(), fire()]
}

/// Schedules: recurring work of businesses.
fn schedule() -> Table {
    let columns = [
        sequence_key("id"),
        number("business_id"),
        chars("name", 40),
        // A cron expression with its zone, or a period in milliseconds.
        chars_null("cron", 200),
        chars_null("zone", 64),
        number_null("every_ms"),
        number_null("start_at"),
        number_null("end_at"),
        number("jitter_ms"),
        chars("overlap", 16),
        chars("missed", 16),
        // Body of a create request, as JSON.
        text("template"),
        flag("is_guarded"),
        flag("paused"),
        // Null while paused and after the last fire; by the database's clock, like `armed_at`, the time they were
        // set.
        number_null("next_fire"),
        number_null("next_due"),
        number("armed_at"),
        chars("created_by", NAME),
        number("revision"),
        number("created_at"),
        number("updated_at"),
    ];
    table("schedule", columns)
        .unique("name", &["business_id", "name"])
        .index("due", &["next_due"])
        .index("armed", &["armed_at"])
}

/// Fires of schedules, or ranges of missed ones. They outlive their tasks.
fn fire() -> Table {
    let columns = [
        number("schedule_id"),
        number("fire_time"),
        chars("kind", 16),
        chars("outcome", 16),
        number_null("task_id"),
        number("last_time"),
        number("fire_count"),
        // True: its task publishes although the fire is for a past time.
        flag("publishes"),
        number("decided_at"),
        number_null("settled_at"),
        // End of the lease on a pending fire.
        number("lease_until"),
        small("attempts"),
        text_null("note"),
    ];
    table("fire", columns)
        .key(&["schedule_id", "fire_time"])
        .index("open", &["outcome", "lease_until"])
        .index("age", &["decided_at"])
}
