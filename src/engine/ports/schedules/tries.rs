//! How often the task of a fire is tried to be made, and what is said of one that was given up.

/// How often a fire's task is tried to be made, whatever ended the tries: a source may be so large that it ends each node that
/// reads it.
pub const FIRE_TRIES_MAX: u32 = 5;
/// A fire that was tried so often is made while its node makes no other: what ends the node with it isn't the fault of those.
pub const FIRE_ALONE_FROM: u32 = 3;

/// What is said of a fire whose tries all ended without an answer, or the last of them; `before` is what an earlier one
/// came to.
pub fn given_up(tries: u32, before: Option<&str>) -> String {
    let end = "the node ended while it made the task, or couldn't go on";
    match before {
        None => format!("given up after {tries} tries: each time {end}"),
        Some(before) => format!("given up after {tries} tries: {end}; an earlier try came to: {before}"),
    }
}
