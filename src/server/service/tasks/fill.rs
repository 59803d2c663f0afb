//! Check that items provide all columns used by the business's request, before any item is sent.

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
    /// Compares the columns used by the business's request with those of the items, or with the members of the first
    /// item. Skipped if they aren't known yet: a URL is fetched later.
    ///
    /// # Errors
    /// `Unprocessable` that names the missing column.
    pub(super) async fn check_fill(
        &self,
        business: &Business,
        source: &SourceRequest,
    ) -> Result<(), ServiceError> {
        let HandlerSpec::Request(handler) = &business.spec.handler else {
            return Ok(());
        };
        // A template that doesn't compile was already rejected with the business.
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
                let what = format!("the request template of {} can't be filled: {why}", business.slug);
                let fault = FieldFault::new("/source", what);
                Err(ServiceError::from(match has_data {
                    true => fault.advise(there_are),
                    false => fault.advise("use items with data, such as rows of a CSV"),
                }))
            }
        }
    }

    /// Returns the columns of a source. The inner `None` means items without data, the outer one that nothing is
    /// known.
    async fn columns(&self, source: &SourceRequest) -> Option<Option<Vec<String>>> {
        match source {
            SourceRequest::Range { .. } => Some(None),
            SourceRequest::Inline { items } => Some(Some(members_of_first(items.get()))),
            SourceRequest::Upload { upload } => {
                // A missing upload is reported when it is resolved.
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

/// Returns the members of the first item of a JSON array; empty if it isn't an object. Doesn't read the other items.
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
