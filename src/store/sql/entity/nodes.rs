//! The store itself and the sessions of the nodes that work on it.

entity! {
    meta "meta"
    key (name: String)
    val: String,
}

entity! {
    session "session"
    key (id: String)
    node: String,
    state: String,
    address: Option<String>,
    version: String,
    ckpt_version_max: i32,
    pools: Option<String>,
    labels: Option<String>,
    capacity: Option<i64>,
    hb: i64,
    promise_ms: i64,
    fenced: bool,
    drain: bool,
    started_at: i64,
}
