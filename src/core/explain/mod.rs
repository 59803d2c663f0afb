//! Explanation of a task that is slower than its rate: every permit of a span has one cause, and each cause an
//! advice.
//!
//! Pure arithmetic over what was counted. The sums are exact, in millionths of an item; the numbers shown to people
//! (items per second, slots by Little's law, predictions) are estimates.

mod advice;
mod causes;
mod facts;
mod hints;
mod past;
mod text;
mod why;

#[cfg(test)]
mod tests;

use std::time::Duration;

use windrow_words::Message;

pub use causes::{Cause, CauseKind};
pub use facts::{Facts, Head, HeldBack, Latency, Live, SharedLimit, Silent, Spell, Standing, Takeover};
pub use past::{Past, Ran, RecordedRun, Stay, Stood, Unheard};
pub use text::{rate_like, rate_text};
pub use windrow_words::counted;

use super::settings::RateLimit;
use crate::settings::table::TuningPatch;
use crate::stats::stall::StallReason;
use crate::task::lifecycle::Status;

/// What is missing below this share of the target is not worth a word: the task keeps its rate. (The promise is 99 %; over
/// a minute the last items are still on their way.)
pub const MISSING_MIN: f64 = 0.02;
/// The reason of a task that rests, and whose deadline is over.
pub const LATE: &str = "deadline";
/// A cause below this share of what is missing gets no advice of its own.
const SHARE_MIN: f64 = 0.05;
const ADVICES_MAX: usize = 4;

/// Why a task is as fast as it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The time that this is about.
    pub covered: Duration,
    /// What the rate gave in it; none while no rate limits the task, or it isn't to run. Unit: millionths of an item.
    pub target: Option<i64>,
    /// Attempts that were sent in it, as everywhere: a rate limits those. Unit: millionths of an item.
    pub actual: i64,
    /// Permits that were lost, largest first. Empty without a target.
    pub causes: Vec<Cause>,
    /// Attempts beyond the first of their item: no permit is lost for them, and fewer items settle.
    pub repeats: Cause,
    /// Of a task without a rate: what it waits for, with the share of its time. Unit: millionths; largest first.
    pub waits: Vec<(StallReason, u32)>,
    /// One or a few sentences.
    pub why: Vec<Message>,
    /// What would help, the best first.
    pub advice: Vec<Advice>,
}

/// Something that would help, or why nothing does.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// What it is about.
    pub about: CauseKind,
    /// A sentence.
    pub text: Message,
    /// The settings to change, if that is what helps.
    pub change: Option<Box<TuningPatch>>,
    /// Attempts that would then be sent. Unit: items per second.
    pub predicted: Option<f64>,
    /// Why no setting helps, or not all the way.
    pub hindrance: Option<Message>,
}

impl Explanation {
    /// An amount over the span as items per second.
    pub fn per_second(&self, micros: i64) -> f64 {
        text::per_second(micros, self.covered)
    }

    /// Sum of the causes; none without a target. The target less what was sent, but for what the buckets gained or gave.
    /// Unit: millionths of an item.
    pub fn missing(&self) -> Option<i64> {
        let sum = || self.causes.iter().map(|cause| cause.micros).sum();
        self.target.map(|_| sum())
    }
}

/// Explains a span.
pub fn explain(facts: &Facts) -> Explanation {
    // A task that isn't to run misses nothing.
    let rests = matches!(
        facts.standing.status,
        Status::Created | Status::Stopped | Status::Finished | Status::Cancelled
    );
    let is_paced = !rests && matches!(facts.tuning.rate, RateLimit::Limited(_));
    let causes = if is_paced { causes::of(facts) } else { Vec::new() };
    let mut explanation = Explanation {
        covered: facts.covered,
        target: is_paced.then(|| causes::target(facts)),
        actual: causes::signed(facts.permits.sent()),
        causes,
        repeats: causes::repeats(facts),
        waits: if is_paced || rests {
            Vec::new()
        } else {
            facts.waits()
        },
        why: Vec::new(),
        advice: Vec::new(),
    };
    explanation.why = why::of(facts, &explanation);
    explanation.advice = advice::of(facts, &explanation);
    explanation
}

impl Explanation {
    /// Tells whether so little is missing that nothing is said of it.
    pub fn keeps_rate(&self) -> bool {
        !self.is_much(self.missing().unwrap_or(0))
    }

    fn is_much(&self, micros: i64) -> bool {
        micros > 0 && micros as f64 >= MISSING_MIN * self.target.unwrap_or(0) as f64
    }

    /// Those that are worth an advice: without them the task would be noticeably faster.
    fn curable_causes(&self) -> impl Iterator<Item = &Cause> {
        self.main_causes().filter(|cause| self.is_much(cause.micros))
    }

    /// Causes that are worth a word and repeats, largest first.
    fn main_causes(&self) -> impl Iterator<Item = &Cause> {
        let (is_slow, missing) = (!self.keeps_rate(), self.missing().unwrap_or(0));
        let counts = move |cause: &&Cause| is_slow && cause.micros as f64 >= SHARE_MIN * missing as f64;
        let repeats = Some(&self.repeats).filter(|repeats| self.is_much(repeats.micros));
        let mut main: Vec<&Cause> = self.causes.iter().filter(counts).chain(repeats).collect();
        main.sort_by_key(|cause| std::cmp::Reverse(cause.micros));
        main.into_iter()
    }
}
