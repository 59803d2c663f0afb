//! Publication settings in the bodies of tasks.

use crate::service::{FieldFault, ServiceError};
use windrow_core::dataset::{Publish, PublishIf, Reduce};
use windrow_core::life::Life;

/// Members of a task body that define what the task publishes.
pub(crate) struct PublishMembers<'a> {
    pub(crate) publish: Option<&'a String>,
    pub(crate) publish_if: Option<&'a String>,
    pub(crate) publish_key: Option<&'a String>,
    pub(crate) reduce: Option<&'a String>,
}

impl PublishMembers<'_> {
    /// Reads the members as one setting, `None` if the task publishes nothing.
    ///
    /// # Errors
    /// `Invalid` for members that can't be parsed, or that require `publish`.
    pub(crate) fn read(&self) -> Result<Option<Publish>, ServiceError> {
        let Some(dataset) = self.publish else {
            let others = [
                ("/publish_if", self.publish_if),
                ("/publish_key", self.publish_key),
                ("/reduce", self.reduce),
            ];
            let faults: Vec<FieldFault> = others
                .into_iter()
                .filter(|(_, said)| said.is_some())
                .map(|(pointer, _)| FieldFault::new(pointer, "has no effect without `publish`"))
                .collect();
            return match faults.is_empty() {
                true => Ok(None),
                false => Err(ServiceError::Invalid(faults)),
            };
        };
        let invalid = |pointer: &str, why: String| ServiceError::invalid(pointer, why);
        let condition = self.publish_if.map(|text| text.parse::<PublishIf>());
        let condition = condition
            .transpose()
            .map_err(|why| invalid("/publish_if", why.to_string()))?;
        let reduce = self.reduce.map(|text| text.parse::<Reduce>()).transpose();
        let reduce = reduce.map_err(|why| invalid("/reduce", why.to_string()))?;
        Ok(Some(Publish {
            dataset: dataset.clone(),
            condition: condition.unwrap_or_default(),
            reduce: reduce.unwrap_or_default(),
            key: self.publish_key.cloned(),
        }))
    }
}

/// Returns a task's publication, `None` if it publishes nothing.
pub(crate) fn show_publish(life: &Life) -> Option<api::TaskPublish> {
    let publishing = life.publishing.clone()?;
    let publish = publishing.publish;
    Some(api::TaskPublish {
        generation: publishing.generation.0,
        condition: publish.condition.to_string(),
        reduce: publish.reduce.to_string(),
        dataset: publish.dataset,
        key: publish.key,
        withheld: life.has_withheld(),
    })
}
