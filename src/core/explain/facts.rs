//! What an explanation is made of.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::past::{Stood, Unheard};
use super::text::{counted, time};
use crate::handler::sight::HandlerSight;
use crate::ids::{ItemIndex, TaskId};
use crate::settings::RateLimit;
use crate::stats::permits::{MICRO, Permits};
use crate::stats::stall::StallReason;
use crate::task::Tuning;
use crate::task::lifecycle::Status;

/// What is known of a task over a span, and of the moment.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Which task.
    pub task: TaskId,
    /// The slug of its business.
    pub business: String,
    /// The time that this is about: with a run and without.
    pub covered: Duration,
    /// The part of it in which nothing of the task ran, although it was there.
    pub idle: Duration,
    /// Which of its shards that was.
    pub stood: Stood,
    /// Which of them are on nodes that give no sign.
    pub unheard: Unheard,
    /// These nodes.
    pub silent: Silent,
    /// What became of the permits in it.
    pub permits: Permits,
    /// How long calls took in it.
    pub latency: Latency,
    /// The settings now.
    pub tuning: Tuning,
    /// Where the task stands.
    pub standing: Standing,
    /// How its runs stand; none while nothing of it runs here.
    pub live: Option<Live>,
    /// The code of most failed attempts since the run began, and how many.
    pub worst_code: Option<(String, u64)>,
    /// What this node has left for other rates; none without a bound. Unit: items per second.
    pub free_rate: Option<f64>,
    /// Whether no other node can have a part of it: the database is a file of this one.
    pub is_alone: bool,
    /// The runs that go slower than they should, for lack of room.
    pub held_back: Vec<HeldBack>,
    /// How the handler fares.
    pub handler: HandlerSight,
    /// The limit that it shares with other tasks, where that kept something back.
    pub limit: Option<SharedLimit>,
    /// In the span a node took a part of it from one that was gone.
    pub taken_over: Option<Takeover>,
    /// In the span a node could save nothing of it for so long.
    pub unsaved: Option<Spell>,
    /// In the span this node, which ran a part of it, did nothing at all for so long.
    pub stood_still: Option<(String, Spell)>,
}

/// A time in which something was the matter with a node. Both ends say how long ago they were, so that no clocks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spell {
    /// How long ago it began.
    pub from: Duration,
    /// How long ago it ended, or was seen last; zero where it lasts.
    pub to: Duration,
}

impl Spell {
    /// How long it was.
    pub fn lasted(&self) -> Duration {
        self.from.saturating_sub(self.to)
    }

    /// `for 25.0 s, until 6.00 s ago`; `for 25.0 s so far`.
    pub(super) fn text(&self) -> String {
        let lasted = time(self.lasted());
        match self.to {
            Duration::ZERO => format!("for {lasted} so far"),
            to => format!("for {lasted}, until {} ago", time(to)),
        }
    }
}

/// The nodes that have a part of a task and can't be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Silent {
    /// Each, and why it can't be asked.
    pub nodes: Vec<(String, String)>,
    /// What becomes of their part, for people.
    pub prospect: String,
}

/// A node that went on with what another left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The node that goes on.
    pub by: String,
    /// What happened, for people.
    pub text: String,
}

/// A limit that tasks share, and who uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedLimit {
    /// Which, in words: `the limit of push`, `the limit vendor-x`.
    pub title: String,
    /// Its name, if it has one of its own.
    pub name: Option<String>,
    /// The businesses that name it.
    pub businesses: Vec<String>,
    /// Runs that want something of it now, on all nodes.
    pub runs: u64,
    /// Nodes that have such runs.
    pub nodes: usize,
}

/// A run goes slower than its part of the rate allows, since its node has no room for more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBack {
    /// How fast it may go.
    pub rate: RateLimit,
    /// Its part of the task's rate.
    pub wanted: RateLimit,
    /// For how long.
    pub age: Duration,
    /// What the node said when it was last asked.
    pub why: String,
}

impl HeldBack {
    /// What the node's room has cost in a span that ends now. Unit: millionths of an item.
    pub(super) fn lost(&self, span: Duration) -> u64 {
        let (RateLimit::Limited(rate), RateLimit::Limited(wanted)) = (self.rate, self.wanted) else {
            return 0;
        };
        let missing = wanted
            .micros_per_second()
            .saturating_sub(rate.micros_per_second());
        let micros = u128::from(missing) * self.age.min(span).as_millis() / 1000;
        u64::try_from(micros).unwrap_or(u64::MAX)
    }
}

/// How long calls took; none of them when none was answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Half of them took no longer.
    pub p50: Option<Duration>,
    /// 95 of 100.
    pub p95: Option<Duration>,
    /// 99 of 100.
    pub p99: Option<Duration>,
    /// No call took longer than this.
    pub longest: Option<Duration>,
}

/// Where a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Its status.
    pub status: Status,
    /// A machine slug, where the status needs a reason.
    pub reason: Option<String>,
    /// A sentence for people.
    pub text: Option<String>,
}

/// How the runs of a task stand, taken together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Live {
    /// Items with the handler.
    pub in_flight: u64,
    /// Items that may be in flight.
    pub concurrency: u64,
    /// The windows' sizes.
    pub window: u64,
    /// What the handler can work on at once, where it says so.
    pub handler_slots: Option<u64>,
    /// The item that holds watermark longest.
    pub head: Option<Head>,
    /// Items that wait for a retry or are tried again.
    #[serde(rename = "troubled")]
    pub retrying: u64,
    /// Items that wait outside the window.
    pub parked: u64,
    /// How long the runs have lasted.
    pub age: Duration,
    /// Time spent stalled since they began, in the order of [`StallReason::ALL`].
    pub stalled: [Duration; StallReason::ALL.len()],
}

/// The item at watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Which.
    pub index: ItemIndex,
    /// The attempt that is with the handler, or the next one.
    pub attempt: u32,
    /// Whether it waits for that attempt.
    pub waits: bool,
    /// For how long it has held watermark.
    pub age: Duration,
}

impl Facts {
    /// The rate of the settings, if one limits the task. Unit: items per second.
    pub(super) fn rate(&self) -> Option<f64> {
        match self.tuning.rate {
            RateLimit::Limited(rate) => Some(rate.as_per_second()),
            RateLimit::Unlimited => None,
        }
    }

    /// The time in which nothing could be saved, where a stall is a wait for the database.
    pub(super) fn unsaved_behind(&self, reason: StallReason) -> Option<&Spell> {
        let waits_for_store = matches!(
            reason,
            StallReason::Checkpoint | StallReason::Unsaved | StallReason::ResultsUnsaved | StallReason::Trust
        );
        self.unsaved.as_ref().filter(|_| waits_for_store)
    }

    /// Whether no run sees its handler down any longer.
    pub(super) fn is_handler_back(&self) -> bool {
        self.handler.state.outage.is_none()
    }

    /// What of it did not run, and for how long: `nothing of it ran for 15.0 s`.
    pub(super) fn stood_text(&self, it: &str) -> String {
        match self.stood {
            Stood { shards, of, longest } if of > 1 => {
                format!(
                    "{shards} of the {} of {it} did not run for {}",
                    counted(of as u64, "shard"),
                    time(longest)
                )
            }
            _ => format!("nothing of {it} ran for {}", time(self.idle)),
        }
    }

    /// How many shards are on nodes that give no sign: `1 of the 3 shards`; none while there is no such one.
    pub(super) fn unheard_text(&self) -> Option<String> {
        let Unheard { shards, of, .. } = self.unheard;
        (shards > 0).then(|| format!("{shards} of the {}", counted(of as u64, "shard")))
    }

    /// Attempts that left. Unit: items per second.
    pub(super) fn attempts(&self) -> f64 {
        let sent = (self.permits.first + self.permits.repeats) as f64 / MICRO as f64;
        sent / self.covered.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// How often an item is tried, on average; at least 1.
    pub(super) fn attempts_per_item(&self) -> f64 {
        let (first, repeats) = (self.permits.first as f64, self.permits.repeats as f64);
        if first > 0.0 { 1.0 + repeats / first } else { 1.0 }
    }

    /// Slots by Little's law: what a rate keeps busy when each call takes so long.
    pub(super) fn slots(rate: f64, latency: Duration) -> u64 {
        (rate * latency.as_secs_f64()).ceil() as u64
    }

    /// What a call usually takes: the 95th percentile, or by Little's law where nothing was measured.
    pub(super) fn usual_latency(&self) -> Option<Duration> {
        let in_flight = self.live.as_ref().map_or(0, |live| live.in_flight) as f64;
        let mean = in_flight / self.attempts();
        let by_law = (mean.is_finite() && mean > 0.0 && mean < 1e9).then(|| Duration::from_secs_f64(mean));
        self.latency.p95.or(by_law)
    }

    /// What a task without a rate waits for, with the share of its time in millionths, largest first.
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
