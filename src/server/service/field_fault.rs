//! Error in a member of a request: place, problem and advice. The responses are defined in `error.rs`.

/// Error in a member of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldFault {
    /// JSON pointer into the body (`/rate`), or name of a parameter (`limit`).
    pub pointer: String,
    /// Description of the problem.
    pub detail: String,
    /// Suggestion for a valid value.
    pub advice: Option<String>,
    /// Path where the named object would be, if the error is that it doesn't exist.
    pub missing: Option<String>,
}

impl FieldFault {
    /// Creates an error without advice.
    pub fn new(pointer: impl Into<String>, detail: impl Into<String>) -> FieldFault {
        FieldFault {
            pointer: pointer.into(),
            detail: detail.into(),
            advice: None,
            missing: None,
        }
    }

    /// Marks the error as a missing object, which would be at this path.
    #[must_use]
    pub fn missing(mut self, path: impl Into<String>) -> FieldFault {
        self.missing = Some(path.into());
        self
    }

    /// Adds a suggestion for a valid value.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> FieldFault {
        self.advice = Some(advice.into());
        self
    }
}
