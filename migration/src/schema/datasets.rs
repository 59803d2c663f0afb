//! Datasets, their generations with lookup keys, and copies for readers.

use crate::columns::{
    NAME, bytes, chars, chars_null, flag, number, number_null, sequence_key, small, text_null,
};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![dataset(), generation(), generation_key(), dataset_sink()]
}

/// Datasets, by the names that readers know: the current generation, and the number of generations kept.
fn dataset() -> Table {
    let columns = [
        sequence_key("id"),
        chars("name", 40),
        number("business_id"),
        small("keep_count"),
        // Number of the last generation that was begun.
        number("last_no"),
        number_null("current_no"),
        number("highest_no"),
        number("publication_no"),
        number_null("published_at"),
        number("version"),
        number("created_at"),
        number("updated_at"),
    ];
    table("dataset", columns)
        .unique("name", &["name"])
        .index("business", &["business_id"])
}

/// Results of one task, under one number. A generation owns the task's result segments from its publication on.
fn generation() -> Table {
    let columns = [
        number("dataset_id"),
        number("no"),
        number("task_id"),
        chars("state", 16),
        flag("pinned"),
        // As JSON.
        text_null("summary"),
        number("results"),
        // Places of the results, needed once the task is gone: `[[shard, end, results], …]`.
        text_null("shards"),
        // Member of the outputs that the keys were taken from, and the claim that wrote them.
        chars_null("key_member", NAME),
        number_null("key_epoch"),
        number_null("publication_no"),
        text_null("why"),
        number("created_at"),
        number_null("published_at"),
    ];
    table("generation", columns)
        .key(&["dataset_id", "no"])
        .index("task", &["task_id"])
        .index("state", &["state"])
}

/// Blocks of key hashes with the indexes of their items, sorted by hash. Blocks of one pass overlap.
fn generation_key() -> Table {
    let columns = [
        number("task_id"),
        number("epoch"),
        number("block_no"),
        number("first_hash"),
        number("last_hash"),
        bytes("body"),
    ];
    table("generation_key", columns)
        .key(&["task_id", "epoch", "block_no"])
        .index("hash", &["task_id", "epoch", "first_hash"])
}

/// Copies of datasets, current and past. A row outlives the dataset until its copy is gone.
fn dataset_sink() -> Table {
    let columns = [
        number("dataset_id"),
        chars("name", 40),
        // False: the copy is to be removed.
        flag("is_on"),
        // True: nothing of the copy is left.
        flag("is_clean"),
        // Publication that readers find, and its generation.
        number_null("publication_no"),
        number_null("generation_no"),
        number_null("copied_at"),
        // Grows with each claim.
        number("epoch"),
        number("lease_until"),
        // Nobody tries before this time.
        number("due_at"),
        small("attempts"),
        text_null("fault"),
        // Time since which the copy is outdated, if not because of the publication alone.
        number("since"),
    ];
    table("dataset_sink", columns)
        .key(&["dataset_id"])
        .index("due", &["is_clean", "due_at"])
}
