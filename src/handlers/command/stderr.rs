//! Stderr of workers: free text for the data log, and the last lines for the failure of a crash.
//!
//! Reads as fast as the worker prints, whatever happens to the lines, so that no worker ever blocks on stderr.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::AsyncRead;

use super::Sink;
use super::lines::{Line, LineReader};
use crate::wire::shown;
use windrow_core::ids::{ItemIndex, Moment};
use windrow_core::items::verdict::{OUTPUT_BYTES_MAX, cut};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{LogLevel, LogLine};

/// Lines kept for the failure of a crash.
const TAIL_LINES: usize = 20;
/// Maximum length of a line, in bytes; the rest becomes a line of its own.
pub(crate) const LINE_BYTES_MAX: usize = 1024;
/// Lines passed on per worker in each [`RATE_SPAN`]; more are counted and dropped.
const LINES_PER_SPAN: u32 = 100;
const RATE_SPAN: Duration = Duration::from_secs(1);

/// Last lines that a worker printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    pub(crate) fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Formats the lines as part of a message; keeps the newest if there is not enough room.
    pub(crate) fn describe(&self, bytes_max: usize) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.is_empty() {
            return "stderr was empty".to_owned();
        }
        let mut kept: Vec<&str> = Vec::new();
        let mut room = bytes_max;
        for line in lines.iter().rev().take_while(|line| {
            let fits = room > line.len() + 3;
            room = room.saturating_sub(line.len() + 3);
            fits
        }) {
            kept.push(line);
        }
        kept.reverse();
        format!("stderr: {}", kept.join(" | "))
    }

    /// Formats the lines as JSON that fits a failure's output, without the oldest if there is not enough room.
    pub(crate) fn to_json(&self) -> Option<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut kept: Vec<&String> = lines.iter().collect();
        while !kept.is_empty() {
            let json = serde_json::json!({ "stderr": kept }).to_string();
            if json.len() <= OUTPUT_BYTES_MAX {
                return Some(json);
            }
            kept.remove(0);
        }
        None
    }
}

/// Lines about a worker for the data log: marked with its name, and limited per second.
#[derive(Clone)]
pub(crate) struct Notes {
    prefix: String,
    sink: Sink,
    clock: Arc<dyn Clock>,
    limit: Arc<Mutex<Limit>>,
}

impl Notes {
    /// Creates notes whose lines go to `sink`, beginning with `prefix`.
    pub(crate) fn new(prefix: String, sink: Sink, clock: Arc<dyn Clock>) -> Notes {
        let limit = Arc::new(Mutex::new(Limit::from(clock.now())));
        Notes {
            prefix,
            sink,
            clock,
            limit,
        }
    }

    /// Logs something odd about the worker.
    pub(super) fn warn(&self, text: &str) {
        self.pass(LogLevel::Warn, text);
    }

    /// Logs a line about one item.
    pub(crate) fn say_of(&self, index: ItemIndex, text: &str) {
        self.pass_of(Some(index), LogLevel::Info, text);
    }

    fn pass(&self, level: LogLevel, text: &str) {
        self.pass_of(None, level, text);
    }

    fn pass_of(&self, index: Option<ItemIndex>, level: LogLevel, text: &str) {
        let mut limit = self.limit.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = limit.turn(self.clock.now());
        let is_admitted = limit.admits();
        drop(limit);
        self.report(left_out.unwrap_or(0));
        if is_admitted {
            self.say(index, level, text);
        }
    }

    /// Logs the number of lines dropped in the last span, when the worker has ended.
    pub(crate) fn finish(&self) {
        let now = self.clock.now();
        let left_out = std::mem::replace(
            &mut *self.limit.lock().unwrap_or_else(PoisonError::into_inner),
            Limit::from(now),
        );
        self.report(left_out.left_out);
    }

    fn report(&self, left_out: u64) {
        if left_out > 0 {
            self.say(None, LogLevel::Warn, &format!("lines omitted: {left_out}"));
        }
    }

    fn say(&self, index: Option<ItemIndex>, level: LogLevel, text: &str) {
        (self.sink)(LogLine {
            index,
            level,
            message: format!("{}: {text}", self.prefix),
            extra: None,
        });
    }
}

/// Reader of a worker's stderr.
pub(super) struct Capture {
    pub(super) tail: Tail,
    pub(super) notes: Notes,
}

impl Capture {
    /// Creates a reader that shares the tail and the notes.
    pub(super) fn of(tail: &Tail, notes: &Notes) -> Capture {
        Capture {
            tail: tail.clone(),
            notes: notes.clone(),
        }
    }

    /// Runs until the worker and everything that inherited its stderr have closed it.
    pub(super) async fn run(self, stderr: impl AsyncRead + Unpin) {
        let mut reader = LineReader::new(stderr, LINE_BYTES_MAX);
        // An error of the pipe ends it like its end.
        while matches!(reader.fill().await, Ok(1..)) {
            while let Some(Line::Whole(line) | Line::Overlong(line)) = reader.take_line() {
                self.take(&line);
            }
        }
        if let Some(rest) = reader.take_rest() {
            self.take(&rest);
        }
        self.notes.finish();
    }

    fn take(&self, line: &[u8]) {
        let text = cut(&shown(line), LINE_BYTES_MAX);
        self.notes.pass(LogLevel::Info, &text);
        self.tail.push(text);
    }
}

/// Limit of [`LINES_PER_SPAN`] lines in each [`RATE_SPAN`].
struct Limit {
    since: Moment,
    passed: u32,
    left_out: u64,
}

impl Limit {
    fn from(now: Moment) -> Limit {
        Limit {
            since: now,
            passed: 0,
            left_out: 0,
        }
    }

    /// Begins a new span if the old one is over. Returns the number of lines that the old one dropped.
    fn turn(&mut self, now: Moment) -> Option<u64> {
        if now.since(self.since) < RATE_SPAN {
            return None;
        }
        let left_out = self.left_out;
        *self = Limit::from(now);
        Some(left_out)
    }

    fn admits(&mut self) -> bool {
        if self.passed == LINES_PER_SPAN {
            self.left_out += 1;
            return false;
        }
        self.passed += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_above_the_rate_are_counted() {
        let mut limit = Limit::from(Moment(0));
        let passed = (0..250).filter(|_| limit.admits()).count();
        assert_eq!((passed, limit.left_out), (100, 150));
        assert_eq!(limit.turn(Moment(999_999_999)), None);
        assert_eq!(limit.turn(Moment(1_000_000_000)), Some(150));
        assert!(limit.admits());
    }

    #[test]
    fn the_newest_lines_are_kept() {
        let tail = Tail::default();
        (0..30).for_each(|n| tail.push(format!("line {n}")));
        let text = tail.describe(1000);
        assert!(
            text.starts_with("stderr: line 10 | ") && text.ends_with("line 29"),
            "{text}"
        );
        assert_eq!(tail.describe(21), "stderr: line 28 | line 29");
    }
}
