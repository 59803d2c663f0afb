//! The pure core against naive twins, and against files that pin what must never change.

mod capacity;
mod checkpoint;
mod life;
mod lifecycle;

/// Whether generated files are to be written anew (`UPDATE=1`).
#[expect(
    clippy::disallowed_methods,
    reason = "a test's switch, not an option of the program"
)]
fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some()
}
