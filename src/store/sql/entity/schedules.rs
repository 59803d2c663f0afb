//! Schedules with their fires.

entity! {
    schedule "schedule"
    sequence id
    business_id: i64,
    name: String,
    cron: Option<String>,
    zone: Option<String>,
    every_ms: Option<i64>,
    start_at: Option<i64>,
    end_at: Option<i64>,
    jitter_ms: i64,
    overlap: String,
    missed: String,
    template: String,
    is_guarded: bool,
    paused: bool,
    next_fire: Option<i64>,
    next_due: Option<i64>,
    armed_at: i64,
    created_by: String,
    revision: i64,
    created_at: i64,
    updated_at: i64,
}

entity! {
    fire "fire"
    key (schedule_id: i64, fire_time: i64)
    kind: String,
    outcome: String,
    task_id: Option<i64>,
    last_time: i64,
    fire_count: i64,
    publishes: bool,
    decided_at: i64,
    settled_at: Option<i64>,
    lease_until: i64,
    attempts: i32,
    note: Option<String>,
}
