//! Error texts of the setting forms: the expected form, with examples.

use super::TextError;

/// Error text of a form that can't be read.
pub(super) struct Form {
    pub(super) expected: &'static str,
    pub(super) examples: &'static str,
}

impl Form {
    pub(super) fn error(&self, text: &str) -> TextError {
        TextError {
            text: text.to_owned(),
            expected: self.expected,
            examples: self.examples,
        }
    }
}

pub(super) const SPAN: Form = Form {
    expected: "a span of time",
    examples: "\"100ms\", \"15s\", \"2m\", \"30d\"",
};
pub(super) const RATE: Form = Form {
    expected: "a rate (whole items, more than 0 and at most one a nanosecond, per time)",
    examples: "\"500/s\", \"30/m\", \"1/2s\", \"10k/s\"",
};
pub(super) const RATE_LIMIT: Form = Form {
    expected: "\"unlimited\" or a rate (whole items, more than 0 and at most one a nanosecond, per time)",
    examples: "\"500/s\", \"30/m\", \"1/2s\", \"10k/s\", \"unlimited\"",
};
pub(super) const BURST: Form = Form {
    expected: "a span of time or a number of items above 0",
    examples: "\"100ms\", \"50 items\", 50",
};
pub(super) const AUTO: Form = Form {
    expected: "\"auto\" or a number above 0",
    examples: "\"auto\", 64, 10_000",
};
pub(super) const SPAN_OR_AUTO: Form = Form {
    expected: "\"auto\" or a span of time",
    examples: "\"auto\", 20s, 10m",
};
pub(super) const BACKOFF: Form = Form {
    expected: "a back-off (first wait..longest wait, x factor of at least 1, jitter of 0 to 100 %)",
    examples: "\"1s..60s x2 jitter 20%\", \"500ms..10s\", \"5s jitter 0%\"",
};
pub(super) const ON_EXHAUSTED: Form = Form {
    expected: "what to do with an exhausted item",
    examples: "\"fail\", \"stop\"",
};
pub(super) const RESULTS: Form = Form {
    expected: "whether what items came to is kept",
    examples: "\"off\", \"keep\"",
};
pub(super) const BUDGET: Form = Form {
    expected: "an error budget (a rate of failed attempts or auto, a number or share of failed items, or both)",
    examples: "\"10/s\", \"1%\", \"500\", \"10/s 1%\", \"auto\", \"none\"",
};
pub(super) const BYTES: Form = Form {
    expected: "a size in bytes",
    examples: "\"64 KiB\", \"16 MiB\", \"20 GiB\", \"500 kB\", 4096",
};
