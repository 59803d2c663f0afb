//! Forms of settings: what a text should be, with examples and a guess.

use super::guess;
use windrow_words::{Message, settings as say};

/// Error for a text that is not the expected setting.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{}", self.message())]
pub struct TextError {
    /// Text that was written.
    pub text: String,
    /// Expected form, with its bounds.
    pub expected: Message,
    /// Examples of accepted texts.
    pub examples: &'static str,
    /// Text that was probably meant.
    pub meant: Option<String>,
}

impl TextError {
    /// Creates the error of a form that isn't in the table.
    pub fn new(text: impl Into<String>, expected: &'static str, examples: &'static str) -> TextError {
        let (text, expected, meant) = (text.into(), say::other(expected), None);
        TextError {
            text,
            expected,
            examples,
            meant,
        }
    }

    /// Returns the message for people.
    pub fn message(&self) -> Message {
        let (text, expected) = (format!("{:?}", self.text), self.expected.clone());
        match &self.meant {
            Some(meant) => say::meant(text, expected, format!("{meant:?}"), self.examples),
            None => say::not_expected(text, expected, self.examples),
        }
    }
}

/// Form that a text should have.
pub(super) struct Form {
    pub(super) expected: fn() -> Message,
    pub(super) examples: &'static str,
    /// Guesses the text that was meant.
    pub(super) guess: fn(&str) -> Option<String>,
}

impl Form {
    pub(super) fn error(&self, text: &str) -> TextError {
        let meant = (self.guess)(text);
        let expected = match &meant {
            // The guess shows the form.
            Some(_) if self.examples == RATE_LIMIT.examples => say::rate(),
            _ => (self.expected)(),
        };
        TextError {
            text: text.to_owned(),
            expected,
            examples: self.examples,
            meant,
        }
    }
}

pub(super) const SPAN: Form = Form {
    expected: say::span,
    examples: "\"100ms\", \"15s\", \"2m\", \"30d\"",
    guess: guess::span,
};
pub(super) const RATE: Form = Form {
    expected: say::rate,
    examples: "\"500/s\", \"30/m\", \"1/2s\", \"10k/s\"",
    guess: guess::rate,
};
pub(super) const RATE_LIMIT: Form = Form {
    expected: || say::rate_or_unlimited("\"unlimited\", \"auto\""),
    examples: "\"500/s\", \"30/m\", \"1/2s\", \"10k/s\", \"unlimited\", \"auto\", \"auto up to 500/s\"",
    guess: guess::rate,
};
pub(super) const BURST: Form = Form {
    expected: say::burst,
    examples: "\"100ms\", \"50 items\", 50",
    guess: |_| None,
};
pub(super) const AUTO: Form = Form {
    expected: || say::number_or_auto("\"auto\""),
    examples: "\"auto\", 64, 10_000",
    guess: |_| None,
};
pub(super) const SPAN_OR_AUTO: Form = Form {
    expected: || say::span_or_auto("\"auto\""),
    examples: "\"auto\", 20s, 10m",
    guess: |_| None,
};
pub(super) const BACKOFF: Form = Form {
    expected: say::backoff,
    examples: "\"1s..60s x2 jitter 20%\", \"500ms..10s\", \"5s jitter 0%\"",
    guess: |_| None,
};
pub(super) const ON_EXHAUSTED: Form = Form {
    expected: say::on_exhausted,
    examples: "\"fail\", \"stop\"",
    guess: |_| None,
};
pub(super) const RESULTS: Form = Form {
    expected: say::results,
    examples: "\"off\", \"keep\"",
    guess: |_| None,
};
pub(super) const BUDGET: Form = Form {
    expected: say::error_budget,
    examples: "\"10/s\", \"1%\", \"500\", \"10/s 1%\", \"auto\", \"none\"",
    guess: |_| None,
};
pub(super) const BYTES: Form = Form {
    expected: say::byte_size,
    examples: "\"64 KiB\", \"16 MiB\", \"20 GiB\", \"500 kB\", 4096",
    guess: |_| None,
};
pub(super) const SHARE: Form = Form {
    expected: say::share,
    examples: "\"1%\", \"0.01%\", \"100%\"",
    guess: |_| None,
};
