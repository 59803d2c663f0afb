//! Meaning of keys: a pure step from a state and a key to the next state and an order.

use std::time::Duration;

use super::state::{Panel, State};
use windrow_core::settings::{Rate, RateLimit};

const ESCAPE: u8 = 0x1b;
/// Maximum length of a typed rate. Unit: bytes.
const TYPED_MAX: usize = 20;

/// Order that a key gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Leave the watch; the task goes on.
    Quit,
    /// Stop the task, after confirmation.
    Stop,
    /// Start the task, for the first time or again.
    Start,
    /// Change the rate of the task.
    Rate(RateLimit),
    /// Fetch the failures by code.
    Failures,
    /// Fetch the explanation of its speed.
    Explain,
    /// Check whether the task's nodes are alive.
    Silence,
    /// Fetch the whole task.
    Look,
}

/// Returns the keys in the bytes from a terminal. A sequence that starts with an escape, such as an arrow, counts as
/// one key.
pub(super) fn read(bytes: &[u8]) -> Vec<u8> {
    match bytes.first() {
        Some(&ESCAPE) => vec![ESCAPE],
        _ => bytes.to_vec(),
    }
}

impl State {
    /// Handles a key: part of a rate while one is typed, otherwise a command.
    pub(super) fn press(&mut self, byte: u8) -> Option<Order> {
        let Some(mut typed) = self.typed.take() else {
            return self.command(byte);
        };
        match byte {
            b'\r' | b'\n' => return self.set_typed(&typed),
            ESCAPE => return None,
            0x08 | 0x7f => drop(typed.pop()),
            b' '..=b'~' if typed.len() < TYPED_MAX => typed.push(char::from(byte)),
            _ => {}
        }
        self.typed = Some(typed);
        None
    }

    fn set_typed(&mut self, typed: &str) -> Option<Order> {
        let typed = typed.trim();
        // A bare number means per second; everything else has a unit.
        match typed
            .parse::<RateLimit>()
            .or_else(|error| format!("{typed}/s").parse().map_err(|_| error))
        {
            Ok(rate) => {
                self.note = Some(format!("rate → {rate} …"));
                self.wanted = Some(rate);
                Some(Order::Rate(rate))
            }
            Err(error) => {
                self.note = Some(format!("{typed:?} is not a rate: {error}"));
                None
            }
        }
    }

    /// Handles a key while no rate is typed.
    fn command(&mut self, byte: u8) -> Option<Order> {
        self.note = None;
        if std::mem::take(&mut self.asks) {
            let is_yes = matches!(byte, b'y' | b'Y');
            self.note = Some(if is_yes { "stopping …" } else { "not stopped" }.to_owned());
            return is_yes.then_some(Order::Stop);
        }
        match byte.to_ascii_lowercase() {
            b'q' => return Some(Order::Quit),
            b'g' => {
                self.note = Some("starting …".to_owned());
                return Some(Order::Start);
            }
            b'+' | b'=' => return self.step(true),
            b'-' | b'_' => return self.step(false),
            b'f' => return self.toggle(Panel::Failures(None), Order::Failures),
            b'e' => return self.toggle(Panel::Explain(None), Order::Explain),
            b's' => match self.task.status.as_str() {
                "created" => self.note = Some("not started yet: g starts it".to_owned()),
                "stopped" => self.note = Some("stopped: g starts it again".to_owned()),
                _ => self.asks = true,
            },
            b'r' => self.typed = Some(String::new()),
            b'?' | b'h' if !matches!(self.panel, Panel::Help) => self.panel = Panel::Help,
            b'y' => {}
            _ => self.panel = Panel::Closed,
        }
        None
    }

    fn toggle(&mut self, panel: Panel, order: Order) -> Option<Order> {
        if std::mem::discriminant(&self.panel) == std::mem::discriminant(&panel) {
            self.panel = Panel::Closed;
            return None;
        }
        self.panel = panel;
        Some(order)
    }

    /// Raises or lowers the last requested rate by ten percent.
    fn step(&mut self, is_up: bool) -> Option<Order> {
        let present = self.wanted.unwrap_or(self.task.settings.tuning.rate);
        let Some(next) = stepped(present, is_up) else {
            let id = self.id();
            let why = match present.is_auto() {
                true => "the autopilot finds the rate",
                false => "no rate to change",
            };
            let note = format!("{why}; windrow task set {id} --rate 100/s");
            self.note = Some(note);
            return None;
        };
        self.note = Some(format!("rate → {next} …"));
        self.wanted = Some(next);
        Some(Order::Rate(next))
    }
}

/// Changes a rate, or the ceiling of `auto`, by ten percent, at least by one item. A rate of few items is first
/// expressed over ten times its period, so that a step is never more than ten percent.
fn stepped(present: RateLimit, is_up: bool) -> Option<RateLimit> {
    let rate = present.most()?;
    let (mut items, mut period_ns) = (rate.items(), rate.period_ns());
    if items < 10 {
        items *= 10;
        period_ns = period_ns.checked_mul(10)?;
    }
    let step = items / 10;
    let items = if is_up {
        items.checked_add(step)?
    } else {
        items - step
    };
    Rate::new(items, Duration::from_nanos(period_ns)).map(|next| present.map(|_| next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::times::TimeStyle;

    fn state(rate: &str) -> State {
        let mut task = api::Task {
            id: "t1".to_owned(),
            status: "running".to_owned(),
            ..Default::default()
        };
        task.settings.tuning.rate = rate.parse().expect("a rate");
        State::new(task, 0, TimeStyle::Utc)
    }

    fn press(state: &mut State, keys: &[u8]) -> Vec<Order> {
        read(keys)
            .into_iter()
            .filter_map(|byte| state.press(byte))
            .collect()
    }

    fn rate(text: &str) -> Order {
        Order::Rate(text.parse().expect("a rate"))
    }

    #[test]
    fn a_stop_is_asked_for_once_and_needs_a_yes() {
        let mut state = state("5/s");
        assert_eq!(press(&mut state, b"s"), []);
        assert!(state.asks);
        assert_eq!(press(&mut state, b"n"), []);
        assert_eq!(state.note.as_deref(), Some("not stopped"));
        assert_eq!(press(&mut state, b"y"), [], "nobody asked");
        assert_eq!(press(&mut state, b"sy"), [Order::Stop]);
        assert_eq!(
            press(&mut state, b"sq"),
            [],
            "an answer that is not a yes is a no"
        );
        assert_eq!(press(&mut state, b"q"), [Order::Quit]);
    }

    #[test]
    fn each_press_is_ten_percent_of_what_was_asked_last() {
        let mut state = state("500/s");
        assert_eq!(
            press(&mut state, b"++-"),
            [rate("550/s"), rate("605/s"), rate("545/s")]
        );
        state.task.settings.tuning.rate = "1/m".parse().expect("a rate");
        state.wanted = None;
        assert_eq!(press(&mut state, b"+"), [rate("11/10m")]);
        state.wanted = None;
        assert_eq!(press(&mut state, b"-"), [rate("9/10m")]);
    }

    #[test]
    fn a_rate_is_typed_corrected_and_left() {
        let mut state = state("500/s");
        assert_eq!(press(&mut state, b"r25\x7f0/s\r"), [rate("20/s")]);
        assert_eq!(
            press(&mut state, b"r10\r"),
            [rate("10/s")],
            "a number alone is one a second"
        );
        assert_eq!(
            press(&mut state, b"rquick\r"),
            [],
            "letters are no keys meanwhile"
        );
        assert!(
            state
                .note
                .as_deref()
                .is_some_and(|note| note.contains("not a rate")),
            "{:?}",
            state.note
        );
        assert_eq!(press(&mut state, b"r7"), []);
        assert_eq!(press(&mut state, b"\x1b"), []);
        assert_eq!(
            press(&mut state, b"gq"),
            [Order::Start, Order::Quit],
            "keys are keys again"
        );
    }

    #[test]
    fn small_rates_never_reach_nothing_and_large_ones_have_an_end() {
        let mut rate: RateLimit = "1/s".parse().expect("a rate");
        for _ in 0..200 {
            match stepped(rate, false) {
                Some(next) => rate = next,
                None => break,
            }
            assert!(matches!(rate, RateLimit::Limited(rate) if rate.items() > 0));
        }
        assert_eq!(stepped("1000000000/s".parse().expect("a rate"), true), None);
    }

    #[test]
    fn under_the_autopilot_the_keys_change_the_ceiling() {
        let mut state = state("auto up to 500/s");
        assert_eq!(
            press(&mut state, b"+-"),
            [rate("auto up to 550/s"), rate("auto up to 495/s")]
        );
        assert_eq!(press(&mut state, b"rauto up to 70\r"), [rate("auto up to 70/s")]);
        assert_eq!(press(&mut state, b"rauto\r"), [rate("auto")]);
    }

    #[test]
    fn what_has_no_rate_says_how_it_gets_one() {
        let mut state = state("unlimited");
        assert_eq!(press(&mut state, b"+"), []);
        let note = state.note.take().expect("a note");
        assert!(note.contains("windrow task set t1 --rate"), "{note}");
        state.task.settings.tuning.rate = RateLimit::Auto(None);
        assert_eq!(press(&mut state, b"-"), []);
        let note = state.note.expect("a note");
        assert!(
            note.starts_with("the autopilot finds the rate; windrow task set"),
            "{note}"
        );
    }

    #[test]
    fn panels_open_and_close() {
        let mut state = state("5/s");
        assert_eq!(press(&mut state, b"f"), [Order::Failures]);
        assert_eq!(press(&mut state, b"e"), [Order::Explain]);
        assert!(matches!(state.panel, Panel::Explain(None)));
        assert_eq!(press(&mut state, b"e"), []);
        assert!(matches!(state.panel, Panel::Closed));
        press(&mut state, b"?");
        assert!(matches!(state.panel, Panel::Help));
        press(&mut state, b"\x1b");
        assert!(matches!(state.panel, Panel::Closed));
    }

    #[test]
    fn an_arrow_is_one_key_and_orders_nothing() {
        let mut state = state("5/s");
        assert_eq!(press(&mut state, b"\x1b[A"), []);
        assert_eq!(press(&mut state, "é\0\r".as_bytes()), []);
    }
}
