//! Start tokens: they let a business that prepares a start act for this one start of this one task.

use crate::service::ServiceError;
use crate::service::access::Access;
use crate::service::access::Identity;
use windrow_core::business::access::Role;
use windrow_engine::ports::tasks::store::TokenStart;

impl Access {
    /// Returns the start that a token belongs to.
    ///
    /// # Errors
    /// `Unauthenticated` if the text was never a start token; `StaleStart` if the start is over.
    pub async fn start_of_token(&self, token: &str) -> Result<TokenStart, ServiceError> {
        let found = self.tasks.start_of_token(token).await?;
        let unknown = || ServiceError::Unauthenticated("unknown start token".to_owned());
        let start = found.ok_or_else(unknown)?;
        if start.is_live {
            return Ok(start);
        }
        Err(ServiceError::StaleStart(format!(
            "start {} of {} is over",
            start.start_no, start.task
        )))
    }

    /// Returns the identity behind a start token: the business of its task.
    ///
    /// # Errors
    /// Same as [`Access::start_of_token`].
    pub async fn identity_of_start(&self, token: &str) -> Result<Identity, ServiceError> {
        let start = self.start_of_token(token).await?;
        let business = self
            .tasks
            .get(start.task)
            .await?
            .ok_or_else(|| ServiceError::no_task(start.task))?
            .business;
        let name = format!("{business} (start {} of {})", start.start_no, start.task);
        let subject = format!("start {} of {}", start.start_no, start.task);
        Ok(Identity {
            business: Some(business),
            task: Some(start.task),
            ..Identity::new(name, subject, Role::Business)
        })
    }
}
