//! Headers with which services describe their limits: names and forms, without a clock.
//!
//! Read are `retry-after` and `retry-after-ms`, the IETF `RateLimit` with its older drafts (`RateLimit-Remaining` beside
//! `RateLimit-Reset`, and one list of both), `x-ratelimit-{remaining,reset}` with and without a unit, and
//! `anthropic-ratelimit-*`. `limit` and `RateLimit-Policy` say what is left nowhere, so they aren't needed.
//! Nonsense is counted and otherwise ignored.

use std::time::Duration;

use crate::ids::WallMs;

/// Reset in a number above this is a time since 1970 in seconds, and above [`EPOCH_MS`] in milliseconds.
const EPOCH_S: f64 = 1e9;
const EPOCH_MS: f64 = 1e12;
/// Longest text that is read.
const TEXT_MAX: usize = 256;

/// Unit that a window counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Calls, or no unit named.
    Calls,
    /// Tokens of language models, in and out.
    Tokens,
    /// Something else; only its end says anything about calls.
    Other,
}

/// Window that headers describe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told {
    /// Unit that the window counts.
    pub unit: Unit,
    /// Number left, in that unit.
    pub left: u64,
    /// Time from the answer until it is full again, if named.
    pub reset: Option<Duration>,
}

/// Everything that the headers of one answer say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Wait that the service names; zero is no wait.
    pub retry_after: Option<Duration>,
    /// Windows with what is left in them, in the order of the headers.
    pub windows: Vec<Told>,
    /// Headers of these names with a value that means nothing.
    pub nonsense: u32,
}

/// Part of a window that a header names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Left,
    Reset,
}

/// Names in front of a part. With `false` the unit stands behind the part, with `true` before it.
const PREFIXES: [(&str, bool); 5] = [
    ("x-ratelimit-", false),
    ("x-rate-limit-", false),
    ("ratelimit-", false),
    ("rate-limit-", false),
    ("anthropic-ratelimit-", true),
];

/// Beginnings of all names that are read.
const BEGINNINGS: [&str; 6] = [
    "retry-after",
    "ratelimit",
    "rate-limit-",
    "x-ratelimit-",
    "x-rate-limit-",
    "anthropic-ratelimit-",
];

/// Returns false, at the cost of a look at its first letter, for nearly all names that aren't read.
pub fn may_matter(name: &str) -> bool {
    let begins = |with: &str| {
        let begin = name.as_bytes().get(..with.len());
        begin.is_some_and(|begin| begin.eq_ignore_ascii_case(with.as_bytes()))
    };
    let first = name.bytes().next().map(|byte| byte.to_ascii_lowercase());
    matches!(first, Some(b'r' | b'x' | b'a')) && BEGINNINGS.iter().any(|with| begins(with))
}

/// Reads the headers of an answer, of which `at` is the sender's time: its `Date`, or else ours. Names are compared
/// without case.
pub fn read<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>, at: WallMs) -> Limits {
    let mut limits = Limits::default();
    let mut found: Vec<Window> = Vec::new();
    let ours = headers.into_iter().filter(|(name, _)| may_matter(name));
    for (name, value) in ours {
        let (name, value) = (name.to_ascii_lowercase(), value.trim());
        if !limits.take(&name, value, at, &mut found) {
            limits.nonsense = limits.nonsense.saturating_add(1);
        }
    }
    limits.windows.extend(found.iter().filter_map(Window::told));
    limits
}

/// Window whose parts come in several headers. Those of one name belong together.
struct Window {
    name: String,
    left: Option<u64>,
    reset: Option<Duration>,
}

impl Window {
    fn told(&self) -> Option<Told> {
        let unit = unit(&self.name);
        let (left, reset) = (self.left?, self.reset);
        Some(Told { unit, left, reset })
    }
}

impl Limits {
    /// Takes a header; returns false if it is one of ours with a value that means nothing.
    fn take(&mut self, name: &str, value: &str, at: WallMs, found: &mut Vec<Window>) -> bool {
        if value.len() > TEXT_MAX {
            return !is_ours(name);
        }
        match name {
            "retry-after-ms" => self.wait(number(value).and_then(|ms| span(ms / 1000.0)), true),
            "retry-after" => self.wait(wait(value, at), false),
            "ratelimit" => self.list(value),
            _ => part(name).is_none_or(|(window, part)| keep(found, window, part, value, at)),
        }
    }

    /// Keeps a wait; the one in milliseconds is more exact.
    fn wait(&mut self, wait: Option<Duration>, is_exact: bool) -> bool {
        if is_exact || self.retry_after.is_none() {
            self.retry_after = wait.or(self.retry_after);
        }
        wait.is_some()
    }

    /// Reads `"name";r=50;t=30` of the IETF, several with commas, and `limit=100, remaining=50, reset=30` of drafts.
    fn list(&mut self, value: &str) -> bool {
        let before = self.windows.len();
        if value.contains("remaining=") {
            let (left, reset) = (member(value, "remaining"), member(value, "reset"));
            self.windows.extend(window(Unit::Calls, left, reset));
        } else {
            for policy in value.split(',') {
                let (left, reset) = (member(policy, "r"), member(policy, "t"));
                let name = policy.split(';').next().unwrap_or_default();
                self.windows.extend(window(unit(name), left, reset));
            }
        }
        self.windows.len() > before
    }
}

fn window(unit: Unit, left: Option<f64>, reset: Option<f64>) -> Option<Told> {
    let left = whole(left?)?;
    let reset = reset.and_then(span);
    Some(Told { unit, left, reset })
}

fn is_ours(name: &str) -> bool {
    ["retry-after", "retry-after-ms", "ratelimit"].contains(&name) || part(name).is_some()
}

/// Returns the window and the part that a header's name means.
fn part(name: &str) -> Option<(String, Part)> {
    let (prefix, is_unit_first) = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix))?;
    let rest = &name[prefix.len()..];
    let (word, unit) = if *is_unit_first {
        let (unit, word) = rest.rsplit_once('-')?;
        (word, unit)
    } else {
        rest.split_once('-').unwrap_or((rest, ""))
    };
    let part = match word {
        "remaining" => Part::Left,
        "reset" => Part::Reset,
        _ => return None,
    };
    Some((format!("{prefix}{unit}"), part))
}

fn keep(found: &mut Vec<Window>, name: String, part: Part, value: &str, at: WallMs) -> bool {
    let index = found
        .iter()
        .position(|window| window.name == name)
        .unwrap_or_else(|| {
            let (left, reset) = (None, None);
            found.push(Window { name, left, reset });
            found.len() - 1
        });
    let window = &mut found[index];
    match part {
        Part::Left => {
            let left = number(value).and_then(whole);
            window.left = left.or(window.left);
            left.is_some()
        }
        Part::Reset => {
            let reset = wait(value, at);
            window.reset = reset.or(window.reset);
            reset.is_some()
        }
    }
}

fn unit(name: &str) -> Unit {
    // Without the prefix, which has "rate" and "limit" in it.
    let prefix = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
    let unit = prefix.map_or(name, |(prefix, _)| &name[prefix.len()..]);
    if unit.contains("token") {
        Unit::Tokens
    } else if unit.is_empty() || unit.contains("request") || prefix.is_none() {
        Unit::Calls
    } else {
        Unit::Other
    }
}

/// Returns the number of a member `name=value` in a list with `,` and `;`.
fn member(list: &str, name: &str) -> Option<f64> {
    let members = list
        .split([',', ';'])
        .filter_map(|member| member.trim().split_once('='));
    members
        .filter(|(key, _)| *key == name)
        .find_map(|(_, value)| number(value))
}

/// Reads a time from now on: seconds, a span (`6m0s`), an instant (RFC 3339, an HTTP date), or an epoch.
fn wait(value: &str, at: WallMs) -> Option<Duration> {
    if let Some(number) = number(value) {
        return match number {
            ms if ms >= EPOCH_MS => Some(until(ms, at)),
            seconds if seconds >= EPOCH_S => Some(until(seconds * 1000.0, at)),
            seconds => span(seconds),
        };
    }
    let instant = WallMs::from_rfc3339(value).ok().or_else(|| http_date(value));
    instant.map(|instant| instant.since(at)).or_else(|| spans(value))
}

fn until(epoch_ms: f64, at: WallMs) -> Duration {
    WallMs(epoch_ms.min(WallMs::LAST.0 as f64) as i64).since(at)
}

/// Reads `1h2m3.5s`, `250ms`: each unit once, from the largest down.
fn spans(value: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 7] = [
        ("d", 86_400.0),
        ("h", 3600.0),
        ("m", 60.0),
        ("s", 1.0),
        ("ms", 1e-3),
        ("us", 1e-6),
        ("ns", 1e-9),
    ];
    let (mut rest, mut sum, mut from) = (value, 0.0, 0);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (digits, behind) = rest.split_at(end);
        let end = behind
            .find(|c: char| !c.is_ascii_lowercase())
            .unwrap_or(behind.len());
        let at = from
            + UNITS[from..]
                .iter()
                .position(|(name, _)| *name == &behind[..end])?;
        sum += number(digits)? * UNITS[at].1;
        (rest, from) = (&behind[end..], at + 1);
    }
    (!value.is_empty()).then_some(sum).and_then(span)
}

/// Reads a date of HTTP in each of its three forms: `Sun, 06 Nov 1994 08:49:37 GMT`, `Sunday, 06-Nov-94 08:49:37 GMT`
/// and `Sun Nov  6 08:49:37 1994`.
pub fn http_date(value: &str) -> Option<WallMs> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let words = value.split([' ', ',', '-']).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let (day, month, year, time) = match words[..] {
        [_, day, month, year, time, "GMT"] => (day, month, year, time),
        [_, month, day, time, year] => (day, month, year, time),
        _ => return None,
    };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let century = match year.len() {
        2 if year < "70" => "20",
        2 => "19",
        _ => "",
    };
    WallMs::from_rfc3339(&format!("{century}{year}-{month:02}-{day:0>2}T{time}Z")).ok()
}

/// Reads digits with at most one point: no sign, no exponent, no `inf`.
fn number(value: &str) -> Option<f64> {
    let is_plain = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    value.parse().ok().filter(|_| is_plain)
}

fn whole(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && number < u64::MAX as f64).then_some(number as u64)
}

fn span(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds).ok()
}
