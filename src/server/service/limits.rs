//! Named limits: creating, reading, changing and deleting them, and checks of references to them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{FieldFault, ServiceError};
use crate::service::node::ThisNode;
use crate::service::tasks::create::TaskPlan;
use crate::service::tasks::settings::LOOKED_THROUGH_MAX;
use windrow_core::business::is_slug;
use windrow_core::limit::Bounds;
use windrow_core::limit::key::{LimitKey, NAMED_MAX};
use windrow_core::limit::units::Use;
use windrow_core::meter::metering::{Metering, TOKENS};
use windrow_core::meter::unit::Unit;
use windrow_core::settings::Rate;
use windrow_core::text::likeness::nearest;
use windrow_core::text::{QUOTE_CHARS_MAX, cut};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::business_store::{Business, BusinessStore};
use windrow_engine::ports::access::named_limit_store::{
    LimitUsers, NamedLimit, NamedLimitError, NamedLimitStore,
};
use windrow_engine::ports::ownership::limit_store::PartView;
use windrow_engine::ports::tasks::store::Write;
use windrow_words::meter as say;

/// Attempts at a change without an expected revision when concurrent changes interfere.
const TRIES: u32 = 4;
/// Most known names listed in an error about an unknown one.
const NAMES_TOLD_MAX: usize = 10;

/// Changes to a limit. The outer `None` keeps a bound, the inner `None` removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitChange {
    /// Dispatch rate of items.
    pub rate: Option<Option<Rate>>,
    /// Maximum items in flight.
    pub concurrency: Option<Option<u32>>,
    /// Limits in units, and what calls cost in them; set as a whole.
    pub metering: Option<Option<Metering>>,
}

impl LimitChange {
    fn apply(&self, limit: &NamedLimit) -> (Bounds, Metering) {
        let bounds = Bounds {
            rate: self.rate.unwrap_or(limit.bounds.rate),
            concurrency: self.concurrency.unwrap_or(limit.bounds.concurrency),
        };
        let metering = match &self.metering {
            Some(metering) => metering.clone().unwrap_or_default(),
            None => limit.metering.clone(),
        };
        (bounds, metering)
    }
}

/// Limit with its users and shares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitPicture {
    /// Limit as it is stored.
    pub limit: NamedLimit,
    /// Businesses and tasks that use the limit.
    pub users: LimitUsers,
    /// Current share of each node.
    pub parts: Vec<PartView>,
    /// Use of its totals.
    pub uses: Vec<Use>,
}

/// Service for named limits.
pub struct Limits {
    pub(super) node: Arc<ThisNode>,
    pub(super) store: Arc<dyn NamedLimitStore>,
    pub(super) businesses: Arc<dyn BusinessStore>,
}

impl Limits {
    pub(super) fn new(
        node: Arc<ThisNode>,
        store: Arc<dyn NamedLimitStore>,
        businesses: Arc<dyn BusinessStore>,
    ) -> Limits {
        Limits {
            node,
            store,
            businesses,
        }
    }

    /// Creates a limit.
    ///
    /// # Errors
    /// `Unprocessable` for an invalid name, if it limits nothing, or if its limits in units can't be shared;
    /// `NameTaken`.
    pub async fn create(
        &self,
        name: &str,
        (bounds, metering): (Bounds, &Metering),
        write: &Write,
    ) -> Result<NamedLimit, ServiceError> {
        if !is_slug(name) {
            let fault = FieldFault::new("/name", "must be 1 to 40 lowercase letters, digits and -");
            return Err(ServiceError::from(fault.advise("vendor-x")));
        }
        check_terms(bounds, metering)?;
        let made = self
            .store
            .create_limit(name, (bounds, metering), write, self.node.now())
            .await?;
        if !write.dry_run {
            tracing::info!(limit = name, by = write.actor.name, "limit created");
        }
        Ok(made)
    }

    /// Returns limits by name; for a business only those it uses.
    pub async fn list(
        &self,
        business: Option<&str>,
        after: Option<&str>,
        count: u32,
    ) -> Result<Vec<NamedLimit>, ServiceError> {
        let among = self.seen_by(business).await?;
        Ok(self.store.named_limits(among.as_ref(), after, count).await?)
    }

    /// Returns a limit with its users. A business can see only limits that it uses, and only itself among the users.
    ///
    /// # Errors
    /// `NotFound`.
    pub async fn picture(&self, name: &str, business: Option<&str>) -> Result<LimitPicture, ServiceError> {
        let seen = self.seen_by(business).await?;
        let limit = self.get(name).await?;
        if seen.is_some_and(|seen| !seen.contains(name)) {
            return Err(NamedLimitError::NotFound(name.to_owned()).into());
        }
        let mut users = self.store.limit_users(name).await?;
        if let Some(own) = business {
            users.businesses.retain(|slug| slug == own);
            users.tasks.retain(|task| task.business == own);
            users.tasks_total = users.tasks.len() as u64;
        }
        let key = LimitKey::Named(name).text();
        let parts = self.node.supervisor.parts_of_limit(&key).await?;
        let uses = self.uses_of(&limit).await?;
        Ok(LimitPicture {
            limit,
            users,
            parts,
            uses,
        })
    }

    /// Returns the use of the first `count` limits in units, by name.
    pub async fn uses(&self, count: u32) -> Result<Vec<(String, Use)>, ServiceError> {
        let mut found = Vec::new();
        for limit in self.store.named_limits(None, None, count).await? {
            let uses = self.uses_of(&limit).await?;
            found.extend(uses.into_iter().map(|used| (limit.name.clone(), used)));
        }
        Ok(found)
    }

    async fn uses_of(&self, limit: &NamedLimit) -> Result<Vec<Use>, StoreError> {
        let key = LimitKey::Named(&limit.name).text();
        match limit.metering.is_empty() {
            true => Ok(Vec::new()),
            false => self.node.supervisor.uses_of_limit(&key).await,
        }
    }

    async fn get(&self, name: &str) -> Result<NamedLimit, ServiceError> {
        let found = self.store.named_limit(name).await?;
        found.ok_or_else(|| NamedLimitError::NotFound(name.to_owned()).into())
    }

    /// Changes the bounds of a limit; with `expected`, only at that revision. The nodes learn of it within a second.
    ///
    /// # Errors
    /// `Unprocessable` if no bound would remain, if the limits in units can't be shared, or if a handler that uses the
    /// limit can't be measured in them; `EtagMismatch`, `NotFound`.
    pub async fn change(
        &self,
        name: &str,
        change: LimitChange,
        expected: Option<u64>,
        write: &Write,
    ) -> Result<NamedLimit, ServiceError> {
        for _ in 0..TRIES {
            let before = self.get(name).await?;
            let (bounds, metering) = change.apply(&before);
            check_terms(bounds, &metering)?;
            if metering != before.metering {
                self.check_users(name, &metering).await?;
            }
            let revision = expected.unwrap_or(before.revision);
            let changed = self
                .store
                .change_limit(name, revision, (bounds, &metering), write, self.node.now())
                .await;
            match changed {
                Err(NamedLimitError::Changed { .. }) if expected.is_none() => {}
                Err(error) => return Err(error.into()),
                Ok(changed) => {
                    if !write.dry_run && changed != before {
                        self.node.supervisor.limits_changed();
                        tracing::info!(limit = name, by = write.actor.name, "limit changed");
                    }
                    return Ok(changed);
                }
            }
        }
        Err(super::businesses::changing_too_fast(name))
    }

    /// Deletes an unused limit.
    ///
    /// # Errors
    /// `Conflict` that lists its users, `NotFound`.
    pub async fn delete(&self, name: &str, write: &Write) -> Result<NamedLimit, ServiceError> {
        let gone = self.store.delete_limit(name, write, self.node.now()).await?;
        if !write.dry_run {
            tracing::info!(limit = name, by = write.actor.name, "limit deleted");
        }
        Ok(gone)
    }

    /// Checks that a task may use the limits in its plan. With a business's own token, only limits that the business
    /// already uses are allowed, so that it can't learn about others or take a share of them.
    pub(super) async fn check(
        &self,
        plan: &TaskPlan,
        business: &Business,
        write: &Write,
    ) -> Result<(), ServiceError> {
        let Some(names) = plan.spec.limits.as_ref().filter(|names| !names.is_empty()) else {
            return Ok(());
        };
        let own = (write.actor.source == "business").then_some(business.slug.as_str());
        let mut faults = self.faults_of_names("/limits", names, own).await?;
        if faults.is_empty() {
            let has_answers = business.spec.handler.has_answers();
            faults = self.faults_of_measures("/limits", names, has_answers).await?;
        }
        ServiceError::refuse(faults)
    }

    /// Returns the limits of a list that read costs from responses, where a handler has none.
    pub(super) async fn faults_of_measures(
        &self,
        pointer: &str,
        names: &[String],
        has_answers: bool,
    ) -> Result<Vec<FieldFault>, StoreError> {
        if has_answers || names.is_empty() {
            return Ok(Vec::new());
        }
        let wanted: BTreeSet<String> = names.iter().cloned().collect();
        let found = self
            .store
            .named_limits(Some(&wanted), None, LOOKED_THROUGH_MAX)
            .await?;
        let fault = |(at, name): (usize, &String)| {
            let limit = found.iter().find(|limit| limit.name == *name)?;
            let what = limit.metering.unmeasured_in(name, false)?.to_string();
            let fault = FieldFault::new(format!("{pointer}/{at}"), what);
            Some(fault.advise(say::unmeasured_advice().to_string()))
        };
        Ok(names.iter().enumerate().filter_map(fault).collect())
    }

    /// Fails if a handler that uses the limit can't be measured in its units.
    async fn check_users(&self, name: &str, metering: &Metering) -> Result<(), ServiceError> {
        let Some(what) = metering.unmeasured_in(name, false) else {
            return Ok(());
        };
        let users = self.store.limit_users(name).await?;
        let of_tasks = users.tasks.iter().map(|task| task.business.clone());
        let slugs: BTreeSet<String> = users.businesses.iter().cloned().chain(of_tasks).collect();
        for slug in slugs {
            let business = self.businesses.business(&slug).await?;
            if business.is_some_and(|business| !business.spec.handler.has_answers()) {
                let fault = FieldFault::new("/metering/cost_from", format!("{slug}: {what}"));
                return Err(fault.advise(say::unmeasured_advice().to_string()).into());
            }
        }
        Ok(())
    }

    /// Returns the errors in a list of limits; `business` restricts it to those that this business uses.
    pub(super) async fn faults_of_names(
        &self,
        pointer: &str,
        names: &[String],
        business: Option<&str>,
    ) -> Result<Vec<FieldFault>, StoreError> {
        if names.is_empty() {
            return Ok(Vec::new());
        }
        if names.len() > NAMED_MAX {
            let what = format!("{} limits are more than the maximum of {NAMED_MAX}", names.len());
            return Ok(vec![FieldFault::new(pointer, what)]);
        }
        let mut faults = Vec::new();
        let among = self.seen_by(business).await?;
        let wanted: BTreeSet<String> = names.iter().cloned().collect();
        let there = self.names(Some(&wanted)).await?;
        for (at, name) in names.iter().enumerate() {
            let place = format!("{pointer}/{at}");
            if names[..at].contains(name) {
                faults.push(FieldFault::new(place, format!("{name} is listed twice")));
            } else if !there.contains(name) || among.as_ref().is_some_and(|seen| !seen.contains(name)) {
                faults.push(unknown(place, name, &self.names(among.as_ref()).await?));
            }
        }
        Ok(faults)
    }

    /// Returns the names of all limits, or of those in `among`.
    async fn names(&self, among: Option<&BTreeSet<String>>) -> Result<BTreeSet<String>, StoreError> {
        let found = self.store.named_limits(among, None, LOOKED_THROUGH_MAX).await?;
        Ok(found.into_iter().map(|limit| limit.name).collect())
    }

    /// Returns the limits that a business may see; `None` means all.
    async fn seen_by(&self, business: Option<&str>) -> Result<Option<BTreeSet<String>>, StoreError> {
        match business {
            Some(slug) => Ok(Some(self.store.limits_of(slug).await?)),
            None => Ok(None),
        }
    }
}

/// Fails if a limit limits nothing, or if its limits in units can't be shared.
fn check_terms(bounds: Bounds, metering: &Metering) -> Result<(), ServiceError> {
    metering
        .check_shared()
        .map_err(|error| FieldFault::new("/metering/limits", error.to_string()))?;
    // What a result may say of a task's units, it doesn't of those that others share.
    if let Some(unit) = undeclared(metering) {
        return Err(FieldFault::new("/metering", say::no_cost(unit.as_str()).to_string()).into());
    }
    if bounds.is_limited() || !metering.limits.is_empty() {
        return Ok(());
    }
    let fault = FieldFault::new("/rate", "a limit needs a rate, a concurrency, or limits in units");
    Err(ServiceError::from(
        fault.advise("\"rate\":\"300/s\", or delete it"),
    ))
}

/// Returns a unit of which nothing says what a call costs, and which has no usual place in responses.
fn undeclared(metering: &Metering) -> Option<&Unit> {
    let declared = [&metering.cost, &metering.cost_from, &metering.price];
    let is_declared = |unit: &Unit| declared.iter().any(|of| Metering::find(of, unit).is_some());
    let mut units = metering.units().into_iter();
    units.find(|unit| !is_declared(unit) && unit.as_str() != TOKENS)
}

/// Words that people use for "no limit".
const NONE: [&str; 4] = ["none", "no", "off", "unlimited"];

fn unknown(place: String, name: &str, known: &BTreeSet<String>) -> FieldFault {
    let is_of_business = place.starts_with("/limits/named");
    let fault = FieldFault::new(place, format!("no limit {}", cut(name, QUOTE_CHARS_MAX)));
    let fault = fault.missing(format!("/v1/limits/{name}"));
    if NONE.contains(&name) {
        return fault.advise(match is_of_business {
            true => "to remove all limits, use an empty list: --limit ''",
            false => "leave it out: a task without named limits shares none",
        });
    }
    if let Some(like) = nearest(name, known.iter().cloned()) {
        return fault.advise(format!("did you mean {like}?"));
    }
    let told: Vec<&str> = known.iter().take(NAMES_TOLD_MAX).map(String::as_str).collect();
    match known.len().saturating_sub(told.len()) {
        _ if told.is_empty() => {
            fault.advise("create the first one: `windrow limit create NAME --rate 300/s`")
        }
        0 => fault.advise(format!("one of {}", told.join(", "))),
        more => fault.advise(format!("one of {} and {more} more", told.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::WallMs;

    #[test]
    fn a_change_sets_what_it_names_and_takes_away_what_is_none() {
        let rate: Rate = "300/s".parse().expect("a rate");
        let before = NamedLimit {
            name: "vendor-x".to_owned(),
            bounds: Bounds {
                rate: Some(rate),
                concurrency: Some(5),
            },
            metering: serde_json::from_str(r#"{"limits":["300/min"]}"#).expect("a metering"),
            revision: 1,
            created_at: WallMs(0),
            updated_at: WallMs(0),
        };
        let same = (before.bounds, before.metering.clone());
        assert_eq!(LimitChange::default().apply(&before), same);
        let change = LimitChange {
            rate: Some(None),
            concurrency: Some(Some(9)),
            metering: Some(None),
        };
        let (after, metering) = change.apply(&before);
        assert_eq!(
            after,
            Bounds {
                rate: None,
                concurrency: Some(9)
            }
        );
        assert!(metering.is_empty());
        assert!(check_terms(after, &metering).is_ok());
        assert!(check_terms(Bounds::default(), &metering).is_err());
        assert!(check_terms(Bounds::default(), &before.metering).is_ok());
    }

    #[test]
    fn an_unknown_name_is_told_what_is_meant_or_what_there_is() {
        let advice = |name: &str, known: &[String]| {
            unknown("/limits/0".to_owned(), name, &known.iter().cloned().collect())
                .advice
                .expect("advice")
        };
        let two = ["mail".to_owned(), "vendor-x".to_owned()];
        assert_eq!(advice("vendor-y", &two), "did you mean vendor-x?");
        assert_eq!(advice("push", &two), "one of mail, vendor-x");
        assert!(advice("push", &[]).contains("windrow limit create"));
        assert!(advice("none", &two).contains("leave it out"));
        let of_business = unknown("/limits/named/0".to_owned(), "none", &BTreeSet::new());
        assert!(of_business.advice.expect("advice").contains("--limit ''"));
        let many: Vec<String> = (0..12).map(|number| format!("limit-{number:02}")).collect();
        assert!(
            advice("push", &many).ends_with("limit-09 and 2 more"),
            "{}",
            advice("push", &many)
        );
    }
}
