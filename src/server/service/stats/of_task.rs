//! The recent past of a task, or of all together, as series: of as many points as were asked for, from as far back as it is kept.

use std::time::Duration;

use crate::service::ServiceError;
use crate::service::stats::SAMPLE_EVERY;
use crate::service::stats::Stats;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::stats::series::{COARSE_STEP, Piece, Point, Slice, WallSlice, joined};
use windrow_engine::ports::ownership::peers::{PastSlice, PeerReply, Question, Unreachable};

/// Points of one answer: six hours of tens of seconds.
pub const POINTS_MAX: u64 = 2160;
/// How far back an answer reaches when nothing is said.
pub const REACH_DEFAULT: Duration = Duration::from_secs(900);

/// Of what time series are wanted, and how fine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatsRange {
    /// From when on; none is [`REACH_DEFAULT`] before the end.
    pub from: Option<WallMs>,
    /// Until when; none is now.
    pub to: Option<WallMs>,
    /// The length of a point; none is the shortest that fits.
    pub step: Option<Duration>,
}

/// Series of a task, or of all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStats {
    /// Where they begin: later than asked for where less is kept, or known.
    pub from: WallMs,
    /// Where they end.
    pub to: WallMs,
    /// The length of a point that was aimed at; what is older is kept in longer ones only.
    pub step: Duration,
    /// The points, oldest first: each with its end, and how long of it something of the task ran.
    pub points: Vec<Piece>,
    /// All of them together.
    pub sum: Point,
    /// Nodes that counted some of it and can't be asked, or are gone.
    pub silent: Vec<Unreachable>,
}

impl Stats {
    /// What is kept of the recent past of a task, by all nodes that ran it and can be asked; no points where it never
    /// ran.
    ///
    /// # Errors
    /// `Invalid` for a range that has no length, or more points than an answer has.
    pub async fn of_task(&self, task: TaskId, range: StatsRange) -> Result<TaskStats, ServiceError> {
        self.past(Some(task), range).await
    }

    /// The same of all tasks together: no points where none ran.
    ///
    /// # Errors
    /// As [`Stats::of_task`].
    pub async fn of_all(&self, range: StatsRange) -> Result<TaskStats, ServiceError> {
        self.past(None, range).await
    }

    /// Of a task, or of all.
    async fn past(&self, task: Option<TaskId>, range: StatsRange) -> Result<TaskStats, ServiceError> {
        let now = self.node.now();
        let to = range.to.unwrap_or(now);
        let from = range.from.unwrap_or_else(|| to.minus(REACH_DEFAULT));
        let step = step(to.since(from), range.step)?;
        let (elsewhere, silent) = self.past_elsewhere(task, from, to, step).await;
        let points = match elsewhere.is_empty() {
            true => {
                let slices = self.slices(task, from, to, step);
                self.steps(slices, step)
            }
            false => self.joined(task, elsewhere, from, to, step),
        };
        let mut sum = Point::default();
        points.iter().for_each(|point| sum.extend(&point.point));
        let begins = points.first().map(|first| first.to.minus(first.running));
        let from = begins.map_or(from, |begins| begins.max(from));
        Ok(TaskStats {
            from,
            to,
            step,
            points,
            sum,
            silent,
        })
    }

    /// What other nodes counted, a list a node; none that counted nothing.
    async fn past_elsewhere(
        &self,
        task: Option<TaskId>,
        from: WallMs,
        to: WallMs,
        step: Duration,
    ) -> (Vec<Vec<WallSlice>>, Vec<Unreachable>) {
        let step_ms = u64::try_from(step.as_millis()).unwrap_or(u64::MAX);
        let ((peers, mut silent), question) = match task {
            Some(task) => (
                self.cluster.witnesses(task, from).await,
                Question::Past(task, from, to, step_ms),
            ),
            None => (
                self.cluster.others().await,
                Question::PastOfAll(from, to, step_ms),
            ),
        };
        let read = |reply| match reply {
            PeerReply::Past(slices) => Some(slices.into_iter().map(wall_slice).collect()),
            _ => None,
        };
        let found = self.cluster.gather(peers, &question, read, &mut silent).await;
        let mut found: Vec<Vec<WallSlice>> = found.into_iter().map(|(_, slices)| slices).collect();
        found.retain(|slices| !slices.is_empty());
        (found, silent)
    }

    /// What was counted of a task, or of all, on this node.
    pub(in crate::service) fn past_here(
        &self,
        task: Option<TaskId>,
        from: WallMs,
        to: WallMs,
        step: Duration,
    ) -> Vec<PastSlice> {
        let slices = self.slices(task, from, to, step);
        let surplus = slices.len().saturating_sub(POINTS_MAX as usize + 2);
        let past = |slice: Slice| PastSlice {
            from: self.node.wall_of(slice.from),
            to: self.node.wall_of(slice.to),
            point: slice.point,
        };
        slices.into_iter().skip(surplus).map(past).collect()
    }

    /// Lays what other nodes counted over what this one did.
    fn joined(
        &self,
        task: Option<TaskId>,
        mut nodes: Vec<Vec<WallSlice>>,
        from: WallMs,
        to: WallMs,
        step: Duration,
    ) -> Vec<Piece> {
        nodes.push(
            self.past_here(task, from, to, step)
                .into_iter()
                .map(wall_slice)
                .collect(),
        );
        let is_long = |slice: &WallSlice| slice.to.since(slice.from) > COARSE_STEP / 2;
        // What is kept in tens of seconds says nothing of single ones.
        let step = if nodes.iter().flatten().any(is_long) {
            step.max(COARSE_STEP)
        } else {
            step
        };
        let step_ms = i64::try_from(step.as_millis()).unwrap_or(i64::MAX);
        joined(&nodes, step_ms)
    }

    /// Joins points to those of a step. The steps lie on the wall clock, so that the same question gets the same ones.
    fn steps(&self, slices: Vec<Slice>, step: Duration) -> Vec<Piece> {
        let is_raw = step <= SAMPLE_EVERY || (step <= COARSE_STEP && slices.iter().any(is_coarse));
        let step_ms = i64::try_from(step.as_millis()).unwrap_or(i64::MAX).max(1);
        let mut points: Vec<Piece> = Vec::new();
        let mut last = None;
        for slice in slices {
            let middle = self.node.wall_of(slice.from.plus(slice.length() / 2));
            let number = middle.0.div_euclid(step_ms);
            let running = slice.length();
            match points.last_mut().filter(|_| !is_raw && last == Some(number)) {
                Some(point) => {
                    point.to = self.node.wall_of(slice.to);
                    point.running += running;
                    point.point.extend(&slice.point);
                }
                None => {
                    points.push(Piece {
                        to: self.node.wall_of(slice.to),
                        running,
                        point: slice.point,
                    });
                }
            }
            last = Some(number);
        }
        points
    }
}

fn wall_slice(slice: PastSlice) -> WallSlice {
    WallSlice {
        from: slice.from,
        to: slice.to,
        point: slice.point,
    }
}

/// Whether a slice is longer than a second's sample ever is.
fn is_coarse(slice: &Slice) -> bool {
    slice.length() > COARSE_STEP / 2
}

fn step(length: Duration, asked: Option<Duration>) -> Result<Duration, ServiceError> {
    if length.is_zero() {
        return Err(ServiceError::invalid("to", "must be later than `from`"));
    }
    let shortest = Duration::from_millis(
        u64::try_from(length.as_millis())
            .unwrap_or(u64::MAX)
            .div_ceil(POINTS_MAX),
    );
    let Some(step) = asked else {
        // Whole tens of seconds, as they are kept.
        let tens = u32::try_from(shortest.as_millis().div_ceil(COARSE_STEP.as_millis())).unwrap_or(u32::MAX);
        return Ok(if shortest <= SAMPLE_EVERY {
            SAMPLE_EVERY
        } else {
            COARSE_STEP.saturating_mul(tens)
        });
    };
    if step < SAMPLE_EVERY {
        return Err(ServiceError::invalid("step", "must be at least 1s"));
    }
    if step < shortest {
        let least = shortest.as_secs() + 1;
        let text = format!(
            "these would be more than {POINTS_MAX} points; {least}s is the shortest step for this time"
        );
        return Err(ServiceError::invalid("step", text));
    }
    Ok(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_a_bounded_number_of_points() {
        let of = |length: u64, asked: Option<u64>| {
            step(Duration::from_secs(length), asked.map(Duration::from_secs)).map(|step| step.as_secs())
        };
        assert_eq!(
            (of(900, None), of(2160, None), of(2161, None)),
            (Ok(1), Ok(1), Ok(10))
        );
        assert_eq!(
            (of(21_600, None), of(21_700, None), of(86_400, None)),
            (Ok(10), Ok(20), Ok(40))
        );
        assert_eq!((of(900, Some(60)), of(21_600, Some(10))), (Ok(60), Ok(10)));
        assert!(of(86_400, Some(1)).is_err() && of(900, Some(0)).is_err() && of(0, None).is_err());
        for length in [1, 2159, 2160, 5000, 21_600, 1_000_000] {
            let step = of(length, None).expect("a length");
            assert!(length / step <= POINTS_MAX, "{length}: {step}");
        }
    }
}
