//! Styles of times: `--time relative|local|utc|iso`.

use std::time::Duration;

use chrono::{DateTime, FixedOffset, Local, SecondsFormat, Utc};
use clap::ValueEnum;

use super::human;

/// Minimum length of an API time: `2026-11-20T17:03:40Z`.
const LEAST_CHARS: usize = 20;

/// Styles of times in the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TimeStyle {
    /// Relative to now: 3m ago, in 14s
    #[default]
    Relative,
    /// In the time zone of this machine
    Local,
    /// In UTC, such as 2026-11-20 17:03:40Z
    Utc,
    /// RFC 3339, as in the API
    Iso,
}

impl TimeStyle {
    /// Rewrites the times in a node's sentence or in a change. The relative style leaves them exact, because "it
    /// starts at in 3h" is no sentence.
    pub fn within(self, text: &str) -> String {
        if matches!(self, TimeStyle::Relative | TimeStyle::Iso) {
            return text.to_owned();
        }
        let times = Times {
            style: self,
            now_ms: 0,
        };
        let word = |word: &str| {
            let at = word.trim_matches(['(', ')', ',', ';', ':', '"']);
            if at.len() < LEAST_CHARS {
                word.to_owned()
            } else {
                word.replace(at, &times.text(at))
            }
        };
        text.split(' ').map(word).collect::<Vec<_>>().join(" ")
    }
}

/// Style of times and the present time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// Style in which times are shown.
    pub style: TimeStyle,
    /// Node's time, so that a wrong clock on this machine does no harm. Unit: milliseconds since 1970.
    pub now_ms: i64,
}

impl Times {
    /// Formats a time of the API. An unreadable one is returned unchanged.
    pub fn text(&self, at: &str) -> String {
        let Some(time) = parsed(at) else {
            return at.to_owned();
        };
        match self.style {
            TimeStyle::Iso => at.to_owned(),
            TimeStyle::Utc => time.with_timezone(&Utc).format("%Y-%m-%d %H:%M:%SZ").to_string(),
            TimeStyle::Local => time.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string(),
            TimeStyle::Relative => match self.since(at) {
                // The node's time has whole seconds only.
                Some(age) if age.abs() < 1000 => "now".to_owned(),
                Some(age) if age >= 0 => format!("{} ago", span(age)),
                Some(wait) => format!("in {}", span(-wait)),
                None => at.to_owned(),
            },
        }
    }

    /// Returns the age of a time, negative if it is in the future. Unit: milliseconds.
    pub fn since(&self, at: &str) -> Option<i64> {
        self.now_ms.checked_sub(parsed(at)?.timestamp_millis())
    }
}

/// Formats a time for the API, in UTC with milliseconds. `None` for a year that the format can't express.
pub fn written(at_ms: i64) -> Option<String> {
    let at = DateTime::from_timestamp_millis(at_ms)?;
    Some(at.to_rfc3339_opts(SecondsFormat::Millis, true)).filter(|text| text.len() == 24)
}

/// Parses a time of the API.
pub fn parsed(at: &str) -> Option<DateTime<FixedOffset>> {
    DateTime::parse_from_rfc3339(at).ok()
}

fn span(milliseconds: i64) -> String {
    human::span(human::whole(Duration::from_millis(milliseconds.unsigned_abs())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_as_it_was_asked_for() {
        let at = "2026-11-20T17:03:40.222Z";
        let times = |style, seconds: i64| Times {
            style,
            now_ms: 1_795_194_220_222 + seconds * 1000,
        };
        assert_eq!(times(TimeStyle::Relative, 200).text(at), "3m 20s ago");
        assert_eq!(times(TimeStyle::Relative, -14).text(at), "in 14s");
        assert_eq!(times(TimeStyle::Utc, 0).text(at), "2026-11-20 17:03:40Z");
        assert_eq!(times(TimeStyle::Iso, 0).text(at), at);
        assert_eq!(times(TimeStyle::Local, 0).text("soon"), "soon");
        assert_eq!(
            times(TimeStyle::Local, 0).text(at).len(),
            "2026-11-20 17:03:40".len()
        );
    }

    #[test]
    fn the_times_of_a_sentence_are_as_they_are_wanted() {
        let said = "it starts (at 2026-11-20T17:03:40.222Z), deadline null → 2026-11-20T18:00:00+01:00";
        let utc = "it starts (at 2026-11-20 17:03:40Z), deadline null → 2026-11-20 17:00:00Z";
        assert_eq!(TimeStyle::Utc.within(said), utc);
        assert_eq!(TimeStyle::Relative.within(said), said);
        assert_eq!(TimeStyle::Iso.within(said), said);
        assert!(!TimeStyle::Local.within(said).contains("17:03:40.222Z"));
    }
}
