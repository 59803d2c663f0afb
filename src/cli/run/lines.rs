//! Progress of a run without a terminal: its lines, and when they are due. A problem is reported in full when it is
//! new and then once a minute; the lines between mention it in a few words, so that a handler that is down doesn't
//! fill a log.

use std::time::Duration;

use console::{Term, colors_enabled_stderr};
use indicatif::ProgressBar;

use super::picture::Picture;
use crate::output::safe;
use crate::output::screen::Screen;
use crate::output::table::human;
use windrow_core::handler::text::Subject;
use windrow_core::ids::Moment;
use windrow_core::task::lifecycle::Status;

/// Interval between two lines without a change of status.
const LINE_EVERY: Duration = Duration::from_secs(5);
/// Interval between two full reports of the same problem.
const IN_FULL_EVERY: Duration = Duration::from_secs(60);

/// Progress bar of a run, or its lines without a terminal.
pub(crate) struct RunLines {
    bar: ProgressBar,
    below: ProgressBar,
    why: ProgressBar,
    plain: PlainLines,
}

impl RunLines {
    /// Creates the display of a run that has shown nothing yet.
    pub(crate) fn on(screen: &Screen) -> RunLines {
        // Wide messages are cut off at the edge of a narrow terminal, not wrapped.
        let [bar, below, why] =
            ["{wide_msg}", "  {wide_msg}", "  {wide_msg}"].map(|template| screen.add(template));
        RunLines {
            bar,
            below,
            why,
            plain: PlainLines::default(),
        }
    }

    /// Shows a snapshot: as a bar on a terminal, otherwise as a line if the status changed or some time has passed.
    pub(crate) fn show(&mut self, screen: &Screen, picture: &Picture, now: Moment) {
        if screen.is_live() {
            let columns = usize::from(Term::stderr().size().1);
            let set = |line: &ProgressBar, text: &str| line.set_message(safe::visible(text).into_owned());
            set(&self.bar, &picture.bar_line(columns, colors_enabled_stderr()));
            let room = columns.saturating_sub(2);
            set(&self.below, human::whole_parts(&picture.counts_text(), room));
            set(&self.why, &picture.why_line(room));
        } else if let Some(line) = self.plain.due(picture, now) {
            screen.say(&line);
        }
    }

    /// Removes the bar from the screen.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
        self.below.finish_and_clear();
        self.why.finish_and_clear();
    }
}

/// Lines printed so far, as far as needed to decide on the next.
#[derive(Debug, Default)]
struct PlainLines {
    said: Option<Moment>,
    status: Option<Status>,
    /// Problems reported in full within the last minute. There may be several, since codes alternate.
    in_full: Vec<(Told, Moment)>,
}

#[derive(Clone, Debug, PartialEq)]
enum Told {
    Trouble(Subject),
    /// Reason why the run waits for its next attempt.
    Pause(String),
}

impl Told {
    fn of(picture: &Picture) -> Option<Told> {
        match (picture.status, picture.next_try) {
            (Status::Running, _) => picture.subject.clone().map(Told::Trouble),
            (_, Some(_)) => picture.why.clone().map(Told::Pause),
            (_, None) => None,
        }
    }
}

impl PlainLines {
    /// Returns the line that is due because the status changed or some time has passed.
    pub(crate) fn due(&mut self, picture: &Picture, now: Moment) -> Option<String> {
        let changed = self.status != Some(picture.status);
        let is_due = changed || self.said.is_none_or(|said| now.since(said) >= LINE_EVERY);
        if !is_due {
            return None;
        }
        (self.status, self.said) = (Some(picture.status), Some(now));
        Some(match self.is_known(picture, now) {
            true => picture.short_line(),
            false => picture.line(),
        })
    }

    /// True if the problem was reported in full recently. Otherwise records that it is reported now.
    fn is_known(&mut self, picture: &Picture, now: Moment) -> bool {
        self.in_full.retain(|(_, told)| now.since(*told) < IN_FULL_EVERY);
        let Some(told) = Told::of(picture) else {
            return false;
        };
        let is_known = self.in_full.iter().any(|(known, _)| *known == told);
        if !is_known {
            self.in_full.push((told, now));
        }
        is_known
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::items::counters::Counters;
    use windrow_core::settings::RateLimit;

    fn picture(code: Option<&str>) -> Picture {
        let subject = code.map(|code| Subject {
            is_down: true,
            is_paused: false,
            code: Some(code.to_owned()),
            is_about_items: false,
            is_probed: true,
        });
        Picture {
            status: Status::Running,
            why: None,
            next_try: None,
            total: 9,
            counts: Counters::default(),
            pending: 9,
            rate: RateLimit::Unlimited,
            speed: None,
            latency_p95: None,
            autopilot: None,
            costs: Vec::new(),
            held_by: None,
            stall: None,
            next_retry: None,
            trouble: code.map(|code| format!("a long story of {code}")),
            subject,
            who: String::new(),
        }
    }

    /// The end of the line at a second; none where none is due.
    fn at(lines: &mut PlainLines, second: u64, code: Option<&str>) -> Option<String> {
        let line = lines.due(&picture(code), Moment(second * 1_000_000_000))?;
        assert_eq!(line.lines().count(), 1);
        Some(line.rsplit("  ").next().unwrap_or_default().to_owned())
    }

    #[test]
    fn trouble_is_told_in_full_when_it_is_new_and_once_a_minute() {
        let mut lines = PlainLines::default();
        let (long, short) = (
            |code| Some(format!("a long story of {code}")),
            "handler down (CONNECT)",
        );
        assert_eq!(at(&mut lines, 0, None).as_deref(), Some("pending 9"));
        assert_eq!(at(&mut lines, 3, Some("CONNECT")), None, "every five seconds");
        assert_eq!(at(&mut lines, 5, Some("CONNECT")), long("CONNECT"));
        for second in [10, 15, 20, 60] {
            assert_eq!(
                at(&mut lines, second, Some("CONNECT")).as_deref(),
                Some(short),
                "{second}"
            );
        }
        assert_eq!(at(&mut lines, 65, Some("CONNECT")), long("CONNECT"));
        assert_eq!(
            at(&mut lines, 70, Some("TIMEOUT")),
            long("TIMEOUT"),
            "another one"
        );
        assert_eq!(
            at(&mut lines, 75, Some("CONNECT")).as_deref(),
            Some(short),
            "they take turns"
        );
        assert_eq!(at(&mut lines, 80, None).as_deref(), Some("pending 9"));
        assert_eq!(at(&mut lines, 125, Some("CONNECT")), long("CONNECT"));
    }

    #[test]
    fn why_it_pauses_is_told_in_full_once_a_minute_and_between_only_how_long_it_does() {
        let mut lines = PlainLines::default();
        let mut told = |second: u64| {
            let pausing = Picture {
                status: Status::Recovering,
                why: Some("a long story".to_owned()),
                next_try: Some(Duration::from_secs(90 - second)),
                ..picture(None)
            };
            let line = lines
                .due(&pausing, Moment(second * 1_000_000_000))
                .expect("a line is due");
            line.split("  ").next().unwrap_or_default().to_owned()
        };
        assert_eq!(told(0), "recovering: a long story; next attempt in 1m 30s");
        assert_eq!(told(5), "recovering: next attempt in 1m 25s");
        assert_eq!(told(55), "recovering: next attempt in 35s");
        assert_eq!(told(60), "recovering: a long story; next attempt in 30s");
    }
}
