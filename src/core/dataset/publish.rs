//! Publication settings of a task: the dataset, the condition, and how the results are reduced.

use std::fmt;
use std::str::FromStr;
use windrow_words::business as say;

use serde::{Deserialize, Serialize};

use super::GenerationNo;
use crate::items::counters::Counters;

/// One hundred percent, in hundredths of a percent.
const WHOLE: u32 = 10_000;
/// Maximum length of a key member's name, in bytes.
pub const KEY_BYTES_MAX: usize = 128;
/// Maximum length of a command's name, in bytes.
const COMMAND_BYTES_MAX: usize = 64;

/// Publication of a task's results after it finishes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// Name of the dataset.
    pub dataset: String,
    /// Condition on the number of items that succeeded.
    #[serde(default, rename = "if")]
    pub condition: PublishIf,
    /// Method that produces the summary.
    #[serde(default)]
    pub reduce: Reduce,
    /// Output member that readers look up by; `None` disables lookups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Publication settings of a created task, whose generation has a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publishing {
    /// Publication settings as requested.
    #[serde(flatten)]
    pub publish: Publish,
    /// Number of the generation.
    pub generation: GenerationNo,
}

/// Share of a task's items that must have succeeded or been skipped for its results to be published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublishIf {
    /// Minimum share, in hundredths of a percent; at most 10,000.
    part: u32,
}

impl PublishIf {
    /// Requires all of the items.
    pub const ALL: PublishIf = PublishIf { part: WHOLE };
    /// Requires none of the items.
    pub const ANY: PublishIf = PublishIf { part: 0 };

    /// Succeeds if a task with this many items may publish its results.
    ///
    /// # Errors
    /// The sentence that says why not.
    pub fn judge(self, counters: &Counters, items: u64) -> Result<(), String> {
        let good = counters.succeeded + counters.skipped;
        if u128::from(good) * u128::from(WHOLE) >= u128::from(items) * u128::from(self.part) {
            return Ok(());
        }
        Err(say::publish_if(good, items, self.to_string()).to_string())
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

/// Error for a text that is not a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::no_publish_if())]
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

/// Method that makes the summary of a generation from its results.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Reduce {
    /// No reduction: the generation has no summary.
    #[default]
    None,
    /// Calls the business with `task.reduce`.
    Hook,
    /// Runs a command by its name in the node's configuration: results on its standard input, the summary on its
    /// output.
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

/// Error for a text that is not a reduce method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::no_reduce())]
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

/// True if the text can name a command of the configuration.
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
