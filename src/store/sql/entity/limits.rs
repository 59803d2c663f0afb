//! Limits shared by tasks on all nodes.

entity! {
    named_limit "named_limit"
    key (name: String)
    rate: Option<String>,
    concurrency: Option<i64>,
    metering: Option<String>,
    revision: i64,
    created_at: i64,
    updated_at: i64,
}

entity! {
    shared_limit "shared_limit"
    key (name: String)
    round_no: i64,
    units: Option<String>,
}

entity! {
    limit_part "limit_part"
    key (name: String, session_id: String)
    seat: i64,
    seq: i64,
    rate: Option<i64>,
    burst: Option<i64>,
    slots: Option<i64>,
    demand: String,
    units: Option<String>,
}

entity! {
    found "found"
    key (task_id: i64, shard_no: i32)
    business: String,
    service: String,
    news: String,
    told_at: i64,
}
