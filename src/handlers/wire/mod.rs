//! JSON vocabulary of a business's replies, the same for every transport.
//!
//! The `http` and `command` adapters call it with the bytes of one reply. Never performs I/O, and never decides the
//! consequences of a verdict. Invariants:
//! - an item counts as done only if a reply says `ok` or `skip` for it, never because something is missing;
//! - unknown members are ignored, unknown words (`result`, `default`, `command`) make the reply a bad one;
//! - whatever is kept of a reply is bounded and free of control characters.

mod batch;
mod bytes;
mod command;

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use windrow_core::ids::ItemIndex;
use windrow_core::items::output::Output;
use windrow_core::items::verdict::{Failure, OUTPUT_BYTES_MAX, Outcome, RetryAdvice, cut};
use windrow_engine::ports::handling::handler::{ItemReplies, ItemVerdict, LogLevel, LogLine, Reply};

pub use batch::parse_batch;
pub(crate) use bytes::{mark_of, output_of, shown, unmarked};
pub use command::parse_command;

/// Plainest reply about one item.
pub(crate) const OK: &str = r#"{"result":"ok"}"#;
/// Code of a reply that can't be understood.
pub const BAD_REPLY: &str = "BAD_REPLY";
/// Code of an item that a reply says nothing about.
pub const MISSING_RESULT: &str = "MISSING_RESULT";
/// Code of a `retry` that names none.
pub const RETRY: &str = "RETRY";
/// Code of a `fail` that names none.
pub const FAILED: &str = "FAILED";

/// Maximum number of log lines kept of one reply; one more line reports how many were dropped. (A reply of 1 MiB
/// could hold 30,000 of them; a batch of 100 items with 10 lines each still fits.)
pub const LOG_LINES_MAX: usize = 1000;
/// Deepest nesting of `output` and `extra`.
pub const DEPTH_MAX: usize = 64;
/// Maximum number of characters quoted of a reply that could not be understood.
const QUOTE_CHARS_MAX: usize = 80;
/// Number of bytes within which the title of a page is searched.
const TITLE_WITHIN: usize = 4096;
/// Tags with which web pages begin.
const PAGES: [&str; 8] = ["doctype", "html", "head", "body", "center", "div", "h1", "p"];
/// Tags that don't end a line of a page.
const WITHIN_LINES: [&str; 8] = ["a", "b", "code", "em", "i", "span", "strong", "tt"];

/// Parses the reply about a single item. Plain success becomes [`Reply::AllOk`].
///
/// # Errors
/// A failure with code [`BAD_REPLY`] that quotes the reply and says what to try.
pub fn parse_single(bytes: &[u8], index: ItemIndex) -> Result<Reply, Failure> {
    item_result(bytes, index).map(into_reply)
}

/// Parses the reply about a single item, or the `result` line of a worker, whose other members are ignored. Returns
/// exactly one verdict. A command without a `result` is a retry with code [`MISSING_RESULT`]; any other reply without
/// one is a bad one.
///
/// # Errors
/// See [`parse_single`].
pub fn item_result(bytes: &[u8], index: ItemIndex) -> Result<ItemReplies, Failure> {
    let body: SingleBody<'_> = parse_object(bytes)?;
    if body.is_silent() {
        return Err(bad_reply("it has no known member", bytes));
    }
    let mut logs = Logs::default();
    logs.add_all(body.logs, Some(index))
        .map_err(|why| bad_reply(why, bytes))?;
    let commands = command::checked(body.command.map(|object| object.0), bytes)?;
    let verdict = match body.result {
        Some(word) => body.about.verdict(word),
        // A command may come alone; anything else without a result is an answer in another form.
        None if commands.is_empty() => Err("it has no `result`"),
        None => Ok(missing_result(index)),
    };
    let verdict = verdict.map_err(|why| bad_reply(why, bytes))?;
    Ok(ItemReplies {
        verdicts: vec![(index, verdict)],
        commands,
        logs: logs.finish(),
    })
}

/// Parses the `log` line of a worker; its own index is used.
///
/// # Errors
/// See [`parse_single`].
pub fn parse_log(bytes: &[u8]) -> Result<LogLine, Failure> {
    let body: LogBody<'_> = parse_object(bytes)?;
    body.line(None).map_err(|why| bad_reply(why, bytes))
}

/// Returns [`Reply::AllOk`] if every verdict is `ok` and nothing else was said.
pub fn into_reply(replies: ItemReplies) -> Reply {
    let plain =
        |(_, verdict): &(ItemIndex, ItemVerdict)| *verdict == ItemVerdict::Settled(Outcome::Succeeded);
    if replies.commands.is_empty() && replies.logs.is_empty() && replies.verdicts.iter().all(plain) {
        return Reply::AllOk;
    }
    Reply::Items(Box::new(replies))
}

/// Returns the failure of a reply that could not be understood.
pub fn bad_reply(why: impl fmt::Display, bytes: &[u8]) -> Failure {
    let example = r#"{"result":"ok"}, {"result":"retry","code":"BUSY"} or nothing at all"#;
    Failure::new(
        BAD_REPLY,
        format!(
            "the reply {} is not a result: {why}; answer {example}",
            quote(bytes)
        ),
    )
}

/// Quotes the beginning of a reply for a message; of a web page, its title.
pub fn quote(bytes: &[u8]) -> String {
    quote_most(bytes, QUOTE_CHARS_MAX)
}

/// Quotes at most `chars_max` characters of a reply.
pub(crate) fn quote_most(bytes: &[u8], chars_max: usize) -> String {
    if let Some(title) = title(bytes) {
        return format!("(page title \"{}\")", cut(&title, QUOTE_CHARS_MAX * 4));
    }
    if let Some(line) = first_line(bytes) {
        return format!("(first line of a page \"{}\")", cut(&line, QUOTE_CHARS_MAX * 4));
    }
    let head = &bytes[..bytes.len().min(chars_max * 4)];
    let text = shown(head);
    let kept: String = text.trim().chars().take(chars_max).collect();
    let more = if kept.len() < bytes.trim_ascii().len() {
        "…"
    } else {
        ""
    };
    format!("`{}{more}`", cut(&kept, chars_max * 4))
}

/// Returns the text between the first `<title>` and the next tag near the beginning of a page.
fn title(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.trim_ascii_start();
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(TITLE_WITHIN)]);
    // Lengths stay the same: only ASCII letters change.
    let lower = head.to_ascii_lowercase();
    let tag = lower.starts_with('<').then(|| lower.find("<title"))??;
    let from = tag + lower[tag..].find('>')? + 1;
    let to = from + lower[from..].find('<')?;
    let text = unescaped(&head[from..to]);
    let words: Vec<&str> = text.split_whitespace().collect();
    let title: String = words.join(" ").chars().take(QUOTE_CHARS_MAX).collect();
    (!title.is_empty()).then_some(title)
}

/// Returns the first line of text near the beginning of a page without a title.
fn first_line(bytes: &[u8]) -> Option<String> {
    let bytes = bytes.trim_ascii_start();
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(TITLE_WITHIN)]);
    let name = |tag: &str| {
        let end = tag
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(tag.len());
        tag[..end].to_ascii_lowercase()
    };
    let first = head.strip_prefix('<')?.trim_start_matches('!');
    PAGES.contains(&name(first).as_str()).then_some(())?;
    let mut text = String::new();
    for (tag, said) in head.split('<').filter_map(|part| part.split_once('>')) {
        match name(tag).as_str() {
            "script" | "style" => continue,
            name if !WITHIN_LINES.contains(&name) && !tag.starts_with('/') => text.push('\n'),
            _ => {}
        }
        text.push_str(said);
    }
    let text = unescaped(&text);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(QUOTE_CHARS_MAX).collect())
}

/// Decodes the HTML entities that titles contain: `&amp;`, `&#39;`. Others stay.
fn unescaped(html: &str) -> String {
    let mut parts = html.split('&');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part
            .split_once(';')
            .and_then(|(name, rest)| Some((entity(name)?, rest)))
        {
            Some((letter, rest)) => {
                text.push(letter);
                text.push_str(rest);
            }
            None => {
                text.push('&');
                text.push_str(part);
            }
        }
    }
    text
}

fn entity(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        "nbsp" => Some(' '),
        name => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix(['x', 'X']) {
                Some(hex) => u32::from_str_radix(hex, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

/// The four words of `result` and `default`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Word {
    Ok,
    Skip,
    Retry,
    Fail,
}

/// Members that may accompany `result`.
struct About<'a> {
    retry_after: Option<Span>,
    code: Option<String>,
    message: Option<String>,
    output: Option<&'a RawValue>,
}

impl About<'_> {
    fn verdict(self, word: Word) -> Result<ItemVerdict, &'static str> {
        let after = self.retry_after.as_ref().map(|span| span.0);
        match word {
            Word::Ok => succeeded(self.output),
            Word::Skip => Ok(ItemVerdict::Settled(Outcome::Skipped)),
            Word::Retry => self.failed(
                RETRY,
                "the handler asked for another attempt",
                RetryAdvice::Retry { after },
            ),
            Word::Fail => self.failed(FAILED, "the handler failed the item", RetryAdvice::Fail),
        }
    }

    fn failed(
        self,
        code: &'static str,
        message: &str,
        advice: RetryAdvice,
    ) -> Result<ItemVerdict, &'static str> {
        let code = match self.code.filter(|given| !given.trim().is_empty()) {
            Some(given) => Cow::Owned(given),
            None => Cow::Borrowed(code),
        };
        let mut failure = Failure::new(code, self.message.as_deref().unwrap_or(message));
        failure.output = kept_json(self.output, "output")?;
        Ok(ItemVerdict::Failed { failure, advice })
    }
}

/// Reply about one item, with its members checked.
#[derive(Deserialize)]
#[serde(from = "SingleMembers<'a>", bound(deserialize = "'de: 'a"))]
struct SingleBody<'a> {
    result: Option<Word>,
    about: About<'a>,
    logs: Option<Vec<Object<LogBody<'a>>>>,
    command: Option<Object<command::CommandBody>>,
}

impl SingleBody<'_> {
    fn is_silent(&self) -> bool {
        let About {
            retry_after,
            code,
            message,
            output,
        } = &self.about;
        let about = retry_after.is_some() || code.is_some() || message.is_some() || output.is_some();
        !about && self.result.is_none() && self.logs.is_none() && self.command.is_none()
    }
}

#[derive(Deserialize)]
struct SingleMembers<'a> {
    result: Option<Word>,
    retry_after: Option<Span>,
    code: Option<String>,
    message: Option<String>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    logs: Option<Vec<Object<LogBody<'a>>>>,
    command: Option<Object<command::CommandBody>>,
}

impl<'a> From<SingleMembers<'a>> for SingleBody<'a> {
    fn from(members: SingleMembers<'a>) -> SingleBody<'a> {
        let SingleMembers {
            result,
            retry_after,
            code,
            message,
            output,
            logs,
            command,
        } = members;
        SingleBody {
            result,
            about: About {
                retry_after,
                code,
                message,
                output,
            },
            logs,
            command,
        }
    }
}

/// Entry of `logs`, or a worker's `log` line.
#[derive(Deserialize)]
struct LogBody<'a> {
    level: Option<String>,
    message: Option<String>,
    #[serde(borrow)]
    extra: Option<&'a RawValue>,
    index: Option<u64>,
}

impl LogBody<'_> {
    /// Converts it to a log line. An unknown level must not cost the item its verdict: the line is kept at `info` and
    /// names the level.
    fn line(self, item: Option<ItemIndex>) -> Result<LogLine, &'static str> {
        let message = self.message.unwrap_or_default();
        let (level, message) = match self.level.as_deref() {
            None | Some("info") => (LogLevel::Info, message),
            Some("debug") => (LogLevel::Debug, message),
            Some("warn" | "warning") => (LogLevel::Warn, message),
            Some("error") => (LogLevel::Error, message),
            Some(other) => (LogLevel::Info, format!("[{other}] {message}")),
        };
        let message = cut(&message, windrow_core::items::verdict::MESSAGE_BYTES_MAX);
        let extra = kept_json(self.extra, "extra")?;
        Ok(LogLine {
            index: self.index.map(ItemIndex).or(item),
            level,
            message,
            extra,
        })
    }
}

/// Log lines of one reply, up to [`LOG_LINES_MAX`].
#[derive(Default)]
struct Logs {
    lines: Vec<LogLine>,
    left_out: usize,
}

impl Logs {
    fn add_all(
        &mut self,
        bodies: Option<Vec<Object<LogBody<'_>>>>,
        item: Option<ItemIndex>,
    ) -> Result<(), &'static str> {
        for body in bodies.into_iter().flatten() {
            if self.lines.len() < LOG_LINES_MAX {
                self.lines.push(body.0.line(item)?);
            } else {
                self.left_out += 1;
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Vec<LogLine> {
        if self.left_out > 0 {
            let message = format!("further log lines in this reply, omitted: {}", self.left_out);
            self.lines.push(LogLine {
                index: None,
                level: LogLevel::Warn,
                message,
                extra: None,
            });
        }
        self.lines
    }
}

fn missing_result(index: ItemIndex) -> ItemVerdict {
    let message = format!(
        "the reply has no `result` for item {}, nor a `default`; answer {{\"result\":\"ok\"}} for one item, \
         {{\"default\":\"ok\"}} or an entry in `results` for each of several",
        index.0
    );
    ItemVerdict::Failed {
        failure: Failure::new(MISSING_RESULT, message),
        advice: RetryAdvice::Retry { after: None },
    }
}

/// Returns a success, with its output if it has one.
fn succeeded(output: Option<&RawValue>) -> Result<ItemVerdict, &'static str> {
    let Some(output) = output else {
        return Ok(ItemVerdict::Settled(Outcome::Succeeded));
    };
    check_depth(output, "output")?;
    Ok(ItemVerdict::SucceededWith(Output::of_json(output.get())))
}

/// Returns JSON as text, cut to its limit.
fn kept_json(value: Option<&RawValue>, member: &'static str) -> Result<Option<String>, &'static str> {
    let Some(value) = value else { return Ok(None) };
    check_depth(value, member)?;
    Ok(Some(cut(value.get(), OUTPUT_BYTES_MAX)))
}

fn check_depth(value: &RawValue, member: &str) -> Result<(), &'static str> {
    match (is_deeper_than(value.get(), DEPTH_MAX), member) {
        (false, _) => Ok(()),
        (true, "output") => Err("`output` is nested too deeply"),
        (true, _) => Err("`extra` is nested too deeply"),
    }
}

pub(crate) fn is_deeper_than(json: &str, depth_max: usize) -> bool {
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > depth_max {
            return true;
        }
    }
    false
}

fn parse_object<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Failure> {
    serde_json::from_slice::<Object<T>>(bytes)
        .map(|object| object.0)
        .map_err(|why| bad_reply(why, bytes))
}

/// Duration as people write it: `5s`.
struct Span(Duration);

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Span, D::Error> {
        humantime_serde::deserialize(deserializer).map(Span)
    }
}

/// JSON object: serde would read a struct from an array too, and `["ok"]` is not a result.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

#[cfg(test)]
mod tests;
