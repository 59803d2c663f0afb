//! Advice against a cause, with the settings to change.

mod limits;
mod others;

use windrow_words::Message;

use super::causes::{Cause, CauseKind};
use super::facts::Facts;
use super::why::KNOWN_MIN;
use super::{ADVICES_MAX, Advice, Explanation};
use crate::settings::table::TuningPatch;
use crate::stats::stall::StallReason;
use crate::task::lifecycle::Status;

/// Returns the advice against the main causes, the largest first.
pub(super) fn of(facts: &Facts, explanation: &Explanation) -> Vec<Advice> {
    if facts.standing.status != Status::Running {
        return vec![others::standing(facts)];
    }
    if facts.live.is_none() || facts.covered < KNOWN_MIN {
        return Vec::new();
    }
    if explanation.target.is_none() {
        return explanation
            .waits
            .first()
            .map(|(reason, _)| unpaced(*reason, facts))
            .into_iter()
            .collect();
    }
    let mut advice: Vec<Advice> = explanation
        .curable_causes()
        // A node that has just taken over a task is late because of that, not for lack of time.
        .filter(|cause| {
            cause.kind != CauseKind::Late || facts.taken_over.is_none() || facts.stood_still.is_some()
        })
        .flat_map(|cause| about(cause, facts, explanation))
        .collect();
    // Until the handler answers again nothing else helps.
    let is_down = facts.handler.state.outage.is_some() && !facts.handler.is_up_elsewhere;
    if is_down && advice.iter().any(|advice| advice.about == HANDLER_DOWN) {
        advice.retain(|advice| advice.about == HANDLER_DOWN);
    }
    advice.truncate(ADVICES_MAX);
    let actual = explanation.per_second(explanation.actual);
    let is_lower = |rate: Option<f64>| rate.is_some_and(|rate| rate < actual);
    advice.retain(|advice| !is_lower(advice.predicted) || advice.about == BACK_PRESSURE);
    for advice in advice.iter_mut().filter(|advice| is_lower(advice.predicted)) {
        advice.predicted = None;
    }
    advice
}

const HANDLER_DOWN: CauseKind = CauseKind::Stall(StallReason::HandlerDown);
/// Cause against which a lower rate helps.
const BACK_PRESSURE: CauseKind = CauseKind::Stall(StallReason::BackPressure);

/// Cause, and the effect of curing it.
struct Case<'a> {
    facts: &'a Facts,
    kind: CauseKind,
    /// Target rate; this and `cured` are in items per second.
    rate: f64,
    cured: f64,
}

impl Case<'_> {
    fn change(&self, text: Message, change: TuningPatch) -> Advice {
        let (change, predicted) = (Some(Box::new(change)), Some(self.cured));
        Advice {
            about: self.kind,
            text,
            change,
            predicted,
            hindrance: None,
        }
    }

    fn cant(&self, text: Message, hindrance: Message) -> Advice {
        cant(self.kind, text, hindrance)
    }
}

/// Builds a change of the settings.
fn patch(set: impl FnOnce(&mut TuningPatch)) -> TuningPatch {
    let mut patch = TuningPatch::default();
    set(&mut patch);
    patch
}

fn cant(about: CauseKind, text: Message, hindrance: Message) -> Advice {
    Advice {
        about,
        text,
        change: None,
        predicted: None,
        hindrance: Some(hindrance),
    }
}

fn about(cause: &Cause, facts: &Facts, explanation: &Explanation) -> Vec<Advice> {
    // Permits lost to this cause come back; the others stay missing.
    let cured = explanation.per_second(explanation.actual.saturating_add(cause.micros));
    let case = Case {
        facts,
        kind: cause.kind,
        rate: facts.rate().unwrap_or(0.0),
        cured,
    };
    match cause.kind {
        CauseKind::Stall(reason) if facts.unsaved_behind(reason).is_some() => vec![others::no_writes(&case)],
        CauseKind::Stall(StallReason::WindowFull) => limits::window(&case),
        CauseKind::Stall(StallReason::Concurrency) => vec![limits::concurrency(&case)],
        CauseKind::Stall(StallReason::BackPressure) => vec![others::back_pressure(&case)],
        CauseKind::Stall(StallReason::Unsaved | StallReason::ResultsUnsaved) => vec![limits::unsaved(&case)],
        CauseKind::Stall(StallReason::ParkedFull) => vec![limits::parked(&case)],
        CauseKind::Stall(StallReason::HandlerDown) if facts.is_handler_back() => {
            vec![others::passing(&case)]
        }
        CauseKind::Stall(reason) => vec![others::stall(&case, reason)],
        CauseKind::Retries => vec![others::retries(&case)],
        CauseKind::Late => vec![match &facts.stood_still {
            Some((node, _)) => others::stood_still(&case, node),
            None => limits::late(&case),
        }],
        CauseKind::Unknown => vec![others::unknown(&case)],
        CauseKind::Returned | CauseKind::Slowed | CauseKind::NoRoom | CauseKind::NotRunning(_) => {
            vec![others::passing(&case)]
        }
    }
}

/// Advises on making a task without a rate faster.
fn unpaced(reason: StallReason, facts: &Facts) -> Advice {
    let kind = CauseKind::Stall(reason);
    // No target is set, so twice the present speed is one step.
    let rate = 2.0 * facts.attempts();
    let case = Case {
        facts,
        kind,
        rate,
        cured: rate,
    };
    let mut advice = match reason {
        reason if facts.unsaved_behind(reason).is_some() => others::no_writes(&case),
        StallReason::Concurrency => limits::concurrency(&case),
        StallReason::WindowFull => match limits::window(&case).into_iter().next() {
            Some(advice) => advice,
            None => others::stall(&case, reason),
        },
        StallReason::BackPressure => others::back_pressure(&case),
        StallReason::Unsaved | StallReason::ResultsUnsaved => limits::unsaved(&case),
        StallReason::ParkedFull => limits::parked(&case),
        reason => others::stall(&case, reason),
    };
    advice.predicted = None;
    advice
}
