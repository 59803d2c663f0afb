//! Warnings about a task whose goals can't be met, returned with the task; `?strict=true` turns them into errors.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::service::tasks::outlook::Warning;

/// Query parameters of writes that plan or start a task.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct StrictQuery {
    /// With `true`, reject the request instead of returning a warning, such as for a deadline that can't be met.
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
