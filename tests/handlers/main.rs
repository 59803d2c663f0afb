//! Handlers against real peers: HTTP servers and raw sockets on free ports.

mod http_faults;
mod http_replies;
mod http_requests;
mod http_tls;
mod support_server;
