//! Does one piece of work so often, for `scripts/instructions.sh`, which counts the instructions.
//!
//! `instructions item|batch N` drives N items through a node over the store in memory, one a call or 64;
//! `instructions call ADDRESS N` makes N HTTP calls, one after the other; `instructions serve` answers them, in a process of its
//! own, whose instructions nobody counts. Each happens on one thread, items on a clock that jumps whenever nobody works, so that
//! the same work is the same instructions, but for the seeds of hash tables and for how many bytes the kernel gives at a time.

#![allow(clippy::unwrap_used, reason = "a measurement ends where something is wrong")]
#![allow(unreachable_pub, reason = "a program exports nothing")]

mod call;
// The clock of the program asks the kernel's page of the time in a way that valgrind doesn't know.
#[path = "../supervision/clock.rs"]
mod clock;
mod engine;
#[path = "../../benches/shared/run.rs"]
mod run;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["item", count] => engine::run(count.parse().unwrap(), 1),
        ["batch", count] => engine::run(count.parse().unwrap(), 64),
        ["call", address, count] => call::run(address, count.parse().unwrap()),
        ["serve"] => call::serve(),
        _ => panic!("instructions item|batch N, call ADDRESS N, or serve"),
    }
}
