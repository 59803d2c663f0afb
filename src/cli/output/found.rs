//! Limits that the autopilot has found, in a few words.

use windrow_core::explain::rate_text;
use windrow_words::share;

use crate::output::table::human;

/// Share of refused calls below which they aren't shown.
const REFUSED_MIN: f64 = 0.005;
/// Factor of slowness from which it is shown.
const SLOWER_MIN: f64 = 1.05;

/// Formats the limits beside a rate: `8 in flight, 1 % refused`.
pub(crate) fn brief(in_flight: u32, refused_share: f64, is_scouting: bool) -> String {
    let refused = (refused_share >= REFUSED_MIN).then(|| format!(", {} refused", share(refused_share)));
    let scouting = if is_scouting { ", one call at a time" } else { "" };
    format!(
        "{} in flight{}{scouting}",
        human::count(in_flight.into()),
        refused.unwrap_or_default()
    )
}

/// Formats [`brief`] for what the API shows.
pub(crate) fn brief_of(found: &api::TaskAutopilot) -> String {
    brief(found.in_flight, found.refused_share, found.scouting.is_some())
}

/// Formats everything in one line: `8 in flight, 1 % refused   up to 38.2/s   calls 1.2× slower than at best (100ms)`.
pub(crate) fn whole(found: &api::TaskAutopilot) -> String {
    let slower = found.best_latency_seconds.filter(|_| found.slower >= SLOWER_MIN);
    let parts = [
        Some(brief_of(found)),
        found.rate.map(|rate| format!("up to {}", rate_text(rate))),
        found
            .refused_above
            .map(|above| format!("refused above {above} in flight")),
        slower.map(|best| {
            let best = human::seconds(best);
            format!("calls {:.1}× slower than at best ({best})", found.slower)
        }),
        found
            .why
            .as_ref()
            .map(|why| format!("held back: {}", why.replace('_', " "))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("   ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_was_found_and_what_holds() {
        let mut found = api::TaskAutopilot {
            in_flight: 8,
            refused_share: 0.001,
            slower: 1.0,
            best_latency_seconds: Some(0.1),
            ..api::TaskAutopilot::default()
        };
        assert_eq!(whole(&found), "8 in flight");
        (found.rate, found.refused_share, found.slower) = (Some(38.2), 0.012, 1.2);
        found.why = Some("refused_above_rate".to_owned());
        assert_eq!(
            whole(&found),
            "8 in flight, 1 % refused   up to 38.2/s   calls 1.2× slower than at best (100ms)   \
             held back: refused above rate"
        );
        found.scouting = Some(api::TaskScouting::default());
        assert_eq!(brief_of(&found), "8 in flight, 1 % refused, one call at a time");
    }
}
