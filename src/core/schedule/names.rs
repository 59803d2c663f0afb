//! Task names that a schedule's template gives to its fires, and the check that they are distinct: a name belongs to
//! one task, so of two fires with the same name the second fails. A manual fire comes at any time and gets a name of
//! its own.

use std::time::Duration;

use super::Spec;
use super::cron::falls_back;
use super::placeholders::{FireTimes, UnknownPlaceholder, filled, local};
use crate::ids::WallMs;
use crate::task::NAME_CHARS_MAX;

/// Number of upcoming fires that are checked.
const LOOKS: usize = 100;
/// Number of fires checked around a time at which clocks are set back.
const LOOKS_BACK: usize = 1_000;
/// Span ahead in which clocks that are set back are searched for.
const AHEAD: Duration = Duration::from_secs(400 * 24 * 3600);
/// Distance from a clock change within which two fires may have the same name.
const AROUND: Duration = Duration::from_secs(4 * 3600);
/// Offset for the check of a manual fire: its name must differ from those of fires this much before and after.
const BY_HAND: Duration = Duration::from_secs(1);
/// Suffix for manual fires that a template doesn't tell apart, by the clocks of the schedule's zone.
const BY_HAND_FORM: &str = "at-%H-%M-%S%.3f";
/// Forms that tell more times apart, the most readable first.
const FINER: [&str; 3] = ["{fire_time:time}", "{fire_time:unix}", "{fire_time:ms}"];

/// Two fires that would have the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SameName {
    /// Name that both would have.
    pub name: String,
    /// Time of the first fire.
    pub first: WallMs,
    /// Time of the second fire.
    pub second: WallMs,
    /// Template that gives them different names, or `None` if no placeholder does.
    pub finer: Option<String>,
}

/// Finds two regular fires of the schedule that would have the same name.
pub fn of_fires(template: &str, spec: &Spec, now: WallMs) -> Option<SameName> {
    let found = among_fires(template, spec, now)?;
    let finer = finer(template, |template| among_fires(template, spec, now).is_none());
    Some(SameName { finer, ..found })
}

/// Returns the task name for a manual fire at the present time. If the template gives all fires of a minute or a day
/// the same name, the clock time is appended, so that neither this fire nor the regular one finds its name taken.
///
/// # Errors
/// Returns the first unknown placeholder.
pub fn by_hand(template: &str, times: &FireTimes<'_>) -> Result<String, UnknownPlaceholder> {
    let name = filled(template, times)?;
    let at = |fire| filled(template, &FireTimes { fire, ..*times });
    let (before, after) = (at(times.fire.minus(BY_HAND))?, at(times.fire.plus(BY_HAND))?);
    if name != before && name != after {
        return Ok(name);
    }
    let own = format!("{name}-{}", local(times.fire, times.zone, BY_HAND_FORM));
    let fits = own.chars().count() <= NAME_CHARS_MAX;
    Ok(if fits { own } else { name })
}

fn among_fires(template: &str, spec: &Spec, now: WallMs) -> Option<SameName> {
    let soon = in_row(template, spec, (now, None), LOOKS);
    soon.or_else(|| {
        falls_back(spec.timing.zone(), now, now.plus(AHEAD))
            .into_iter()
            .find_map(|back| {
                let begin = back.minus(AROUND).max(now);
                in_row(template, spec, (begin, Some(back.plus(AROUND))), LOOKS_BACK)
            })
    })
}

/// Finds two fires with the same name in this span: names follow time, except where clocks are set back.
fn in_row(
    template: &str,
    spec: &Spec,
    (begin, end): (WallMs, Option<WallMs>),
    looks: usize,
) -> Option<SameName> {
    let fires = std::iter::successors(spec.next_after(begin), |last| spec.next_after(*last));
    let fires = fires
        .take_while(|fire| end.is_none_or(|end| *fire <= end))
        .take(looks);
    let mut seen = std::collections::BTreeMap::new();
    let mut previous = None;
    for fire in fires {
        let zone = spec.timing.zone();
        let name = filled(template, &FireTimes { fire, previous, zone }).ok()?;
        if let Some(first) = seen.insert(name.clone(), fire) {
            return Some(SameName {
                name,
                first,
                second: fire,
                finer: None,
            });
        }
        previous = Some(fire);
    }
    None
}

/// Returns the template with a placeholder that tells the fires apart.
fn finer(template: &str, does: impl Fn(&str) -> bool) -> Option<String> {
    let coarse = template.find("{fire_time").and_then(|begin| {
        let end = begin + template[begin..].find('}')?;
        Some(&template[begin..=end])
    });
    let with = |form: &str| match coarse {
        Some(coarse) => template.replacen(coarse, form, 1),
        None => format!("{template}-{form}"),
    };
    FINER.into_iter().map(with).find(|template| does(template))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::cron::Cron;
    use crate::schedule::timing::Timing;
    use crate::schedule::{Missed, Overlap};

    fn spec(timing: Timing) -> Spec {
        Spec {
            timing,
            start: None,
            end: None,
            jitter: Duration::ZERO,
            overlap: Overlap::Skip,
            missed: Missed::Latest,
        }
    }

    fn cron(text: &str, zone: &str) -> Spec {
        spec(Timing::Cron(Cron::parse(text, zone).expect("sound")))
    }

    fn at(text: &str) -> WallMs {
        let time = chrono::DateTime::parse_from_rfc3339(text).expect("a time");
        WallMs(time.timestamp_millis())
    }

    #[test]
    fn two_fires_of_one_day_have_one_name_by_the_day_and_the_next_form_tells_them_apart() {
        let (hourly, now) = (cron("0 * * * *", "UTC"), at("2026-01-05T10:30:00Z"));
        let found = of_fires("board-{fire_time:date}", &hourly, now).expect("the same");
        assert_eq!(
            (found.name.as_str(), found.finer.as_deref()),
            ("board-2026-01-05", Some("board-{fire_time:time}"))
        );
        assert_eq!(
            (found.first, found.second),
            (at("2026-01-05T11:00:00Z"), at("2026-01-05T12:00:00Z"))
        );
        assert_eq!(of_fires("board-{fire_time:time}", &hourly, now), None);
        let daily = cron("0 3 * * *", "Europe/Berlin");
        assert_eq!(of_fires("board-{fire_time:date}", &daily, now), None);
        let often = spec(Timing::Every(Duration::from_secs(10)));
        let found = of_fires("b-{fire_time:time}", &often, now).expect("the same");
        assert_eq!(found.finer.as_deref(), Some("b-{fire_time:unix}"));
    }

    #[test]
    fn an_hour_that_comes_twice_gives_one_name_twice() {
        let (hourly, now) = (cron("0 * * * *", "Europe/Berlin"), at("2026-01-05T10:30:00Z"));
        let found = of_fires("b-{fire_time:time}", &hourly, now).expect("clocks are put back");
        assert_eq!(
            (found.name.as_str(), found.finer.as_deref()),
            ("b-2026-10-25T02-00", Some("b-{fire_time:unix}"))
        );
        let fixed = cron("0 2 * * *", "Europe/Berlin");
        assert_eq!(of_fires("b-{fire_time:time}", &fixed, now), None);
    }

    #[test]
    fn a_fire_by_hand_has_a_name_of_its_own() {
        let name = |template: &str, at_text: &str| {
            let times = FireTimes {
                fire: at(at_text),
                previous: None,
                zone: "Europe/Berlin",
            };
            by_hand(template, &times).expect("sound")
        };
        let time = "2026-01-05T02:00:07.123Z";
        assert_eq!(name("b-{fire_time:date}", time), "b-2026-01-05-at-03-00-07.123");
        assert_eq!(
            name("b-{fire_time:time}", time),
            "b-2026-01-05T03-00-at-03-00-07.123"
        );
        assert_eq!(
            name("b-{fire_time:time}", "2026-01-05T02:00:59.900Z"),
            "b-2026-01-05T03-00-at-03-00-59.900",
            "also in the last second of a minute"
        );
        assert_eq!(name("b-{fire_time:unix}", time), "b-1767578407");
        assert_eq!(
            name("b-{previous_fire_time}", time),
            "b--at-03-00-07.123",
            "it has no own time"
        );
        let long = format!("{}-{{fire_time:date}}", "b".repeat(110));
        assert!(name(&long, time).ends_with("-2026-01-05"), "it fits as it is");
    }
}
