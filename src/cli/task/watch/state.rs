//! State of the watch, as plain values: updated by news, drawn by `frame`, changed by `keys`. No terminal, no
//! network, no clock.

use std::collections::VecDeque;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::tail::{Entry, entry};
use crate::output::table::times::TimeStyle;
use windrow_client::Event;
use windrow_core::settings::RateLimit;

/// Largest number of events kept; even a tall terminal shows no more.
const TAIL_MAX: usize = 50;
/// Largest number of window cells read; a node sends no more.
const CELLS_MAX: usize = 20_000;
/// Number of points that errors are averaged over, about the window of an error budget. Unit: seconds.
const ERRORS_OVER: usize = 10;

/// News for the state of the watch.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// Event of the stream.
    Event(Event),
    /// Loss of the event stream.
    Lost,
    /// Return of the event stream.
    Back,
    /// Task as the node shows it.
    Task(Box<api::Task>),
    /// Task, fetched to check whether its nodes are alive, and the next step for those that are silent.
    Sign(Box<api::Task>, String),
    /// Newest run of the task, if it has one.
    Run(Option<api::Run>),
    /// Statistics of the last minute.
    Stats(Box<api::TaskStats>),
    /// States of the items in the window.
    Window(api::TaskWindow),
    /// Failures of the task, by code.
    Failures(Vec<api::FailureGroup>),
    /// Explanation of the task's speed.
    Explained(String),
    /// Message about an executed order.
    Said(String),
    /// Message about a refused order.
    Refused(String),
}

/// Panel that is open below the numbers.
#[derive(Clone, Debug, Default)]
pub(super) enum Panel {
    /// Closed: no panel is shown.
    #[default]
    Closed,
    /// List of the keys.
    Help,
    /// Failures by code; `None` until they arrive.
    Failures(Option<Vec<api::FailureGroup>>),
    /// Explanation; `None` until it arrives.
    Explain(Option<String>),
}

/// Recent speed of the task.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    /// Attempts sent per second, one point per second, oldest first.
    pub(super) points: Vec<f64>,
    /// Target rate at the last of these points.
    pub(super) target: Option<f64>,
    /// Median duration of calls. Unit: seconds.
    pub(super) p50: Option<f64>,
    /// 95th percentile of call durations. Unit: seconds.
    pub(super) p95: Option<f64>,
    /// Failed attempts per second.
    pub(super) errors: Option<f64>,
}

/// Window of one shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    pub(super) watermark: u64,
    pub(super) high_water: u64,
    /// Letter of the state of each cell: S, P, F, K, R, A.
    pub(super) cells: Vec<char>,
    pub(super) head: Option<api::WindowHead>,
}

/// Everything the watch knows.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// Task as the node shows it, updated by later events.
    pub(super) task: api::Task,
    /// Set by a snapshot that no longer contains the task.
    pub(super) is_gone: bool,
    /// Set by numbers of a node that can't reach its database, reset by newer ones and by a fetched task.
    pub(super) is_stale: bool,
    /// Number and node of the newest run, while it lasts.
    pub(super) run: Option<(u32, String)>,
    pub(super) pace: Pace,
    pub(super) windows: Vec<Window>,
    /// Recent events, newest last.
    pub(super) tail: VecDeque<Entry>,
    /// Time since which the stream is lost. Unit: milliseconds since 1970.
    pub(super) lost_at_ms: Option<i64>,
    /// Node's time. Unit: milliseconds since 1970.
    pub(super) now_ms: i64,
    pub(super) style: TimeStyle,
    /// Answer to the last key.
    pub(super) note: Option<String>,
    /// Set while the user is asked whether to stop the task.
    pub(super) asks: bool,
    pub(super) panel: Panel,
    /// Requested rate that isn't confirmed yet.
    pub(super) wanted: Option<RateLimit>,
    /// Rate that is being typed.
    pub(super) typed: Option<String>,
    /// True if keys can be pressed.
    pub(super) has_keys: bool,
}

impl State {
    /// Creates the initial state.
    pub(super) fn new(task: api::Task, now_ms: i64, style: TimeStyle) -> State {
        State {
            task,
            now_ms,
            style,
            ..State::default()
        }
    }

    /// Returns the number of the task.
    pub(super) fn id(&self) -> &str {
        &self.task.id
    }

    /// True if the list of failures is open.
    pub(super) fn shows_failures(&self) -> bool {
        matches!(self.panel, Panel::Failures(_))
    }

    /// Processes news. Returns true if the whole task should be fetched. An open explanation is closed when its run
    /// ends.
    pub(super) fn hear(&mut self, news: News) -> bool {
        let before = self.task.status.clone();
        let looks = self.take_in(news);
        let (now, is_explained) = (&self.task.status, matches!(self.panel, Panel::Explain(_)));
        if is_explained && *now != before && now != "running" {
            self.panel = Panel::Closed;
        }
        looks
    }

    fn take_in(&mut self, news: News) -> bool {
        match news {
            News::Event(event) => return self.hear_event(&event),
            News::Lost => self.lost_at_ms = Some(self.now_ms),
            News::Back => {
                self.lost_at_ms = None;
                return true;
            }
            News::Task(task) => {
                let rate = task.settings.tuning.rate;
                self.wanted = self.wanted.filter(|wanted| *wanted != rate);
                self.show(*task);
            }
            News::Run(run) => {
                let run = run.filter(|run| run.ended_at.is_none());
                self.run = run.and_then(|run| Some((run.run, run.node?)));
            }
            News::Stats(stats) => self.pace = pace(*stats),
            News::Window(window) => self.windows = window.shards.into_iter().map(read_window).collect(),
            News::Failures(groups) => {
                if self.shows_failures() {
                    self.panel = Panel::Failures(Some(groups));
                }
            }
            News::Explained(text) => {
                if matches!(self.panel, Panel::Explain(_)) {
                    self.panel = Panel::Explain(Some(text));
                }
            }
            News::Said(text) => self.note = Some(text),
            News::Sign(..) => {}
            News::Refused(text) => {
                self.wanted = None;
                self.note = Some(text);
            }
        }
        false
    }

    /// Replaces the whole task.
    fn show(&mut self, task: api::Task) {
        self.task = task;
        self.is_stale = false;
    }

    fn hear_event(&mut self, event: &Event) -> bool {
        match event.event.as_str() {
            "snapshot" => match told(event) {
                Some(Some(task)) => self.show(task),
                Some(None) => self.is_gone = true,
                None => {}
            },
            "stats" => match told(event) {
                Some(stats) => self.hear_numbers(stats),
                None => self.is_stale |= told::<api::StaleEvent>(event).is_some(),
            },
            "handler" => {
                let told = told(event).map(|told: api::HandlerEvent| told.handler);
                told.into_iter().for_each(|handler| self.hear_handler(handler));
            }
            "status" => {
                let Some(told) = told(event) else { return false };
                self.hear_status(told);
                return true;
            }
            kind => {
                self.tail.extend(entry(event));
                if self.tail.len() > TAIL_MAX {
                    self.tail.pop_front();
                }
                return kind == "audit";
            }
        }
        false
    }

    fn hear_status(&mut self, told: api::StatusEvent) {
        let task = &mut self.task;
        task.status = told.status;
        task.result = told.result;
        task.stop_reason = told.stop_reason;
        task.status_reason = told.status_reason;
        task.status_text = told.status_text;
        task.since = told.since;
    }

    fn hear_handler(&mut self, told: api::HandlerState) {
        self.task.handler_down = told.handler_down;
        self.task.last_error = told.last_error;
        self.task.status_text = told.status_text;
    }

    fn hear_numbers(&mut self, told: api::StatsEvent) {
        // Don't take the rate from here: it may be older than the answer to a change. Each change also arrives as an
        // `audit` event, after which the whole task is fetched.
        let task = &mut self.task;
        task.total = told.total;
        task.counts = told.counts;
        task.pace = told.pace;
        task.watermark = told.watermark;
        task.live = told.window.map(|window| api::TaskLive {
            high_water: told.high_water,
            window: Some(window),
            concurrency: told.concurrency,
            latency_p95_seconds: told.latency_p95_seconds,
            stall: told.stall,
            autopilot: told.autopilot,
            ..api::TaskLive::default()
        });
        if told.costs.is_some() {
            task.costs = told.costs;
        }
        self.is_stale = told.stale.is_some();
        self.hear_handler(told.handler);
    }
}

/// Parses the data of an event, or returns `None` if it is unreadable.
pub(super) fn told<T: DeserializeOwned>(event: &Event) -> Option<T> {
    #[derive(Deserialize)]
    struct Told<T> {
        data: T,
    }
    let told = serde_json::from_str(&event.data).map(|Told { data }| data);
    told.inspect_err(|error| tracing::debug!(event.event, %error, "unreadable event"))
        .ok()
}

fn pace(stats: api::TaskStats) -> Pace {
    let (series, latency) = (stats.series, stats.latency);
    let last = &series.errors[series.errors.len().saturating_sub(ERRORS_OVER)..];
    Pace {
        errors: (!last.is_empty()).then(|| last.iter().sum::<f64>() / last.len() as f64),
        points: series.sent,
        target: series.target.last().copied().flatten(),
        p50: latency.p50,
        p95: latency.p95,
    }
}

fn read_window(shard: api::ShardWindow) -> Window {
    Window {
        watermark: shard.watermark,
        high_water: shard.high_water,
        cells: cells(&shard.cells),
        head: shard.head,
    }
}

/// Expands `F1S2` to F, S, S.
fn cells(text: &str) -> Vec<char> {
    let mut cells = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        rest = &rest[letter.len_utf8()..];
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let count: usize = rest[..digits].parse().unwrap_or(0);
        rest = &rest[digits..];
        cells.extend(std::iter::repeat_n(letter, count.min(CELLS_MAX - cells.len())));
    }
    cells
}

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, data: impl Serialize) -> News {
        let data = json!({"topic": "task:t1", "data": data}).to_string();
        News::Event(Event {
            id: "1".to_owned(),
            event: kind.to_owned(),
            data,
        })
    }

    fn task(status: &str, rate: &str) -> api::Task {
        let mut task = api::Task {
            id: "t1".to_owned(),
            status: status.to_owned(),
            ..Default::default()
        };
        task.settings.tuning.rate = rate.parse().expect("a rate");
        task
    }

    fn state() -> State {
        State::new(task("running", "5/s"), 0, TimeStyle::Utc)
    }

    fn rate(state: &State) -> String {
        state.task.settings.tuning.rate.to_string()
    }

    #[test]
    fn events_change_what_they_are_about_and_nothing_else() {
        let mut state = state();
        let mut stats = api::StatsEvent {
            counts: api::TaskCounts {
                succeeded: 3,
                ..Default::default()
            },
            rate: "9/s".to_owned(),
            window: Some(40),
            stall: Some("window".to_owned()),
            ..Default::default()
        };
        assert!(!state.hear(event("stats", &stats)));
        assert_eq!(
            (rate(&state).as_str(), state.task.status.as_str()),
            ("5/s", "running")
        );
        assert_eq!(state.task.counts.succeeded, 3);
        assert_eq!(state.task.live.as_ref().and_then(|live| live.window), Some(40));
        let stopped = api::StatusEvent {
            status: "stopped".to_owned(),
            stop_reason: Some("operator".to_owned()),
            ..Default::default()
        };
        assert!(state.hear(event("status", stopped)));
        assert_eq!(
            (rate(&state).as_str(), state.task.status.as_str()),
            ("5/s", "stopped")
        );
        stats.window = None;
        state.hear(event("stats", &stats));
        assert!(state.task.live.is_none());
        state.hear(event("snapshot", task("finished", "6/s")));
        assert_eq!(
            (rate(&state).as_str(), state.task.status.as_str()),
            ("6/s", "finished")
        );
        assert_eq!(state.task.counts.succeeded, 0);
        assert!(!state.is_gone);
        state.hear(event("snapshot", Value::Null));
        assert!(state.is_gone);
    }

    #[test]
    fn numbers_are_old_until_newer_ones_come() {
        let mut state = state();
        let numbers = |stale: Option<&str>| api::StatsEvent {
            total: 7,
            stale: stale.map(str::to_owned),
            ..Default::default()
        };
        state.hear(event("stats", numbers(None)));
        state.hear(event("stats", json!({"stale": "store_unavailable"})));
        assert_eq!(
            (state.is_stale, state.task.total),
            (true, 7),
            "no more is told than that"
        );
        state.hear(event("stats", numbers(None)));
        assert!(!state.is_stale);
        state.hear(event("stats", numbers(Some("store_unavailable"))));
        assert!(state.is_stale);
        state.hear(News::Task(Box::new(task("running", "5/s"))));
        assert!(!state.is_stale);
    }

    #[test]
    fn numbers_that_were_on_their_way_undo_no_change_of_the_rate() {
        let mut state = state();
        state.hear(News::Task(Box::new(task("running", "110/s"))));
        let stats = api::StatsEvent {
            rate: "100/s".to_owned(),
            ..Default::default()
        };
        state.hear(event("stats", stats));
        assert_eq!(rate(&state), "110/s");
        assert!(state.hear(event("audit", api::AuditEntry::default())));
    }

    #[test]
    fn an_explanation_of_a_run_is_gone_when_the_task_stops() {
        let mut state = state();
        state.panel = Panel::Explain(None);
        state.hear(News::Explained("target 10/s".to_owned()));
        let stopped = || News::Task(Box::new(task("stopped", "5/s")));
        state.hear(stopped());
        assert!(matches!(state.panel, Panel::Closed));
        state.panel = Panel::Explain(Some("why: the task is stopped".to_owned()));
        state.hear(stopped());
        assert!(
            !matches!(state.panel, Panel::Closed),
            "this one is of the stopped task"
        );
    }

    #[test]
    fn what_cant_be_read_changes_nothing() {
        let mut state = state();
        let before = json!(state.task);
        state.hear(News::Event(Event {
            id: "1".into(),
            event: "stats".into(),
            data: "{".into(),
        }));
        state.hear(event("later", json!({"x": 1})));
        assert_eq!((json!(state.task), state.tail.len()), (before, 0));
    }

    #[test]
    fn silence_has_a_beginning_and_an_end() {
        let mut state = state();
        state.now_ms = 7;
        state.hear(News::Lost);
        assert_eq!(state.lost_at_ms, Some(7));
        assert!(state.hear(News::Back), "what was missed is looked up");
        assert_eq!(state.lost_at_ms, None);
    }

    #[test]
    fn runs_of_cells_are_read_and_bounded() {
        assert_eq!(cells("F1S2R10").len(), 13);
        assert_eq!(cells("F1S2")[..], ['F', 'S', 'S']);
        assert_eq!(
            cells("S99999999999999999999").len(),
            0,
            "no number that a node sends"
        );
        assert_eq!(cells("S999999999").len(), CELLS_MAX);
        assert_eq!(cells("é3x"), ['é', 'é', 'é']);
    }

    #[test]
    fn the_tail_is_bounded() {
        let mut state = state();
        for index in 0..100 {
            let line = api::LogEvent {
                index: Some(index),
                ..Default::default()
            };
            state.hear(event("log", line));
        }
        assert_eq!(state.tail.len(), TAIL_MAX);
    }
}
