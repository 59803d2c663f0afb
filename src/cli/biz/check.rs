//! `windrow biz check`, and the lines of a contract check wherever there is one.

use serde_json::Value;

use super::args::NameArgs;
use super::path;
use crate::cli::exit::Exit;
use crate::cli::fault::Fault;
use crate::cli::remote::{Form, Link};
use crate::cli::table::{Cell, Column, Keep, Listing, Side, Tone, clean};
use crate::cli::{Shell, screen};
use crate::client::Request;

/// Where what was seen begins. Unit: terminal cells.
const CHECK_CELLS: usize = 18;

/// Checks of a handler.
const CHECKS: Listing = Listing {
    columns: &[
        Column {
            title: "CHECK",
            side: Side::Left,
            keep: Keep::Always,
            least: 8,
            cell: |check, _| Cell::member(check, "check"),
        },
        Column {
            title: "RESULT",
            side: Side::Left,
            keep: Keep::Always,
            least: 4,
            cell: |check, _| Cell::member(check, "result"),
        },
        Column {
            title: "DETAIL",
            side: Side::Left,
            keep: Keep::Always,
            least: 16,
            cell: |check, _| Cell::member(check, "detail"),
        },
        Column {
            title: "TRY",
            side: Side::Left,
            keep: Keep::Rank(10),
            least: 16,
            cell: |check, _| Cell::member(check, "try"),
        },
    ],
    name: |check| check["check"].as_str().unwrap_or_default().to_owned(),
    none: "no checks",
};

/// Checks its handler.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn check(args: &NameArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.send(Request::post(&format!("{}/check", path(&args.name)))).await?;
    let report = answer.json()?;
    let checks = report["checks"].as_array().cloned().unwrap_or_default();
    let text = match link.look.form {
        Form::Json => answer.text(),
        Form::Ndjson => checks.iter().map(|check| format!("{check}\n")).collect(),
        Form::Name => CHECKS.names(&checks),
        Form::Csv => CHECKS.csv(&checks, &link.times(&answer)),
        Form::Table | Form::Wide => lines(&report["checks"], link.look.paper.colours).join("\n"),
    };
    screen::put(&text)?;
    if report["passed"] == true {
        return Ok(Exit::Ok);
    }
    link.say(&format!("{} breaks the contract: {}", args.name, failed(&report["checks"])));
    Ok(Exit::BadHandler)
}

/// `1 check failed`.
pub(super) fn failed(report: &Value) -> String {
    let checks = report.as_array().into_iter().flatten();
    match checks.filter(|check| check["result"] == "fail").count() {
        1 => "1 check failed".to_owned(),
        many => format!("{many} checks failed"),
    }
}

/// A report for people: a line each, and what to try below those that didn't come out well.
pub(super) fn lines(report: &Value, colours: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for check in report.as_array().into_iter().flatten() {
        let text = |name: &str| clean(check[name].as_str().unwrap_or_default());
        let (sign, tone) = match check["result"].as_str() {
            Some("ok") => ("✓", Tone::Good),
            Some("fail") => ("✗", Tone::Bad),
            _ => ("!", Tone::Warn),
        };
        let name = text("check").replace('_', " ");
        lines.push(format!(" {} {name:<CHECK_CELLS$}  {}", tone.paint(sign, colours), text("detail")));
        if check["try"].is_string() {
            lines.push(format!("   {:<CHECK_CELLS$}  try  {}", "", text("try")));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_report_has_a_sign_and_what_to_try() {
        let report = json!([
            {"check": "reachable", "result": "ok", "detail": "answered in 3 ms", "try": null},
            {"check": "unknown_member", "result": "fail", "detail": "500\u{1b}[2J", "try": "ignore it"},
            {"check": "signature", "result": "warn", "detail": "accepted", "try": null},
        ]);
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
