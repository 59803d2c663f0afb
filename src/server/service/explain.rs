//! Why a task is as fast as it is: what was counted of it lately, given to `domain::explain`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Service;
use super::cluster::amiss;
use windrow_core::explain::{
    Explanation, Facts, Head, HeldBack, LATE, Latency, Live, SharedLimit, Standing, explain,
};
use windrow_core::handler::sight::{HandlerSight, together};
use windrow_core::ids::{ItemIndex, ShardId, TaskId};
use windrow_core::life::succession::silence_told;
use windrow_core::limit::key::LimitKey;
use windrow_core::stats::series::Point;
use windrow_core::stats::stall::StallReason;
use windrow_core::stats::tally::FailedAttempts;
use windrow_core::task::lifecycle::{ShardState, Status};
use windrow_engine::actors::executor::run_view::RunView;
use windrow_engine::actors::runtime::context::Room;
use windrow_engine::ports::ownership::limit_store::PartView;
use windrow_engine::ports::ownership::peers::{Answer, ExplainPart, Question, Silent};
use windrow_engine::ports::tasks::list::AuditFilter;
use windrow_engine::ports::tasks::store::{ShardView, TaskView};

/// The span that is explained when nothing is said. Unit: seconds.
pub const SECONDS_DEFAULT: u32 = 60;
/// The shortest span: a few samples. Unit: seconds.
pub const SECONDS_MIN: u32 = 5;
/// The longest span: what is kept second by second. Unit: seconds.
pub const SECONDS_MAX: u32 = 900;
/// So much is explained after a change of the rate, however young it is. Unit: seconds.
const CHANGED_MIN: u64 = 3;
/// A gap in the samples that is no longer than this is no time without a run: the next sample is not taken yet.
const GAP_MAX: Duration = Duration::from_secs(2);

/// An explanation, and what it is made of.
#[derive(Clone, Debug)]
pub struct Explained {
    /// Why.
    pub explanation: Explanation,
    /// The nodes that run a part of the task, with how many runs each has.
    pub nodes: Vec<(String, u32)>,
    /// Its shards in the order of their ranges.
    pub shards: Vec<ExplainedShard>,
    /// Nodes that run a part and can't be asked: the explanation is that of the other parts.
    pub silent: Vec<Silent>,
    /// How the handler fares.
    pub handler: HandlerSight,
    /// The limit that kept something back, and what each node may use of it.
    pub limit: Option<HeldBy>,
}

/// A limit that kept something of a task back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// Its key, see [`LimitKey`].
    pub key: String,
    /// The businesses that name it, as far as the caller may know.
    pub businesses: Vec<String>,
    /// What each node may use of it whose runs want something.
    pub parts: Vec<PartView>,
}

/// Where a shard of a task stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedShard {
    /// Its name.
    pub shard: ShardId,
    /// Its state as it is stored.
    pub state: ShardState,
    /// The node that runs it.
    pub node: Option<String>,
    /// The part of the rate that this node has no room for.
    pub held_back: Option<HeldBack>,
}

impl Service {
    /// Explains the last `seconds` of a task, wherever it ran. A business isn't told which others use a limit.
    pub async fn explain(&self, task: &TaskView, seconds: u32, business: Option<&str>) -> Explained {
        let (shards, peers, mut silent) = self.owners(task.id).await;
        let mut parts = vec![(
            self.parts.cluster.node.clone(),
            self.explain_part(task.id, seconds),
        )];
        let question = Question::Explain(task.id, seconds);
        let asked = peers.into_iter().map(|peer| (peer, question.clone())).collect();
        for (peer, answer) in self.ask_all(asked).await {
            match answer {
                Ok(Answer::Explain(part)) => parts.push((peer.node, *part)),
                Ok(_) => silent.push(amiss(&peer)),
                Err(why) => silent.push(why),
            }
        }
        let open = shards
            .iter()
            .filter(|shard| shard.facts.state != ShardState::Done)
            .count();
        let open = u32::try_from(open)
            .unwrap_or(u32::MAX)
            .saturating_sub(silent.len() as u32);
        let standing_for = self.now().since(task.since);
        let holding = parts.iter().filter(|(_, part)| part.runs > 0);
        let handler = holding.map(|(node, part)| (node.as_str(), &part.handler));
        let mut facts = facts(task, &parts, open, standing_for, seconds);
        if self.would_stop_at_once(task) {
            facts.standing.reason = Some(LATE.to_owned());
        }
        self.tell_of_takeover(task, &mut facts, seconds).await;
        facts.handler = HandlerSight::of(handler, self.now());
        let handler = facts.handler.clone();
        let limit = self.limit_of(task, &facts, &parts, business).await;
        facts.limit = limit.as_ref().map(shared_limit);
        let explanation = explain(&facts);
        let shards = task
            .shards
            .iter()
            .map(|shard| place(task.id, shard, &parts))
            .collect();
        let nodes = parts.into_iter().filter(|(_, part)| part.runs > 0);
        Explained {
            explanation,
            nodes: nodes.map(|(node, part)| (node, part.runs)).collect(),
            shards,
            silent,
            handler,
            limit,
        }
    }

    /// What a node that was gone left undone until another took it. Where that can't be read the rest is told.
    async fn tell_of_takeover(&self, task: &TaskView, facts: &mut Facts, seconds: u32) {
        let filter = AuditFilter {
            task: Some(task.id),
            action: Some("shard.taken_over".to_owned()),
            ..AuditFilter::default()
        };
        let found = self
            .parts
            .lists
            .audits(&filter, None, 1)
            .await
            .unwrap_or_default();
        let Some(entry) = found.into_iter().next().map(|row| row.entry) else {
            return;
        };
        let within = Duration::from_secs(u64::from(seconds)).saturating_sub(self.now().since(entry.at));
        let Some(text) = entry.reason.filter(|_| !within.is_zero()) else {
            return;
        };
        // One shard of several that stands costs its part.
        let parts = u32::try_from(task.shards.len()).unwrap_or(u32::MAX).max(1);
        let silent = silence_told(&text).unwrap_or_default().min(within) / parts;
        let more = silent.saturating_sub(facts.idle);
        (facts.idle, facts.covered) = (facts.idle + more, facts.covered + more);
        facts.taken_over = Some(text);
    }

    /// The shared limit that held most of its runs back last, if any kept something of this task back. Users that can't be
    /// read are left out: the cause says enough.
    async fn limit_of(
        &self,
        task: &TaskView,
        facts: &Facts,
        parts: &[(String, ExplainPart)],
        business: Option<&str>,
    ) -> Option<HeldBy> {
        let at = StallReason::Limit as usize;
        let stalled = facts
            .live
            .as_ref()
            .map_or(Duration::ZERO, |live| live.stalled[at]);
        if facts.permits.lost[at] == 0 && stalled.is_zero() {
            return None;
        }
        let key = held_by(parts).unwrap_or_else(|| LimitKey::Business(&task.business).text());
        let businesses = match LimitKey::parse(&key) {
            LimitKey::Business(_) => Vec::new(),
            LimitKey::Named(name) => {
                let users = self.parts.limits.limit_users(name).await.unwrap_or_default();
                users
                    .businesses
                    .into_iter()
                    .filter(|user| business.is_none_or(|own| own == user))
                    .collect()
            }
        };
        let parts = self.supervisor().parts_of_limit(&key).await.unwrap_or_default();
        let parts = parts.into_iter().filter(|part| part.runs > 0).collect();
        Some(HeldBy {
            key,
            businesses,
            parts,
        })
    }

    /// What this node knows of the last `seconds` of a task.
    pub(super) fn explain_part(&self, task: TaskId, seconds: u32) -> ExplainPart {
        let asked = Duration::from_secs(u64::from(seconds));
        let changed = self.stats().same_rate_for(task).filter(|age| *age < asked);
        let seconds = changed.map_or_else(|| u64::from(seconds), |age| age.as_secs().max(CHANGED_MIN));
        let span = self.stats().span(task, seconds);
        let runs = self.supervisor().runs_of(task);
        ExplainPart {
            span: span.as_ref().map(|span| (span.covered, span.running)),
            point: span.map(|span| span.point).unwrap_or_default(),
            live: live(&runs),
            runs: u32::try_from(runs.len()).unwrap_or(u32::MAX),
            shards: runs
                .iter()
                .map(|run| (run.shard, run.held_back.clone()))
                .collect(),
            // A run's own histogram is four times as fine.
            latency_p95: runs.iter().filter_map(|run| run.progress.latency_p95).max(),
            handler: together(runs.iter().map(|run| &run.progress.handler)),
            codes: codes(&runs),
            free_rate: free_rate(self.supervisor().room()),
            since_change: changed.is_some(),
            held_by: runs
                .iter()
                .filter_map(|run| run.held_by.clone())
                .fold(BTreeMap::new(), counted),
        }
    }
}

/// Puts the parts together; the first one is this node's. `open` is how many shards have something left to do, as far as
/// that is known.
fn facts(
    task: &TaskView,
    parts: &[(String, ExplainPart)],
    open: u32,
    standing_for: Duration,
    seconds: u32,
) -> Facts {
    // A node whose runs ended before the rate was changed says nothing of the time since.
    let is_cut = parts.iter().any(|(_, part)| part.since_change);
    let counts = |part: &ExplainPart| !is_cut || part.since_change || part.runs > 0;
    let parts: Vec<(String, ExplainPart)> = parts.iter().filter(|(_, part)| counts(part)).cloned().collect();
    let parts = parts.as_slice();
    let each = || parts.iter().map(|(_, part)| part);
    let span = span(parts, open);
    let idle = idle(task.status, span, standing_for, seconds);
    let mut point = Point::default();
    each().for_each(|part| point.add(&part.point));
    let at = |percent| point.calls.percentile(percent);
    let p95 = each().filter_map(|part| part.latency_p95).max();
    Facts {
        task: task.id,
        covered: span.map_or(Duration::ZERO, |(_, running)| running) + idle,
        idle,
        settled: point.settled(),
        latency: Latency {
            p50: at(50),
            p95: p95.or_else(|| at(95)),
            p99: at(99),
            longest: at(100),
        },
        tuning: task.tuning.clone(),
        standing: Standing {
            status: task.status,
            reason: task.status_reason.clone(),
            text: task.status_text.clone(),
        },
        worst_code: worst_code(parts),
        live: each().filter_map(|part| part.live.clone()).reduce(both),
        free_rate: room_for(parts),
        held_back: each()
            .flat_map(|part| &part.shards)
            .filter_map(|(_, held)| held.clone())
            .collect(),
        limit: None,
        taken_over: None,
        permits: point.permits,
        handler: HandlerSight::default(),
    }
}

fn shared_limit(limit: &HeldBy) -> SharedLimit {
    let key = LimitKey::parse(&limit.key);
    let name = match key {
        LimitKey::Business(_) => None,
        LimitKey::Named(name) => Some(name.to_owned()),
    };
    SharedLimit {
        title: key.to_string(),
        name,
        businesses: limit.businesses.clone(),
        runs: limit.parts.iter().map(|part| part.runs).sum(),
        nodes: limit.parts.len(),
    }
}

/// The key of the limit that held most runs back last.
fn held_by(parts: &[(String, ExplainPart)]) -> Option<String> {
    let mut sums: BTreeMap<&str, u32> = BTreeMap::new();
    for (key, runs) in parts.iter().flat_map(|(_, part)| &part.held_by) {
        *sums.entry(key).or_default() += runs;
    }
    // Of several the first in the alphabet, so that the answer doesn't jump.
    sums.into_iter()
        .rev()
        .max_by_key(|(_, runs)| *runs)
        .map(|(key, _)| key.to_owned())
}

/// Where a shard stands: who runs it says so; of one whose owner can't be asked the store has said it.
fn place(task: TaskId, shard: &ShardView, parts: &[(String, ExplainPart)]) -> ExplainedShard {
    let id = ShardId { task, no: shard.no };
    let runs = |part: &ExplainPart| {
        part.shards
            .iter()
            .find(|(no, _)| *no == id)
            .map(|(_, held)| held.clone())
    };
    let live = parts
        .iter()
        .find_map(|(node, part)| Some((node.clone(), runs(part)?)));
    let stored = shard.node.clone().filter(|_| shard.state == ShardState::Running);
    let (node, held_back) = match live {
        Some((node, held_back)) => (Some(node), held_back),
        None => (stored, None),
    };
    ExplainedShard {
        shard: id,
        state: shard.state,
        node,
        held_back,
    }
}

/// The span that all parts are about, and for how much of it the task ran: where it has several shards, each of them
/// counts for its part.
fn span(parts: &[(String, ExplainPart)], open: u32) -> Option<(Duration, Duration)> {
    let spans = || {
        parts
            .iter()
            .filter_map(|(_, part)| part.span.map(|span| (span, part.runs)))
    };
    let covered = spans().map(|((covered, _), _)| covered).max()?;
    let longest = spans().map(|((_, running), _)| running).max()?;
    let runs: u32 = spans().map(|(_, runs)| runs).sum();
    let shards = runs.max(open);
    if shards <= 1 {
        return Some((covered, longest));
    }
    let each: Duration = spans().map(|((_, running), runs)| running * runs).sum();
    // Shards that ended within the span ran for some of it, too; nobody knows for how long.
    Some((
        covered,
        if runs == 0 {
            longest
        } else {
            (each / shards).min(covered)
        },
    ))
}

/// For how long of the span (how far back it reaches, how much of it the task ran) nothing ran, although it wanted to.
fn idle(
    status: Status,
    span: Option<(Duration, Duration)>,
    standing_for: Duration,
    seconds: u32,
) -> Duration {
    let wants = [
        Status::Running,
        Status::Queued,
        Status::Recovering,
        Status::AwaitingBusiness,
    ];
    if !wants.contains(&status) {
        return Duration::ZERO;
    }
    match span {
        Some((covered, running)) => {
            let gap = covered.saturating_sub(running);
            if gap > GAP_MAX { gap } else { Duration::ZERO }
        }
        // A run that has just begun has no sample yet.
        None if status == Status::Running => Duration::ZERO,
        None => standing_for.min(Duration::from_secs(u64::from(seconds))),
    }
}

/// The runs of two nodes.
fn both(one: Live, other: Live) -> Live {
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
        troubled: one.troubled + other.troubled,
        parked: one.parked + other.parked,
        age: one.age + other.age,
        stalled,
    }
}

/// What the task's rate may grow by: a node with a part of the runs gets that part of it. Where nothing runs, what this
/// node has.
fn room_for(parts: &[(String, ExplainPart)]) -> Option<f64> {
    let runs: u32 = parts.iter().map(|(_, part)| part.runs).sum();
    if runs == 0 {
        return parts.first().and_then(|(_, part)| part.free_rate);
    }
    let holding = parts.iter().map(|(_, part)| part).filter(|part| part.runs > 0);
    let whole = holding.filter_map(|part| Some(part.free_rate? * f64::from(runs) / f64::from(part.runs)));
    whole.reduce(f64::min)
}

fn live(runs: &[RunView]) -> Option<Live> {
    let mut live = Live::default();
    for run in runs {
        let progress = &run.progress;
        live.in_flight += progress.counters.in_flight;
        live.concurrency += u64::from(progress.concurrency);
        live.window += u64::from(progress.window);
        live.troubled += progress.troubled;
        live.parked += progress.counters.parked;
        live.age += run.age;
        for (sum, part) in live.stalled.iter_mut().zip(progress.stalled) {
            *sum += part;
        }
        if let Some(slots) = progress.handler_slots {
            live.handler_slots = Some(live.handler_slots.unwrap_or(0) + u64::from(slots));
        }
        live.head = live.head.into_iter().chain(head(run)).max_by_key(|head| head.age);
    }
    (!runs.is_empty()).then_some(live)
}

fn head(run: &RunView) -> Option<Head> {
    let progress = &run.progress;
    let index: ItemIndex = progress.low_water;
    let at = progress.head?;
    Some(Head {
        index,
        attempt: at.attempt,
        waits: at.waits,
        age: progress.head_age,
    })
}

fn counted(mut sums: BTreeMap<String, u32>, key: String) -> BTreeMap<String, u32> {
    *sums.entry(key).or_default() += 1;
    sums
}

fn codes(runs: &[RunView]) -> Vec<(String, u64)> {
    let mut failed = FailedAttempts::default();
    runs.iter().for_each(|run| failed.add(&run.tally.failed));
    failed
        .iter()
        .map(|(code, ended)| (code.to_owned(), ended.retry + ended.abandon))
        .collect()
}

fn worst_code(parts: &[(String, ExplainPart)]) -> Option<(String, u64)> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for (code, times) in parts.iter().flat_map(|(_, part)| &part.codes) {
        *sums.entry(code).or_default() += times;
    }
    // Of several the first in the alphabet, so that the answer doesn't jump.
    sums.into_iter()
        .rev()
        .max_by_key(|(_, times)| *times)
        .map(|(code, times)| (code.to_owned(), times))
}

/// What is left for other rates. Unit: items per second.
fn free_rate(room: Room) -> Option<f64> {
    let whole = room.capacity?;
    Some(whole.0.saturating_sub(room.reserved.0) as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_core::ids::RunNo;
    use windrow_core::items::counters::Counters;
    use windrow_core::settings::RateLimit;

    #[test]
    fn only_a_task_that_wants_to_run_misses_the_time_without_a_run() {
        let seconds = Duration::from_secs;
        let span = |covered, running| (seconds(covered), seconds(running));
        let idle = |status, span, standing| idle(status, span, seconds(standing), 60);
        assert_eq!(idle(Status::Recovering, Some(span(60, 45)), 15), seconds(15));
        assert_eq!(
            idle(Status::Running, Some(span(60, 45)), 3),
            seconds(15),
            "it was recovering before"
        );
        assert_eq!(
            idle(Status::Running, Some(span(60, 59)), 900),
            seconds(0),
            "a sample is to come"
        );
        assert_eq!(idle(Status::Stopped, Some(span(60, 5)), 55), seconds(0));
        assert_eq!(idle(Status::Queued, None, 7), seconds(7));
        assert_eq!(idle(Status::Queued, None, 700), seconds(60));
        assert_eq!(idle(Status::Running, None, 1), seconds(0));
    }

    fn part(running: Option<u64>, runs: u32, free: Option<f64>) -> (String, ExplainPart) {
        let seconds = Duration::from_secs;
        let span = running.map(|running| (seconds(60), seconds(running)));
        let codes = vec![
            ("A".to_owned(), u64::from(runs)),
            (format!("B{runs}"), u64::from(runs) + 1),
        ];
        (
            "n".to_owned(),
            ExplainPart {
                span,
                runs,
                free_rate: free,
                codes,
                ..ExplainPart::default()
            },
        )
    }

    #[test]
    fn each_shard_counts_for_its_part_of_the_time() {
        let seconds = Duration::from_secs;
        let of = |parts: &[(String, ExplainPart)], open| span(parts, open).map(|(_, running)| running);
        assert_eq!(
            of(&[part(None, 0, None), part(Some(59), 1, None)], 1),
            Some(seconds(59))
        );
        let two = [part(Some(60), 1, None), part(Some(60), 1, None)];
        assert_eq!(of(&two, 2), Some(seconds(60)));
        assert_eq!(of(&two, 4), Some(seconds(30)), "two of four don't run");
        assert_eq!(
            of(&[part(Some(60), 3, None), part(Some(20), 1, None)], 4),
            Some(seconds(50))
        );
        assert_eq!(of(&[part(Some(9), 0, None)], 0), Some(seconds(9)), "it ended");
        assert_eq!(of(&[part(None, 0, None)], 1), None);
    }

    #[test]
    fn who_runs_a_shard_says_where_it_is_and_else_the_store() {
        let task = TaskId(3);
        let stored = |no, state| ShardView {
            no,
            first: ItemIndex(0),
            end: ItemIndex(9),
            range_end: ItemIndex(9),
            state,
            session: None,
            node: Some("n1".to_owned()),
            run: RunNo(1),
            low_water: ItemIndex(0),
            high_water: ItemIndex(0),
            counters: Counters::default(),
            share: None,
            next_at: None,
        };
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
            part(None, 0, None),
            (
                "n2".to_owned(),
                ExplainPart {
                    shards,
                    ..ExplainPart::default()
                },
            ),
        ];
        let place = |no, state| {
            let found = place(task, &stored(no, state), &parts);
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
    fn the_fullest_node_bounds_what_a_rate_may_grow_by() {
        assert_eq!(room_for(&[part(None, 0, Some(7.0))]), Some(7.0));
        let parts = [
            part(None, 0, Some(1.0)),
            part(None, 1, Some(100.0)),
            part(None, 3, Some(90.0)),
        ];
        assert_eq!(room_for(&parts), Some(120.0), "of 120 more the second gets 90");
        assert_eq!(room_for(&[part(None, 1, None)]), None);
        assert_eq!(worst_code(&parts), Some(("A".to_owned(), 4)));
    }
}
