//! Recent history of a task, or of all tasks, as time series with the requested resolution, as far back as it is
//! kept.

use std::time::Duration;

use crate::service::ServiceError;
use crate::service::stats::SAMPLE_EVERY;
use crate::service::stats::Stats;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::stats::series::{COARSE_STEP, Piece, Point, Slice, WallSlice, joined};
use windrow_engine::ports::ownership::peers::{PastSlice, PeerReply, Question, Unreachable};

/// Most points per response: six hours in steps of ten seconds.
pub const POINTS_MAX: u64 = 2160;
/// Default length of the time range.
pub const REACH_DEFAULT: Duration = Duration::from_secs(900);

/// Time range and resolution of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatsRange {
    /// Start of the range; default: [`REACH_DEFAULT`] before the end.
    pub from: Option<WallMs>,
    /// End of the range; default: now.
    pub to: Option<WallMs>,
    /// Length of a point; default: the shortest that fits.
    pub step: Option<Duration>,
}

/// Time series of a task, or of all tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStats {
    /// Start of the series; later than requested if less is kept or known.
    pub from: WallMs,
    /// End of the series.
    pub to: WallMs,
    /// Target length of a point; older data is kept only in longer points.
    pub step: Duration,
    /// Points, oldest first. Each has its end and the part of it in which the task ran.
    pub points: Vec<Piece>,
    /// Sum of all points.
    pub sum: Point,
    /// Nodes with a part of the data that can't be reached or are gone.
    pub silent: Vec<Unreachable>,
}

impl Stats {
    /// Returns the recent history of a task from all reachable nodes that ran it; without points if it never ran.
    ///
    /// # Errors
    /// `Invalid` if the range is empty or has more points than a response may have.
    pub async fn of_task(&self, task: TaskId, range: StatsRange) -> Result<TaskStats, ServiceError> {
        self.past(Some(task), range).await
    }

    /// Returns the recent history of all tasks together; without points if none ran.
    ///
    /// # Errors
    /// Same as [`Stats::of_task`].
    pub async fn of_all(&self, range: StatsRange) -> Result<TaskStats, ServiceError> {
        self.past(None, range).await
    }

    /// Returns the recent history of a task, or of all tasks.
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

    /// Returns the slices from other nodes, one list per node; nodes without data are left out.
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

    /// Returns the slices of a task, or of all tasks, from this node.
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

    /// Combines the slices of other nodes with those of this one.
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
        // Data kept in steps of ten seconds has no finer resolution.
        let step = if nodes.iter().flatten().any(is_long) {
            step.max(COARSE_STEP)
        } else {
            step
        };
        let step_ms = i64::try_from(step.as_millis()).unwrap_or(i64::MAX);
        joined(&nodes, step_ms)
    }

    /// Combines points into steps. Steps are aligned to the wall clock, so that the same request gets the same steps.
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

/// Returns true if a slice is longer than any one-second sample.
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
        // Round to the ten-second steps in which data is kept.
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
            "this would be more than {POINTS_MAX} points; the shortest step for this period is {least}s"
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
