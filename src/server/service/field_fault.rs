//! One thing that is wrong with a request: where, what, and what would do. How a request is refused for it is in `error.rs`.

/// One thing that is wrong with a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// Where, as a JSON pointer into the body (`/rate`), or the name of a parameter (`limit`).
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
    /// What would do.
    pub advice: Option<String>,
    /// Where what was named would be, if the fault is that there is no such thing.
    pub missing: Option<String>,
}

impl FieldFault {
    /// A fault without advice.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> FieldFault {
        FieldFault {
            pointer: pointer.into(),
            detail: detail.into(),
            advice: None,
            missing: None,
        }
    }

    /// What was named isn't there: the path under which it would be.
    #[must_use]
    pub fn missing(mut self, path: impl Into<String>) -> FieldFault {
        self.missing = Some(path.into());
        self
    }

    /// The same with what would do.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> FieldFault {
        self.advice = Some(advice.into());
        self
    }
}
