//! What a task publishes: where, on which condition, and how its results are reduced.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::GenerationNo;
use crate::items::counters::Counters;

/// All of it. Unit: hundredths of a percent.
const WHOLE: u32 = 10_000;
/// The longest name of a key member. Unit: bytes.
pub const KEY_BYTES_MAX: usize = 128;
/// The longest name of a command. Unit: bytes.
const COMMAND_BYTES_MAX: usize = 64;

/// What becomes of a task's results when it is finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// The dataset's name.
    pub dataset: String,
    /// How many of its items must have succeeded.
    #[serde(default, rename = "if")]
    pub condition: PublishIf,
    /// What makes the summary.
    #[serde(default)]
    pub reduce: Reduce,
    /// The member of the outputs by which readers look up, if they may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// The same of a task that was made: its generation has a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publishing {
    /// What was asked for.
    #[serde(flatten)]
    pub publish: Publish,
    /// The number of its generation.
    pub generation: GenerationNo,
}

/// How many items of a task must have succeeded, or been skipped, for its results to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublishIf {
    /// At least this part of them. Unit: hundredths of a percent, at most 10,000.
    part: u32,
}

impl PublishIf {
    /// All of them.
    pub const ALL: PublishIf = PublishIf { part: WHOLE };
    /// However few.
    pub const ANY: PublishIf = PublishIf { part: 0 };

    /// Whether the results of a task of so many items are to be published.
    ///
    /// # Errors
    /// The sentence that says why not.
    pub fn judge(self, counters: &Counters, items: u64) -> Result<(), String> {
        let good = counters.succeeded + counters.skipped;
        if u128::from(good) * u128::from(WHOLE) >= u128::from(items) * u128::from(self.part) {
            return Ok(());
        }
        Err(format!("{good} of {items} items succeeded; publish_if is {self}"))
    }
}

impl Default for PublishIf {
    fn default() -> PublishIf {
        PublishIf::ALL
    }
}

impl fmt::Display for PublishIf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.part {
            WHOLE => f.write_str("all"),
            0 => f.write_str("any"),
            part if part % 100 == 0 => write!(f, "{}%", part / 100),
            part => {
                let text = format!("{}.{:02}", part / 100, part % 100);
                write!(f, "{}%", text.trim_end_matches('0'))
            }
        }
    }
}

impl From<PublishIf> for String {
    fn from(condition: PublishIf) -> String {
        condition.to_string()
    }
}

/// A text is no condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be all, any, or a percentage above 0% and up to 100% with at most two decimals")]
pub struct PublishIfFault;

impl FromStr for PublishIf {
    type Err = PublishIfFault;

    fn from_str(text: &str) -> Result<PublishIf, PublishIfFault> {
        match text {
            "all" => return Ok(PublishIf::ALL),
            "any" => return Ok(PublishIf::ANY),
            _ => {}
        }
        let number = text.strip_suffix('%').ok_or(PublishIfFault)?;
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        let is_short = (1..=3).contains(&whole.len()) && decimals.len() <= 2;
        let is_number = (whole.to_owned() + decimals)
            .bytes()
            .all(|byte| byte.is_ascii_digit());
        if !is_short || !is_number || number.ends_with('.') {
            return Err(PublishIfFault);
        }
        let digits = format!("{whole}{decimals:0<2}");
        let part = digits.parse().map_err(|_| PublishIfFault)?;
        match part {
            1..=WHOLE => Ok(PublishIf { part }),
            _ => Err(PublishIfFault),
        }
    }
}

impl TryFrom<String> for PublishIf {
    type Error = PublishIfFault;

    fn try_from(text: String) -> Result<PublishIf, PublishIfFault> {
        text.parse()
    }
}

/// What makes the summary of a generation from its results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Reduce {
    /// Nothing: there is no summary.
    #[default]
    None,
    /// The business, which is called with `task.reduce`.
    Hook,
    /// A command of the node's configuration, by its name there: results on its standard input, the summary on its output.
    Command(String),
}

impl fmt::Display for Reduce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reduce::None => f.write_str("none"),
            Reduce::Hook => f.write_str("hook"),
            Reduce::Command(name) => write!(f, "command:{name}"),
        }
    }
}

impl From<Reduce> for String {
    fn from(reduce: Reduce) -> String {
        reduce.to_string()
    }
}

/// A text names no reduce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be none, hook, or command:NAME with a command of the node's configuration")]
pub struct ReduceFault;

impl FromStr for Reduce {
    type Err = ReduceFault;

    fn from_str(text: &str) -> Result<Reduce, ReduceFault> {
        match (text, text.strip_prefix("command:")) {
            ("none", _) => Ok(Reduce::None),
            ("hook", _) => Ok(Reduce::Hook),
            (_, Some(name)) if is_command(name) => Ok(Reduce::Command(name.to_owned())),
            _ => Err(ReduceFault),
        }
    }
}

/// Whether a text can name a command of the configuration.
fn is_command(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=COMMAND_BYTES_MAX).contains(&text.len()) && text.bytes().all(fits)
}

impl TryFrom<String> for Reduce {
    type Error = ReduceFault;

    fn try_from(text: String) -> Result<Reduce, ReduceFault> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(succeeded: u64, skipped: u64, failed: u64) -> Counters {
        Counters {
            succeeded,
            skipped,
            failed,
            ..Counters::default()
        }
    }

    #[test]
    fn conditions_read_back_as_they_are_written_and_nothing_else_is_one() {
        for text in ["all", "any", "99%", "99.5%", "99.99%", "0.01%", "7%"] {
            let read: PublishIf = text.parse().expect("a condition");
            assert_eq!(read.to_string(), text);
        }
        assert_eq!("100%".parse(), Ok(PublishIf::ALL));
        for wrong in [
            "", "%", "0%", "101%", "99", "99.%", ".5%", "99.123%", "-1%", "+5%", "some", "1000%",
        ] {
            assert_eq!(wrong.parse::<PublishIf>(), Err(PublishIfFault), "{wrong:?}");
        }
    }

    #[test]
    fn a_condition_counts_what_succeeded_and_what_was_skipped() {
        let judge = |text: &str, counted: Counters, items| {
            let condition: PublishIf = text.parse().expect("a condition");
            condition.judge(&counted, items)
        };
        assert_eq!(judge("all", counters(9, 1, 0), 10), Ok(()));
        let why = judge("all", counters(9, 0, 1), 10).expect_err("one failed");
        assert_eq!(why, "9 of 10 items succeeded; publish_if is all");
        assert!(
            judge("90%", counters(9, 0, 1), 10).is_ok() && judge("90.01%", counters(9, 0, 1), 10).is_err()
        );
        assert!(judge("any", counters(0, 0, 10), 10).is_ok());
        assert!(judge("all", counters(0, 0, 0), 0).is_ok(), "no item failed");
        assert!(judge("all", counters(u64::MAX, 0, 0), u64::MAX).is_ok());
    }

    #[test]
    fn a_reduce_is_a_hook_or_a_command_by_its_name() {
        for reduce in [
            Reduce::None,
            Reduce::Hook,
            Reduce::Command("rank-teams".to_owned()),
        ] {
            assert_eq!(reduce.to_string().parse(), Ok(reduce));
        }
        for wrong in ["", "command:", "command:a b", "rank", "command:../rank"] {
            assert_eq!(wrong.parse::<Reduce>(), Err(ReduceFault), "{wrong:?}");
        }
    }

    #[test]
    fn what_is_published_reads_back_from_its_json() {
        let text =
            r#"{"dataset":"team-board","if":"99%","reduce":"command:rank","key":"team","generation":7}"#;
        let read: Publishing = serde_json::from_str(text).expect("it is sound");
        assert_eq!(read.generation, GenerationNo(7));
        assert_eq!(serde_json::to_string(&read).expect("it is JSON"), text);
    }
}
