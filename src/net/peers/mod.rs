//! Requests to other nodes over HTTP, with proof of the sender.
//!
//! | part | does |
//! |---|---|
//! | `seal` | HMAC-SHA256 over everything that matters, with a key that comes from the one which seals secrets |
//! | `client` | one exchange with a peer: bounded in time and size, verified both ways |
//! | `shared` | one question at a time: who asks the same shares the answer; who didn't answer has a rest |

mod client;
mod seal;
mod shared;

pub use client::{PeerClient, PeerTls};
pub use seal::PeerKey;
pub use shared::Shared;
