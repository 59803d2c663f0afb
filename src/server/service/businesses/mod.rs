//! Businesses: registration, changes, archiving, secret rotation, and history.
//!
//! - The stored business is always validated as a whole, however small the change.
//! - A secret is shown once, when it is created; afterwards only the vault and the calls know it.
//! - Each change names the revision it is based on, so that concurrent changes can't undo each other.

mod revisions;
mod secrets;
pub mod tries;
mod validate;
mod written;

use std::sync::Arc;

use serde_json::Value;

pub use self::revisions::{Difference, Revision};
pub(super) use self::secrets::signing_secret;
use self::secrets::{given, signing};
pub(super) use self::validate::command_fault;
pub use self::validate::{DISPLAY_NAME_MAX, HOOK_TIMEOUT_MAX};
pub use self::written::{BusinessBody, MASK, report_body};
use super::{FieldFault, ServiceError};
use crate::service::limits::Limits;
use crate::service::node::ThisNode;
use crate::service::tasks::merge_patch;
use crate::service::tasks::settings::LOOKED_THROUGH_MAX;
use windrow_core::business::BusinessSpec;
use windrow_core::business::secrets::BusinessSecrets;
use windrow_core::ids::WallMs;
use windrow_core::text::likeness::nearest;
use windrow_core::text::{QUOTE_CHARS_MAX, cut};
use windrow_engine::ports::access::business_store::{Business, BusinessChange, BusinessError, BusinessStore};
use windrow_engine::ports::access::vault::Vault;
use windrow_engine::ports::handling::hook::{CheckLine, CheckResult, HandlerChecker};
use windrow_engine::ports::tasks::store::Write;

/// Attempts at a change without an expected revision when concurrent changes interfere.
const TRIES: u32 = 4;

/// Business with its new signing secret, which is shown only this once.
#[derive(Clone)]
pub struct WithSecret {
    /// Business after the change.
    pub business: Business,
    /// Signing secret, `whsec_…`; `None` if no new one was created.
    pub secret: Option<String>,
}

/// Businesses in this node's store.
pub struct Businesses {
    pub(super) node: Arc<ThisNode>,
    /// Store that keeps the businesses.
    pub store: Arc<dyn BusinessStore>,
    pub(super) limits: Arc<Limits>,
    pub(super) vault: Arc<dyn Vault>,
    pub(super) handlers: Arc<dyn HandlerChecker>,
}

impl Businesses {
    pub(in crate::service) fn new(
        node: Arc<ThisNode>,
        store: Arc<dyn BusinessStore>,
        limits: Arc<Limits>,
        vault: Arc<dyn Vault>,
        handlers: Arc<dyn HandlerChecker>,
    ) -> Arc<Businesses> {
        Arc::new(Businesses {
            node,
            store,
            limits,
            vault,
            handlers,
        })
    }

    /// Registers a business. Pings its handler first, except with `skip_check` or in a dry run.
    ///
    /// # Errors
    /// `Unprocessable` with all errors found; `CheckFailed` with the report; `NameTaken`.
    pub async fn register(
        &self,
        body: &BusinessBody,
        skip_check: bool,
        write: &Write,
    ) -> Result<WithSecret, ServiceError> {
        let (slug, spec, now) = (&body.name, body.spec(), self.node.now());
        let (known, secret) = signing(&spec, BusinessSecrets::default(), now)?;
        let secrets = given(body, &known, None)?;
        self.refuse_faults(body, &secrets).await?;
        if self.store.business(slug).await?.is_some() {
            return Err(BusinessError::Taken(slug.clone()).into());
        }
        let sealed = self.seal(slug, &secrets);
        if !skip_check && !write.dry_run {
            let tentative = tentative(slug, spec.clone(), sealed.clone(), now);
            refuse_failed(&self.handlers.check(&tentative).await)?;
        }
        let business = self.store.register(slug, &spec, Some(sealed), write, now).await?;
        if !write.dry_run {
            tracing::info!(business = slug, by = write.actor.name, "business registered");
        }
        Ok(WithSecret { business, secret })
    }

    /// Returns a business by its slug.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn get(&self, slug: &str) -> Result<Business, ServiceError> {
        let found = self.store.business(slug).await?;
        found.ok_or_else(|| BusinessError::NotFound(slug.to_owned()).into())
    }

    /// Returns a business by its slug; `None` if it isn't registered, as for jobs, whose process provides their
    /// handlers.
    ///
    /// # Errors
    /// If the store can't be read.
    pub(super) async fn find(&self, slug: &str) -> Result<Option<Business>, ServiceError> {
        Ok(self.store.business(slug).await?)
    }

    /// Returns a business that accepts new tasks.
    pub(super) async fn open(&self, slug: &str) -> Result<Business, ServiceError> {
        let fault = match self.store.business(slug).await? {
            Some(business) if business.archived_at.is_none() => return Ok(business),
            Some(_) => FieldFault::new("/business", format!("{slug} is archived; unarchive it first")),
            None => {
                let all = self.store.businesses(false, None, LOOKED_THROUGH_MAX).await?;
                let like = nearest(slug, all.into_iter().map(|one| one.slug));
                let shown = cut(slug, QUOTE_CHARS_MAX);
                let missing = FieldFault::new("/business", format!("no business {shown}"))
                    .missing(format!("/v1/businesses/{slug}"));
                match like {
                    Some(like) => missing.advise(format!("did you mean {like}?")),
                    None => missing,
                }
            }
        };
        Err(ServiceError::from(fault))
    }

    /// Applies a merge patch to the API form of a business; with `expected`, only at that revision. A patch without
    /// effect creates no revision. If calls become signed by the change, a secret is created.
    ///
    /// # Errors
    /// `Invalid` for unknown members, `Unprocessable` with all errors found, `EtagMismatch`, `NotFound`.
    pub async fn edit(
        &self,
        slug: &str,
        patch: &Value,
        expected: Option<u64>,
        write: &Write,
    ) -> Result<WithSecret, ServiceError> {
        for _ in 0..TRIES {
            match self.try_edit(slug, patch, expected, write).await {
                Err(ServiceError::EtagMismatch(_)) if expected.is_none() => {}
                outcome => return outcome,
            }
        }
        Err(changing_too_fast(slug))
    }

    async fn try_edit(
        &self,
        slug: &str,
        patch: &Value,
        expected: Option<u64>,
        write: &Write,
    ) -> Result<WithSecret, ServiceError> {
        let before = self.get(slug).await?;
        let body = patched(&before, patch)?;
        let known = self.unseal(&before)?;
        let (signing, secret) = signing(&body.spec(), known.clone(), self.node.now())?;
        let secrets = given(&body, &signing, Some(&before.spec.handler))?;
        let secrets_changed = secrets != known;
        self.refuse_faults(&body, &secrets).await?;
        if let Some(expected) = expected.filter(|expected| *expected != before.revision) {
            return Err(BusinessError::Changed {
                expected,
                found: before.revision,
            }
            .into());
        }
        let spec = body.spec();
        if spec == before.spec && !secrets_changed {
            return Ok(WithSecret {
                business: before,
                secret: None,
            });
        }
        let change = BusinessChange {
            spec: Some(spec),
            sealed: secrets_changed.then(|| self.seal(slug, &secrets)),
            archived: None,
        };
        let business = self.change(&before, &change, "business.edit", write).await?;
        Ok(WithSecret { business, secret })
    }

    /// Archives or unarchives a business; does nothing if it already is in that state. An archived business accepts
    /// no new tasks; existing ones continue.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn archive(&self, slug: &str, archived: bool, write: &Write) -> Result<Business, ServiceError> {
        let action = match archived {
            true => "business.archive",
            false => "business.unarchive",
        };
        let change = |before: &Business| {
            let change = BusinessChange {
                archived: Some(archived),
                ..BusinessChange::default()
            };
            Ok(Some(change).filter(|_| before.archived_at.is_some() != archived))
        };
        self.change_latest(slug, change, action, write).await
    }

    /// Creates a new signing secret; the previous one stays valid for a day.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` if no calls are signed.
    pub async fn rotate_secret(&self, slug: &str, write: &Write) -> Result<WithSecret, ServiceError> {
        let secret = signing_secret()?;
        let change = |before: &Business| {
            if !before.spec.signs() {
                return Err(signs_nothing(slug));
            }
            let secrets = self.unseal(before)?.rotated(secret.clone(), self.node.now());
            Ok(Some(BusinessChange {
                sealed: Some(self.seal(slug, &secrets)),
                ..BusinessChange::default()
            }))
        };
        let action = "business.rotate_secret";
        let business = self.change_latest(slug, change, action, write).await?;
        Ok(WithSecret {
            business,
            secret: Some(secret),
        })
    }

    /// Changes the current revision of a business and retries after concurrent changes. Does nothing if `change`
    /// returns `None`.
    async fn change_latest(
        &self,
        slug: &str,
        change: impl Fn(&Business) -> Result<Option<BusinessChange>, ServiceError> + Send,
        action: &str,
        write: &Write,
    ) -> Result<Business, ServiceError> {
        for _ in 0..TRIES {
            let before = self.get(slug).await?;
            let Some(change) = change(&before)? else {
                return Ok(before);
            };
            match self.change(&before, &change, action, write).await {
                Err(ServiceError::EtagMismatch(_)) => {}
                outcome => return outcome,
            }
        }
        Err(changing_too_fast(slug))
    }

    /// Pings a handler and reports on how it follows the contract.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn check(&self, slug: &str) -> Result<Vec<CheckLine>, ServiceError> {
        let business = self.get(slug).await?;
        Ok(self.handlers.check(&business).await)
    }

    /// Returns the changes of a business, newest first.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn revisions(
        &self,
        slug: &str,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Revision>, ServiceError> {
        self.get(slug).await?;
        let entries = self.store.business_revisions(slug, before, limit).await?;
        Ok(entries.into_iter().map(Revision::from).collect())
    }

    async fn change(
        &self,
        before: &Business,
        change: &BusinessChange,
        action: &str,
        write: &Write,
    ) -> Result<Business, ServiceError> {
        let (slug, revision) = (&before.slug, Some(before.revision));
        let now = self.node.now();
        let changed = self
            .store
            .change_business(slug, revision, change, action, write, now)
            .await?;
        if write.dry_run {
            return Ok(changed);
        }
        self.handlers.refresh(&changed);
        if changed.spec.limits != before.spec.limits {
            self.node.supervisor.limits_changed();
        }
        tracing::info!(
            business = slug,
            action,
            by = write.actor.name,
            revision = changed.revision,
            "business changed"
        );
        Ok(changed)
    }

    async fn refuse_faults(
        &self,
        body: &BusinessBody,
        secrets: &BusinessSecrets,
    ) -> Result<(), ServiceError> {
        let mut faults = validate::faults(body, secrets, &self.node.config(), &*self.handlers);
        let (place, named) = ("/limits/named", &body.limits.named);
        faults.extend(self.limits.faults_of_names(place, named, None).await?);
        let has_answers = body.command.is_none();
        faults.extend(self.limits.faults_of_measures(place, named, has_answers).await?);
        ServiceError::refuse(faults)
    }
}

/// Applies a merge patch to the API form of a business.
fn patched(before: &Business, patch: &Value) -> Result<BusinessBody, ServiceError> {
    let mut value = BusinessBody::of(&before.slug, &before.spec).to_json();
    if !patch.is_object() {
        return Err(ServiceError::invalid(
            "",
            "must be a JSON object with the members to change",
        ));
    }
    merge_patch::apply(&mut value, patch);
    let body = BusinessBody::from_json(value)?;
    if body.name != before.slug {
        let fault = FieldFault::new("/name", "can't be changed: URLs and tasks refer to it");
        return Err(ServiceError::from(fault.advise("register another business")));
    }
    Ok(body)
}

fn signs_nothing(slug: &str) -> ServiceError {
    let detail = format!("{slug} has no signing secret: its calls aren't signed");
    ServiceError::conflict(detail, "only businesses with a url or hooks have one")
}

/// Builds an unsaved business to check its handler.
fn tentative(slug: &str, spec: BusinessSpec, sealed: Vec<u8>, now: WallMs) -> Business {
    Business {
        id: 0,
        slug: slug.to_owned(),
        spec,
        sealed: Some(sealed),
        revision: 0,
        archived_at: None,
        created_at: now,
        updated_at: now,
    }
}

fn refuse_failed(report: &[CheckLine]) -> Result<(), ServiceError> {
    let failed: Vec<&CheckLine> = report
        .iter()
        .filter(|line| line.result == CheckResult::Fail)
        .collect();
    let Some(first) = failed.first() else {
        return Ok(());
    };
    let more = if failed.len() > 1 {
        format!(" ({} checks failed)", failed.len())
    } else {
        String::new()
    };
    Err(ServiceError::CheckFailed {
        detail: format!("{}: {}{more}", first.check, first.detail),
        report: report_body(report),
    })
}

pub(super) fn changing_too_fast(slug: &str) -> ServiceError {
    ServiceError::conflict(format!("{slug} keeps being changed by others"), "retry")
}

#[cfg(test)]
mod tests;
