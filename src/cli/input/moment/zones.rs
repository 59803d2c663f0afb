//! Times in a given zone: the one at the end of the text (`2026-01-05 06:00 Europe/Berlin`), otherwise the
//! schedule's.

use super::{Lean, Understood, now, told, utc_now};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use windrow_core::zone::Zone;

/// Parses the time of a flag for the API, in this machine's zone if none is given. An inexact time is echoed with its
/// zone.
///
/// # Errors
/// `Usage` if the text isn't a time, names an unknown zone, or is in the past where a future time is required.
pub(crate) fn given(
    flag: &str,
    text: &str,
    (lean, zone): (Lean, Option<&str>),
    link: &Link<'_>,
) -> Result<Understood, Fault> {
    let (text, named) = split(flag, text)?;
    let known = zone.and_then(|zone| zone.parse::<Zone>().ok());
    let (found, line) = match named.or(known) {
        Some(zone) => told_in(zone, flag, text, lean)?,
        None => {
            let (found, line) = told(flag, text, lean, &now())?;
            (
                found,
                line.map(|line| format!("{line} (this machine's time zone)")),
            )
        }
    };
    if let Some(line) = line {
        link.say(&line);
    }
    Ok(found)
}

/// Returns the time in a zone and the line that echoes it.
pub(super) fn told_in(
    zone: Zone,
    flag: &str,
    text: &str,
    lean: Lean,
) -> Result<(Understood, Option<String>), Fault> {
    let (found, line) = told(flag, text, lean, &utc_now().with_timezone(&zone))?;
    Ok((found, line.map(|line| format!("{line} ({zone})"))))
}

/// Splits a text into the time and the zone at its end.
pub(super) fn split<'a>(flag: &str, text: &'a str) -> Result<(&'a str, Option<Zone>), Fault> {
    let Some((time, last)) = text.trim().rsplit_once(' ') else {
        return Ok((text, None));
    };
    match last.parse::<Zone>() {
        Ok(zone) => Ok((time.trim_end(), Some(zone))),
        Err(_) if last.contains('/') => {
            let because = format!("{flag} {text:?}: no time zone {last:?}");
            Err(Fault::new(Exit::Usage, "invalid time", because)
                .hint("an IANA name such as UTC, Europe/Berlin, America/New_York"))
        }
        Err(_) => Ok((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_may_end_with_its_zone() {
        let berlin = Some(Zone::Europe__Berlin);
        assert_eq!(
            split("--from", "2026-01-05 06:00 Europe/Berlin").expect("a zone"),
            ("2026-01-05 06:00", berlin)
        );
        assert_eq!(
            split("--from", "22:00 UTC").expect("a zone"),
            ("22:00", Some(Zone::UTC))
        );
        for plain in ["yesterday 18:00", "8h", "2026-01-05 06:00"] {
            assert_eq!(split("--from", plain).expect("no zone"), (plain, None));
        }
        let fault = split("--from", "22:00 Europe/Atlantis").expect_err("there is none");
        assert!(
            fault.to_string().contains("no time zone \"Europe/Atlantis\""),
            "{fault}"
        );
    }

    #[test]
    fn a_time_is_meant_by_the_clocks_of_its_zone() {
        let noon = chrono::DateTime::from_timestamp(1_767_614_400, 0).expect("2026-01-05T12:00:00Z");
        let berlin = noon.with_timezone(&Zone::Europe__Berlin);
        let (found, line) = told("--from", "06:00", Lean::Back, &berlin).expect("a time");
        assert_eq!(found.exact, "2026-01-05T06:00:00+01:00");
        assert_eq!(line.as_deref(), Some("--from 06:00 → 2026-01-05T06:00:00+01:00"));
    }
}
