//! Businesses with their tokens, sign-ins, idempotency keys and hook calls, and alerts.

pub mod alerts;
pub mod businesses;
pub mod idempotency;
pub mod outbox;
pub mod sign_ins;
pub mod tokens;
