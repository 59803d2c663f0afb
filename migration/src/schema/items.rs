//! Failed items, results of items, and appended items.

use crate::columns::{
    CODE, HASH, NAME, bytes, chars, chars_null, flag, number, number_null, small, text, text_null,
};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![item(), failure_group(), result_segment(), appended()]
}

/// Items that failed at least once: retrying, parked or failed for good.
fn item() -> Table {
    let columns = [
        number("task_id"),
        number("idx"),
        small("shard_no"),
        chars("state", 12),
        small("attempts"),
        // Attempts that count against the item; null: all do.
        number_null("charged"),
        number("due_at"),
        chars_null("code", CODE),
        text_null("message"),
        text_null("output"),
        // Failed attempts as JSON.
        text_null("history"),
        // Failure group of an item that failed for good, and its ordinal there.
        chars_null("grp", CODE),
        number_null("grp_no"),
        // 1: nothing showed whether the handler failed for this item alone.
        number_null("unconfirmed"),
        // Calls for other items that were answered meanwhile; null while the item is retrying.
        number_null("others_answered"),
        number("epoch"),
        number("first_at"),
        number("last_at"),
    ];
    table("item", columns)
        .key(&["task_id", "idx"])
        .index("due", &["task_id", "shard_no", "state", "due_at", "idx"])
        .index("code", &["task_id", "code", "idx"])
        .index("grp", &["task_id", "grp", "grp_no"])
}

/// Numbers of items of a task that failed for good, by code.
fn failure_group() -> Table {
    let columns = [
        number("task_id"),
        chars("code", CODE),
        number("n"),
        number("unconfirmed"),
        number("first_at"),
        number("last_at"),
        number("example_idx"),
        text("example"),
    ];
    table("failure_group", columns).key(&["task_id", "code"])
}

/// Packed outputs of one run of a shard. The last segment of a run is rewritten until it is full.
fn result_segment() -> Table {
    let columns = [
        number("task_id"),
        small("shard_no"),
        number("epoch"),
        small("seg_no"),
        number("first_index"),
        number("last_index"),
        number("items"),
        // Size of the outputs before packing.
        number("byte_size"),
        bytes("body"),
        // Name of the bytes in `results.location`, if they are stored there; the body is empty then.
        chars_null("location", NAME),
    ];
    table("result_segment", columns)
        .key(&["task_id", "shard_no", "epoch", "seg_no"])
        .index("order", &["task_id", "shard_no", "first_index"])
        .index("location", &["location"])
}

/// Blocks of items appended to open tasks, one per append.
fn appended() -> Table {
    let columns = [
        number("task_id"),
        number("first_index"),
        // One past its last item.
        number("end_index"),
        // Size of all earlier blocks, so that the waiting bytes are a difference.
        number("bytes_before"),
        number("byte_count"),
        // Hash of the key that came with the block, and of the rows sent.
        chars_null("key_hash", HASH),
        chars("body_hash", HASH),
        bytes("body"),
        number("appended_at"),
        // Kept although it is old: items of it failed for good.
        flag("is_kept"),
    ];
    table("appended", columns)
        .key(&["task_id", "first_index"])
        .unique("key", &["task_id", "key_hash"])
        .index("age", &["is_kept", "appended_at"])
}
