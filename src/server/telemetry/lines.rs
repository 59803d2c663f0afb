//! Log lines for machines: the fixed keys `ts`, `level`, `target`, `msg`, followed by the event's fields.

use std::fmt;

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::Style;

/// Log target of messages that the program prints besides its log.
const TARGET: &str = "windrow";

/// Field with the actor tree of a node: a table for people, values for machines.
const TREE: &str = "tree";

/// Machine-readable format of log lines.
pub(super) enum Lines {
    /// One JSON object per line.
    Json,
    /// `key=value` pairs, quoted if necessary.
    Logfmt,
}

impl Lines {
    fn line(&self, members: Map<String, Value>) -> String {
        match self {
            Lines::Json => Value::Object(members).to_string(),
            Lines::Logfmt => logfmt(&members),
        }
    }
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        writeln!(out, "{}", self.line(members(event)?))
    }
}

fn members(event: &Event<'_>) -> Result<Map<String, Value>, fmt::Error> {
    let meta = event.metadata();
    let mut members = head(*meta.level(), meta.target(), "")?;
    event.record(&mut Fields(&mut members));
    Ok(members)
}

/// Creates the fixed keys of a line.
fn head(level: Level, target: &str, text: &str) -> Result<Map<String, Value>, fmt::Error> {
    let mut time = String::new();
    SystemTime.format_time(&mut Writer::new(&mut time))?;
    let mut members = Map::new();
    members.insert("ts".to_owned(), time.into());
    members.insert("level".to_owned(), level.as_str().into());
    members.insert("target".to_owned(), target.into());
    say(&mut members, text);
    Ok(members)
}

/// Formats a message that the program prints besides its log as a log line.
pub(super) fn said(style: Style, level: Level, text: &str) -> Result<String, fmt::Error> {
    Ok(match style {
        Style::Pretty { .. } | Style::Plain { .. } => text.to_owned(),
        Style::Json => Lines::Json.line(head(level, TARGET, text)?),
        Style::Logfmt => Lines::Logfmt.line(head(level, TARGET, text)?),
    })
}

/// Sets the message. Of a text with several lines, `msg` has the first and `lines` has all of them.
fn say(members: &mut Map<String, Value>, text: &str) {
    let text = text.trim_matches('\n');
    let first = text.lines().next().unwrap_or_default();
    if first.len() < text.len() {
        members.insert("lines".to_owned(), text.lines().collect());
    }
    members.insert("msg".to_owned(), first.trim_end().into());
}

/// Splits a text with several lines into a list, because escaped line feeds are hard to read.
fn spread(value: Value) -> Value {
    match value {
        Value::String(text) if text.trim_end().contains('\n') => text.trim_matches('\n').lines().collect(),
        value => value,
    }
}

/// Collector of an event's fields; the field `message` becomes `msg`.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Fields<'_> {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        match (field.name(), value.into()) {
            ("message", Value::String(text)) => say(self.0, &text),
            (name, value) => {
                self.0.insert(name.to_owned(), spread(value));
            }
        }
    }
}

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() != TREE {
            return self.put(field, format!("{value:?}"));
        }
        // The alternate form is JSON, or empty if the tree isn't wanted.
        let tree: Option<Value> = serde_json::from_str(&format!("{value:#?}")).ok();
        self.0.extend(tree.map(|tree| (TREE.to_owned(), tree)));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}

fn logfmt(members: &Map<String, Value>) -> String {
    let pair = |(name, value): (&String, &Value)| match value {
        Value::String(text) if is_plain(text) => format!("{name}={text}"),
        // Format as JSON, which escapes quotes and control characters, so that a line stays one line.
        value => format!("{name}={value}"),
    };
    members.iter().map(pair).collect::<Vec<_>>().join(" ")
}

fn is_plain(text: &str) -> bool {
    let is_odd = |c: char| c.is_whitespace() || c.is_control() || c == '"' || c == '=' || c == '\\';
    !text.is_empty() && !text.chars().any(is_odd)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex, PoisonError};

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: Lines) -> String {
        let page = Page::default();
        let writer = page.clone();
        let log = tracing_subscriber::fmt()
            .event_format(format)
            .with_writer(move || writer.clone())
            .finish();
        tracing::subscriber::with_default(log, || {
            tracing::info!(task = %"t42", dur_ms = 7, reason = "two\nlines", "stopped");
        });
        let bytes = page.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn an_event_is_one_object_with_the_fixed_keys() {
        let text = logged(Lines::Json);
        assert_eq!(text.lines().count(), 1, "{text}");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["reason"], serde_json::json!(["two", "lines"]));
        assert_eq!(
            (value["msg"].as_str(), value["level"].as_str()),
            (Some("stopped"), Some("INFO"))
        );
        assert_eq!(
            (value["task"].as_str(), value["dur_ms"].as_u64()),
            (Some("t42"), Some(7))
        );
        assert!(value["ts"].as_str().is_some_and(|ts| ts.ends_with('Z')), "{text}");
    }

    #[test]
    fn what_is_said_beside_the_log_is_a_line_of_it() {
        let text = said(Style::Json, Level::INFO, "n1 listens on \"x\"").expect("a line");
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let keys: Vec<&String> = value.as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["level", "msg", "target", "ts"]);
        assert_eq!(
            (value["msg"].as_str(), value["level"].as_str()),
            (Some("n1 listens on \"x\""), Some("INFO"))
        );
        let fault = said(Style::Logfmt, Level::ERROR, "error: a\n  because b").expect("a line");
        assert!(
            fault.contains(r#" msg="error: a" "#)
                && fault.contains(r#" lines=["error: a","  because b"] "#)
                && !fault.contains('\n'),
            "{fault}"
        );
        let plain = said(Style::Pretty { colours: false }, Level::INFO, "a\nb").expect("a line");
        assert_eq!(plain, "a\nb");
    }

    #[test]
    fn a_value_can_not_break_out_of_its_line() {
        let text = logged(Lines::Logfmt);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.contains(r#"reason=["two","lines"]"#) && text.contains(" task=t42"),
            "{text}"
        );
    }

    #[test]
    fn the_message_is_always_one_text() {
        let tree = said(Style::Json, Level::INFO, "PATH  STATE\n/n1   ok\n").expect("a line");
        let value: Value = serde_json::from_str(&tree).expect("JSON");
        assert_eq!(value["msg"], "PATH  STATE");
        assert_eq!(value["lines"], serde_json::json!(["PATH  STATE", "/n1   ok"]));
    }
}
