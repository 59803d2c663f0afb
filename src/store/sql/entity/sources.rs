//! Sources of items, their indexes, and uploaded bytes.

entity! {
    source "source"
    sequence id
    kind: String,
    location_hash: String,
    location: String,
    format: String,
    byte_size: i64,
    modified_ns: i64,
    checksum: i64,
    row_count: i64,
    column_names: String,
    stride: i32,
    part_count: i32,
}

entity! {
    upload "upload"
    sequence id
    source_id: Option<i64>,
    state: String,
    kind: String,
    format: Option<String>,
    byte_size: i64,
    part_count: i32,
    sha256: Option<String>,
    sample: Option<String>,
    created_by: String,
    created_at: i64,
    used_at: i64,
}

entity! {
    source_index "source_index"
    key (source_id: i64, part: i32)
    body: Vec<u8>,
}

entity! {
    upload_chunk "upload_chunk"
    key (source_id: i64, part: i32)
    body: Vec<u8>,
}
