//! Audit entries and the data log.

entity! {
    audit "audit"
    sequence id
    at_ms: i64,
    actor: String,
    role: Option<String>,
    source: String,
    action: String,
    task_id: Option<i64>,
    business_id: Option<i64>,
    object_kind: Option<String>,
    object_name: Option<String>,
    reason: Option<String>,
    before_json: Option<String>,
    after_json: Option<String>,
    request_id: Option<String>,
}

entity! {
    data_log "data_log"
    sequence id
    task_id: i64,
    shard_no: i32,
    at_ms: i64,
    idx: Option<i64>,
    origin: String,
    level: i32,
    code: Option<String>,
    message: String,
    extra: Option<String>,
}

entity! {
    data_log_drop "data_log_drop"
    key (task_id: i64, reason: String)
    n: i64,
}
