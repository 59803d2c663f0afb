//! Answers of an embedder's closure for one item: its verdict, and what it tells the task on the way.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use windrow_core::items::output::Output;
use windrow_core::items::verdict::{Failure, HandlerCommand, Outcome, RetryAdvice};
use windrow_engine::ports::handling::handler::{ItemVerdict, LogLevel};

/// Code of an output that can't be written as JSON.
const OUTPUT: &str = "OUTPUT_UNREADABLE";

/// Answer of a handler for one item.
///
/// ```
/// use std::time::Duration;
/// use windrow_handlers::answer::Answer;
/// use windrow_handlers::rust::LogLevel;
///
/// let done = Answer::output(&["a", "b"]).log(LogLevel::Info, "two parts");
/// let gone = Answer::fail("NO_SUCH_USER", "u_17 has left");
/// let later = Answer::retry_after(Duration::from_secs(30), "LOCKED", "another import runs");
/// # assert!(done != gone && gone != later);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Answer {
    pub(crate) verdict: ItemVerdict,
    pub(crate) logs: Vec<(LogLevel, String)>,
    pub(crate) commands: Vec<HandlerCommand>,
}

impl Answer {
    /// Success with nothing to keep, as `Ok(())` means.
    pub fn ok() -> Answer {
        Answer::of(ItemVerdict::Settled(Outcome::Succeeded))
    }

    /// Success with an output, which a job that keeps its results stores. One that can't be written as JSON
    /// fails the item for good.
    pub fn output(output: &impl Serialize) -> Answer {
        match serde_json::to_string(output) {
            Ok(json) => Answer::of(ItemVerdict::SucceededWith(Output::of_json(&json))),
            Err(why) => Answer::fail(OUTPUT, why.to_string()),
        }
    }

    /// There was nothing to do for the item.
    pub fn skip() -> Answer {
        Answer::of(ItemVerdict::Settled(Outcome::Skipped))
    }

    /// The item fails for good, whatever attempts are left. `code` groups failures: `[A-Z0-9_]`, at most 64.
    pub fn fail(code: impl Into<Cow<'static, str>>, message: impl AsRef<str>) -> Answer {
        Answer::failed(code, message, RetryAdvice::Fail)
    }

    /// The attempt failed; another one follows after the job's back-off, if any are left.
    pub fn retry(code: impl Into<Cow<'static, str>>, message: impl AsRef<str>) -> Answer {
        Answer::failed(code, message, RetryAdvice::Retry { after: None })
    }

    /// The attempt failed; another one follows after this wait, if any are left.
    pub fn retry_after(
        wait: Duration,
        code: impl Into<Cow<'static, str>>,
        message: impl AsRef<str>,
    ) -> Answer {
        Answer::failed(code, message, RetryAdvice::Retry { after: Some(wait) })
    }

    fn failed(code: impl Into<Cow<'static, str>>, message: impl AsRef<str>, advice: RetryAdvice) -> Answer {
        Answer::of(ItemVerdict::Failed {
            failure: Failure::new(code, message),
            advice,
        })
    }

    fn of(verdict: ItemVerdict) -> Answer {
        Answer {
            verdict,
            logs: Vec::new(),
            commands: Vec::new(),
        }
    }

    /// Adds a line about the item to the data log.
    pub fn log(mut self, level: LogLevel, message: impl Into<String>) -> Answer {
        self.logs.push((level, message.into()));
        self
    }

    /// Lets the job send nothing for a while.
    pub fn pause(self, span: Duration) -> Answer {
        self.command(HandlerCommand::PauseFor(span))
    }

    /// Gives the job a command.
    pub fn command(mut self, command: HandlerCommand) -> Answer {
        self.commands.push(command);
        self
    }
}

impl From<()> for Answer {
    fn from((): ()) -> Answer {
        Answer::ok()
    }
}

impl From<ItemVerdict> for Answer {
    fn from(verdict: ItemVerdict) -> Answer {
        Answer::of(verdict)
    }
}

impl From<Answer> for ItemVerdict {
    fn from(answer: Answer) -> ItemVerdict {
        answer.verdict
    }
}
