//! Handlers against real counterparts: HTTP servers and raw sockets on free ports, worker processes, Rust code.

#![allow(
    clippy::disallowed_methods,
    reason = "tests measure real time and pass the environment on"
)]

#[path = "../servers/authority.rs"]
mod authority;
mod command_answers;
mod command_endings;
mod command_faults;
mod command_hello;
mod command_support;
mod costs;
mod exec_ends;
mod exec_processes;
mod exec_support;
mod http_contract;
mod http_faults;
mod http_hooks;
mod http_mtls;
mod http_proxy;
mod http_replies;
mod http_requests;
mod http_tls;
mod limits;
mod requests;
mod rust_handler;
mod support_server;
