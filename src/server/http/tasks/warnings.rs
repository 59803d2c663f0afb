//! What a task would not come to as it was wished, beside the task; and `?strict=true`, which refuses it instead.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::service::tasks::outlook::Warning;

/// What is asked of a write that plans something.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StrictQuery {
    /// With `true` what would only be warned of is refused, such as a deadline that can't be met.
    strict: Option<bool>,
}

impl StrictQuery {
    pub(super) fn is_strict(&self) -> bool {
        self.strict == Some(true)
    }
}

/// What would not come about as it was wished.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TaskWarning)]
pub(crate) struct WarningJson {
    /// Of a task `deadline_too_early`, `not_started`, `results_room` or `rate_beyond_reach`; of a schedule
    /// `fires_share_names` or `placeholder_misspelt`.
    code: &'static str,
    /// The member that it is about, as a JSON pointer.
    pointer: String,
    /// What is wrong.
    detail: String,
    /// What would do.
    advice: Option<String>,
}

impl WarningJson {
    pub(crate) fn all(warnings: Vec<Warning>) -> Vec<WarningJson> {
        let one = |Warning { code, fault }: Warning| WarningJson {
            code,
            pointer: fault.pointer,
            detail: fault.detail,
            advice: fault.advice,
        };
        warnings.into_iter().map(one).collect()
    }
}
