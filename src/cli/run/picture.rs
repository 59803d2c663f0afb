//! Snapshot of a run for people: counts that add up, pace, remaining time, reason for waiting.

use std::time::Duration;

use console::measure_text_width;

use crate::output::table::{Tone, human};
use crate::output::{found, used};
use windrow_core::execution::{HeldBy, MeterPicture, Progress};
use windrow_core::explain::{held_by_autopilot, held_by_usage, rate_text};
use windrow_core::handler::text::{self, Subject};
use windrow_core::ids::{ItemCount, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::pilot;
use windrow_core::settings::RateLimit;
use windrow_core::stats::completion::{self, Completion};
use windrow_core::stats::speed::Speed;
use windrow_core::stats::stall::StallReason;
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::ports::tasks::store::TaskView;
use windrow_server::service::tasks::show::TaskPicture;
use windrow_words::{Message, list};

/// Snapshot of a run at one moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Picture {
    /// Status of the task.
    pub status: Status,
    /// Reason for the status, if there is anything to say.
    pub why: Option<String>,
    /// Time until the next attempt, if the task waits for one.
    pub next_try: Option<Duration>,
    /// Total number of items.
    pub total: u64,
    /// Counts of items in every state except pending.
    pub counts: Counters,
    /// Number of pending items.
    pub pending: u64,
    /// Target rate from the settings.
    pub rate: RateLimit,
    /// Measured speed; `None` while it isn't known.
    pub speed: Option<Speed>,
    /// 95th percentile of call durations.
    pub latency_p95: Option<Duration>,
    /// Limits that the autopilot has found, if it steers the run.
    pub autopilot: Option<pilot::Picture>,
    /// Use of each meter, if the task has any.
    pub costs: Vec<MeterPicture>,
    /// Limit in units that holds calls back, if one does.
    pub held_by: Option<HeldBy>,
    /// Reason why nothing is dispatched, if so.
    pub stall: Option<StallReason>,
    /// Time until the next retry of an item that waits for one.
    pub next_retry: Option<Duration>,
    /// Problem with the handler or the disk, if there is one.
    pub trouble: Option<String>,
    /// Subject of that problem; `None` for the disk.
    pub subject: Option<Subject>,
    /// Data of the item that failed, printed after the problem.
    pub who: String,
}

/// Fraction of its rate from which a run counts as at speed.
const AT_SPEED: f64 = 0.97;

/// Cells that the bar keeps on a narrow terminal, where parts of the pace are left out instead.
const BAR_CELLS_MIN: usize = 6;

impl Picture {
    /// Creates the snapshot of a task. `live` has the reason why its run waits.
    pub(crate) fn of(seen: &TaskPicture, live: &[Progress], now: WallMs) -> Picture {
        let (task, of_run) = (&seen.task, seen.live.as_ref());
        let runs = task.status == Status::Running;
        // Set by a node whose disk is full, which is then the problem, not the handler.
        let full = task.status_text.clone().filter(|_| runs);
        let subject = text::subject(&seen.handler.state, now).filter(|_| full.is_none());
        Picture {
            status: task.status,
            why: why(task),
            next_try: task.next_at.map(|at| at.since(now)),
            total: task.total.0,
            counts: task.counters,
            pending: task.counters.pending(task.total),
            rate: task.tuning.rate,
            speed: of_run.and_then(|live| live.speed).filter(|_| runs),
            latency_p95: of_run.and_then(|live| live.latency_p95),
            autopilot: of_run.and_then(|live| live.autopilot),
            costs: seen.costs.clone(),
            held_by: live.iter().find_map(|progress| progress.held_by.clone()),
            stall: live.iter().find_map(|progress| progress.stall),
            next_retry: live.iter().filter_map(|progress| progress.next_retry).min(),
            trouble: full.or_else(|| seen.handler.text().map(|text| text.to_string())),
            subject,
            who: String::new(),
        }
    }

    /// Returns the completed part of the items.
    pub(crate) fn completion(&self) -> Completion {
        Completion::of(&self.counts, ItemCount(self.total))
    }

    /// Returns the remaining time at the present pace.
    pub(crate) fn eta(&self) -> Option<Duration> {
        let speed = self.speed.filter(|_| self.status == Status::Running)?;
        completion::eta(&self.counts, ItemCount(self.total), self.rate, speed.settled)
    }

    /// Formats the bar ` 40.0 % ███▉✕░░ 10.0/s  ETA 6s`, as wide as the terminal. Full cells are items that
    /// succeeded.
    pub(crate) fn bar_line(&self, columns: usize, colours: bool) -> String {
        let Counters {
            succeeded,
            skipped,
            failed,
            excluded,
            ..
        } = self.counts;
        let percent = format!("{:>5.1} %", self.completion().percent());
        let room = columns.saturating_sub(measure_text_width(&percent) + 2);
        let pace = self.pace_text();
        let pace = human::whole_parts(&pace, room.saturating_sub(BAR_CELLS_MIN));
        let cells = room.saturating_sub(measure_text_width(pace));
        let bar = human::item_bar(succeeded, [skipped, failed, excluded], self.total, cells);
        let line = format!("{percent} {} {pace}", Tone::Good.paint(&bar, colours));
        line.trim_end().to_owned()
    }

    /// Formats the pace as `412.3/s of 500/s  ETA 3m 20s  p95 12ms`, or `38.2/s (auto), 8 in flight, 1 % refused`, with
    /// `ETA 3m 20s+` while items are parked. Empty for a run that is over: the outcome has its mean rate.
    pub(crate) fn pace_text(&self) -> String {
        if !matches!(self.status, Status::Running | Status::Stopping) {
            return String::new();
        }
        let actual = self
            .speed
            .map_or_else(|| "–/s".to_owned(), |speed| rate_text(speed.sent));
        let mut text = actual + &human::of_limit(self.rate);
        if let Some(found) = self.autopilot.filter(|_| self.rate.is_auto()) {
            let found = found::brief(found.in_flight, found.refused_share, found.scouting.is_some());
            text += &format!(", {found}");
        }
        if let Some(eta) = self.eta() {
            text += &format!(
                "  ETA {}",
                human::eta_text(human::span(human::whole(eta)), self.counts.parked)
            );
        }
        if let Some(p95) = self.latency_p95 {
            text += &format!("  p95 {}", human::span(p95));
        }
        text
    }

    /// Formats all counts of the sum, and the use of meters. `excluded` is left out if it is 0.
    pub(crate) fn counts_text(&self) -> String {
        let Counters {
            succeeded,
            skipped,
            failed,
            parked,
            in_flight,
            excluded,
        } = self.counts;
        let mut text = format!("succeeded {succeeded}  skipped {skipped}  failed {failed}");
        text += &format!(
            "  in flight {in_flight}  parked {parked}  pending {}",
            self.pending
        );
        if excluded > 0 {
            text += &format!("  excluded {excluded}");
        }
        if let Some(used) = used::used(&self.costs) {
            text += &format!("  used {used}");
        }
        text
    }

    /// Returns the reason why the run isn't at full speed, empty if it is.
    pub(crate) fn why_text(&self) -> String {
        if let (Status::Running, Some(handler)) = (self.status, &self.trouble) {
            return format!("{handler}{}", self.who);
        }
        match (self.status, self.waits_for()) {
            (Status::Running, Some(StallReason::Autopilot)) => held(
                windrow_words::cause::autopilot(),
                self.autopilot.as_ref().map(held_by_autopilot),
            ),
            (Status::Running, Some(StallReason::Usage)) => held(
                windrow_words::cause::usage(),
                self.held_by.as_ref().map(held_by_usage),
            ),
            (Status::Running, Some(stall)) => {
                let is_told = |span: &Duration| stall == StallReason::RetryWait && span.as_secs() > 0;
                let next = self.next_retry.filter(is_told);
                let next = next.map_or_else(String::new, |span| {
                    format!(", next in {}", human::span(human::whole(span)))
                });
                let cause = match stall {
                    StallReason::HandlerSlots => "handler concurrency".to_owned(),
                    StallReason::Tail => "last responses".to_owned(),
                    other => other.as_str().replace('_', " "),
                };
                format!("waiting: {cause}{next}")
            }
            (Status::Running, None) => String::new(),
            (status, _) => stands(status, self.stands_why()),
        }
    }

    /// Returns the reason for the status, and the time of the next attempt.
    pub(crate) fn stands_why(&self) -> Option<String> {
        let parts: Vec<String> = self.why.clone().into_iter().chain(self.next_try_text()).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    fn next_try_text(&self) -> Option<String> {
        Some(format!(
            "next attempt in {}",
            human::span(human::whole(self.next_try?))
        ))
    }

    /// Returns the reason, fitted into one line of a terminal.
    pub(crate) fn why_line(&self, columns: usize) -> String {
        match (self.status, &self.trouble) {
            (Status::Running, Some(handler)) => human::ended(handler, &self.who, columns),
            _ => self.why_text(),
        }
    }

    /// Returns the reason for waiting. A run at its rate waits between items too, which isn't worth a message.
    fn waits_for(&self) -> Option<StallReason> {
        let sent = self.speed.map_or(0.0, |speed| speed.sent);
        let most = self.rate.most();
        let is_at_speed = most.is_some_and(|most| sent >= most.as_per_second() * AT_SPEED);
        self.stall.filter(|_| !is_at_speed)
    }

    /// Formats everything as one plain line.
    pub(crate) fn line(&self) -> String {
        let waits = || self.waits_for().map(|_| self.why_text());
        let trouble = self.trouble.as_ref().map(|_| self.why_text()).or_else(waits);
        self.line_with(self.stands_why(), trouble)
    }

    /// Formats a line for readers who have recently seen the problem in full.
    pub(crate) fn short_line(&self) -> String {
        match (&self.subject, self.next_try_text()) {
            (Some(subject), _) if self.status == Status::Running => {
                self.line_with(None, Some(subject.brief().to_string()))
            }
            (_, Some(next_try)) => self.line_with(Some(next_try), None),
            _ => self.line(),
        }
    }

    fn line_with(&self, why: Option<String>, trouble: Option<String>) -> String {
        let completion = self.completion();
        let done = format!(
            "{}/{} ({:.1} %)",
            completion.settled,
            completion.of,
            completion.percent()
        );
        let parts = [
            stands(self.status, why),
            done,
            self.pace_text(),
            self.counts_text(),
        ];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let line = parts.join("  ");
        match trouble.filter(|_| self.status == Status::Running) {
            Some(trouble) => format!("{line}  {trouble}"),
            None => line,
        }
    }
}

fn held(title: Message, by: Option<Message>) -> String {
    match by {
        Some(by) => list::titled(title, by).to_string(),
        None => title.to_string(),
    }
}

fn stands(status: Status, why: Option<String>) -> String {
    match why {
        Some(why) if why.starts_with("by ") => format!("{status} {why}"),
        Some(why) => format!("{status}: {why}"),
        None => status.to_string(),
    }
}

fn why(view: &TaskView) -> Option<String> {
    let reason = match view.status {
        Status::Running | Status::Finished => return None,
        Status::Stopped if view.stop_reason == Some(StopReason::Operator) => {
            return Some("by command".to_owned());
        }
        Status::Stopping if view.stop_reason == Some(StopReason::Operator) => {
            return Some("command".to_owned());
        }
        Status::Stopped | Status::Stopping => view.stop_reason.map(|reason| reason.text().to_owned()),
        _ => view.status_reason.clone(),
    };
    let text = match (reason, &view.status_text) {
        (Some(reason), Some(text)) => Some(format!("{reason}, {text}")),
        (Some(reason), None) => Some(reason),
        (None, text) => text.clone(),
    };
    match view.status_reason.as_deref() {
        Some("error_budget") => text.map(|text| text + "; --error-budget allows more"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::meter::amount::Amount;
    use windrow_core::meter::unit::Unit;
    use windrow_core::settings::Rate;

    fn speed(sent: f64) -> Option<Speed> {
        Some(Speed { sent, settled: sent })
    }

    fn picture(counts: Counters) -> Picture {
        Picture {
            status: Status::Running,
            why: None,
            next_try: None,
            total: 100,
            counts,
            pending: counts.pending(windrow_core::ids::ItemCount(100)),
            rate: RateLimit::Unlimited,
            speed: speed(10.0),
            latency_p95: Some(Duration::from_micros(1500)),
            autopilot: None,
            costs: Vec::new(),
            held_by: None,
            stall: None,
            next_retry: None,
            trouble: None,
            subject: None,
            who: String::new(),
        }
    }

    #[test]
    fn a_line_says_everything_once() {
        let counts = Counters {
            succeeded: 38,
            skipped: 1,
            failed: 1,
            in_flight: 2,
            ..Counters::default()
        };
        assert_eq!(
            picture(counts).line(),
            "running  40/100 (40.0 %)  10.0/s  ETA 6s  p95 1.5ms  \
             succeeded 38  skipped 1  failed 1  in flight 2  parked 0  pending 58"
        );
        let over = Picture {
            status: Status::Finished,
            ..picture(Counters::default())
        };
        assert!(
            over.line().starts_with("finished  0/100 (0.0 %)  succeeded 0"),
            "{}",
            over.line()
        );
    }

    #[test]
    fn the_bar_is_as_wide_as_the_terminal_and_full_of_what_succeeded() {
        let counts = Counters {
            succeeded: 38,
            skipped: 2,
            failed: 10,
            ..Counters::default()
        };
        assert_eq!(
            picture(counts).bar_line(54, false),
            " 50.0 % ███████▌·✕✕░░░░░░░░░ 10.0/s  ETA 5s  p95 1.5ms"
        );
        assert!(picture(counts).bar_line(10, false).starts_with(" 50.0 %  10.0/s"));
        assert_eq!(
            picture(counts).bar_line(32, false),
            " 50.0 % ███▍·✕░░░ 10.0/s  ETA 5s",
            "whole parts leave a narrow terminal, not digits"
        );
    }

    #[test]
    fn a_line_ends_with_what_the_run_waits_for() {
        let stalled = Picture {
            stall: Some(StallReason::BackPressure),
            ..picture(Counters::default())
        };
        assert!(
            stalled.line().ends_with("pending 100  waiting: back pressure"),
            "{}",
            stalled.line()
        );
        let retried = Picture {
            stall: Some(StallReason::RetryWait),
            next_retry: Some(Duration::from_millis(12_700)),
            ..stalled
        };
        let line = retried.line();
        assert!(line.ends_with("waiting: retry wait, next in 12s"), "{line}");
    }

    #[test]
    fn a_line_says_what_was_used_and_which_limit_holds_calls_back() {
        let metered = Picture {
            stall: Some(StallReason::Usage),
            held_by: Some(HeldBy::Limit("90k tokens/min".to_owned())),
            costs: vec![MeterPicture {
                unit: Unit::parse("tokens").expect("a unit"),
                actual: Amount::units(1_200_000),
                unsure: Amount::units(3_100),
                out: Amount::ZERO,
                total: Amount::parse("2M"),
                is_nearly_used: false,
                allowance: None,
                is_sparse: false,
            }],
            ..picture(Counters::default())
        };
        let line = metered.line();
        assert!(
            line.ends_with(
                "pending 100  used 1.2M tokens (of 2M); unsure 3.1k tokens  held by limit: 90k tokens/min"
            ),
            "{line}"
        );
    }

    #[test]
    fn a_run_at_its_rate_waits_for_nothing() {
        let rate = RateLimit::Limited(Rate::per_second(10).expect("a rate"));
        let stall = Some(StallReason::HandlerSlots);
        let at = |actual| {
            Picture {
                rate,
                speed: speed(actual),
                stall,
                ..picture(Counters::default())
            }
            .line()
        };
        assert!(at(9.9).ends_with("pending 100"), "{}", at(9.9));
        assert!(at(5.0).ends_with("waiting: handler concurrency"), "{}", at(5.0));
    }

    #[test]
    fn an_automatic_rate_says_what_was_found_and_what_holds() {
        let found = pilot::Picture {
            in_flight: 8,
            rate: Some(9.8),
            refused_share: 0.012,
            why: Some(pilot::Why::RefusedAboveRate),
            ..pilot::Picture::default()
        };
        let line = Picture {
            rate: RateLimit::Auto(None),
            autopilot: Some(found),
            stall: Some(StallReason::Autopilot),
            ..picture(Counters::default())
        }
        .line();
        assert!(
            line.contains("10.0/s (auto), 8 in flight, 1 % refused  ETA 10s"),
            "{line}"
        );
        assert!(line.ends_with("held by autopilot: refused above 9.8/s"), "{line}");
    }

    #[test]
    fn nothing_is_promised_while_nothing_moves() {
        let mut still = picture(Counters::default());
        still.speed = speed(0.0);
        assert_eq!(still.eta(), None);
        assert_eq!(
            Picture {
                status: Status::Recovering,
                ..picture(Counters::default())
            }
            .eta(),
            None
        );
    }

    #[test]
    fn while_items_are_parked_it_takes_at_least_as_long_as_it_says() {
        let parked = Counters {
            succeeded: 40,
            parked: 10,
            ..Counters::default()
        };
        assert_eq!(picture(parked).pace_text(), "10.0/s  ETA 6s+  p95 1.5ms");
    }
}
