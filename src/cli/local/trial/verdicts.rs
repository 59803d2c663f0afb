//! Formats replies for people, and judges whether the handler keeps the contract.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::table::human::{self, span};
use windrow_core::items::output::Output;
use windrow_core::items::verdict::{Failure, FailureClass, Outcome, RetryAdvice, cut};
use windrow_core::template::TEMPLATE_VALUE;
use windrow_engine::ports::handling::handler::{CallFailure, ItemVerdict, Reply};

/// Largest part of an output that is printed. Unit: bytes.
const OUTPUT_SHOWN_MAX: usize = 200;

/// Result of one attempt of an item.
pub(super) struct ItemReport {
    pub(super) index: u64,
    pub(super) text: String,
    pub(super) took: Duration,
    /// Set if another attempt is due, with the wait if the handler named one.
    pub(super) retry: Option<Option<Duration>>,
    /// True if the answer could be understood.
    understood: bool,
    /// True if any answer arrived, understood or not.
    answered: bool,
    /// True if the call can't have reached the handler.
    unreached: bool,
    /// Violation of the contract, if there was one.
    flaw: Option<Failure>,
}

/// Converts a reply to one report for each item of the call.
pub(super) fn read(items: &[u64], reply: Reply, took: Duration) -> Vec<ItemReport> {
    let said = |index: u64, text: String| ItemReport {
        index,
        text,
        took,
        retry: None,
        understood: true,
        answered: true,
        unreached: false,
        flaw: None,
    };
    match reply {
        Reply::AllOk => {
            let succeeded = |index: &u64| said(*index, "✓ succeeded".to_owned());
            items.iter().map(succeeded).collect()
        }
        Reply::Items(replies) => {
            let verdicts = replies.verdicts.into_iter();
            verdicts
                .map(|(index, verdict)| item(|text| said(index.0, text), verdict))
                .collect()
        }
        Reply::Failed(failure) => {
            let failed = |index: &u64| whole(said(*index, String::new()), &failure);
            items.iter().map(failed).collect()
        }
        Reply::Told(told) => read(items, told.reply, took),
    }
}

/// Returns the output of an item, cut to fit a line.
fn output_text(output: &Output) -> String {
    match output {
        Output::Json(json) => cut(json, OUTPUT_SHOWN_MAX),
        Output::TooLarge(bytes) => format!("(output of {bytes} bytes: too large to keep)"),
    }
}

/// Sign of an item that failed for good.
const FAILED: &str = "✗ failed";

/// Failure codes of items that got no answer.
const NO_ANSWER: [&str; 4] = ["TIMEOUT", "WORKER_CRASH", "WORKER_HUNG", "WORKER_RESTARTED"];

fn item(said: impl Fn(String) -> ItemReport, verdict: ItemVerdict) -> ItemReport {
    match verdict {
        ItemVerdict::Settled(Outcome::Succeeded) => said("✓ succeeded".to_owned()),
        ItemVerdict::SucceededWith(output) => said(format!("✓ succeeded {}", output_text(&output))),
        ItemVerdict::Settled(Outcome::Skipped) => said("– skipped".to_owned()),
        ItemVerdict::Failed {
            failure,
            advice: RetryAdvice::Fail,
        } => said(format!("{FAILED} {}", told(&failure))),
        ItemVerdict::Unclear(failure) => ItemReport {
            retry: Some(None),
            ..said(format!("↻ retry {}", told(&failure)))
        },
        ItemVerdict::Failed {
            failure,
            advice: RetryAdvice::Retry { after },
        } => {
            // These codes are the platform's own and mean that the item got no answer.
            let understood = !NO_ANSWER.contains(&failure.code.as_ref());
            ItemReport {
                retry: Some(after),
                understood,
                answered: understood,
                ..said(format!(
                    "↻ retry {}{}",
                    told(&failure),
                    wait_text(after).unwrap_or_default()
                ))
            }
        }
    }
}

fn not_sent(said: ItemReport) -> ItemReport {
    ItemReport {
        text: "✗ not sent".to_owned(),
        understood: false,
        answered: false,
        ..said
    }
}

fn whole(said: ItemReport, failure: &CallFailure) -> ItemReport {
    let fenced = Failure::new(
        "FENCED",
        "the response says that a newer run exists, but none runs here",
    );
    let is_of = |codes: &str| matches!(failure, CallFailure::Failed { failure, .. } if failure.code.starts_with(codes));
    // A program's exit code is its answer.
    let is_exit = is_of("EXIT_");
    let (sign, why, is_flaw, retry) = match failure {
        CallFailure::Failed { failure, .. } if is_exit => ("↻ retry", failure, false, Some(None)),
        CallFailure::Failed { failure, after, .. } => ("↻ failed", failure, false, Some(*after)),
        CallFailure::BackPressure { after, failure } => ("↻ busy", failure, false, Some(*after)),
        CallFailure::Final(failure) | CallFailure::Unsendable(failure) => (FAILED, failure, false, None),
        CallFailure::BadReply(failure) => ("✗ invalid response:", failure, true, None),
        CallFailure::Rejected(failure) | CallFailure::Unstarted(failure) => {
            ("✗ refused:", failure, true, None)
        }
        CallFailure::Gone(failure) => ("✗ gone:", failure, true, None),
        CallFailure::Fenced => ("✗ refused:", &fenced, true, None),
        CallFailure::NotSent => return not_sent(said),
    };
    let is_verdict = matches!(failure, CallFailure::Final(_) | CallFailure::BackPressure { .. });
    let understood = is_exit || is_verdict;
    let unreached = matches!(
        failure,
        CallFailure::Failed {
            class: FailureClass::Unreachable,
            ..
        }
    );
    ItemReport {
        text: format!(
            "{sign} {}{}",
            told(why),
            wait_text(retry.flatten()).unwrap_or_default()
        ),
        flaw: is_flaw.then(|| why.clone()),
        retry,
        understood,
        answered: understood || is_of("HTTP_"),
        unreached,
        ..said
    }
}

fn told(failure: &Failure) -> String {
    format!("{} {}", failure.code, failure.message)
}

fn wait_text(after: Option<Duration>) -> Option<String> {
    after.map(|after| format!(" (after {})", span(after)))
}

/// Statistics over all calls of a trial.
#[derive(Default)]
pub(super) struct Tally {
    /// True if the handler is a plain API that doesn't know the contract.
    is_request: bool,
    latencies: Vec<Duration>,
    flaws: Vec<Failure>,
    understood: bool,
    answered: bool,
    reached: bool,
    last: Option<String>,
    items: BTreeSet<u64>,
    /// Items without a result so far, with the last report of each.
    undone: BTreeMap<u64, String>,
    /// Items that failed for good.
    failed: BTreeSet<u64>,
}

impl Tally {
    /// Creates an empty tally.
    pub(super) fn of(is_request: bool) -> Tally {
        Tally {
            is_request,
            ..Tally::default()
        }
    }

    /// Adds the reports of one call.
    pub(super) fn on_call(&mut self, said: Vec<ItemReport>, took: Duration) {
        if said.iter().any(|one| one.understood && one.flaw.is_none()) {
            self.understood = true;
            self.latencies.push(took);
        }
        self.answered |= said.iter().any(|one| one.answered);
        self.reached |= said.iter().any(|one| !one.unreached);
        if let Some(one) = said.last() {
            self.last = Some(one.text.clone());
        }
        for one in &said {
            self.items.insert(one.index);
            if one.text.starts_with(FAILED) {
                self.failed.insert(one.index);
            }
            // A handler may legitimately ask for a retry; an API either did what it was asked or didn't.
            if one.retry.is_some() && (self.is_request || !one.understood) {
                self.undone.insert(one.index, one.text.clone());
            } else {
                self.undone.remove(&one.index);
            }
        }
        self.flaws.extend(said.into_iter().filter_map(|one| one.flaw));
    }

    fn is_kept(&self) -> bool {
        self.flaws.is_empty() && self.understood && self.undone.is_empty()
    }

    /// Returns the last line. It says nothing about concurrent throughput, since calls were sequential.
    pub(super) fn summary(&mut self) -> String {
        let subject = if self.is_request { "requests" } else { "contract" };
        if !self.is_kept() {
            let how = match (self.is_request, self.flaws.is_empty()) {
                (_, true) if !self.answered => "no answer".to_owned(),
                (_, true) if self.understood => {
                    format!("{} of {} items not done", self.undone.len(), self.items.len())
                }
                (true, _) => "refused".to_owned(),
                (false, _) => "broken".to_owned(),
            };
            return format!("{subject}: {how}");
        }
        self.latencies.sort_unstable();
        let sum: Duration = self.latencies.iter().sum();
        let mean = sum.as_secs_f64() / self.latencies.len() as f64;
        let p95 = self.latencies[(self.latencies.len() * 95).div_ceil(100).max(1) - 1];
        let how = match self.failed.len() {
            failed @ 1.. if self.is_request => format!("{} sent, {failed} failed", self.items.len()),
            _ => "ok".to_owned(),
        };
        format!(
            "{subject}: {how} · mean call time {}, sequential (p95 {})",
            human::seconds(mean),
            span(p95)
        )
    }

    /// Returns the exit code, or the fault for a violated contract.
    pub(super) fn contract(&self) -> Result<Exit, Fault> {
        if let Some(flaw) = self.flaws.first() {
            if self.is_request {
                return Err(
                    Fault::new(Exit::BadHandler, "the API rejects the request", told(flaw))
                        .hint("see the request above"),
                );
            }
            return Err(
                Fault::new(Exit::BadHandler, "the handler violates the contract", told(flaw)).or_hint(
                    "`windrow init http` describes the expected responses, `windrow init python` \
                    writes a handler",
                ),
            );
        }
        if !self.understood {
            let because = self.last.as_deref().unwrap_or("nothing was called");
            let is_tls = because.contains("certificate") || because.contains("secure connection");
            let (what, hint) = match self.answered {
                _ if because.contains(TEMPLATE_VALUE) => {
                    ("can't build a request", "check the items' data, above")
                }
                true => (
                    "the handler rejects every call",
                    "check its log; `windrow init` writes a handler that answers correctly",
                ),
                false if is_tls => ("no call got a response", "check the connection error above"),
                false => (
                    "no call got a response",
                    "check that it runs and responds within --call-timeout",
                ),
            };
            // Same exit code as `run` if its handler was never reached.
            let exit = if self.reached {
                Exit::BadHandler
            } else {
                Exit::Rejected
            };
            return Err(Fault::new(exit, what, because).hint(hint));
        }
        if let Some((index, last)) = self.undone.first_key_value() {
            let because = format!("#{index} {last}");
            return Err(Fault::new(Exit::BadHandler, "some items were not done", because)
                .hint("see their errors above; --max-attempts allows more attempts"));
        }
        Ok(Exit::Ok)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_reply_breaks_the_contract() {
        let mut tally = Tally::default();
        tally.on_call(read(&[0], Reply::AllOk, Duration::ZERO), Duration::from_millis(1));
        assert_eq!(tally.contract(), Ok(Exit::Ok));
        let bad = CallFailure::BadReply(Failure::new("BAD_REPLY", "an HTML page"));
        tally.on_call(
            read(&[1], Reply::Failed(Box::new(bad)), Duration::ZERO),
            Duration::from_millis(1),
        );
        let fault = tally.contract().expect_err("broken");
        assert_eq!(fault.exit, Exit::BadHandler);
        assert!(fault.to_string().contains("an HTML page"), "{fault}");
    }

    #[test]
    fn an_item_that_got_no_answer_at_last_is_told_though_others_did() {
        let lost = || Reply::failed(FailureClass::Unreachable, Failure::new("CONNECT", "refused"));
        let busy = || {
            let failure = Failure::new("HTTP_429", "wait");
            Reply::Failed(Box::new(CallFailure::BackPressure { after: None, failure }))
        };
        for (is_request, reply) in [(false, lost()), (true, lost()), (true, busy())] {
            let mut tally = Tally::of(is_request);
            tally.on_call(read(&[0], Reply::AllOk, Duration::ZERO), Duration::ZERO);
            tally.on_call(read(&[1], reply, Duration::ZERO), Duration::ZERO);
            assert!(
                tally.summary().ends_with("1 of 2 items not done"),
                "{}",
                tally.summary()
            );
            let fault = tally.contract().expect_err("item 1");
            assert!(
                fault.exit == Exit::BadHandler && fault.because[0].starts_with("#1 "),
                "{fault}"
            );
            tally.on_call(read(&[1], Reply::AllOk, Duration::ZERO), Duration::ZERO);
            assert_eq!(tally.contract(), Ok(Exit::Ok), "the next attempt did it");
        }
        let mut alone = Tally::of(true);
        alone.on_call(read(&[0], busy(), Duration::ZERO), Duration::ZERO);
        assert_eq!(
            alone.contract().expect_err("nothing was done").exit,
            Exit::BadHandler
        );
    }

    #[test]
    fn an_answer_that_refuses_is_no_silence() {
        let mut tally = Tally::default();
        let refused = Reply::failed(FailureClass::Rejected, Failure::new("HTTP_400", "Bad Request"));
        tally.on_call(read(&[0], refused, Duration::ZERO), Duration::from_millis(1));
        assert!(
            tally
                .contract()
                .expect_err("refused")
                .to_string()
                .contains("rejects every call")
        );
    }

    #[test]
    fn silence_is_no_proof() {
        let mut tally = Tally::default();
        let lost = Reply::failed(FailureClass::Unreachable, Failure::new("CONNECT", "refused"));
        tally.on_call(read(&[0], lost, Duration::ZERO), Duration::from_millis(1));
        assert_eq!(tally.contract().expect_err("no answer").exit, Exit::Rejected);
    }

    #[test]
    fn a_refused_certificate_is_no_matter_of_time() {
        let mut tally = Tally::default();
        let failure = Failure::new("TLS", "the handler's certificate is refused: it has expired");
        let lost = Reply::failed(FailureClass::Unreachable, failure);
        tally.on_call(read(&[0], lost, Duration::ZERO), Duration::from_millis(1));
        let said = tally.contract().expect_err("no answer").to_string();
        assert!(!said.contains("--call-timeout"), "{said}");
    }
}
