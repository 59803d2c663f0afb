//! Authenticated caller of a request, and the objects that the caller may see.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::http::problem::Problem;
use crate::service::access::sign_ins::SignIn;
use crate::service::{ServiceError, sources};
use windrow_config::Grant;
use windrow_core::business::access::Role;
use windrow_core::ids::TaskId;
use windrow_engine::ports::tasks::store::{Actor, Write};

/// Authenticated caller of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Caller's name, for the audit log.
    pub name: String,
    /// Unique identity behind the name, see [`crate::service::access::Identity::subject`].
    pub subject: String,
    /// Role that decides what the caller may do.
    pub role: Role,
    /// Origin of the role behind a proxy, see [`crate::service::access::Identity::role_from`].
    pub role_from: Option<String>,
    /// Business of a [`Role::Business`]; for a [`Role::Reader`], that whose datasets it may read (`None`: all).
    pub business: Option<String>,
    /// For a start token, the only task it may access.
    pub task: Option<TaskId>,
    /// Browser session, if the caller signed in.
    pub sign_in: Option<SignIn>,
    /// `api`, `cli` or `ui`, as claimed by the client; for the audit log. Always `ui` for a browser session.
    pub source: &'static str,
    /// Id of the request.
    pub request_id: String,
}

impl Caller {
    /// Returns the caller as an actor of the audit log, with the reason given.
    pub fn actor(&self, reason: Option<String>) -> Actor {
        let source = if self.role == Role::Business {
            "business"
        } else {
            self.source
        };
        let request_id = Some(self.request_id.clone());
        Actor {
            name: self.name.clone(),
            source,
            role: self.granted(),
            reason,
            request_id,
        }
    }

    /// Returns the role behind a proxy with its origin, such as `business:push by group push-team`.
    fn granted(&self) -> Option<String> {
        let (role, business) = (self.role, self.business.clone());
        let from = self.role_from.as_ref()?;
        Some(format!("{} by {from}", Grant { role, business }))
    }

    /// Returns the context of a write by this caller.
    pub fn write(&self, reason: Option<String>, dry_run: bool) -> Write {
        let actor = self.actor(reason);
        Write { actor, dry_run }
    }

    /// Returns the account charged for the caller's usage: the business for all its tokens, otherwise the person.
    pub fn account(&self) -> String {
        match (&self.role, &self.business) {
            (Role::Business, Some(slug)) => sources::account(slug),
            _ => self.name.clone(),
        }
    }

    /// Checks that the caller may see an object of this business; a start token sees only its task.
    ///
    /// # Errors
    /// `NotFound`, as if the object didn't exist: a business must not learn what others have.
    pub fn may_see(&self, business: &str, what: &'static str, name: &str) -> Result<(), ServiceError> {
        let is_own = match self.role {
            Role::Business => self.business.as_deref() == Some(business),
            Role::Reader => self.business.as_deref().is_none_or(|own| own == business),
            Role::Viewer | Role::Operator | Role::Admin => true,
        };
        let is_its_task = self
            .task
            .is_none_or(|task| what == "task" && name == task.to_string());
        if is_own && is_its_task {
            return Ok(());
        }
        Err(ServiceError::NotFound {
            what,
            name: name.to_owned(),
        })
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Caller, Problem> {
        let caller = parts.extensions.get::<Caller>().cloned();
        caller.ok_or_else(|| ServiceError::Unauthenticated("the caller is unknown".to_owned()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(role: Role, business: Option<&str>, task: Option<i64>) -> Caller {
        Caller {
            name: "ann".to_owned(),
            subject: "token 1".to_owned(),
            role,
            role_from: None,
            business: business.map(str::to_owned),
            task: task.map(TaskId),
            sign_in: None,
            source: "api",
            request_id: "r1".to_owned(),
        }
    }

    #[test]
    fn a_business_sees_its_own_and_a_start_token_its_task() {
        let sees = |caller: &Caller, what, name| caller.may_see("push", what, name).is_ok();
        assert!(sees(&caller(Role::Viewer, None, None), "task", "t1"));
        let (own, other) = (
            caller(Role::Business, Some("push"), None),
            caller(Role::Business, Some("mail"), None),
        );
        assert!(sees(&own, "task", "t1") && sees(&own, "business", "push"));
        assert!(!sees(&other, "task", "t1") && !sees(&caller(Role::Business, None, None), "task", "t1"));
        let (reads_all, reads_one) = (
            caller(Role::Reader, None, None),
            caller(Role::Reader, Some("push"), None),
        );
        assert!(sees(&reads_all, "dataset", "board") && sees(&reads_one, "dataset", "board"));
        assert!(!sees(
            &caller(Role::Reader, Some("mail"), None),
            "dataset",
            "board"
        ));
        let start = caller(Role::Business, Some("push"), Some(1));
        assert!(sees(&start, "task", "t1"));
        assert!(!sees(&start, "task", "t2") && !sees(&start, "business", "push"));
        assert_eq!(start.actor(None).source, "business");
    }
}
