//! What a task's rate can't go beyond, whatever it asks for: the limit of its business, limits that it names, what its nodes may
//! run. It is told like all that can be foreseen, see [`super::outlook`].

use std::collections::BTreeSet;

use super::Tasks;
use super::outlook::{Outlook, Warning};
use crate::service::FieldFault;
use windrow_core::capacity::Load;
use windrow_core::limit::key::NAMED_MAX;
use windrow_core::settings::{Rate, RateLimit};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::business_store::Business;

/// The code of a rate that can't be reached.
pub const RATE: &str = "rate_beyond_reach";

/// A limit of rates that a task shares with others.
#[derive(Clone, Debug)]
pub(super) struct Ceiling {
    pub(super) rate: Rate,
    /// `limit of push`, `limit vendor-x`
    pub(super) title: String,
}

/// What holds a rate down.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Bound {
    most: Load,
    /// `the limit of push allows`
    whose: String,
    /// `a higher limit of push`
    raise: String,
}

impl Tasks {
    /// That a task asks for a rate which it can't reach; nothing of one that doesn't ask for any. Where a part of it fits on no
    /// node, a limit below its rate is told too: more room alone wouldn't do.
    pub(super) async fn beyond_reach(
        &self,
        outlook: &Outlook,
        limits: &[Ceiling],
    ) -> Result<Vec<Warning>, StoreError> {
        let RateLimit::Limited(asked) = outlook.rate else {
            return Ok(Vec::new());
        };
        let mut bounds: Vec<Bound> = limits.iter().map(Bound::from).collect();
        let too_large = self.too_large(outlook).await?;
        if too_large.is_none() {
            bounds.extend(self.all_nodes().await?);
        }
        let lowest = bounds.into_iter().min_by_key(|bound| bound.most);
        let lowest = lowest.filter(|bound| Load::needed_by(asked) > bound.most);
        // With a deadline that is told of the deadline.
        let waits = too_large.filter(|_| outlook.deadline.is_none());
        let waits = waits.map(|(wants, most)| waits_for_room(wants, most, lowest.as_ref()));
        let beyond = lowest.as_ref().map(|bound| beyond(asked, bound));
        Ok(waits.into_iter().chain(beyond).collect())
    }

    /// A part of the task that fits on no node: what it needs, and what the largest one may run.
    pub(super) async fn too_large(&self, outlook: &Outlook) -> Result<Option<(Load, Load)>, StoreError> {
        let most = self.largest_node().await?;
        let both = self.part(outlook).zip(most);
        Ok(both.filter(|(wants, most)| outlook.items > 0 && wants > most))
    }

    /// The limits of rates that hold for it: of its business, and those that are named.
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

    /// What all nodes together may run; none where one of them may run as much as comes.
    async fn all_nodes(&self) -> Result<Option<Bound>, StoreError> {
        let (most, whose) = if self.cluster.parts.is_shared {
            let each: Option<Vec<Load>> = self.capacities().await?.into_iter().collect();
            let sum = each.map(|each| Load(each.iter().map(|load| load.0).sum()));
            (sum.filter(|sum| sum.0 > 0), "all nodes together may run")
        } else {
            (self.node.supervisor.room().capacity, "the node may run")
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
            whose: format!("the {title} allows"),
            raise: format!("a higher {title}"),
        }
    }
}

fn beyond(asked: Rate, Bound { most, whose, raise }: &Bound) -> Warning {
    let detail = format!("{asked} is asked for, but {whose} {most}: it reaches {most} at most");
    Warning {
        code: RATE,
        fault: FieldFault::new("/rate", detail).advise(format!("a rate of at most {most}, or {raise}")),
    }
}

/// `limit` is the lowest one that holds the task down beside.
fn waits_for_room(wants: Load, most: Load, limit: Option<&Bound>) -> Warning {
    let detail = format!("a part of the task needs {wants}, but the largest node may run {most}: it waits");
    let advice = match limit.filter(|limit| limit.most <= most) {
        Some(Bound { most, whose, .. }) => format!("a rate of at most {most}, since {whose} no more"),
        None => {
            format!("a rate of at most {most} for each shard, more shards, or a higher node.capacity_rate")
        }
    };
    Warning {
        code: RATE,
        fault: FieldFault::new("/rate", detail).advise(advice),
    }
}
