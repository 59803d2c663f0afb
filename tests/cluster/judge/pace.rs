//! How fast: what left in any span of time is at most what the rates allow and one burst, of each shard and of each task.

use windrow_core::ids::{ShardId, TaskId};
use windrow_core::pace::burst_items;
use windrow_core::task::lifecycle::Desired;
use windrow_engine::ports::ownership::run_store::Control;

use super::Judge;

/// What somebody may send from a moment on. Floats: a thousandth of an item is nothing here.
#[derive(Clone, Copy, Debug)]
struct Limit {
    /// Unit: nanoseconds of the world.
    since: u64,
    /// Unit: items per nanosecond; none is without limit.
    rate: Option<f64>,
    burst: f64,
    /// Of how many equal parts this is for one.
    parts: f64,
}

/// How fast one run may go, as it knew, and when it sent what.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace {
    limits: Vec<Limit>,
    pub(crate) departures: Vec<(u64, u32)>,
    /// When it read that it is to stop. Unit: nanoseconds of the world.
    pub(crate) stopped_at: Option<u64>,
}

impl super::Run {
    pub(crate) fn on_control(&mut self, at: u64, control: &Control) {
        let (rate, burst) = match control.tuning.rate.most() {
            Some(rate) => {
                let burst = burst_items(control.tuning.burst, rate, control.tuning.batch.get());
                (Some(rate.items() as f64 / rate.period_ns() as f64), burst)
            }
            None => (None, 0),
        };
        let parts = f64::from(control.shared.share.parts());
        self.pace.limits.push(Limit {
            since: at,
            rate,
            burst: burst as f64,
            parts,
        });
        if control.desired != Desired::Run {
            self.pace.stopped_at.get_or_insert(at);
        }
    }
}

impl Judge {
    /// The clock of a node may run fast by `ppm`, at most.
    pub(crate) fn check_pace(&mut self, ppm: u64) {
        let fast = 1.0 + ppm as f64 / 1e6;
        let paces = |id: &ShardId| -> Vec<Pace> {
            self.shards
                .get(id)
                .iter()
                .flat_map(|shard| shard.runs.values().map(|run| run.pace.clone()))
                .collect()
        };
        let shards: Vec<(ShardId, Vec<Pace>)> = self.shards.keys().map(|id| (*id, paces(id))).collect();
        for (id, runs) in &shards {
            let excess = excess_of(&limits_of(runs, true), &departures_of(runs), fast);
            self.check(excess <= 0.0, || {
                format!("{id} went {excess:.2} items above its rate")
            });
        }
        let tasks: Vec<TaskId> = self.tasks.keys().copied().collect();
        for task in tasks {
            let of_task: Vec<&Vec<Pace>> = shards
                .iter()
                .filter(|(id, _)| id.task == task)
                .map(|(_, runs)| runs)
                .collect();
            let excess = excess_of_all(&of_task, fast);
            self.check(excess <= 0.0, || {
                format!("the shards of {task} went {excess:.2} items above its rate")
            });
        }
    }
}

/// Its limits by time; those of its part, or those of the whole task.
fn limits_of(runs: &[Pace], of_part: bool) -> Vec<Limit> {
    let part = |limit: &Limit| match of_part {
        true => Limit {
            rate: limit.rate.map(|rate| rate / limit.parts),
            burst: limit.burst / limit.parts,
            ..*limit
        },
        false => *limit,
    };
    let mut limits: Vec<Limit> = runs.iter().flat_map(|run| run.limits.iter().map(part)).collect();
    limits.sort_by_key(|limit| limit.since);
    limits
}

fn departures_of(runs: &[Pace]) -> Vec<(u64, u32)> {
    let mut departures: Vec<(u64, u32)> = runs
        .iter()
        .flat_map(|run| run.departures.iter().copied())
        .collect();
    departures.sort_unstable();
    departures
}

/// The shards hear of a new rate one after the other: until the last of them has, the higher one holds.
fn excess_of_all(shards: &[&Vec<Pace>], fast: f64) -> f64 {
    let known: Vec<Vec<Limit>> = shards.iter().map(|runs| limits_of(runs, false)).collect();
    let mut times: Vec<u64> = known.iter().flatten().map(|limit| limit.since).collect();
    times.sort_unstable();
    let highest = |since: u64| {
        let now = known
            .iter()
            .filter_map(|limits| limits.iter().rfind(|limit| limit.since <= since));
        let start = Limit {
            since,
            rate: Some(0.0),
            burst: 0.0,
            parts: 1.0,
        };
        now.fold(start, |most, limit| Limit {
            rate: most.rate.zip(limit.rate).map(|(one, other)| one.max(other)),
            burst: most.burst.max(limit.burst),
            ..most
        })
    };
    let limits: Vec<Limit> = times.into_iter().map(highest).collect();
    let mut departures: Vec<(u64, u32)> = shards.iter().flat_map(|runs| departures_of(runs)).collect();
    departures.sort_unstable();
    excess_of(&limits, &departures, fast)
}

/// How many items more than allowed left in the worst span.
fn excess_of(limits: &[Limit], departures: &[(u64, u32)], fast: f64) -> f64 {
    if limits.iter().any(|limit| limit.rate.is_none()) {
        return 0.0;
    }
    let burst = limits.iter().map(|limit| limit.burst).fold(0.0, f64::max);
    let allowed = |from: u64, to: u64| -> f64 {
        let spans = limits.iter().enumerate().map(|(at, limit)| {
            let until = limits.get(at + 1).map_or(u64::MAX, |next| next.since).min(to);
            until.saturating_sub(limit.since.max(from)) as f64 * limit.rate.unwrap_or(0.0) * fast
        });
        spans.sum()
    };
    let (mut sent, mut integral, mut lowest, mut worst) = (0.0f64, 0.0f64, f64::MAX, f64::MIN);
    let mut before = departures.first().map_or(0, |first| first.0);
    for (at, items) in departures {
        integral += allowed(before, *at);
        before = *at;
        lowest = lowest.min(sent - integral);
        sent += f64::from(*items);
        worst = worst.max(sent - integral - lowest);
    }
    worst - burst - 0.01
}
