//! Private servers for tests: PostgreSQL, MariaDB and Redis on free ports, each with a directory of its own.
//!
//! Included by `#[path = "../servers/mod.rs"] mod servers;`. A server dies when its handle is dropped, and its
//! directory goes with it; it also dies with the thread that started it (the kernel sees to that), so none is started on
//! a thread of tokio's pool, which ends when it is idle. A database server's first data is made once and copied (`template`). Every server can be killed, halted, woken and restarted on the
//! same port with the same data, which is what faults are made of. A missing program is a panic that
//! names the package: tests never skip silently.

#![allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "each test binary uses its own part"
)]

mod database;
mod mariadb;
mod postgres;
mod process;
mod redis;
mod server;
mod template;

pub use database::Database;
pub use mariadb::Mariadb;
pub use postgres::Postgres;
pub use process::{Dir, free_port};
pub use redis::{Redis, RedisOptions};
