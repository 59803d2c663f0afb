//! Reports of checks: of a handler's contract, of a database, and of `windrow doctor`.
//!
//! A report is a list of `{check, result, detail, try}` as in the API; the result is `ok`, `warn` or `fail`.

use api::Check;
use serde_json::json;

use super::args::Form;
use super::look::Look;
use crate::fault::Fault;
use crate::output::screen;
use crate::output::table::{Column, Keep, Listing, Tone, clean, human};

/// Minimum width of a check's name. Unit: terminal cells.
const CHECK_CELLS_MIN: usize = 18;

/// Listing of checks with result and advice.
pub(crate) const CHECKS: Listing<Check> = Listing {
    columns: &[
        Column::text("CHECK", Keep::Always, 8, |check| &check.check),
        Column::text("RESULT", Keep::Always, 4, |check| &check.result),
        Column::text("DETAIL", Keep::Always, 16, |check| &check.detail),
        Column::maybe("TRY", Keep::Rank(10), 16, |check| check.advice.as_deref()),
    ],
    name: |check| check.check.clone(),
    none: "no checks",
};

/// Outcome of a check, the `result` member of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Passed; nothing to do.
    Ok,
    /// Passed, but worth a look.
    Warn,
    /// Failed; somebody has to act.
    Fail,
}

/// Creates one entry of a report.
pub(crate) fn line(check: &str, outcome: Outcome, detail: impl Into<String>, advice: Option<&str>) -> Check {
    let result = match outcome {
        Outcome::Ok => "ok",
        Outcome::Warn => "warn",
        Outcome::Fail => "fail",
    };
    Check {
        check: check.to_owned(),
        result: result.to_owned(),
        detail: detail.into(),
        advice: advice.map(str::to_owned),
    }
}

/// True if no check failed.
pub(crate) fn passed(report: &[Check]) -> bool {
    !report.iter().any(|check| check.result == "fail")
}

/// Returns the number of failed checks in words, such as `1 check failed`.
pub(crate) fn failed(report: &[Check]) -> String {
    let failed = report.iter().filter(|check| check.result == "fail").count();
    format!("{} failed", human::counted(failed as u64, "check"))
}

/// Prints a report in the requested format.
///
/// # Errors
/// Fails if standard output can't be written.
pub(crate) fn show(look: &Look, report: &[Check]) -> Result<(), Fault> {
    let text = match look.form {
        Form::Json => json!({"passed": passed(report), "checks": report}).to_string(),
        Form::Ndjson => report
            .iter()
            .map(|check| json!(check).to_string() + "\n")
            .collect(),
        Form::Name => CHECKS.names(report),
        Form::Csv => CHECKS.csv(report, &look.times(0), look.guard.into()),
        Form::Table | Form::Wide => lines(report, look.paper.colours).join("\n"),
    };
    screen::put(&text)
}

/// Formats a report for people: one line per check, with the advice below.
pub(crate) fn lines(report: &[Check], colours: bool) -> Vec<String> {
    let name = |check: &Check| clean(&check.check).replace('_', " ");
    let widths = report.iter().map(|check| name(check).chars().count());
    let width = widths.max().unwrap_or(0).max(CHECK_CELLS_MIN);
    let mut lines = Vec::new();
    for check in report {
        let (sign, tone) = match check.result.as_str() {
            "ok" => ("✓", Tone::Good),
            "fail" => ("✗", Tone::Bad),
            _ => ("!", Tone::Warn),
        };
        let sign = tone.paint(sign, colours);
        let detail = clean(&check.detail);
        lines.push(format!(" {sign} {:<width$}  {detail}", name(check)));
        if let Some(advice) = &check.advice {
            lines.push(format!("   {:<width$}  try  {}", "", clean(advice)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_sign_and_what_to_try() {
        let report = [
            line("reachable", Outcome::Ok, "answered in 3 ms", None),
            line("unknown_member", Outcome::Fail, "500\u{1b}[2J", Some("ignore it")),
            line("signature", Outcome::Warn, "accepted", None),
        ];
        let expected = [
            " ✓ reachable           answered in 3 ms",
            " ✗ unknown member      500\u{FFFD}[2J",
            "                       try  ignore it",
            " ! signature           accepted",
        ];
        assert_eq!(lines(&report, false), expected);
        assert_eq!(failed(&report), "1 check failed");
    }
}
