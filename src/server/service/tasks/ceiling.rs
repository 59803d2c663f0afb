//! Upper bounds of a task's rate: the limit of its business, the named limits it uses, and the capacity of the nodes.
//! Reported like all foreseeable problems, see [`super::outlook`].

use std::collections::BTreeSet;

use super::Tasks;
use super::outlook::{Outlook, Warning};
use crate::service::FieldFault;
use windrow_core::capacity::Load;
use windrow_core::limit::key::NAMED_MAX;
use windrow_core::settings::Rate;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::business_store::Business;

/// Warning code for a rate that can't be reached.
pub const RATE: &str = "rate_beyond_reach";

/// Rate limit that a task shares with others.
#[derive(Clone, Debug)]
pub(super) struct Ceiling {
    pub(super) rate: Rate,
    /// Title for messages, such as `limit of push` or `limit vendor-x`.
    pub(super) title: String,
}

/// Upper bound of a task's rate, with its description.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    most: Load,
    /// Description of the bound, such as `the limit of push allows`.
    whose: String,
    /// Suggestion for raising it, such as `a higher limit of push`.
    raise: String,
}

impl Tasks {
    /// Warns if a task's rate can't be reached; a rate without an upper bound never causes a warning. If a part of the task fits
    /// on no node, a limit below its rate is reported as well, because more capacity alone wouldn't help.
    pub(super) async fn beyond_reach(
        &self,
        outlook: &Outlook,
        limits: &[Ceiling],
    ) -> Result<Vec<Warning>, StoreError> {
        let Some(asked) = outlook.rate.most() else {
            return Ok(Vec::new());
        };
        let mut bounds: Vec<Bound> = limits.iter().map(Bound::from).collect();
        let too_large = self.too_large(outlook).await?;
        if too_large.is_none() {
            bounds.extend(self.all_nodes().await?);
        }
        let lowest = bounds.into_iter().min_by_key(|bound| bound.most);
        let lowest = lowest.filter(|bound| Load::needed_by(asked) > bound.most);
        // With a deadline, the warning about the deadline covers this.
        let waits = too_large.filter(|_| outlook.deadline.is_none());
        let waits = waits.map(|(wants, most)| waits_for_room(wants, most, lowest.as_ref()));
        // The ceiling of `auto` isn't a rate that anybody expects.
        let expected = lowest.as_ref().filter(|_| !outlook.rate.is_auto());
        let beyond = expected.map(|bound| beyond(asked, bound));
        Ok(waits.into_iter().chain(beyond).collect())
    }

    /// Returns the need of a part that fits on no node, and the capacity of the largest node.
    pub(super) async fn too_large(&self, outlook: &Outlook) -> Result<Option<(Load, Load)>, StoreError> {
        let most = self.largest_node().await?;
        let both = self.part(outlook).zip(most);
        Ok(both.filter(|(wants, most)| outlook.items > 0 && wants > most))
    }

    /// Returns the rate limits that apply to a task: that of its business, and the named ones.
    pub(super) async fn limits_on(
        &self,
        outlook: &Outlook,
        business: &Business,
    ) -> Result<Vec<Ceiling>, StoreError> {
        let own = business.spec.limits.rate.map(|rate| Ceiling {
            rate,
            title: format!("limit of {}", business.slug),
        });
        let names: BTreeSet<String> = outlook
            .limits
            .iter()
            .chain(&business.spec.limits.named)
            .cloned()
            .collect();
        let named = match names.is_empty() {
            true => Vec::new(),
            false => {
                let most = u32::try_from(2 * NAMED_MAX).unwrap_or(u32::MAX);
                self.limits.store.named_limits(Some(&names), None, most).await?
            }
        };
        let named = named.into_iter().filter_map(|limit| {
            Some(Ceiling {
                rate: limit.bounds.rate?,
                title: format!("limit {}", limit.name),
            })
        });
        Ok(own.into_iter().chain(named).collect())
    }

    /// Returns the total capacity of all nodes, `None` if any of them is unlimited.
    async fn all_nodes(&self) -> Result<Option<Bound>, StoreError> {
        let (most, whose) = if self.cluster.parts.is_shared {
            let each: Option<Vec<Load>> = self.capacities().await?.into_iter().collect();
            let sum = each.map(|each| Load(each.iter().map(|load| load.0).sum()));
            (sum.filter(|sum| sum.0 > 0), "the limit of all nodes together is")
        } else {
            (self.node.supervisor.room().capacity, "the node's limit is")
        };
        Ok(most.map(|most| Bound {
            most,
            whose: whose.to_owned(),
            raise: "a higher node.capacity_rate".to_owned(),
        }))
    }
}

impl From<&Ceiling> for Bound {
    fn from(Ceiling { rate, title }: &Ceiling) -> Bound {
        Bound {
            most: Load::offered_by(*rate),
            whose: format!("the {title} is"),
            raise: format!("a higher {title}"),
        }
    }
}

fn beyond(asked: Rate, Bound { most, whose, raise }: &Bound) -> Warning {
    let detail = format!("{asked} is requested, but {whose} {most}: the task reaches at most {most}");
    Warning {
        code: RATE,
        fault: FieldFault::new("/rate", detail).advise(format!("a rate of at most {most}, or {raise}")),
    }
}

/// Builds the warning; `limit` is the lowest limit that also restricts the task.
fn waits_for_room(wants: Load, most: Load, limit: Option<&Bound>) -> Warning {
    let detail =
        format!("no node can run {wants} for a shard (the largest has {most}), so the task will wait");
    let advice = match limit.filter(|limit| limit.most <= most) {
        Some(Bound { most, whose, .. }) => format!("a rate of at most {most}, because {whose} no higher"),
        None => {
            format!("a rate of at most {most} per shard, more shards, or a higher node.capacity_rate")
        }
    };
    Warning {
        code: RATE,
        fault: FieldFault::new("/rate", detail).advise(advice),
    }
}
