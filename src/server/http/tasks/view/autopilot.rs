//! Limits that the autopilot of a task has found.

use crate::http::answer::Of;
use windrow_core::pilot::{Picture, Scouting, Why};

impl Of<&Picture> for api::TaskAutopilot {
    fn of(found: &Picture) -> Self {
        api::TaskAutopilot {
            in_flight: found.in_flight,
            refused_above: found.refused_above,
            rate: found.rate,
            refused_share: found.refused_share,
            latency_seconds: found.latency.map(|(now, _)| now),
            best_latency_seconds: found.latency.map(|(_, best)| best),
            slope: found.slope,
            slower: found.slower,
            scouting: found.scouting.map(api::TaskScouting::of),
            why: found.why.map(Why::as_str).map(str::to_owned),
            held_for_seconds: found.held_for.map(|left| left.as_secs_f64()),
        }
    }
}

impl Of<Scouting> for api::TaskScouting {
    fn of(scouting: Scouting) -> Self {
        api::TaskScouting {
            since_seconds: scouting.since.as_secs_f64(),
            next_seconds: scouting.next.as_secs_f64(),
            named: scouting.is_told,
        }
    }
}
