//! What is looked at over the network: the node, its clock, who is calling, the handlers.

use std::num::NonZeroU32;

use futures_util::StreamExt;
use futures_util::stream;
use serde_json::Value;
use tokio::time::Instant;

use super::told;
use crate::fault::Fault;
use crate::link::{Link, Paging};
use crate::output::checks::{Outcome, line};
use windrow_client::{Answer, ClientError, Request, segment};
use windrow_engine::ports::clock::Clock;
use windrow_node::SystemClock;

/// A difference of the clocks that is worth a look. The node's time has whole seconds only. Unit: milliseconds.
const SKEW_WARN_MS: i64 = 2_000;
/// A difference with which times that people write mean something else. Unit: milliseconds.
const SKEW_FAIL_MS: i64 = 300_000;
/// Handlers that are checked at the same time: a dead one takes seconds to be called dead.
const HANDLERS_AT_ONCE: usize = 8;

/// Looks at the node; false when it can't be reached.
pub(super) async fn look(link: &Link<'_>, no_handlers: bool, report: &mut Vec<Value>) -> bool {
    let begun = (Instant::now(), SystemClock::new().wall().0);
    let version = match link.client.send(Request::get("/version").once()).await {
        Ok(answer) => answer,
        Err(error) => {
            use ClientError::{Scheme, Timeout, Tls, Unreachable};
            let is_away = matches!(
                error,
                Unreachable { .. } | Timeout { .. } | Tls { .. } | Scheme { .. }
            );
            report.push(told("server", &error.into()));
            return !is_away;
        }
    };
    let took = begun.0.elapsed().as_millis();
    let detail = format!("{} answered in {took} ms", link.client.server());
    report.push(line("server", Outcome::Ok, detail, None));
    report.push(versions(&version));
    report.push(clock(&version, begun.1, SystemClock::new().wall().0));
    report.push(ready(link).await);
    let caller = match link
        .client
        .send(Request::get("/v1/whoami").once())
        .await
        .map_err(Fault::from)
    {
        Ok(answer) => answer.json().unwrap_or_default(),
        Err(fault) => {
            report.push(told("token", &fault));
            return true;
        }
    };
    let text = |name: &str| caller[name].as_str().unwrap_or_default();
    report.push(line(
        "token",
        Outcome::Ok,
        format!("{}, role {}", text("name"), text("role")),
        None,
    ));
    if text("role") != "business" {
        report.push(store(link).await);
        report.extend(peers(link).await);
    }
    if no_handlers {
        return true;
    }
    if ["operator", "admin"].contains(&text("role")) {
        handlers(link, report).await;
    } else {
        let detail = format!("not called: that isn't for the role {}", text("role"));
        report.push(line(
            "handlers",
            Outcome::Warn,
            detail,
            Some("--token-file of an operator, or --no-handlers"),
        ));
    }
    true
}

/// Whether the nodes reach one another, and are alike. A node alone has nothing to say.
async fn peers(link: &Link<'_>) -> Vec<Value> {
    let nodes = match link
        .get("/v1/nodes")
        .await
        .and_then(|answer| answer.json().map_err(Fault::from))
    {
        Ok(page) => page["items"].as_array().cloned().unwrap_or_default(),
        Err(fault) => return vec![told("nodes", &fault)],
    };
    if nodes.len() < 2 {
        return Vec::new();
    }
    let name = |node: &Value| node["id"].as_str().unwrap_or("?").to_owned();
    let mut lines: Vec<Value> = Vec::new();
    for node in &nodes {
        let state = node["state"].as_str().unwrap_or_default();
        let why = node["live"]["why"].as_str();
        if ["silent", "fenced"].contains(&state) {
            let detail = format!("{} is {state}", name(node));
            lines.push(line(
                "nodes",
                Outcome::Warn,
                detail,
                Some("start it again, or let others take over"),
            ));
        } else if let Some(why) = why {
            let address = node["address"].as_str().unwrap_or("no address");
            let detail = format!("{} ({address}) can't be asked: {why}", name(node));
            let hint = "http.advertise there must be an address that this node reaches; auth.key_file is the same on all";
            lines.push(line("nodes", Outcome::Fail, detail, Some(hint)));
        }
    }
    if lines.is_empty() {
        lines.push(line(
            "nodes",
            Outcome::Ok,
            format!("{}, and all can be asked", nodes.len()),
            None,
        ));
    }
    let mut versions: Vec<&str> = nodes.iter().filter_map(|node| node["version"].as_str()).collect();
    versions.sort_unstable();
    versions.dedup();
    if versions.len() > 1 {
        let detail = format!("the nodes have different ones: {}", versions.join(", "));
        lines.push(line(
            "node_versions",
            Outcome::Warn,
            detail,
            Some("finish the upgrade of all nodes"),
        ));
    }
    for node in &nodes {
        let ahead = node["live"]["clock_ahead_seconds"].as_f64().unwrap_or(0.0);
        if ahead.abs() * 1e3 > SKEW_WARN_MS as f64 {
            let detail = format!("{} differs by {ahead:.1} s", name(node));
            let hint =
                "let NTP set all clocks; nodes whose clocks are a minute apart don't believe one another";
            lines.push(line("node_clocks", Outcome::Warn, detail, Some(hint)));
        }
    }
    lines
}

fn versions(answer: &Answer) -> Value {
    let own = env!("CARGO_PKG_VERSION");
    let node = answer.json().unwrap_or_default();
    let (name, version) = (
        node["node"].as_str().unwrap_or("?"),
        node["version"].as_str().unwrap_or("unknown"),
    );
    if version == own {
        return line(
            "version",
            Outcome::Ok,
            format!("{own}, the node {name} too"),
            None,
        );
    }
    let detail = format!("{own} here, {version} on {name}");
    line(
        "version",
        Outcome::Warn,
        detail,
        Some("the same version on both sides knows the same commands"),
    )
}

/// How far the clocks are apart, at the least.
fn clock(answer: &Answer, before_ms: i64, after_ms: i64) -> Value {
    let Some(node_ms) = answer.date_ms() else {
        return line(
            "clock",
            Outcome::Warn,
            "the node doesn't tell its time",
            Some("look for a proxy between"),
        );
    };
    let skew = skew(node_ms, before_ms, after_ms);
    let detail = match skew {
        0 => "the same here and there".to_owned(),
        ahead @ 1.. => format!("the node is {} ahead", seconds(ahead)),
        behind => format!("the node is {} behind", seconds(-behind)),
    };
    let outcome = match skew.saturating_abs() {
        0..=SKEW_WARN_MS => Outcome::Ok,
        gap if gap <= SKEW_FAIL_MS => Outcome::Warn,
        _ => Outcome::Fail,
    };
    line(
        "clock",
        outcome,
        detail,
        (outcome != Outcome::Ok).then_some("let NTP set both clocks"),
    )
}

/// What can't be explained by the way there and back and the seconds of the node's time. Unit: milliseconds.
fn skew(node_ms: i64, before_ms: i64, after_ms: i64) -> i64 {
    let latest = node_ms.saturating_add(999);
    if node_ms > after_ms {
        node_ms - after_ms
    } else if latest < before_ms {
        latest - before_ms
    } else {
        0
    }
}

fn seconds(milliseconds: i64) -> String {
    format!("{}.{} s", milliseconds / 1000, milliseconds % 1000 / 100)
}

async fn ready(link: &Link<'_>) -> Value {
    let told = match link.client.send_raw(Request::get("/readyz").once()).await {
        Ok(answer) => answer.json(),
        Err(error) => Err(error),
    };
    let told = match told {
        Ok(told) => told,
        Err(error) => return self::told("ready", &error.into()),
    };
    let texts = |list: &str| {
        let texts = told[list]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|one| one["text"].as_str());
        texts.collect::<Vec<_>>().join("; ")
    };
    if told["ready"] == true {
        let degraded = texts("degraded");
        if degraded.is_empty() {
            return line("ready", Outcome::Ok, "it takes work", None);
        }
        let advice = Some("windrow doctor --config FILE on the node's machine looks at it from there");
        return line(
            "ready",
            Outcome::Warn,
            format!("it takes work, but {degraded}"),
            advice,
        );
    }
    let reasons = texts("reasons");
    let is_drained = told["reasons"][0]["reason"] == "drained";
    let advice = if is_drained {
        "windrow node undrain NODE (windrow node list names it)"
    } else {
        "the node's log says more"
    };
    line("ready", Outcome::Fail, reasons, Some(advice))
}

async fn store(link: &Link<'_>) -> Value {
    match link
        .client
        .send(Request::get("/v1/cluster").once())
        .await
        .map_err(Fault::from)
    {
        Ok(answer) => {
            let cluster = answer.json().unwrap_or_default();
            let text = |name: &str| cluster[name].as_str().unwrap_or("?");
            let nodes = cluster["nodes"].as_array().map_or(0, Vec::len);
            let nodes = if nodes == 1 {
                "1 node".to_owned()
            } else {
                format!("{nodes} nodes")
            };
            let detail = format!("{} {}, {nodes}", text("database"), text("store"));
            line("store", Outcome::Ok, detail, None)
        }
        Err(fault) => told("store", &fault),
    }
}

async fn handlers(link: &Link<'_>, report: &mut Vec<Value>) {
    let all = Paging {
        limit: NonZeroU32::MIN,
        all: true,
    };
    let names = match link.list(Request::get("/v1/businesses"), Some(&all)).await {
        Ok(listed) => listed.things().unwrap_or_default(),
        Err(fault) => return report.push(told("handlers", &fault)),
    };
    let names: Vec<String> = names
        .iter()
        .filter_map(|business| business["name"].as_str().map(str::to_owned))
        .collect();
    if names.is_empty() {
        report.push(line("handlers", Outcome::Ok, "no business is registered", None));
    }
    let checks = stream::iter(names)
        .map(|name| handler(link, name))
        .buffered(HANDLERS_AT_ONCE);
    report.extend(checks.collect::<Vec<Value>>().await);
}

async fn handler(link: &Link<'_>, name: String) -> Value {
    let label = format!("handler {name}");
    let request = Request::post(&format!("/v1/businesses/{}/check", segment(&name))).once();
    let checked = match link.client.send(request).await.map_err(Fault::from) {
        Ok(answer) => answer.json().unwrap_or_default(),
        Err(fault) => return told(&label, &fault),
    };
    let checks = checked["checks"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    let worst = checks.iter().find(|check| check["result"] == "fail");
    let worst = worst.or_else(|| checks.iter().find(|check| check["result"] == "warn"));
    let Some(worst) = worst else {
        return line(
            &label,
            Outcome::Ok,
            format!("keeps the contract ({} checks)", checks.len()),
            None,
        );
    };
    let outcome = if checked["passed"] == true {
        Outcome::Warn
    } else {
        Outcome::Fail
    };
    let text = |name: &str| worst[name].as_str().unwrap_or_default().to_owned();
    line(
        &label,
        outcome,
        format!("{}: {}", text("check").replace('_', " "), text("detail")),
        worst["try"].as_str(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_way_and_the_seconds_cant_explain_is_a_difference() {
        assert_eq!(skew(10_000, 10_400, 10_500), 0, "the node's second has begun");
        assert_eq!(skew(10_000, 9_000, 10_100), 0, "the request was slow");
        assert_eq!(skew(13_000, 10_000, 10_100), 2_900);
        assert_eq!(skew(10_000, 13_999, 14_100), -3_000);
        assert_eq!(seconds(2_900), "2.9 s");
    }
}
