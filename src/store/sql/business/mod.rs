//! Businesses, tokens, and what is owed to both.

pub mod businesses;
pub mod idempotency;
pub mod outbox;
pub mod sign_ins;
pub mod tokens;
