//! Whether a bench shall measure, or only show that it still runs.
//!
//! `cargo bench` measures. `cargo test --benches` is smoke: it builds without optimisation, sizes are small, and no time
//! is judged, so that every change can run all of them. `cargo bench --bench NAME -- --smoke` is smoke as well.

/// Whether only that is wanted.
pub(crate) fn is_smoke() -> bool {
    let is_given = |wanted: &str| std::env::args().any(|word| word == wanted);
    is_given("--smoke") || !is_given("--bench")
}

/// A size: the full one, or the one of a smoke run.
pub(crate) fn sized<T>(full: T, smoke: T) -> T {
    if is_smoke() { smoke } else { full }
}
