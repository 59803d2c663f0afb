//! Whether items can fill what their business makes of them, before any of them leaves.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use crate::service::failures::item_data::Members;
use crate::service::tasks::Tasks;
use crate::service::{FieldFault, ServiceError};
use windrow_core::business::HandlerSpec;
use windrow_core::template::request::RequestTemplate;
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::sources::resolver::SourceRequest;

impl Tasks {
    /// Compares the request of a business with the columns of the items, or with the members of the first one, as far as
    /// they are known by now: what lies at a URL is fetched later.
    ///
    /// # Errors
    /// `Unprocessable` with the column that isn't there.
    pub(super) async fn check_fill(
        &self,
        business: &Business,
        source: &SourceRequest,
    ) -> Result<(), ServiceError> {
        let HandlerSpec::Request(handler) = &business.spec.handler else {
            return Ok(());
        };
        // What can't be compiled was refused with the business.
        let Ok(template) = RequestTemplate::compile(&handler.request) else {
            return Ok(());
        };
        let Some(columns) = self.columns(source).await else {
            return Ok(());
        };
        let named = template.columns().to_vec();
        let (has_data, columns) = (columns.is_some(), columns.unwrap_or_default());
        if named.is_empty() {
            return Ok(());
        }
        match Members::These(named).unknown(has_data, &columns) {
            None => Ok(()),
            Some((why, there_are)) => {
                let what = format!("the request of {} can't be filled: {why}", business.slug);
                let fault = FieldFault::new("/source", what);
                Err(ServiceError::from(match has_data {
                    true => fault.advise(there_are),
                    false => fault.advise("items with data, such as those of a CSV"),
                }))
            }
        }
    }

    /// The columns of a source; the inner one is none where items are only counted, the outer one where nothing is known.
    async fn columns(&self, source: &SourceRequest) -> Option<Option<Vec<String>>> {
        match source {
            SourceRequest::Range { .. } => Some(None),
            SourceRequest::Inline { items } => Some(Some(members_of_first(items.get()))),
            SourceRequest::Upload { upload } => {
                // One that isn't there is told by whoever takes it.
                let (_, received) = self.sources.show(*upload).await.ok()?;
                let received = received?;
                Some(Some(match received.columns.is_empty() {
                    true => members_of_first(&received.sample),
                    false => received.columns,
                }))
            }
            SourceRequest::Url { .. } | SourceRequest::Redrive(_) | SourceRequest::Appended => None,
        }
    }
}

/// The members of the first item of a JSON array; none where it is no object. The others aren't looked at.
fn members_of_first(array: &str) -> Vec<String> {
    let rest = array.trim_start().strip_prefix('[').unwrap_or_default();
    let mut items = serde_json::Deserializer::from_str(rest).into_iter::<BTreeMap<String, IgnoredAny>>();
    let first = items.next().and_then(Result::ok).unwrap_or_default();
    first.into_keys().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_of_the_first_item_are_found_without_the_others() {
        assert_eq!(members_of_first(r#" [ {"b":1,"a":[2]}, {"c":3} ]"#), ["a", "b"]);
        for none in ["[]", "[7]", "", "[[1]]", r#"{"a":1}"#] {
            assert!(members_of_first(none).is_empty(), "{none}");
        }
    }
}
