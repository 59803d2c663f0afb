//! `windrow serve` as its users meet it: a real process, its façade over HTTP, and a scripted business.

#![allow(clippy::unwrap_used, reason = "tests")]

mod access;
mod business;
mod businesses;
mod callbacks;
mod hooks;
mod hostile_requests;
mod life;
mod line;
mod secrets;
mod stops;
mod storm;
mod support;
mod tasks;
