//! Numbers formatted for people.

use std::time::Duration;

use console::{measure_text_width, truncate_str};
use windrow_core::settings::RateLimit;
use windrow_core::text::steers;
pub use windrow_words::{bytes, count, counted, span};

/// Block characters in eighths, for bars.
const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// Signs for skipped, failed and excluded items. A full cell means succeeded.
const OTHERS: [char; 3] = ['·', '✕', '–'];

/// Returns a part of a whole in percent, 100 if the whole is 0.
fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        100.0
    } else {
        (part as f64 * 100.0 / whole as f64).clamp(0.0, 100.0)
    }
}

/// Formats a percentage as `39.0%` or `100%`.
pub fn percent_text(percent: f64) -> String {
    match percent {
        100.0 => "100%".to_owned(),
        percent => format!("{percent:.1}%"),
    }
}

/// Formats a part of a whole as `39.0%`, and as `100%` only if it is complete.
pub fn share_text(part: u64, whole: u64) -> String {
    match part >= whole {
        true => percent_text(100.0),
        false => percent_text(percent(part, whole).min(99.9)),
    }
}

/// Draws a bar such as `███▉░░░` of the done part, `cells` terminal cells wide.
pub fn bar(part: u64, whole: u64, cells: usize) -> String {
    marked_bar(part, &[], whole, cells)
}

/// Draws the bar of items: succeeded, then skipped, failed and excluded.
pub fn item_bar(succeeded: u64, others: [u64; 3], total: u64, cells: usize) -> String {
    let others: Vec<(u64, char)> = others.into_iter().zip(OTHERS).collect();
    marked_bar(succeeded, &others, total, cells)
}

/// Draws a bar such as `███▉·✕░░`, with further parts under their own signs. Each part gets at least one cell, so
/// that it is visible.
fn marked_bar(part: u64, others: &[(u64, char)], whole: u64, cells: usize) -> String {
    let scaled = |part: u64, cells: usize| percent(part, whole) / 100.0 * cells as f64;
    let others = others.iter().filter(|(count, _)| *count > 0);
    let all = others
        .clone()
        .fold(part, |sum, (count, _)| sum.saturating_add(*count));
    let marks = others.flat_map(|(count, sign)| {
        std::iter::repeat_n(*sign, (scaled(*count, cells).round() as usize).max(1))
    });
    let marks: String = marks.take(cells).collect();
    let room = cells - marks.chars().count();
    let eighths = match all >= whole {
        true if part > 0 || room == cells => room * 8,
        _ => (scaled(part, cells * 8) as usize).min(room * 8),
    };
    let mut text = "█".repeat(eighths / 8);
    if eighths % 8 > 0 {
        text.push(EIGHTHS[eighths % 8]);
    }
    let free = room - text.chars().count();
    text + &marks + &"░".repeat(free)
}

/// Formats a span in seconds, as the API has it.
pub(crate) fn seconds(seconds: f64) -> String {
    span(Duration::try_from_secs_f64(seconds).unwrap_or_default())
}

/// Returns a span in whole seconds, for texts that are refreshed.
pub(crate) fn whole(exact: Duration) -> Duration {
    Duration::from_secs(exact.as_secs())
}

/// Cuts a line whose parts are two spaces apart behind the last part that fits, so that no number loses a digit. The
/// first part always stays.
pub(crate) fn whole_parts(line: &str, cells: usize) -> &str {
    let ends = line.match_indices("  ").map(|(at, _)| at).chain([line.len()]);
    let parts = ends.map(|end| &line[..end]);
    let fits = |part: &&str| measure_text_width(part) <= cells;
    let first = || line.split("  ").next().unwrap_or(line);
    parts.take_while(fits).last().unwrap_or_else(first)
}

/// Fits a text and a suffix into one line: the suffix gets up to half of it, and a long text is cut.
pub fn ended(text: &str, end: &str, cells: usize) -> String {
    let end = truncate_str(end, cells / 2, "…");
    let room = cells.saturating_sub(measure_text_width(&end));
    format!("{}{end}", truncate_str(text, room, "…"))
}

/// Formats the rate limit behind a measured rate: ` of 500/s`, ` (auto)`, or nothing.
pub(crate) fn of_limit(rate: RateLimit) -> String {
    match rate {
        RateLimit::Unlimited => String::new(),
        RateLimit::Limited(rate) => format!(" of {rate}"),
        auto @ RateLimit::Auto(_) => format!(" ({auto})"),
    }
}

/// Adds `+` to a remaining time such as `21m` while items are parked: the duration of their retries doesn't follow from
/// the rate.
pub fn eta_text(shown: String, parked: u64) -> String {
    match parked {
        0 => shown,
        _ => shown + "+",
    }
}

/// Largest part of an item's data that is shown next to its failure. Unit: characters.
const WHO_CHARS_MAX: usize = 60;

/// Formats an item's data to follow its failure.
pub(crate) fn who(data: &str) -> String {
    let one_line: String = data.chars().filter(|c| !steers(*c)).collect();
    format!("  {}", truncate_str(&one_line, WHO_CHARS_MAX, "…"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_line_loses_whole_parts_and_no_digits() {
        let line = "4.7/s of 5/s  ETA 1m 44s  p95 127ms";
        for (cells, shown) in [
            (35, line),
            (34, "4.7/s of 5/s  ETA 1m 44s"),
            (24, "4.7/s of 5/s  ETA 1m 44s"),
            (23, "4.7/s of 5/s"),
            (3, "4.7/s of 5/s"),
        ] {
            assert_eq!(whole_parts(line, cells), shown, "{cells}");
        }
        assert_eq!(whole_parts("", 0), "");
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(
            [0, 999, 1000, 1_234_567].map(count),
            ["0", "999", "1,000", "1,234,567"]
        );
        assert_eq!(
            [0, 1, 1000].map(|n| counted(n, "item")),
            ["0 items", "1 item", "1,000 items"]
        );
        assert_eq!(
            [0, 999, 1000, 41_234_567, 999_999_999].map(bytes),
            ["0 B", "999 B", "1.0 kB", "41.2 MB", "1.0 GB"]
        );
    }

    #[test]
    fn spans_have_one_form() {
        let told = [0.31e-3, 0.021, 1.9, 119.9, 173.4, 330.0, 3_661.0].map(seconds);
        assert_eq!(
            told,
            ["0.3ms", "21ms", "1.9s", "1m 59s", "2m 53s", "5m 30s", "1h 01m"]
        );
        assert_eq!(seconds(-1.0), "0s");
        let told = [0, 999, 14_600, 172_800_000].map(|ms| span(whole(Duration::from_millis(ms))));
        assert_eq!(told, ["0s", "0s", "14s", "2d"]);
    }

    #[test]
    fn percentages_have_a_tenth_until_all_is_done() {
        assert_eq!(
            [0.0, 38.9, 99.9, 100.0].map(percent_text),
            ["0.0%", "38.9%", "99.9%", "100%"]
        );
    }

    #[test]
    fn a_bar_has_its_length_whatever_it_shows() {
        for (part, bar_) in [
            (0, "░░░░"),
            (1, "▎░░░"),
            (8, "██░░"),
            (15, "███▊"),
            (16, "████"),
            (20, "████"),
        ] {
            assert_eq!(bar(part, 16, 4), bar_, "{part}");
        }
        for (part, failed, bar_) in [
            (0, 0, "░░░░"),
            (8, 1, "██✕░"),
            (7, 1, "█▊✕░"),
            (15, 1, "███✕"),
            (8, 8, "██✕✕"),
            (11, 5, "███✕"),
            (0, 16, "✕✕✕✕"),
        ] {
            assert_eq!(marked_bar(part, &[(failed, '✕')], 16, 4), bar_, "{part} {failed}");
        }
        assert_eq!(
            marked_bar(999_000, &[(1, '✕'), (999, '–')], 1_000_000, 10),
            "████████✕–"
        );
    }

    #[test]
    fn a_full_cell_is_an_item_that_succeeded() {
        assert_eq!(item_bar(4, [4, 4, 0], 16, 8), "██··✕✕░░");
        assert_eq!(item_bar(0, [16, 0, 0], 16, 4), "····");
        assert_eq!(item_bar(1, [0, 0, 15], 16, 4), "––––");
        assert_eq!(item_bar(12, [1, 1, 2], 16, 4), "█·✕–");
    }

    #[test]
    fn what_stands_at_the_end_of_a_line_is_seen_however_long_the_line_is() {
        let at = |cells| ended("the handler answered 500", "  {\"id\":\"u7\"}", cells);
        assert_eq!(at(80), "the handler answered 500  {\"id\":\"u7\"}");
        assert_eq!(at(30), "the handler answ…  {\"id\":\"u7\"}");
        assert_eq!(at(16), "the han…  {\"id\"…");
        assert_eq!(ended("the handler answered 500", "", 17), "the handler answ…");
    }
}
