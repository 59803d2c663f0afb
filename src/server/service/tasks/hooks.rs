//! The `validate` hook, which lets a business accept or reject a task before it is created or changed.

use serde_json::{Value, json};

use crate::service::ServiceError;
use crate::service::tasks::Tasks;
use windrow_core::business::{HOOK_TIMEOUT_DEFAULT, HookKind};
use windrow_core::ids::{INDEX_MAX, ItemCount};
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::handling::hook::{HookCall, HookReply};

impl Tasks {
    /// Calls the hook, if the business has one; returns the number of items it wants instead, if any.
    ///
    /// # Errors
    /// `BusinessRejected` with its message; `Conflict` if it couldn't be called.
    pub(crate) async fn validate(
        &self,
        business: &Business,
        task: Value,
    ) -> Result<Option<ItemCount>, ServiceError> {
        let Some(hook) = &business.spec.hooks.validate else {
            return Ok(None);
        };
        let body = json!({ "type": HookKind::Validate.as_str(), "business": business.slug, "task": task });
        let call = HookCall {
            kind: HookKind::Validate,
            id: format!("validate-{}", uuid::Uuid::now_v7().simple()),
            body: body.to_string(),
            timeout: hook.timeout.unwrap_or(HOOK_TIMEOUT_DEFAULT),
        };
        match self.hooks.call(business, &call).await {
            HookReply::Done(Some(answer)) => wanted_total(&answer),
            HookReply::Done(None) | HookReply::Later => Ok(None),
            HookReply::Refused(text) => Err(ServiceError::BusinessRejected(text)),
            HookReply::Failed(text) => {
                let advice = format!("retry, or see POST /v1/businesses/{}/check", business.slug);
                let why = format!("the business could not validate the task: {text}");
                Err(ServiceError::conflict(why, advice))
            }
        }
    }
}

fn wanted_total(answer: &Value) -> Result<Option<ItemCount>, ServiceError> {
    let Some(total) = answer.get("total").filter(|total| !total.is_null()) else {
        return Ok(None);
    };
    let items = total.as_u64().filter(|items| *items <= INDEX_MAX);
    let items = items.ok_or_else(|| {
        let why = format!("the business answered {total} as the total, which is not a number of items");
        ServiceError::conflict(why, "fix its validate hook")
    })?;
    Ok(Some(ItemCount(items)))
}
