//! Businesses, their access tokens and sign-ins, idempotency keys and hook calls.

entity! {
    business "business"
    sequence id
    slug: String,
    display_name: Option<String>,
    pool: Option<String>,
    revision: i64,
    handler: Option<String>,
    hooks: Option<String>,
    defaults_json: Option<String>,
    limits_json: Option<String>,
    secrets: Option<Vec<u8>>,
    archived_at: Option<i64>,
    version: i64,
    created_at: i64,
    updated_at: i64,
}

entity! {
    token "token"
    sequence id
    token_hash: String,
    prefix: Option<String>,
    name: String,
    role: String,
    business_id: Option<i64>,
    created_by: Option<String>,
    created_at: i64,
    expires_at: Option<i64>,
    revoked_at: Option<i64>,
}

entity! {
    sign_in "sign_in"
    sequence id
    cookie_hash: String,
    token_id: i64,
    address: Option<String>,
    created_at: i64,
    expires_at: i64,
}

entity! {
    idempotency "idempotency"
    key (scope: String, key_hash: String)
    request_hash: String,
    task_id: i64,
    session_id: Option<String>,
    status: i32,
    response: Option<String>,
    created_at: i64,
}

entity! {
    outbox "outbox"
    sequence id
    task_id: Option<i64>,
    start_no: i32,
    kind: String,
    alert: Option<String>,
    about: Option<String>,
    delivery_id: Option<String>,
    payload: String,
    state: String,
    due_at: i64,
    attempts: i32,
    last_error: Option<String>,
    expires_at: Option<i64>,
    created_at: i64,
}

entity! {
    alert "alert"
    key (name: String)
    spec: String,
    secrets: Option<Vec<u8>>,
    revision: i64,
    created_at: i64,
    updated_at: i64,
}
