//! What the watch knows, as values: fed by news, drawn by `frame`, steered by `keys`. No terminal, no network, no clock.

use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::tail::{Entry, entry};
use crate::output::body::{list, number, text};
use crate::output::table::times::TimeStyle;
use windrow_client::Event;
use windrow_core::settings::RateLimit;

/// Lines of what happened that are kept; a high terminal shows no more.
const TAIL_MAX: usize = 50;
/// Cells of a window that are looked at; a node sends no more.
const CELLS_MAX: usize = 20_000;
/// What tells how the handler fares.
const HANDLER: [&str; 3] = ["handler_down", "last_error", "status_text"];
/// What tells where a task stands.
const STATUS: [&str; 6] = [
    "status",
    "result",
    "stop_reason",
    "status_reason",
    "status_text",
    "since",
];
/// Points that errors are averaged over: about the window of an error budget. Unit: seconds.
const ERRORS_OVER: usize = 10;

/// What came in.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// An event of the stream.
    Event(Event),
    /// The stream broke off.
    Lost,
    /// The stream goes on.
    Back,
    /// The task as the node shows it; null when it is gone.
    Task(Value),
    /// The task, looked at for which of its nodes give a sign; and of those that don't, what happens next.
    Sign(Value, String),
    /// Its newest run.
    Run(Value),
    /// What it did in the last minute.
    Stats(Value),
    /// Where the items of its window stand.
    Window(Value),
    /// Its failures, by code.
    Failures(Value),
    /// Why it is as fast as it is.
    Explained(String),
    /// Something was done: what to say.
    Said(String),
    /// Something was refused: what to say.
    Refused(String),
}

/// What lies open below the numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Panel {
    /// Nothing.
    #[default]
    Closed,
    /// The keys.
    Help,
    /// The failures by code; none while they are on their way.
    Failures(Option<Vec<Value>>),
    /// The explanation; none while it is on its way.
    Explain(Option<String>),
}

/// How fast it went lately.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    /// Attempts sent per second, a point a second, oldest first.
    pub(super) points: Vec<f64>,
    /// What the rate gave in the last of them.
    pub(super) target: Option<f64>,
    /// How long calls took. Unit: seconds.
    pub(super) p50: Option<f64>,
    /// The same of 95 of 100.
    pub(super) p95: Option<f64>,
    /// Failed attempts per second.
    pub(super) errors: Option<f64>,
}

/// The window of a shard.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    pub(super) low_water: u64,
    pub(super) high_water: u64,
    /// A letter a cell: S, P, F, R, A.
    pub(super) cells: Vec<char>,
    pub(super) head: Option<Head>,
}

/// The item that low water waits for.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) index: u64,
    pub(super) attempt: u64,
    pub(super) age_seconds: f64,
}

/// What the watch knows.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// The task as the node shows it, with what events said since.
    pub(super) task: Value,
    /// Its newest run, while that lasts: the number and the node.
    pub(super) run: Option<(u64, String)>,
    pub(super) pace: Pace,
    pub(super) windows: Vec<Window>,
    /// What happened, newest last.
    pub(super) tail: VecDeque<Entry>,
    /// Since when nothing is heard. Unit: milliseconds since 1970.
    pub(super) lost_at_ms: Option<i64>,
    /// The node's time. Unit: milliseconds since 1970.
    pub(super) now_ms: i64,
    pub(super) style: TimeStyle,
    /// The answer to the last key.
    pub(super) note: Option<String>,
    /// Whether it was asked if the task shall stop.
    pub(super) asks: bool,
    pub(super) panel: Panel,
    /// The rate that was asked for and isn't confirmed yet.
    pub(super) wanted: Option<RateLimit>,
    /// A rate that is being typed.
    pub(super) typed: Option<String>,
    /// Whether keys can be pressed.
    pub(super) has_keys: bool,
}

impl State {
    /// What is known at first.
    pub(super) fn new(task: Value, now_ms: i64, style: TimeStyle) -> State {
        State {
            task,
            now_ms,
            style,
            ..State::default()
        }
    }

    /// The task's number.
    pub(super) fn id(&self) -> &str {
        self.task["id"].as_str().unwrap_or_default()
    }

    /// Whether the failures lie open.
    pub(super) fn shows_failures(&self) -> bool {
        matches!(self.panel, Panel::Failures(_))
    }

    /// Takes in what came; true when the task should be looked at as a whole. What was explained of a run is over with it.
    pub(super) fn hear(&mut self, news: News) -> bool {
        let before = self.task["status"].clone();
        let looks = self.take_in(news);
        let (now, is_explained) = (&self.task["status"], matches!(self.panel, Panel::Explain(_)));
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
                let rate = task["rate"].as_str().and_then(|rate| rate.parse().ok());
                self.wanted = self.wanted.filter(|wanted| Some(*wanted) != rate);
                self.task = task;
            }
            News::Run(runs) => self.run = newest_run(&runs),
            News::Stats(stats) => self.pace = pace(&stats),
            News::Window(window) => {
                self.windows = list(&window["shards"]).iter().map(read_window).collect();
            }
            News::Failures(groups) => {
                if self.shows_failures() {
                    self.panel = Panel::Failures(groups["items"].as_array().cloned());
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

    fn hear_event(&mut self, event: &Event) -> bool {
        let Ok(whole) = serde_json::from_str::<Value>(&event.data) else {
            return false;
        };
        let data = &whole["data"];
        match event.event.as_str() {
            "snapshot" => self.task = data.clone(),
            "stats" => self.merge_numbers(data),
            "handler" => self.merge(data, &HANDLER),
            "status" => {
                self.merge(data, &STATUS);
                return true;
            }
            kind => {
                self.tail.extend(entry(kind, data, row(&event.data)));
                if self.tail.len() > TAIL_MAX {
                    self.tail.pop_front();
                }
                return kind == "audit";
            }
        }
        false
    }

    fn merge(&mut self, data: &Value, names: &[&str]) {
        let Some(task) = self.task.as_object_mut() else {
            return;
        };
        for name in names {
            if let Some(value) = data.get(*name) {
                task.insert((*name).to_owned(), value.clone());
            }
        }
    }

    fn merge_numbers(&mut self, data: &Value) {
        // The rate isn't taken from here: it may be older than the answer to a change. Each change is told by an
        // `audit`, and then the whole task is looked at.
        let counted = [
            "total",
            "counts",
            "progress",
            "low_water",
            "actual_rate",
            "eta_seconds",
            "stale",
        ];
        self.merge(data, &counted);
        self.merge(data, &HANDLER);
        let names = [
            "high_water",
            "window",
            "concurrency",
            "latency_p95_seconds",
            "stall",
        ];
        let live = names.map(|name| (name.to_owned(), data[name].clone()));
        let live = match data["window"] {
            Value::Null => Value::Null,
            _ => Value::Object(live.into_iter().collect()),
        };
        self.merge(&json!({ "live": live }), &["live"]);
    }
}

/// What the item of an event carries, as it is written there: a value would put its members in order.
fn row(event: &str) -> Option<&str> {
    #[derive(Deserialize)]
    struct Whole<'a> {
        #[serde(borrow)]
        data: Carrying<'a>,
    }
    #[derive(Deserialize)]
    struct Carrying<'a> {
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let whole: Whole = serde_json::from_str(event).ok()?;
    whole.data.data.map(RawValue::get)
}

fn newest_run(runs: &Value) -> Option<(u64, String)> {
    let run = runs["items"].get(0).filter(|run| run["ended_at"].is_null())?;
    Some((run["run"].as_u64()?, run["node"].as_str()?.to_owned()))
}

fn pace(stats: &Value) -> Pace {
    let series = &stats["series"];
    let numbers = |name: &str| {
        let points = list(&series[name]).iter();
        points
            .map(|point| point.as_f64().unwrap_or(0.0))
            .collect::<Vec<_>>()
    };
    let errors = numbers("errors");
    let last = &errors[errors.len().saturating_sub(ERRORS_OVER)..];
    Pace {
        points: numbers("sent"),
        target: list(&series["target"]).last().and_then(Value::as_f64),
        p50: stats["latency"]["p50"].as_f64(),
        p95: stats["latency"]["p95"].as_f64(),
        errors: (!last.is_empty()).then(|| last.iter().sum::<f64>() / last.len() as f64),
    }
}

fn read_window(shard: &Value) -> Window {
    let head = &shard["head"];
    let head = head["index"].as_u64().zip(head["age_seconds"].as_f64());
    Window {
        low_water: number(&shard["low_water"]),
        high_water: number(&shard["high_water"]),
        cells: cells(text(&shard["cells"])),
        head: head.map(|(index, age_seconds)| Head {
            index,
            attempt: number(&shard["head"]["attempt"]),
            age_seconds,
        }),
    }
}

/// `F1S2` to F, S, S.
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
    use super::*;

    fn event(kind: &str, data: Value) -> News {
        let data = json!({"topic": "task:t1", "data": data}).to_string();
        News::Event(Event {
            id: "1".to_owned(),
            event: kind.to_owned(),
            data,
        })
    }

    fn state() -> State {
        State::new(
            json!({"id": "t1", "status": "running", "rate": "5/s"}),
            0,
            TimeStyle::Utc,
        )
    }

    #[test]
    fn events_change_what_they_are_about_and_nothing_else() {
        let mut state = state();
        let stats = json!({"counts": {"succeeded": 3}, "rate": "9/s", "window": 40, "stall": "window"});
        assert!(!state.hear(event("stats", stats)));
        assert_eq!(
            (&state.task["rate"], &state.task["status"]),
            (&json!("5/s"), &json!("running"))
        );
        assert_eq!(state.task["counts"]["succeeded"], 3);
        assert_eq!(state.task["live"]["window"], 40);
        assert!(state.hear(event(
            "status",
            json!({"status": "stopped", "stop_reason": "operator"})
        )));
        assert_eq!(
            (&state.task["status"], &state.task["rate"]),
            (&json!("stopped"), &json!("5/s"))
        );
        state.hear(event("stats", json!({"window": null})));
        assert_eq!(state.task["live"], Value::Null);
        state.hear(event("snapshot", json!({"id": "t1", "status": "finished"})));
        assert_eq!(state.task, json!({"id": "t1", "status": "finished"}));
    }

    #[test]
    fn numbers_that_were_on_their_way_undo_no_change_of_the_rate() {
        let mut state = state();
        state.hear(News::Task(json!({"id": "t1", "rate": "110/s"})));
        state.hear(event("stats", json!({"rate": "100/s"})));
        assert_eq!(state.task["rate"], "110/s");
        assert!(state.hear(event(
            "audit",
            json!({"at": "x", "actor": "ann", "action": "task.tune"})
        )));
    }

    #[test]
    fn an_explanation_of_a_run_is_gone_when_the_task_stops() {
        let mut state = state();
        state.panel = Panel::Explain(None);
        state.hear(News::Explained("target 10/s".to_owned()));
        state.hear(News::Task(json!({"id": "t1", "status": "stopped"})));
        assert_eq!(state.panel, Panel::Closed);
        state.panel = Panel::Explain(Some("why: the task is stopped".to_owned()));
        state.hear(News::Task(json!({"id": "t1", "status": "stopped"})));
        assert_ne!(state.panel, Panel::Closed, "this one is of the stopped task");
    }

    #[test]
    fn what_cant_be_read_changes_nothing() {
        let mut state = state();
        let before = state.task.clone();
        state.hear(News::Event(Event {
            id: "1".into(),
            event: "stats".into(),
            data: "{".into(),
        }));
        state.hear(event("later", json!({"x": 1})));
        assert_eq!((state.task, state.tail.len()), (before, 0));
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
            state.hear(event(
                "log",
                json!({"at": "2026-11-20T17:02:11Z", "level": "info", "index": index}),
            ));
        }
        assert_eq!(state.tail.len(), TAIL_MAX);
    }
}
