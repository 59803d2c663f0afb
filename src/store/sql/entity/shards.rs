//! Shards of tasks, their runs, and daily totals.

macro_rules! shard {
    ($name:ident $($blob:ident: $of:ty)?) => {
        entity! {
            $name "shard"
            key (task_id: i64, shard_no: i32)
            first_index: i64,
            end_index: i64,
            range_end: i64,
            state: String,
            desired: String,
            control_rev: i64,
            run_no: i32,
            epoch: i64,
            claim_id: Option<String>,
            session_id: Option<String>,
            move_to: Option<String>,
            move_until: Option<i64>,
            rate_share: Option<i64>,
            stall_count: i32,
            recoveries: i32,
            last_claim_lw: i64,
            not_before: i64,
            created_at: i64,
            updated_at: i64,
            ckpt_seq: i64,
            watermark: i64,
            high_water: i64,
            horizon: i64,
            horizon_before: i64,
            succeeded: i64,
            skipped: i64,
            failed: i64,
            parked: i64,
            results: i64,
            circuit_since: Option<i64>,
            circuit_probes: Option<i64>,
            day: i64,
            day_succeeded: i64,
            day_skipped: i64,
            day_failed: i64,
            $($blob: $of,)?
        }
    };
}

shard!(shard ckpt_blob: Vec<u8>);
// Most reads don't need the bytes of the checkpoint, which are most of a row.
shard!(shard_head);

entity! {
    run "run"
    key (task_id: i64, shard_no: i32, run_no: i32)
    epoch: i64,
    claim_id: String,
    session_id: String,
    node: Option<String>,
    started_at: i64,
    ended_at: Option<i64>,
    end_reason: Option<String>,
    end_text: Option<String>,
    watermark: i64,
    succeeded: i64,
    skipped: i64,
    failed: i64,
    parked: i64,
}

entity! {
    shard_day "shard_day"
    key (task_id: i64, shard_no: i32, day: i64)
    succeeded: i64,
    skipped: i64,
    failed: i64,
}

entity! {
    business_day "business_day"
    key (business: String, day: i64)
    created: i64,
    finished: i64,
    cancelled: i64,
    succeeded: i64,
    skipped: i64,
    failed: i64,
}
