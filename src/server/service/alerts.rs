//! Alerts: creating, reading, changing, deleting and testing them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::businesses::{changing_too_fast, command_fault, signing_secret};
use super::{FieldFault, ServiceError};
use crate::service::node::ThisNode;
use windrow_core::alert::{AlertKind, AlertSecrets, AlertSpec, AlertTarget, Form, check_template};
use windrow_core::business::secrets::{BusinessSecrets, origin};
use windrow_core::business::{
    BusinessLimits, BusinessSpec, HandlerSpec, Hooks, HttpHandlerSpec, POOL_DEFAULT, is_slug,
};
use windrow_core::ids::WallMs;
use windrow_core::settings::table::TuningPatch;
use windrow_engine::ports::access::business_store::BusinessStore;
use windrow_engine::ports::access::vault::Vault;
use windrow_engine::ports::handling::alerts::{Alert, AlertDelivery, AlertError, AlertStore};
use windrow_engine::ports::handling::hook::HandlerChecker;
use windrow_engine::ports::tasks::store::Write;

/// Attempts at a change without an expected revision when concurrent changes interfere.
const TRIES: u32 = 4;
/// Maximum length of a template, in bytes.
const TEMPLATE_BYTES_MAX: usize = 10_000;

/// Changes to an alert; the outer `None` keeps a member, the inner `None` removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertChange {
    /// Kinds of events that are told.
    pub on: Option<Vec<AlertKind>>,
    /// Business whose events are told.
    pub business: Option<Option<String>>,
    /// URL that is called.
    pub url: Option<String>,
    /// Command that reads the notices.
    pub command: Option<String>,
    /// Form of the notices.
    pub form: Option<Form>,
    /// Template that is sent instead.
    pub template: Option<Option<String>>,
}

/// Alert after a change, with its signing key if that was made now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Alert as it is stored.
    pub alert: Alert,
    /// Key that signs its calls.
    pub secret: Option<String>,
}

/// Service that keeps alerts and tries them.
pub struct Alerts {
    node: Arc<ThisNode>,
    store: Arc<dyn AlertStore>,
    businesses: Arc<dyn BusinessStore>,
    vault: Arc<dyn Vault>,
    handlers: Arc<dyn HandlerChecker>,
}

impl Alerts {
    pub(super) fn new<S: AlertStore + BusinessStore + 'static>(
        node: Arc<ThisNode>,
        store: &Arc<S>,
        vault: Arc<dyn Vault>,
        handlers: Arc<dyn HandlerChecker>,
    ) -> Alerts {
        Alerts {
            node,
            store: store.clone(),
            businesses: store.clone(),
            vault,
            handlers,
        }
    }

    /// Creates an alert.
    ///
    /// # Errors
    /// `Unprocessable` for an invalid name, target, form or business; `NameTaken`; `Conflict` if there are too many.
    pub async fn create(&self, name: &str, wanted: AlertChange, write: &Write) -> Result<Kept, ServiceError> {
        if !is_slug(name) {
            let fault = FieldFault::new("/name", "must be 1 to 40 lowercase letters, digits and -");
            return Err(ServiceError::from(fault.advise("ops")));
        }
        if wanted.url.is_none() && wanted.command.is_none() {
            return Err(no_target());
        }
        let empty = Alert {
            name: name.to_owned(),
            spec: AlertSpec {
                on: BTreeSet::new(),
                business: None,
                // Replaced when the change is applied.
                target: AlertTarget::Command(String::new()),
                form: Form::default(),
                template: None,
            },
            sealed: None,
            revision: 0,
            created_at: WallMs(0),
            updated_at: WallMs(0),
        };
        let (alert, secret) = self.applied(empty, &wanted).await?;
        let alert = self.store.create_alert(&alert, write, self.node.now()).await?;
        Ok(Kept { alert, secret })
    }

    /// Returns alerts by name.
    pub async fn list(&self, after: Option<&str>, count: u32) -> Result<Vec<Alert>, ServiceError> {
        Ok(self.store.alerts(after, count).await?)
    }

    /// Returns an alert.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn get(&self, name: &str) -> Result<Alert, ServiceError> {
        let found = self.store.alert(name).await?;
        found.ok_or_else(|| AlertError::NotFound(name.to_owned()).into())
    }

    /// Changes an alert; with `expected`, only at that revision.
    ///
    /// # Errors
    /// As for its creation; `EtagMismatch`, `NotFound`.
    pub async fn change(
        &self,
        name: &str,
        change: AlertChange,
        expected: Option<u64>,
        write: &Write,
    ) -> Result<Kept, ServiceError> {
        for _ in 0..TRIES {
            let before = self.get(name).await?;
            let revision = expected.unwrap_or(before.revision);
            let (after, secret) = self.applied(before, &change).await?;
            let after = Alert { revision, ..after };
            match self.store.change_alert(&after, write, self.node.now()).await {
                Err(AlertError::Changed { .. }) if expected.is_none() => {}
                Err(error) => return Err(error.into()),
                Ok(alert) => return Ok(Kept { alert, secret }),
            }
        }
        Err(changing_too_fast(name))
    }

    /// Deletes an alert; its undelivered notices are dropped.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn delete(&self, name: &str, write: &Write) -> Result<(), ServiceError> {
        self.store.delete_alert(name, write, self.node.now()).await?;
        Ok(())
    }

    /// Enqueues a test, which takes the way of any notice.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn test(&self, name: &str) -> Result<AlertDelivery, ServiceError> {
        Ok(self.store.test_alert(name, self.node.now()).await?)
    }

    /// Returns the deliveries of an alert, newest first.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn deliveries(
        &self,
        name: &str,
        before: Option<i64>,
        count: u32,
    ) -> Result<Vec<AlertDelivery>, ServiceError> {
        self.get(name).await?;
        Ok(self.store.alert_deliveries(name, before, count).await?)
    }

    /// Applies a change after checking it. Returns the signing key too, if it had to be made.
    async fn applied(
        &self,
        mut alert: Alert,
        change: &AlertChange,
    ) -> Result<(Alert, Option<String>), ServiceError> {
        if let Some(on) = &change.on {
            alert.spec.on = on.iter().copied().collect();
        }
        if let Some(business) = &change.business {
            alert.spec.business.clone_from(business);
        }
        if let Some(template) = &change.template {
            alert.spec.template.clone_from(template);
        }
        alert.spec.form = change.form.unwrap_or(alert.spec.form);
        self.check(&alert.spec).await?;
        let secret = match (&change.url, &change.command) {
            (Some(_), Some(_)) => {
                let fault = FieldFault::new("/command", "`url` and `command` exclude each other");
                return Err(fault.into());
            }
            (Some(url), None) => self.call(&mut alert, url)?,
            (None, Some(command)) => {
                if let Some(fault) = command_fault(command, &self.node.config(), &*self.handlers) {
                    return Err(fault.into());
                }
                alert.spec.target = AlertTarget::Command(command.clone());
                alert.sealed = None;
                None
            }
            (None, None) => None,
        };
        Ok((alert, secret))
    }

    async fn check(&self, spec: &AlertSpec) -> Result<(), ServiceError> {
        if spec.on.is_empty() {
            let kinds = AlertKind::ALL.map(AlertKind::as_str).join(", ");
            let fault = FieldFault::new("/on", "at least one kind of event is required");
            return Err(fault.advise(kinds).into());
        }
        if let Some(slug) = &spec.business
            && self.businesses.business(slug).await?.is_none()
        {
            return Err(FieldFault::new("/business", "no such business").into());
        }
        let Some(template) = &spec.template else {
            return Ok(());
        };
        if template.len() > TEMPLATE_BYTES_MAX {
            let what = format!("longer than {TEMPLATE_BYTES_MAX} bytes");
            return Err(FieldFault::new("/template", what).into());
        }
        check_template(template).map_err(|why| FieldFault::new("/template", why.to_string()).into())
    }

    /// Sets the URL that is called, and keeps the key that signs the calls, or makes one.
    fn call(&self, alert: &mut Alert, url: &str) -> Result<Option<String>, ServiceError> {
        let faults = self.handlers.faults(&called(url), &BusinessSecrets::default());
        if let Some(fault) = faults.into_iter().next() {
            return Err(FieldFault::new(fault.pointer, fault.what).into());
        }
        let Some(origin) = origin(url) else {
            let fault = FieldFault::new("/url", "not an http:// or https:// URL");
            return Err(fault.advise("https://hooks.example.com/…").into());
        };
        let place = AlertSecrets::place(&alert.name);
        let known = match &alert.sealed {
            None => None,
            Some(sealed) => {
                let opened = self.vault.open(&place, sealed);
                let opened = opened.map_err(|why| {
                    ServiceError::conflict(format!("{}: {why}", alert.name), "create the alert anew")
                })?;
                serde_json::from_slice::<AlertSecrets>(&opened).ok()
            }
        };
        let is_new = known.is_none();
        let signing = match known {
            Some(known) => known.signing,
            None => signing_secret()?,
        };
        let secrets = AlertSecrets {
            url: url.to_owned(),
            signing: signing.clone(),
        };
        let bytes = serde_json::to_vec(&secrets).map_err(|why| ServiceError::Internal(why.to_string()))?;
        alert.sealed = Some(self.vault.seal(&place, &bytes));
        alert.spec.target = AlertTarget::Url(origin);
        Ok(is_new.then_some(signing))
    }
}

/// Returns a business whose handler is the URL: it is held to the same rules.
fn called(url: &str) -> BusinessSpec {
    BusinessSpec {
        display_name: None,
        pool: POOL_DEFAULT.to_owned(),
        handler: HandlerSpec::Http(HttpHandlerSpec {
            url: url.to_owned(),
            ..HttpHandlerSpec::default()
        }),
        hooks: Hooks::default(),
        defaults: TuningPatch::default(),
        limits: BusinessLimits::default(),
    }
}

fn no_target() -> ServiceError {
    let fault = FieldFault::new("/url", "one of `url` and `command` is required");
    fault.advise("https://hooks.example.com/…").into()
}
