//! Joined series of one task from several nodes, aligned on the wall clock.
//!
//! Each node counts by its own clock, so its points don't line up with the others'. They are cut at whole steps,
//! assuming an even distribution in each: the sums stay exact, and every node gives the same answer to the same
//! question.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Point;
use crate::ids::WallMs;

/// Maximum lag of a node that still counts behind the others. Unit: milliseconds.
const BEHIND_MAX_MS: i64 = 3_000;

/// Counts between two times of the wall clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WallSlice {
    /// Beginning of the slice.
    pub from: WallMs,
    /// End of the slice.
    pub to: WallMs,
    /// Counts of the slice.
    pub point: Point,
}

/// One step of the joined series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// End of the step, or of the known part of it.
    pub to: WallMs,
    /// Part of the step in which something ran on any node.
    pub running: Duration,
    /// Counts of the step, over all nodes.
    pub point: Point,
}

/// Joins the series of several nodes, each oldest first, to steps of `step_ms` milliseconds. Leaves out the last step
/// until every node that still counts has reached its end.
pub fn joined(nodes: &[Vec<WallSlice>], step_ms: i64) -> Vec<Piece> {
    let step_ms = step_ms.max(1);
    let mut all: BTreeMap<i64, Piece> = BTreeMap::new();
    for slices in nodes {
        for (step, own) in steps(slices, step_ms) {
            match all.get_mut(&step) {
                None => {
                    all.insert(step, own);
                }
                Some(piece) => {
                    piece.to = piece.to.max(own.to);
                    piece.running = piece.running.max(own.running);
                    piece.point.gauges.join(&own.point.gauges);
                    piece.point.add(&own.point);
                }
            }
        }
    }
    let until = known_until(nodes);
    all.into_iter()
        .filter(|(step, _)| (step + 1).saturating_mul(step_ms) <= until)
        .map(|(_, piece)| piece)
        .collect()
}

/// Returns the time up to which every node that still counts is known; without bound if only one does.
fn known_until(nodes: &[Vec<WallSlice>]) -> i64 {
    let ends: Vec<i64> = nodes
        .iter()
        .filter_map(|slices| slices.last())
        .map(|slice| slice.to.0)
        .collect();
    let newest = ends.iter().copied().max().unwrap_or(i64::MAX);
    let mut current = ends
        .into_iter()
        .filter(|end| newest.saturating_sub(*end) <= BEHIND_MAX_MS);
    match (current.next(), current.next()) {
        (Some(one), Some(other)) => current.fold(one.min(other), i64::min),
        _ => i64::MAX,
    }
}

/// Cuts the series of one node at whole steps.
fn steps(slices: &[WallSlice], step_ms: i64) -> BTreeMap<i64, Piece> {
    let mut steps: BTreeMap<i64, Piece> = BTreeMap::new();
    for slice in slices {
        let whole = slice.to.since(slice.from).as_millis() as u64;
        let (mut from, mut done) = (slice.from.0, Point::default());
        while from < slice.to.0 {
            let step = from.div_euclid(step_ms);
            let to = (step + 1).saturating_mul(step_ms).min(slice.to.0);
            let part = WallMs(to).since(slice.from).as_millis() as u64;
            let head = if to == slice.to.0 {
                slice.point.clone()
            } else {
                slice.point.head(part, whole)
            };
            let fresh = Piece {
                to: WallMs(to),
                running: Duration::from_millis(to.abs_diff(from)),
                point: head.after(&done),
            };
            match steps.get_mut(&step) {
                None => {
                    steps.insert(step, fresh);
                }
                Some(piece) => {
                    piece.to = fresh.to;
                    piece.running += fresh.running;
                    piece.point.extend(&fresh.point);
                }
            }
            (from, done) = (to, head);
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Slices of these lengths from a time on, each with so many settled.
    fn series(from: i64, lengths: &[(i64, u64)]) -> Vec<WallSlice> {
        let mut at = from;
        let mut slices = Vec::new();
        for (length, settled) in lengths {
            let mut point = Point {
                succeeded: *settled,
                failed_attempts: settled / 3,
                ..Point::default()
            };
            point.permits.due = settled * 1_000_003;
            point.calls.record(Duration::from_millis(3), *settled);
            point.gauges.in_flight = 2;
            slices.push(WallSlice {
                from: WallMs(at),
                to: WallMs(at + length),
                point,
            });
            at += length;
        }
        slices
    }

    #[test]
    fn steady_nodes_whose_clocks_lie_apart_give_a_steady_sum() {
        let one = series(10_000, &[(1000, 100); 20]);
        let other = series(10_370, &[(1003, 50); 20]);
        let pieces = joined(&[one, other], 1000);
        let rates: Vec<u64> = pieces.iter().map(|piece| piece.point.succeeded).collect();
        assert!(
            rates[1..].iter().all(|rate| (149..=150).contains(rate)),
            "{rates:?}"
        );
        assert_eq!(pieces[1].point.gauges.in_flight, 4);
        assert!(pieces.iter().all(|piece| piece.running <= Duration::from_secs(1)));
        assert_eq!(pieces.last().map(|piece| piece.to), Some(WallMs(30_000)));
    }

    #[test]
    fn a_node_that_ended_does_not_hold_up_the_others() {
        let pieces = joined(&[series(0, &[(1000, 10); 5]), series(0, &[(1000, 10); 30])], 1000);
        assert_eq!(
            (pieces.len(), pieces[4].point.succeeded, pieces[5].point.succeeded),
            (30, 20, 10)
        );
        assert_eq!(joined(&[], 1000), Vec::new());
    }

    proptest! {
        #[test]
        fn cutting_loses_nothing(
            lengths in proptest::collection::vec((1_i64..9_000, 0_u64..100_000), 1..40),
            from in -5_000_i64..5_000,
            step in 1_i64..12_000,
        ) {
            let slices = series(from, &lengths);
            let pieces = joined(std::slice::from_ref(&slices), step);
            let (mut before, mut after) = (Point::default(), Point::default());
            slices.iter().for_each(|slice| before.extend(&slice.point));
            pieces.iter().for_each(|piece| after.extend(&piece.point));
            // The time that calls took together is rounded; what is counted is not.
            prop_assert_eq!(before.calls.counts(), after.calls.counts());
            prop_assert_eq!((before.succeeded, before.failed_attempts), (after.succeeded, after.failed_attempts));
            prop_assert_eq!(before.permits, after.permits);
            let running: Duration = pieces.iter().map(|piece| piece.running).sum();
            prop_assert_eq!(running.as_millis() as i64, lengths.iter().map(|(length, _)| length).sum::<i64>());
        }
    }
}
