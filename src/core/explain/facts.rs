//! Facts that an explanation is made of.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use windrow_words::{Message, cause as say};

use super::past::{Stood, Unheard};
use crate::handler::sight::HandlerSight;
use crate::ids::{ItemIndex, TaskId};
use crate::meter::metering::HeldBy;
use crate::meter::unit::Unit;
use crate::settings::RateLimit;
use crate::stats::autopilot::Picture;
use crate::stats::permits::{MICRO, Permits};
use crate::stats::stall::StallReason;
use crate::task::Tuning;
use crate::task::lifecycle::Status;

/// State of a task over a span, and at the moment.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Task that is explained.
    pub task: TaskId,
    /// Slug of its business.
    pub business: String,
    /// Time that is explained, with a run and without.
    pub covered: Duration,
    /// Part of it in which nothing of the task ran, although the task was there.
    pub idle: Duration,
    /// Shards that didn't run in that part.
    pub stood: Stood,
    /// Shards on nodes that don't respond.
    pub unheard: Unheard,
    /// Nodes that don't respond.
    pub silent: Silent,
    /// Use of the permits in the explained time.
    pub permits: Permits,
    /// Latencies of the calls in the explained time.
    pub latency: Latency,
    /// Current settings of the task.
    pub tuning: Tuning,
    /// Status of the task, with its reason.
    pub standing: Standing,
    /// State of its runs; `None` while nothing of it runs here.
    pub live: Option<Live>,
    /// Code of most failed attempts since the run began, and their number.
    pub worst_code: Option<(String, u64)>,
    /// Rate that this node has left for others, in items per second; `None` without a bound.
    pub free_rate: Option<f64>,
    /// True if no other node can run a part of it, because the database is a file of this one.
    pub is_alone: bool,
    /// Runs that are slower than they should be, for lack of room.
    pub held_back: Vec<HeldBack>,
    /// State of the handler, as all runs see it.
    pub handler: HandlerSight,
    /// Limit shared with other tasks, if it held something back.
    pub limit: Option<SharedLimit>,
    /// Set if a node took over a part of the task in the span from one that was gone.
    pub taken_over: Option<Takeover>,
    /// Time in the span in which a node could save nothing of the task.
    pub unsaved: Option<Spell>,
    /// Node that ran a part of the task but did nothing at all for a time in the span, and that time.
    pub stood_still: Option<(String, Spell)>,
    /// Other tasks of a node whose autopilots steer calls to the same service.
    pub company: u32,
}

/// Time in which something was wrong with a node. Both ends are given as ages, so that no clocks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spell {
    /// Time since it began.
    pub from: Duration,
    /// Time since it ended, or was seen last; zero while it lasts.
    pub to: Duration,
}

impl Spell {
    /// Returns the time that it lasted.
    pub fn lasted(&self) -> Duration {
        self.from.saturating_sub(self.to)
    }

    /// Returns the span with the age of its end: `for 25s, until 6s ago`, `for 25s so far`.
    pub(super) fn text(&self) -> Message {
        match self.to {
            Duration::ZERO => say::so_far(self.lasted()),
            ago => say::until(self.lasted(), ago),
        }
    }
}

/// Nodes that have a part of a task and can't be asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Silent {
    /// Each node, and the reason why it can't be asked.
    pub nodes: Vec<(String, String)>,
    /// Prospect of their part.
    pub prospect: Option<Message>,
}

/// Node that took over from another one.
#[derive(Clone, Debug, PartialEq)]
pub struct Takeover {
    /// Node that took over.
    pub by: String,
    /// Description of the take-over for people.
    pub text: Message,
}

/// Limit that tasks share, and its users.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedLimit {
    /// Title in words: `the limit of push`, `the limit vendor-x`.
    pub title: Message,
    /// Name of the limit, if it is a named one.
    pub name: Option<String>,
    /// The businesses that name it.
    pub businesses: Vec<String>,
    /// Runs that want a part of it now, on all nodes.
    pub runs: u64,
    /// Number of nodes that have such runs.
    pub nodes: usize,
    /// Allowance that is used up, if one is and holds the task.
    pub spent: Option<SpentAllowance>,
}

/// Allowance of a shared limit that is used up in its period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpentAllowance {
    /// Limit as people write it.
    pub limit: String,
    /// Amount used, certain or not.
    pub used: String,
    /// Beginning of its next period by the clocks of its zone.
    pub next: String,
}

/// Run that is slower than its share of the rate allows, because its node has no room for more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBack {
    /// Rate at which it may run.
    pub rate: RateLimit,
    /// Share of the task's rate that it should have.
    pub wanted: RateLimit,
    /// Time for which this has lasted.
    pub age: Duration,
    /// Explanation that the node gave when it was last asked.
    pub why: String,
}

impl HeldBack {
    /// Returns the permits lost to the lack of room in a span that ends now, in millionths of an item.
    pub(super) fn lost(&self, span: Duration) -> u64 {
        let (Some(rate), Some(wanted)) = (self.rate.most(), self.wanted.most()) else {
            return 0;
        };
        let missing = wanted
            .micros_per_second()
            .saturating_sub(rate.micros_per_second());
        let micros = u128::from(missing) * self.age.min(span).as_millis() / 1000;
        u64::try_from(micros).unwrap_or(u64::MAX)
    }
}

/// Latencies of calls; all are `None` if none was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Median: half of the calls took no longer.
    pub p50: Option<Duration>,
    /// 95th percentile of the latencies.
    pub p95: Option<Duration>,
    /// 99th percentile of the latencies.
    pub p99: Option<Duration>,
    /// Latency of the longest call.
    pub longest: Option<Duration>,
}

/// Status of a task, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Status of the task.
    pub status: Status,
    /// Slug for machines, if the status needs a reason.
    pub reason: Option<String>,
    /// Explanation for people, one sentence.
    pub text: Option<String>,
}

/// State of the runs of a task, taken together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// Items with the handler.
    pub in_flight: u64,
    /// Maximum items in flight.
    pub concurrency: u64,
    /// Size of the windows, in items.
    pub window: u64,
    /// Number of items that the handler can work on at once, if it reports it.
    pub handler_slots: Option<u64>,
    /// Item that has held the watermark longest.
    pub head: Option<Head>,
    /// Items that wait for a retry or are being retried.
    #[serde(rename = "troubled")]
    pub retrying: u64,
    /// Items that wait outside the window.
    pub parked: u64,
    /// Time for which the runs have lasted.
    pub age: Duration,
    /// Time spent stalled since they began, in the order of [`StallReason::ALL`].
    pub stalled: [Duration; StallReason::ALL.len()],
    /// Limits that the autopilot has found; `None` without one, and from an earlier version.
    #[serde(default)]
    pub autopilot: Option<Picture>,
    /// Limit in units that allows the fewest calls; `None` without one, and from an earlier version.
    #[serde(default)]
    pub held_by: Option<HeldBy>,
    /// Unit of which too many answers don't say the use; `None` without one, and from an earlier version.
    #[serde(default)]
    pub cost_missing: Option<Unit>,
}

/// Item at the watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Index of the item.
    pub index: ItemIndex,
    /// Attempt that is with the handler, or the next one.
    pub attempt: u32,
    /// True if it waits for that attempt.
    pub waits: bool,
    /// Time for which it has held the watermark.
    pub age: Duration,
}

impl Facts {
    /// Returns the configured rate in items per second, if one limits the task.
    pub(super) fn rate(&self) -> Option<f64> {
        match self.tuning.rate {
            RateLimit::Limited(rate) => Some(rate.as_per_second()),
            RateLimit::Unlimited | RateLimit::Auto(_) => None,
        }
    }

    /// Returns the time in which nothing could be saved, if the stall is a wait for the database.
    pub(super) fn unsaved_behind(&self, reason: StallReason) -> Option<&Spell> {
        let waits_for_store = matches!(
            reason,
            StallReason::Checkpoint | StallReason::Unsaved | StallReason::ResultsUnsaved | StallReason::Lease
        );
        self.unsaved.as_ref().filter(|_| waits_for_store)
    }

    /// True if no run sees its handler down any longer.
    pub(super) fn is_handler_back(&self) -> bool {
        self.handler.state.outage.is_none()
    }

    /// Describes what didn't run, and for how long: `nothing ran for 15s`.
    pub(super) fn stood_text(&self) -> Message {
        match self.stood {
            Stood { shards, of, longest } if of > 1 => say::shards_stood(shards, of, longest),
            _ => say::nothing_ran(self.idle),
        }
    }

    /// Returns the names of the nodes that don't respond.
    pub(super) fn silent_nodes(&self) -> String {
        let nodes: Vec<&str> = self.silent.nodes.iter().map(|(node, _)| node.as_str()).collect();
        nodes.join(", ")
    }

    /// Returns the attempts sent, per second.
    pub(super) fn attempts(&self) -> f64 {
        let sent = (self.permits.first + self.permits.repeats) as f64 / MICRO as f64;
        sent / self.covered.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Returns the average number of attempts per item; at least 1.
    pub(super) fn attempts_per_item(&self) -> f64 {
        let (first, repeats) = (self.permits.first as f64, self.permits.repeats as f64);
        if first > 0.0 { 1.0 + repeats / first } else { 1.0 }
    }

    /// Returns the slots by Little's law that a rate keeps busy at this latency.
    pub(super) fn slots(rate: f64, latency: Duration) -> u64 {
        (rate * latency.as_secs_f64()).ceil() as u64
    }

    /// Returns the usual latency of a call: the 95th percentile, or by Little's law if nothing was measured.
    pub(super) fn usual_latency(&self) -> Option<Duration> {
        let in_flight = self.live.as_ref().map_or(0, |live| live.in_flight) as f64;
        let mean = in_flight / self.attempts();
        let by_law = (mean.is_finite() && mean > 0.0 && mean < 1e9).then(|| Duration::from_secs_f64(mean));
        self.latency.p95.or(by_law)
    }

    /// Returns the waits of a task without a rate, with their share of its time in millionths, the largest first.
    pub(super) fn waits(&self) -> Vec<(StallReason, u32)> {
        let Some(live) = &self.live else { return Vec::new() };
        let age = live.age.as_nanos().max(1);
        let share = |spent: Duration| u32::try_from(spent.as_nanos() * 1_000_000 / age).unwrap_or(u32::MAX);
        let mut waits: Vec<(StallReason, u32)> = StallReason::ALL
            .into_iter()
            .zip(live.stalled.map(share))
            .filter(|(_, share)| *share > 0)
            .collect();
        waits.sort_by_key(|(_, share)| std::cmp::Reverse(*share));
        waits
    }
}
