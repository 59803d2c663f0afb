//! Failed items, results of items, and appended items.

entity! {
    item "item"
    key (task_id: i64, idx: i64)
    shard_no: i32,
    state: String,
    attempts: i32,
    charged: Option<i64>,
    due_at: i64,
    code: Option<String>,
    message: Option<String>,
    output: Option<String>,
    history: Option<String>,
    grp: Option<String>,
    grp_no: Option<i64>,
    unconfirmed: Option<i64>,
    others_answered: Option<i64>,
    epoch: i64,
    first_at: i64,
    last_at: i64,
}

entity! {
    failure_group "failure_group"
    key (task_id: i64, code: String)
    n: i64,
    unconfirmed: i64,
    first_at: i64,
    last_at: i64,
    example_idx: i64,
    example: String,
}

entity! {
    result_segment "result_segment"
    key (task_id: i64, shard_no: i32, epoch: i64, seg_no: i32)
    first_index: i64,
    last_index: i64,
    items: i64,
    byte_size: i64,
    body: Vec<u8>,
    location: Option<String>,
}

entity! {
    appended "appended"
    key (task_id: i64, first_index: i64)
    end_index: i64,
    bytes_before: i64,
    byte_count: i64,
    key_hash: Option<String>,
    body_hash: String,
    body: Vec<u8>,
    appended_at: i64,
    is_kept: bool,
}
