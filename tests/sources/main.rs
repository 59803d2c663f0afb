//! Sources from the outside: what the index pass accepts and refuses, what is read back, what changes are noticed.

mod common;
mod compressed;
mod faults;
mod opening;
mod packed;
mod reading;
mod redrives;
mod spooling;
mod text_lines;
mod uploads;
mod uploads_packed;
