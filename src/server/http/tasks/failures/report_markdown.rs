//! Markdown form of a report. Escapes text from businesses, so that it can't become markup.

use std::fmt::Write as _;

use serde_json::value::RawValue;

/// Formats a report as Markdown.
pub(crate) fn markdown(report: &api::Report) -> String {
    let mut out = String::new();
    head(report, &mut out);
    counts("Items", &report.counts, &mut out);
    failures(report, &mut out);
    redrives(report, &mut out);
    runs(report, &mut out);
    timeline(report, &mut out);
    proof(report, &mut out);
    out
}

/// Escapes text for a single line or table cell: no line breaks, nothing that Markdown or HTML interprets.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '#' | '|' | '!' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Appends a line. Writing to a String can't fail.
macro_rules! line {
    ($out:expr, $($text:tt)*) => {
        writeln!($out, $($text)*).expect("a string takes any text")
    };
}

fn head(report: &api::Report, out: &mut String) {
    let (task, net) = (&report.task, &report.net);
    let name = task
        .name
        .as_deref()
        .map(|name| format!(" {}", plain(name)))
        .unwrap_or_default();
    line!(out, "# {} {}{name}\n", task.id, plain(&task.business));
    let is_recovered = net.exact && net.recovered > 0 && net.still_failed == 0;
    let good = (is_recovered && task.status == "finished").then_some("all recovered");
    let reason = good
        .or(task.result.as_deref())
        .or(task.stop_reason.as_deref())
        .map(|word| format!(" ({word})"))
        .unwrap_or_default();
    line!(out, "- Status: {}{reason}", task.status);
    if let Some(text) = &task.status_text {
        line!(out, "- {}", plain(text));
    }
    if let Some(parent) = &task.parent {
        line!(out, "- Redrive of {parent}");
    }
    line!(out, "- Created {}", task.created_at);
    if let Some(at) = &task.started_at {
        line!(out, "- Started {at} ({} starts)", task.starts);
    }
    if let Some(at) = &task.finished_at {
        line!(out, "- Ended {at}");
    }
    if let Some(seconds) = task.took_seconds {
        line!(out, "- Took {seconds:.1} s");
    }
    line!(out, "- Rate {}", task.settings.rate);
    line!(out, "- As of {}\n", report.at);
}

fn counts(title: &str, counts: &api::ReportCounts, out: &mut String) {
    line!(out, "## {title}\n");
    line!(
        out,
        "| total | succeeded | skipped | failed | parked | in flight | pending | excluded |"
    );
    line!(out, "|---:|---:|---:|---:|---:|---:|---:|---:|");
    line!(out, "{}\n", row(counts));
}

fn row(api::ReportCounts { total, terms }: &api::ReportCounts) -> String {
    let api::TaskCounts {
        succeeded,
        skipped,
        failed,
        parked,
        in_flight,
        pending,
        excluded,
    } = terms;
    format!(
        "| {total} | {succeeded} | {skipped} | {failed} | {parked} | {in_flight} | {pending} | {excluded} |"
    )
}

fn failures(report: &api::Report, out: &mut String) {
    line!(out, "## Failures\n");
    if report.failures.is_empty() {
        line!(out, "None.\n");
        return;
    }
    line!(out, "| code | items | first | last | example |");
    line!(out, "|---|---:|---|---|---|");
    for group in &report.failures {
        let data = plain(group.example_data.as_deref().map_or("", RawValue::get));
        let (code, example) = (plain(&group.code), plain(&group.example));
        let (count, index) = (group.count, group.example_index);
        let of_them = match group.unconfirmed {
            0 => String::new(),
            unconfirmed => format!(" ({unconfirmed} unconfirmed)"),
        };
        let (first, last) = (&group.first_at, &group.last_at);
        line!(
            out,
            "| {code} | {count}{of_them} | {first} | {last} | {index}: {example} {data} |"
        );
    }
    line!(out, "");
}

fn redrives(report: &api::Report, out: &mut String) {
    if report.redrives.is_empty() {
        return;
    }
    line!(out, "## Redrives\n");
    line!(out, "| task | status | total | succeeded | skipped | failed |");
    line!(out, "|---|---|---:|---:|---:|---:|");
    for task in &report.redrives {
        let (id, status, api::ReportCounts { total, terms }) = (&task.id, &task.status, &task.counts);
        let api::TaskCounts {
            succeeded,
            skipped,
            failed,
            ..
        } = terms;
        line!(
            out,
            "| {id} | {status} | {total} | {succeeded} | {skipped} | {failed} |"
        );
    }
    let net = &report.net;
    let at_least = if net.exact {
        ""
    } else {
        " at least (too many to check each)"
    };
    line!(
        out,
        "\n{} failed − {} recovered = {}{at_least} still failed.\n",
        net.failed,
        net.recovered,
        net.still_failed
    );
}

fn runs(report: &api::Report, out: &mut String) {
    line!(out, "## Runs\n");
    line!(out, "| run | node | from | to | end | watermark | settled |");
    line!(out, "|---|---|---|---|---|---:|---:|");
    for run in &report.runs {
        let node = run.node.as_deref().map(plain).unwrap_or_default();
        let to = run.ended_at.as_deref().unwrap_or("");
        let why = run.end_text.as_deref().map(|text| format!(": {}", plain(text)));
        let end = run.end_reason.clone().unwrap_or_default() + &why.unwrap_or_default();
        line!(
            out,
            "| {}.{} | {node} | {} | {to} | {end} | {} | {} |",
            run.shard,
            run.run,
            run.started_at,
            run.watermark,
            run.settled
        );
    }
    line!(out, "");
}

fn timeline(report: &api::Report, out: &mut String) {
    line!(out, "## Timeline\n");
    for entry in &report.timeline {
        let reason = entry
            .reason
            .as_deref()
            .map(|text| format!(": {}", plain(text)))
            .unwrap_or_default();
        line!(
            out,
            "- {} {} by {} ({}){reason}",
            entry.at,
            entry.action,
            plain(&entry.actor),
            entry.source
        );
    }
    line!(out, "");
}

fn proof(report: &api::Report, out: &mut String) {
    let holds = if report.proof.holds {
        "every item is accounted for"
    } else {
        "not (yet) complete"
    };
    line!(out, "\n## Proof: {holds}\n");
    for check in &report.proof.checks {
        let mark = if check.holds { "yes" } else { "NO" };
        line!(out, "- {mark}: {} ({})", check.claim, plain(&check.evidence));
    }
    line!(out, "- Limit: {}.", report.proof.limit);
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn texts_of_a_business_are_no_markup() {
        assert_eq!(plain("a|b\n<script>`x`"), "a\\|b &lt;script>\\`x\\`");
    }
}
