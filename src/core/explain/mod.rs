//! Explanation of a task that is slower than its rate: every permit of a span has one cause, and each cause an
//! advice.
//!
//! Pure arithmetic over what was counted. The sums are exact, in millionths of an item; the numbers shown to people
//! (items per second, slots by Little's law, predictions) are estimates.

mod advice;
mod autopilot;
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

pub use autopilot::held as held_by_autopilot;
pub use causes::{Cause, CauseKind};
pub use facts::{
    Facts, Head, HeldBack, Latency, Live, SharedLimit, Silent, Spell, SpentAllowance, Standing, Takeover,
};
pub use hints::usage as held_by_usage;
pub use past::{Past, Ran, RecordedRun, Stay, Stood, Unheard};
pub use text::{rate_like, rate_text};
pub use windrow_words::counted;

use super::settings::RateLimit;
use crate::settings::table::TuningPatch;
use crate::stats::stall::StallReason;
use crate::task::lifecycle::Status;

/// Share of the target below which a shortfall is not reported: the task keeps its rate. The guarantee is 99 %, and over
/// a minute the last items are still under way.
pub const MISSING_MIN: f64 = 0.02;
/// Stop reason of a task whose deadline has passed.
pub const LATE: &str = "deadline";
/// Share of the shortfall below which a cause gets no advice.
const SHARE_MIN: f64 = 0.05;
const ADVICES_MAX: usize = 4;

/// Explanation of a task's pace over a span.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Span that the explanation covers.
    pub covered: Duration,
    /// Permits that the rate granted in the span, or `None` if no rate limits the task or it is not meant to run.
    /// Unit: millionths of an item.
    pub target: Option<i64>,
    /// Attempts sent in the span; a rate limits attempts. Unit: millionths of an item.
    pub actual: i64,
    /// Causes of lost permits, largest first. Empty without a target.
    pub causes: Vec<Cause>,
    /// Attempts after the first of their item: they lose no permit, but fewer items settle.
    pub repeats: Cause,
    /// Waits of a task without a rate, each with its share of the time, largest first. Unit: millionths.
    pub waits: Vec<(StallReason, u32)>,
    /// Sentences for people, the most important first.
    pub why: Vec<Message>,
    /// Remedies, the best first.
    pub advice: Vec<Advice>,
}

/// Remedy for a cause, or the reason why there is no remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// Cause that the advice is about.
    pub about: CauseKind,
    /// Sentence for people that says what to do.
    pub text: Message,
    /// Settings to change, if a change helps.
    pub change: Option<Box<TuningPatch>>,
    /// Attempts per second expected after the change.
    pub predicted: Option<f64>,
    /// Reason why no setting helps, or helps only in part.
    pub hindrance: Option<Message>,
}

impl Explanation {
    /// Converts an amount over the span to items per second.
    pub fn per_second(&self, micros: i64) -> f64 {
        text::per_second(micros, self.covered)
    }

    /// Returns the sum of the causes, or `None` without a target: the target less the attempts sent, corrected by what
    /// the buckets gained or gave. Unit: millionths of an item.
    pub fn missing(&self) -> Option<i64> {
        let sum = || self.causes.iter().map(|cause| cause.micros).sum();
        self.target.map(|_| sum())
    }
}

/// Explains the pace of a task over the span of the facts.
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
    /// Returns true if the shortfall is too small to report.
    pub fn keeps_rate(&self) -> bool {
        !self.is_much(self.missing().unwrap_or(0))
    }

    fn is_much(&self, micros: i64) -> bool {
        micros > 0 && micros as f64 >= MISSING_MIN * self.target.unwrap_or(0) as f64
    }

    /// Returns the causes worth an advice: without them the task would be noticeably faster.
    fn curable_causes(&self) -> impl Iterator<Item = &Cause> {
        self.main_causes().filter(|cause| self.is_much(cause.micros))
    }

    /// Returns the causes worth mentioning, and the repeats, largest first.
    fn main_causes(&self) -> impl Iterator<Item = &Cause> {
        let (is_slow, missing) = (!self.keeps_rate(), self.missing().unwrap_or(0));
        let counts = move |cause: &&Cause| is_slow && cause.micros as f64 >= SHARE_MIN * missing as f64;
        let repeats = Some(&self.repeats).filter(|repeats| self.is_much(repeats.micros));
        let mut main: Vec<&Cause> = self.causes.iter().filter(counts).chain(repeats).collect();
        main.sort_by_key(|cause| std::cmp::Reverse(cause.micros));
        main.into_iter()
    }
}
