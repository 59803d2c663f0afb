//! Businesses, their access tokens and sign-ins, idempotency keys and hook calls.

use crate::columns::{
    HASH, NAME, SLUG, UUID, bytes, chars, chars_null, chars_unique, number, number_null, sequence_key, small,
    text, text_null,
};
use crate::table::{Table, table};

pub(super) fn tables() -> Vec<Table> {
    vec![business(), token(), sign_in(), idempotency(), outbox(), alert()]
}

/// Businesses: registered consumers of items.
fn business() -> Table {
    let columns = [
        sequence_key("id"),
        chars_unique("slug", SLUG),
        chars_null("display_name", NAME),
        chars_null("pool", SLUG),
        number("revision"),
        text_null("handler"),
        text_null("hooks"),
        text_null("defaults_json"),
        text_null("limits_json"),
        bytes("secrets").null().take(),
        number_null("archived_at"),
        number("version"),
        number("created_at"),
        number("updated_at"),
    ];
    table("business", columns)
}

/// Tokens with which people and programs call the API.
fn token() -> Table {
    let columns = [
        sequence_key("id"),
        chars_unique("token_hash", HASH),
        chars_null("prefix", 16),
        chars("name", NAME),
        chars("role", 16),
        number_null("business_id"),
        chars_null("created_by", NAME),
        number("created_at"),
        number_null("expires_at"),
        number_null("revoked_at"),
    ];
    table("token", columns)
}

/// Sign-ins of browsers that have not ended: a sign-out deletes its row.
fn sign_in() -> Table {
    let columns = [
        sequence_key("id"),
        chars("cookie_hash", HASH),
        number("token_id"),
        // Address of the browser, so that people recognize their own sign-ins.
        chars_null("address", 64),
        number("created_at"),
        number("expires_at"),
    ];
    table("sign_in", columns)
        .unique("cookie", &["cookie_hash"])
        .index("token", &["token_id", "id"])
        .index("expiry", &["expires_at"])
}

/// Requests that carried an idempotency key.
fn idempotency() -> Table {
    let columns = [
        chars("scope", 96),
        chars("key_hash", HASH),
        chars("request_hash", HASH),
        number("task_id"),
        // Session that answers the request; its open keys are free once it is gone.
        chars_null("session_id", UUID),
        // 0 while the first request is being answered.
        small("status"),
        text_null("response"),
        number("created_at"),
    ];
    table("idempotency", columns)
        .key(&["scope", "key_hash"])
        .index("created", &["created_at"])
}

/// Hook calls to deliver, written with the change that causes them.
fn outbox() -> Table {
    let columns = [
        sequence_key("id"),
        // Of a hook; null for a notice.
        number_null("task_id"),
        small("start_no"),
        chars("kind", 32),
        // Name of the alert, and of the event; null for a hook.
        chars_null("alert", SLUG),
        chars_null("about", 190),
        // Id that the receiver sees.
        chars_null("delivery_id", 255),
        text("payload"),
        chars("state", 12),
        number("due_at"),
        small("attempts"),
        text_null("last_error"),
        number_null("expires_at"),
        number("created_at"),
    ];
    table("outbox", columns)
        .index("due", &["state", "due_at"])
        .index("task", &["task_id", "id"])
        .index("alert", &["alert", "id"])
}

/// Alerts, by the names that people gave them.
fn alert() -> Table {
    let columns = [
        chars("name", SLUG),
        text("spec"),
        bytes("secrets").null().take(),
        number("revision"),
        number("created_at"),
        number("updated_at"),
    ];
    table("alert", columns).key(&["name"])
}
