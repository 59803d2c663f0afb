//! Access: authors of changes, their tokens and sign-ins, and the things that they manage.

pub mod actor;
pub mod audit_object;
pub mod business_store;
pub mod idempotency;
pub mod named_limit_store;
pub mod node_audit;
pub mod sign_in_store;
pub mod token_store;
pub mod vault;
