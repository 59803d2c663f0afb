//! Datasets, their generations with lookup keys, and copies for readers.

entity! {
    dataset "dataset"
    sequence id
    name: String,
    business_id: i64,
    keep_count: i32,
    last_no: i64,
    current_no: Option<i64>,
    highest_no: i64,
    publication_no: i64,
    published_at: Option<i64>,
    version: i64,
    created_at: i64,
    updated_at: i64,
}

entity! {
    generation "generation"
    key (dataset_id: i64, no: i64)
    task_id: i64,
    state: String,
    pinned: bool,
    summary: Option<String>,
    results: i64,
    shards: Option<String>,
    key_member: Option<String>,
    key_epoch: Option<i64>,
    publication_no: Option<i64>,
    why: Option<String>,
    created_at: i64,
    published_at: Option<i64>,
}

entity! {
    generation_key "generation_key"
    key (task_id: i64, epoch: i64, block_no: i64)
    first_hash: i64,
    last_hash: i64,
    body: Vec<u8>,
}

entity! {
    dataset_sink "dataset_sink"
    key (dataset_id: i64)
    name: String,
    is_on: bool,
    is_clean: bool,
    publication_no: Option<i64>,
    generation_no: Option<i64>,
    copied_at: Option<i64>,
    epoch: i64,
    lease_until: i64,
    due_at: i64,
    attempts: i32,
    fault: Option<String>,
    since: i64,
}
