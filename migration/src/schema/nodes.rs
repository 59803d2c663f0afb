//! The store itself and the sessions of the nodes that work on it.

use crate::columns::{NAME, UUID, chars, chars_null, flag, number, number_null, small, text_null};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![meta(), session()]
}

/// Facts about the store, such as its id.
fn meta() -> Table {
    table(
        "meta",
        [chars("name", 32).primary_key().take(), chars("val", NAME)],
    )
}

/// Sessions, one for each life of a node process.
fn session() -> Table {
    let columns = [
        chars("id", UUID).primary_key().take(),
        chars("node", NAME),
        chars("state", 12),
        chars_null("address", NAME),
        chars("version", 64),
        small("ckpt_version_max"),
        text_null("pools"),
        text_null("labels"),
        number_null("capacity"),
        number("hb"),
        number("promise_ms"),
        flag("fenced"),
        // People want the node to be drained; the node reads this with each heartbeat.
        flag("drain"),
        number("started_at"),
    ];
    table("session", columns)
}
