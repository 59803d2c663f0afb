//! Merging of the nodes' data about a task into the facts of an explanation. Pure functions.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{ExplainedShard, HeldBy};
use windrow_core::explain::{
    Facts, Head, Latency, Live, Ran, SharedLimit, Silent, Spell, SpentAllowance, Standing,
};
use windrow_core::handler::sight::HandlerSight;
use windrow_core::ids::{ItemIndex, ShardId};
use windrow_core::limit::key::LimitKey;
use windrow_core::limit::units::Use;
use windrow_core::meter::limit::Limit;
use windrow_core::pilot::Picture;
use windrow_core::stats::series::Point;
use windrow_core::stats::tally::FailedAttempts;
use windrow_core::task::lifecycle::ShardState;
use windrow_core::zone;
use windrow_engine::actors::executor::run_view::RunView;
use windrow_engine::actors::runtime::context::Room;
use windrow_engine::ports::ownership::peers::ExplainPart;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_words::cause as say;

/// Merges the parts of all nodes; the first is this node's. `ran` describes which part of the time the task ran.
pub(super) fn facts(task: &TaskView, parts: &[(String, ExplainPart)], ran: Ran) -> Facts {
    let each = || parts.iter().map(|(_, part)| part);
    let mut point = Point::default();
    each().for_each(|part| point.add(&part.point));
    let p95 = each().filter_map(|part| part.latency_p95).max();
    Facts {
        task: task.id,
        business: task.business.clone(),
        covered: ran.covered,
        idle: ran.idle,
        stood: ran.stood,
        unheard: ran.unheard,
        silent: Silent::default(),
        latency: latency(&point, p95),
        tuning: task.tuning.clone(),
        standing: Standing {
            status: task.status,
            reason: task.status_reason.clone(),
            text: task.status_text.clone(),
        },
        worst_code: most(
            each()
                .flat_map(|part| &part.codes)
                .map(|(code, times)| (code, *times)),
        ),
        live: each().filter_map(|part| part.live.clone()).reduce(both),
        free_rate: room_for(parts),
        is_alone: false,
        held_back: each()
            .flat_map(|part| &part.shards)
            .filter_map(|(_, held)| held.clone())
            .collect(),
        limit: None,
        taken_over: None,
        unsaved: longest(parts, |part| part.unsaved).map(|(_, spell)| spell),
        stood_still: longest(parts, |part| part.stood_still),
        company: each().map(|part| part.company).max().unwrap_or(0),
        permits: point.permits,
        handler: HandlerSight::default(),
    }
}

/// Returns the longest duration reported by a node that ran a part of the task, with the node's name.
fn longest(
    parts: &[(String, ExplainPart)],
    of: impl Fn(&ExplainPart) -> Option<Spell>,
) -> Option<(String, Spell)> {
    let ran = parts.iter().filter(|(_, part)| !part.stays.is_empty());
    let spells = ran.filter_map(|(node, part)| Some((node, of(part)?)));
    let longest = spells.max_by_key(|(_, spell)| spell.lasted());
    longest.map(|(node, spell)| (node.clone(), spell))
}

/// Returns the call durations; prefers a run's own 95th percentile, which is more precise.
fn latency(point: &Point, p95: Option<Duration>) -> Latency {
    let at = |percent| point.calls.percentile(percent);
    Latency {
        p50: at(50),
        p95: p95.or_else(|| at(95)),
        p99: at(99),
        longest: at(100),
    }
}

pub(super) fn shared_limit(limit: &HeldBy) -> SharedLimit {
    // The sentence about a used-up allowance names it itself.
    let in_units = limit.limit.as_ref().filter(|_| limit.spent.is_none());
    let (name, title) = match (LimitKey::parse(&limit.key), in_units) {
        (LimitKey::Business(slug), _) => (None, say::limit_of(slug)),
        (LimitKey::Named(name), None) => (Some(name.to_owned()), say::limit_named(name)),
        (LimitKey::Named(name), Some(limit)) => (Some(name.to_owned()), say::limit_named_of(name, limit)),
    };
    SharedLimit {
        title,
        name,
        businesses: limit.businesses.clone(),
        runs: limit.parts.iter().map(|part| part.runs).sum(),
        nodes: limit.parts.len(),
        spent: limit.spent.clone(),
    }
}

/// Returns an allowance that is used up, with its next period by the clocks of its zone; `None` for a total.
pub(super) fn spent(used: &Use) -> Option<SpentAllowance> {
    let next = used.next.filter(|_| used.is_spent())?;
    let calendar = used.limit.parse::<Limit>().ok()?.calendar()?;
    Some(SpentAllowance {
        limit: used.limit.clone(),
        used: used.spent.plus(used.unsure).decimal(),
        next: zone::shown(next, calendar.zone),
    })
}

/// Returns the key with the largest sum; on a tie the alphabetically first, so that the result is stable.
pub(super) fn most<'a>(counts: impl Iterator<Item = (&'a String, u64)>) -> Option<(String, u64)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (key, count) in counts {
        *sums.entry(key).or_default() += count;
    }
    let most = sums.into_iter().rev().max_by_key(|(_, count)| *count)?;
    Some((most.0.to_owned(), most.1))
}

/// Returns the location of a shard, as its runner reports it; as stored, if the owner can't be reached.
pub(super) fn place(
    shard: ShardId,
    state: ShardState,
    owner: Option<&String>,
    parts: &[(String, ExplainPart)],
) -> ExplainedShard {
    let runs = |part: &ExplainPart| {
        part.shards
            .iter()
            .find(|(known, _)| *known == shard)
            .map(|(_, held)| held.clone())
    };
    let live = parts
        .iter()
        .find_map(|(node, part)| Some((node.clone(), runs(part)?)));
    let stored = owner.filter(|_| state == ShardState::Running).cloned();
    let (node, held_back) = match live {
        Some((node, held_back)) => (Some(node), held_back),
        None => (stored, None),
    };
    ExplainedShard {
        shard,
        state,
        node,
        held_back,
    }
}

/// Merges the live data of two runs, on one or two nodes.
pub(super) fn both(one: Live, other: Live) -> Live {
    let slots = [one.handler_slots, other.handler_slots]
        .into_iter()
        .flatten()
        .reduce(|one, other| one + other);
    let mut stalled = one.stalled;
    stalled
        .iter_mut()
        .zip(other.stalled)
        .for_each(|(sum, part)| *sum += part);
    Live {
        in_flight: one.in_flight + other.in_flight,
        concurrency: one.concurrency + other.concurrency,
        window: one.window + other.window,
        handler_slots: slots,
        head: one.head.into_iter().chain(other.head).max_by_key(|head| head.age),
        retrying: one.retrying + other.retrying,
        parked: one.parked + other.parked,
        age: one.age + other.age,
        stalled,
        autopilot: one
            .autopilot
            .into_iter()
            .chain(other.autopilot)
            .reduce(Picture::join),
        held_by: one.held_by.or(other.held_by),
        cost_missing: one.cost_missing.or(other.cost_missing),
    }
}

/// Returns the possible increase of the task's rate; each node gets a share according to its part of the runs. If
/// nothing runs, the capacity of this node counts.
fn room_for(parts: &[(String, ExplainPart)]) -> Option<f64> {
    let runs: u32 = parts.iter().map(|(_, part)| part.runs).sum();
    if runs == 0 {
        return parts.first().and_then(|(_, part)| part.free_rate);
    }
    let holding = parts.iter().map(|(_, part)| part).filter(|part| part.runs > 0);
    let whole = holding.filter_map(|part| Some(part.free_rate? * f64::from(runs) / f64::from(part.runs)));
    whole.reduce(f64::min)
}

pub(super) fn live(run: &RunView) -> Live {
    let progress = &run.progress;
    Live {
        in_flight: progress.counters.in_flight,
        concurrency: u64::from(progress.concurrency),
        window: u64::from(progress.window),
        handler_slots: progress.handler_slots.map(u64::from),
        head: head(run),
        retrying: progress.retrying,
        parked: progress.counters.parked,
        age: run.age,
        stalled: progress.stalled,
        autopilot: progress.autopilot,
        held_by: progress.held_by.clone(),
        cost_missing: progress
            .costs
            .iter()
            .find(|meter| meter.is_sparse)
            .map(|meter| meter.unit.clone()),
    }
}

fn head(run: &RunView) -> Option<Head> {
    let progress = &run.progress;
    let index: ItemIndex = progress.watermark;
    let at = progress.head?;
    Some(Head {
        index,
        attempt: at.attempt,
        waits: at.waits,
        age: progress.head_age,
    })
}

pub(super) fn counted(mut sums: BTreeMap<String, u32>, key: String) -> BTreeMap<String, u32> {
    *sums.entry(key).or_default() += 1;
    sums
}

pub(super) fn codes(runs: &[RunView]) -> Vec<(String, u64)> {
    let mut failed = FailedAttempts::default();
    runs.iter().for_each(|run| failed.add(&run.tally.failed));
    failed
        .iter()
        .map(|(code, ended)| (code.to_owned(), ended.retry + ended.fail))
        .collect()
}

/// Returns the capacity left for other rates, in items per second.
pub(super) fn free_rate(room: Room) -> Option<f64> {
    let whole = room.capacity?;
    Some(whole.0.saturating_sub(room.reserved.0) as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::explain::{HeldBack, Stay};
    use windrow_core::ids::TaskId;
    use windrow_core::settings::RateLimit;

    fn part(runs: u32, free: Option<f64>) -> (String, ExplainPart) {
        let codes = vec![
            ("A".to_owned(), u64::from(runs)),
            (format!("B{runs}"), u64::from(runs) + 1),
        ];
        (
            "n".to_owned(),
            ExplainPart {
                runs,
                free_rate: free,
                codes,
                ..ExplainPart::default()
            },
        )
    }

    #[test]
    fn who_runs_a_shard_says_where_it_is_and_else_the_store() {
        let task = TaskId(3);
        let rate = |text: &str| RateLimit::Limited(text.parse().expect("a rate"));
        let (why, age) = ("no room".to_owned(), Duration::from_secs(4));
        let held = HeldBack {
            rate: rate("1/s"),
            wanted: rate("2/s"),
            age,
            why,
        };
        let shards = vec![
            (ShardId { task, no: 0 }, Some(held.clone())),
            (ShardId { task, no: 1 }, None),
        ];
        let parts = [
            part(0, None),
            (
                "n2".to_owned(),
                ExplainPart {
                    shards,
                    ..ExplainPart::default()
                },
            ),
        ];
        let place = |no, state| {
            let found = place(ShardId { task, no }, state, Some(&"n1".to_owned()), &parts);
            (found.node, found.held_back)
        };
        assert_eq!(
            place(0, ShardState::Idle),
            (Some("n2".to_owned()), Some(held)),
            "it was just claimed"
        );
        assert_eq!(place(1, ShardState::Running), (Some("n2".to_owned()), None));
        assert_eq!(
            place(2, ShardState::Running),
            (Some("n1".to_owned()), None),
            "its owner can't be asked"
        );
        assert_eq!(place(3, ShardState::Recovering), (None, None));
    }

    #[test]
    fn the_longest_spell_counts_of_nodes_that_ran_a_part() {
        let said = |node: &str, ran: bool, seconds: u64| {
            let [from, to] = [seconds + 5, 5].map(Duration::from_secs);
            let shard = Stay { shard: 0, from, to };
            let part = ExplainPart {
                unsaved: Some(Spell { from, to }),
                stays: ran.then_some(shard).into_iter().collect(),
                ..ExplainPart::default()
            };
            (node.to_owned(), part)
        };
        let parts = [said("n1", false, 40), said("n2", true, 22), said("n3", true, 25)];
        let (node, spell) = longest(&parts, |part| part.unsaved).expect("two ran it");
        assert_eq!((node.as_str(), spell.lasted()), ("n3", Duration::from_secs(25)));
        assert_eq!(
            longest(&parts[..1], |part| part.unsaved),
            None,
            "it runs none of it"
        );
    }

    #[test]
    fn the_fullest_node_bounds_what_a_rate_may_grow_by() {
        assert_eq!(room_for(&[part(0, Some(7.0))]), Some(7.0));
        let parts = [part(0, Some(1.0)), part(1, Some(100.0)), part(3, Some(90.0))];
        assert_eq!(room_for(&parts), Some(120.0), "of 120 more the second gets 90");
        assert_eq!(room_for(&[part(1, None)]), None);
        let codes = parts.iter().flat_map(|(_, part)| &part.codes);
        let worst = most(codes.map(|(code, times)| (code, *times)));
        assert_eq!(worst, Some(("A".to_owned(), 4)));
    }
}
