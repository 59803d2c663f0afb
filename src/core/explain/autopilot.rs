//! Texts about the autopilot: the limits that it found, and the one that holds calls back.

use windrow_words::{Message, cause, explain as say};

use super::facts::Facts;
use crate::stats::autopilot::{Picture, Why};

/// Share of refused calls below which they aren't mentioned.
const REFUSED_MIN: f64 = 0.005;
/// Part of a ceiling from which it is reached.
const AT_CEILING: f64 = 0.98;
/// Tasks at one service from which on they don't share it fairly, each with an autopilot of its own.
const CROWD_MIN: u32 = 5;
/// Growth of the calls in flight for which a slope is put into words.
const MORE: f64 = 0.1;

/// Describes the limit that holds calls back.
pub fn held(picture: &Picture) -> Message {
    let (in_flight, rate) = (picture.in_flight, picture.rate);
    match picture.bound() {
        Some(Why::Starting) => cause::autopilot_starts(in_flight),
        Some(Why::Slower) => match picture.slope.filter(|slope| *slope > 0.0) {
            Some(slope) => cause::calls_slower_by(in_flight, slope * MORE),
            None => cause::calls_slower(in_flight),
        },
        Some(Why::RefusedAboveRate) => rate.map_or_else(cause::autopilot_holds, cause::refused_above_rate),
        Some(Why::RefusedInFlight) => cause::refused_in_flight(picture.refused_above.unwrap_or(in_flight)),
        Some(Why::Scouting) => match picture.scouting {
            Some(scouting) if !scouting.next.is_zero() => cause::scouting(scouting.since, scouting.next),
            Some(scouting) => cause::scout_out(scouting.since),
            None => cause::autopilot_holds(),
        },
        Some(Why::WindowUsed) => {
            let next = picture.scouting.map(|scouting| scouting.next);
            let rest = picture.held_for.or(next).filter(|rest| !rest.is_zero());
            rest.map_or_else(cause::service_window_used, cause::service_window)
        }
        None => cause::autopilot_holds(),
    }
}

/// Describes the limits found, of a task whose rate is automatic.
pub(super) fn found(facts: &Facts) -> Vec<Message> {
    let picture = facts.live.as_ref().and_then(|live| live.autopilot);
    let Some(picture) = picture else {
        return vec![say::autopilot_rate()];
    };
    let found = match picture.rate {
        Some(rate) => say::found(rate, picture.in_flight),
        None => say::found_in_flight(picture.in_flight),
    };
    let refused = (picture.refused_share >= REFUSED_MIN).then(|| say::refused(picture.refused_share));
    let crowd = (facts.company + 1 >= CROWD_MIN).then(|| say::crowd(facts.company));
    let beside = [refused, ceiling(facts), crowd];
    [found].into_iter().chain(beside.into_iter().flatten()).collect()
}

/// Describes the ceiling of an automatic rate, if the task has reached it.
fn ceiling(facts: &Facts) -> Option<Message> {
    let most = facts.tuning.rate.most()?;
    let is_reached = facts.attempts() >= AT_CEILING * most.as_per_second();
    is_reached.then(|| say::at_ceiling(most.to_string()))
}
