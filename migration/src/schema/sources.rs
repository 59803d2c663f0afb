//! Sources of items, their indexes, and uploaded bytes.

use crate::columns::{
    HASH, NAME, bytes, chars, chars_null, number, number_null, sequence_key, small, text, text_null,
};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![source(), upload(), parts("source_index"), parts("upload_chunk")]
}

/// Sources that have been counted and indexed.
fn source() -> Table {
    let columns = [
        sequence_key("id"),
        chars("kind", 16),
        chars("location_hash", HASH),
        text("location"),
        text("format"),
        number("byte_size"),
        number("modified_ns"),
        number("checksum"),
        number("row_count"),
        text("column_names"),
        small("stride"),
        small("part_count"),
    ];
    table("source", columns).unique("location", &["location_hash"])
}

/// Sources that were uploaded to the API.
fn upload() -> Table {
    let columns = [
        sequence_key("id"),
        // Number of its index, once it is ready; chunks are stored under the upload's own id.
        number_null("source_id"),
        chars("state", 12),
        chars("kind", 16),
        text_null("format"),
        number("byte_size"),
        small("part_count"),
        chars_null("sha256", HASH),
        text_null("sample"),
        chars("created_by", NAME),
        number("created_at"),
        number("used_at"),
    ];
    table("upload", columns)
}

/// Bytes of a source in parts: its block index, or the upload itself.
fn parts(name: &'static str) -> Table {
    let columns = [number("source_id"), small("part"), bytes("body")];
    table(name, columns).key(&["source_id", "part"])
}
