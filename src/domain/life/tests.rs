//! What commands make of a task, without a store.
