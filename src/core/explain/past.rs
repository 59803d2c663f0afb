//! Past of a task: how much of the explained time it ran, and how much it is known that it didn't.
//!
//! The counts of nodes show when shards ran; the records of runs show where counts are missing, because a node is
//! gone or can't be asked. There the explained time begins later: a gap is reported only if it is known that nothing
//! ran. A shard on a silent node is reported with its share of the whole time, as one of which nothing is known.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Longest gap that isn't time without a run: the next sample is not taken yet, or the shard is being handed over.
const GAP_MAX: Duration = Duration::from_secs(2);
/// Maximum time from its claim until a run counts; anything longer was counted by a node that no longer knows it.
const OPENING_MAX: Duration = Duration::from_secs(10);
/// Minimum time before its end at which a run's own counts begin; clocks of nodes may differ a little.
const OWN_MIN: Duration = Duration::from_millis(500);

/// Time in which a shard ran and was counted. Both ends are given as ages, so that no clocks are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stay {
    /// Number of the shard.
    pub shard: u32,
    /// Time since it began.
    pub from: Duration,
    /// Time since it ended, or was counted last.
    pub to: Duration,
}

/// Recorded run on any node. Its times are given as ages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedRun {
    /// Number of the shard.
    pub shard: u32,
    /// Time since it claimed the shard.
    pub from: Duration,
    /// Time since it ended, or was heard of last; `None` while it runs.
    pub to: Option<Duration>,
    /// Set if it ended because the task was to rest.
    pub was_stopped: bool,
}

/// Known past of a task.
#[derive(Clone, Debug, Default)]
pub struct Past {
    /// Time that is to be explained.
    pub asked: Duration,
    /// Time since the rate changed, if that is less.
    pub changed: Option<Duration>,
    /// Times in which shards were counted, from all nodes that could be asked; in any order.
    pub stays: Vec<Stay>,
    /// All runs that may lie in that time.
    pub runs: Vec<RecordedRun>,
    /// Shards of the task.
    pub shards: BTreeSet<u32>,
    /// Shards that run now, according to their nodes.
    pub live: BTreeSet<u32>,
    /// Shards of nodes that can't be asked.
    pub silent: BTreeSet<u32>,
    /// Shards that have nothing left to do.
    pub done: BTreeSet<u32>,
    /// Time for which the task has had its status.
    pub stands: Duration,
}

/// Time in which a task ran. Each of several shards counts for its share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Known time, with a run and without.
    pub covered: Duration,
    /// Part of it in which nothing ran.
    pub idle: Duration,
    /// Shards that didn't run in it.
    pub stood: Stood,
    /// Shards of which nothing is known in it.
    pub unheard: Unheard,
}

/// Shards on nodes that can't be asked: their work is unknown, which doesn't mean that they did none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unheard {
    /// Number of such shards.
    pub shards: usize,
    /// Number of shards of the task.
    pub of: usize,
    /// Share of the covered time that is theirs.
    pub time: Duration,
}

/// Shards that didn't run for a while, although they should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stood {
    /// Number of such shards.
    pub shards: usize,
    /// Number of shards considered in total.
    pub of: usize,
    /// Longest time that one of them didn't run.
    pub longest: Duration,
}

impl Past {
    /// Returns the time, back from now, for which everything is known.
    pub fn reach(&self) -> Duration {
        let counted = self.stays.iter().map(|stay| stay.from);
        let begun = counted.chain(self.runs.iter().map(|run| run.from)).max();
        let asked = self.asked.min(begun.unwrap_or_default());
        let mut reach = self.changed.map_or(asked, |changed| asked.min(changed));
        // While the task rested, nothing was missing: the explained time begins with the next run.
        let stops = self.runs.iter().filter(|run| run.was_stopped);
        for stop in stops.filter_map(|run| run.to) {
            let next = self.runs.iter().map(|run| run.from).filter(|from| *from < stop);
            reach = reach.min(next.max().unwrap_or(self.stands));
        }
        let unknown = self.runs.iter().flat_map(|run| self.unknown(run, asked));
        unknown.fold(reach, Duration::min)
    }

    /// Returns the ends of the times in which a run existed but nobody reports what it counted.
    fn unknown(&self, run: &RecordedRun, asked: Duration) -> Vec<Duration> {
        if self.is_blind(run) {
            // Nothing is known since then either: this shard counts as unknown in all of the explained time.
            return vec![run.from];
        }
        let stays = self.stays_of(run.shard);
        let last = stays.last().map_or(Duration::ZERO, |(_, to)| *to);
        let end = run.to.unwrap_or(last);
        // Counts that begin as this run ends are those of the next one.
        let least = run.to.map_or(end, |to| to + OWN_MIN);
        let begins = stays.iter().map(|(from, _)| *from);
        let first = begins
            .skip_while(|from| *from > run.from)
            .find(|from| *from >= least);
        let opened = first.filter(|first| run.from - *first <= OPENING_MAX);
        let mut at = opened.unwrap_or(run.from).min(asked);
        let mut ends = Vec::new();
        for (from, to) in stays.into_iter().chain([(end, end)]) {
            let upto = from.max(end);
            if at.saturating_sub(upto) > GAP_MAX {
                ends.push(upto);
            }
            at = at.min(to);
        }
        ends
    }

    /// True if the run is active somewhere and its node can't be asked.
    fn is_blind(&self, run: &RecordedRun) -> bool {
        let heard = self.stays_of(run.shard).last().map(|(_, to)| *to);
        let silent = heard.unwrap_or(run.from).min(run.from);
        run.to.is_none() && !self.live.contains(&run.shard) && silent > GAP_MAX
    }

    /// Returns the times in which a shard was counted, oldest first, without overlaps: a fenced node may count for a
    /// while beside its successor.
    fn stays_of(&self, shard: u32) -> Vec<(Duration, Duration)> {
        let own = self.stays.iter().filter(|stay| stay.shard == shard);
        let mut own: Vec<(Duration, Duration)> = own.map(|stay| (stay.from, stay.to)).collect();
        own.sort_unstable_by_key(|(from, _)| std::cmp::Reverse(*from));
        let mut merged: Vec<(Duration, Duration)> = Vec::new();
        for (from, to) in own {
            match merged.last_mut() {
                Some((_, end)) if from >= *end => *end = to.min(*end),
                _ => merged.push((from, to)),
            }
        }
        merged
    }

    /// Returns how much of a time the task ran, and how much it didn't although it should have, according to `wants`.
    pub fn ran(&self, reach: Duration, wants: bool) -> Ran {
        let blind: BTreeSet<u32> = self
            .runs
            .iter()
            .filter(|run| self.is_blind(run))
            .map(|run| run.shard)
            .collect();
        // A task that shouldn't run isn't missed there either.
        let unheard = blind
            .intersection(&self.silent)
            .filter(|no| wants && self.shards.contains(no))
            .count();
        let seen = self.shards.difference(&blind);
        let shards: Vec<ShardPast> = seen.filter_map(|no| self.shard(*no, reach, wants)).collect();
        let mut edges: Vec<Duration> = shards.iter().flat_map(ShardPast::edges).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut ran = Ran {
            stood: stood(&shards),
            unheard: Unheard {
                shards: unheard,
                of: self.shards.len(),
                time: Duration::ZERO,
            },
            ..Ran::default()
        };
        let unheard = u32::try_from(unheard).unwrap_or(u32::MAX);
        for (to, from) in edges.iter().zip(edges.iter().skip(1)) {
            let count = |counts: &dyn Fn(&ShardPast) -> bool| {
                u32::try_from(shards.iter().filter(|shard| counts(shard)).count()).unwrap_or(u32::MAX)
            };
            let open = count(&|shard| shard.until <= *to);
            let running = count(&|shard| is_in(&shard.stays, *from, *to));
            let idle = count(&|shard| is_in(&shard.gaps, *from, *to));
            if open > 0 {
                let (piece, whole) = (*from - *to, open.saturating_add(unheard));
                let known = piece * (running + idle) / open;
                ran.covered += known;
                ran.idle += piece * idle / whole;
                ran.unheard.time += known * unheard / whole;
            }
        }
        ran
    }

    /// Returns the past of a shard; `None` if it had ended before.
    fn shard(&self, no: u32, reach: Duration, wants: bool) -> Option<ShardPast> {
        let stays = self.stays_of(no);
        let last = stays.last().map(|(_, to)| *to);
        let is_done = self.done.contains(&no);
        let until = if is_done { last? } else { Duration::ZERO };
        // Anything that a live run has counted since its last sample comes with the next one.
        let end = match last {
            Some(last) if is_done || self.live.contains(&no) => last,
            _ => Duration::ZERO,
        };
        let mut gaps = Vec::new();
        let mut at = reach;
        for (from, to) in stays.iter().copied().chain([(end, end)]) {
            if wants && at.saturating_sub(from) > GAP_MAX {
                gaps.push((at, from));
            }
            at = at.min(to);
        }
        Some(ShardPast { stays, gaps, until })
    }
}

/// Times in which a shard ran, and in which it didn't although it should have; each oldest first, as ages.
struct ShardPast {
    stays: Vec<(Duration, Duration)>,
    gaps: Vec<(Duration, Duration)>,
    /// Time since it had nothing left to do.
    until: Duration,
}

impl ShardPast {
    fn edges(&self) -> impl Iterator<Item = Duration> {
        let both = self.stays.iter().chain(&self.gaps);
        both.flat_map(|(from, to)| [*from, *to]).chain([self.until])
    }
}

/// True if the piece lies in one of these times.
fn is_in(times: &[(Duration, Duration)], from: Duration, to: Duration) -> bool {
    times.iter().any(|(begin, end)| *begin >= from && *end <= to)
}

fn stood(shards: &[ShardPast]) -> Stood {
    let gaps = shards.iter().flat_map(|shard| &shard.gaps);
    Stood {
        shards: shards.iter().filter(|shard| !shard.gaps.is_empty()).count(),
        of: shards.len(),
        longest: gaps.map(|(from, to)| *from - *to).max().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn stay(shard: u32, from: u64, to: u64) -> Stay {
        let (from, to) = (seconds(from), seconds(to));
        Stay { shard, from, to }
    }

    fn run(shard: u32, from: u64, to: Option<u64>) -> RecordedRun {
        RecordedRun {
            shard,
            from: seconds(from),
            to: to.map(seconds),
            was_stopped: false,
        }
    }

    /// A minute of so many shards, of which all run now.
    fn minute(shards: u32, stays: &[Stay], runs: &[RecordedRun]) -> Past {
        Past {
            asked: seconds(60),
            stays: stays.to_vec(),
            runs: runs.to_vec(),
            shards: (0..shards).collect(),
            live: (0..shards).collect(),
            ..Past::default()
        }
    }

    /// The reach, what is covered of it, and what is idle of that.
    fn told(past: &Past) -> [u64; 3] {
        let reach = past.reach();
        let ran = past.ran(reach, true);
        [reach, ran.covered, ran.idle].map(|time| time.as_secs_f64().round() as u64)
    }

    #[test]
    fn time_on_another_node_is_no_gap_and_counts_once() {
        let stays = [stay(0, 22, 14), stay(0, 14, 6), stay(0, 6, 1)];
        let runs = [run(0, 22, Some(14)), run(0, 14, Some(6)), run(0, 6, None)];
        assert_eq!(told(&minute(1, &stays, &runs)), [22, 21, 0]);
    }

    #[test]
    fn where_nobody_knows_what_a_run_counted_the_time_begins_after_it() {
        // The middle one was on a node that is gone, or can't be asked.
        let stays = [stay(0, 50, 30), stay(0, 12, 0)];
        let runs = [run(0, 50, Some(30)), run(0, 30, Some(12)), run(0, 12, None)];
        assert_eq!(told(&minute(1, &stays, &runs))[0], 12);
        // However short its stay was.
        let runs = [run(0, 50, Some(30)), run(0, 30, Some(25)), run(0, 25, None)];
        assert_eq!(told(&minute(1, &[stay(0, 50, 30), stay(0, 25, 0)], &runs))[0], 25);
        // It counted the last second only: the ring had no more room.
        let short = minute(1, &[stay(0, 30, 0)], &[run(0, 500, None)]);
        assert_eq!(told(&short), [30, 30, 0]);
    }

    #[test]
    fn the_gap_of_a_takeover_is_told_from_the_last_word_of_the_dead_node_on() {
        let runs = [run(0, 600, Some(40)), run(0, 25, None)];
        let past = minute(1, &[stay(0, 24, 0)], &runs);
        assert_eq!(told(&past), [40, 40, 16]);
        let stood = past.ran(past.reach(), true).stood;
        assert_eq!((stood.shards, stood.of, stood.longest), (1, 1, seconds(16)));
        // All that is asked for was without a run.
        let long = minute(1, &[stay(0, 5, 0)], &[run(0, 900, Some(300)), run(0, 5, None)]);
        assert_eq!(told(&long), [60, 60, 55]);
        // Nobody took it so far.
        let mut waiting = minute(1, &[stay(0, 60, 20)], &[run(0, 900, Some(20))]);
        waiting.live.clear();
        assert_eq!(told(&waiting), [60, 60, 20]);
        assert_eq!(
            waiting.ran(seconds(60), false).idle,
            Duration::ZERO,
            "it doesn't want to run"
        );
    }

    #[test]
    fn a_shard_that_stands_costs_its_part_and_one_that_ended_nothing() {
        let runs = [
            run(0, 900, None),
            run(1, 900, None),
            run(2, 900, Some(40)),
            run(2, 25, None),
        ];
        let stays = [stay(0, 60, 0), stay(1, 60, 0), stay(2, 25, 0)];
        let past = minute(3, &stays, &runs);
        // What the third did before its node died is lost with it.
        assert_eq!(
            told(&past),
            [40, 53, 5],
            "what was counted before is known in part"
        );
        assert_eq!(past.ran(past.reach(), true).stood.shards, 1);
        let mut ended = minute(
            2,
            &[stay(0, 60, 0), stay(1, 60, 30)],
            &[run(0, 900, None), run(1, 900, Some(30))],
        );
        (ended.live, ended.done) = (BTreeSet::from([0]), BTreeSet::from([1]));
        assert_eq!(told(&ended), [60, 60, 0]);
    }

    #[test]
    fn shards_that_change_nodes_one_by_one_leave_no_gap() {
        let stays = [
            stay(0, 60, 0),
            stay(1, 60, 40),
            stay(1, 39, 20),
            stay(1, 19, 0),
            stay(2, 60, 10),
            stay(2, 9, 0),
        ];
        let runs = [
            run(0, 900, None),
            run(1, 900, Some(40)),
            run(1, 40, Some(20)),
            run(1, 19, None),
            run(2, 900, Some(10)),
            run(2, 9, None),
        ];
        let past = minute(3, &stays, &runs);
        assert_eq!(
            told(&past),
            [60, 59, 0],
            "only what each handover took is not covered"
        );
    }

    #[test]
    fn a_shard_on_a_node_that_gives_no_sign_is_unknown_for_its_part() {
        let runs = [run(0, 900, None), run(1, 900, None), run(2, 900, None)];
        let mut past = minute(3, &[stay(0, 60, 0), stay(1, 60, 0)], &runs);
        past.live = BTreeSet::from([0, 1]);
        assert_eq!(told(&past), [60, 60, 0]);
        let unheard = |past: &Past, wants| past.ran(past.reach(), wants).unheard;
        assert_eq!(
            unheard(&past, true).shards,
            0,
            "its node answers, and it has just begun"
        );
        past.silent = BTreeSet::from([2]);
        assert_eq!(told(&past), [60, 60, 0], "nobody knows that it did nothing");
        let third = unheard(&past, true);
        assert_eq!((third.shards, third.of, third.time), (1, 3, seconds(20)));
        assert_eq!(unheard(&past, false).shards, 0, "it is to rest");

        // Another one stands for a while: it too counts for a third.
        past.stays[1] = stay(1, 60, 30);
        past.runs[1] = run(1, 900, Some(30));
        past.live = BTreeSet::from([0]);
        assert_eq!(told(&past), [60, 60, 10]);
        assert_eq!(unheard(&past, true).time, seconds(20));
    }

    #[test]
    fn what_nobody_can_be_asked_of_covers_no_time() {
        let mut past = minute(1, &[], &[run(0, 900, None)]);
        (past.live, past.silent) = (BTreeSet::new(), BTreeSet::from([0]));
        assert_eq!(told(&past), [60, 0, 0]);
        assert_eq!(past.ran(past.reach(), true).unheard.time, Duration::ZERO);
    }

    #[test]
    fn rest_and_an_older_rate_are_not_told_of() {
        let stays = [stay(0, 60, 40), stay(0, 10, 0)];
        let mut runs = [run(0, 900, Some(40)), run(0, 10, None)];
        runs[0].was_stopped = true;
        assert_eq!(
            told(&minute(1, &stays, &runs))[0],
            10,
            "nobody wanted it to run in between"
        );
        let mut queued = minute(1, &[], &runs[..1]);
        (queued.stands, queued.live) = (seconds(3), BTreeSet::new());
        assert_eq!(
            told(&queued),
            [3, 3, 3],
            "it was started again, and waits for room"
        );
        let mut changed = minute(1, &[stay(0, 60, 0)], &[run(0, 900, None)]);
        changed.changed = Some(seconds(7));
        assert_eq!(changed.reach(), seconds(7));
    }

    #[test]
    fn a_task_that_has_just_begun_has_no_gap_before_it() {
        assert_eq!(told(&minute(1, &[stay(0, 4, 0)], &[run(0, 4, None)])), [4, 4, 0]);
        assert_eq!(told(&minute(1, &[], &[])), [0, 0, 0]);
        // It took five seconds from its claim until it ran: its source was read.
        let opened = [run(0, 900, Some(30)), run(0, 29, None)];
        assert_eq!(
            told(&minute(1, &[stay(0, 60, 30), stay(0, 24, 0)], &opened)),
            [60, 60, 6]
        );
    }
}
