//! What a task would not come to as it was wished, beside the task; and `?strict=true`, which refuses it instead.

use serde::Deserialize;
use utoipa::IntoParams;

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

pub(crate) fn show_warnings(warnings: Vec<Warning>) -> Vec<api::TaskWarning> {
    let one = |Warning { code, fault }: Warning| api::TaskWarning {
        code: code.to_owned(),
        pointer: fault.pointer,
        detail: fault.detail,
        advice: fault.advice,
    };
    warnings.into_iter().map(one).collect()
}
