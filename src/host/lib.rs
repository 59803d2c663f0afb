//! Access to the machine: time, secrets, and the state directory. Everything else in Windrow receives them.

pub mod clock;
pub mod secret_file;
pub mod start_token;
pub mod state_dir;
pub mod vault;
