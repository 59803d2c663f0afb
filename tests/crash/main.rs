//! Real `windrow run` processes that are killed, stopped and fed with trouble, and what their businesses saw of it.
//!
//! Random moments come from a seed, which is printed: `CRASH_SEED=123 cargo nextest run --test crash` plays it again
//! (as far as real processes can).

mod business;
mod days;
mod diary;
mod disk;
mod kills;
mod lines;
mod pace;
mod poison;
mod process;
mod results;
mod rng;
mod sources;
mod stops;
mod sums;
mod vendor;
mod workers;

use rng::Rng;

/// The moments of one test.
#[expect(
    clippy::disallowed_methods,
    reason = "a seed to play again comes from the environment"
)]
fn dice(test: &str) -> Rng {
    let wanted = std::env::var("CRASH_SEED")
        .ok()
        .map(|text| text.parse().expect("a number"));
    let seed =
        wanted.unwrap_or_else(|| std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), test));
    eprintln!("replay: CRASH_SEED={seed} cargo nextest run --test crash {test}");
    Rng(seed)
}
