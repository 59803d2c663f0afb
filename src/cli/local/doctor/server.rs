//! Checks over the network: the node, its clock, the caller, the handlers.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::Report;
use crate::fault::Fault;
use crate::link::checks::{Outcome, line};
use crate::link::{Link, Paging};
use crate::output::table::human;
use windrow_client::{Answer, ClientError, Request, segment};
use windrow_engine::ports::clock::Clock;
use windrow_node::SystemClock;

/// Clock difference above which the check warns. The node's time has only whole seconds. Unit: milliseconds.
const SKEW_WARN_MS: i64 = 2_000;
/// Clock difference above which times that users type mean a different moment. Unit: milliseconds.
const SKEW_FAIL_MS: i64 = 300_000;
/// Number of handlers checked concurrently, since a dead one takes seconds to time out.
const HANDLERS_AT_ONCE: usize = 8;

/// Checks the node. Returns false if it is unreachable.
pub(super) async fn look(link: &Link<'_>, no_handlers: bool, report: &mut Report) -> bool {
    let begun = (Instant::now(), SystemClock::new().wall().0);
    let version = match link.client.send(Request::get("/version").once()).await {
        Ok(answer) => answer,
        Err(error) => {
            let has_answered = !is_away(&error);
            report.fault("server", &error.into());
            return has_answered;
        }
    };
    let took = human::span(begun.0.elapsed());
    report.ok("server", format!("{} answered in {took}", link.client.server()));
    versions(&version, report);
    clock(&version, begun.1, SystemClock::new().wall().0, report);
    ready(link, report).await;
    let caller: api::Whoami = match get(link, "/v1/whoami").await {
        Ok(caller) => caller,
        Err(fault) => {
            report.fault("token", &fault);
            return true;
        }
    };
    let role = caller.role.as_str();
    report.ok("token", format!("{}, role {role}", caller.name));
    if role != "business" {
        let orphaned = store(link, report).await;
        peers(link, orphaned, report).await;
    }
    match role {
        _ if no_handlers => {}
        "operator" | "admin" => handlers(link, report).await,
        _ => {
            let detail = format!("not called: the role {role} may not check handlers");
            report.warn(
                "handlers",
                detail,
                "use the --token-file of an operator, or --no-handlers",
            );
        }
    }
    true
}

/// True if the node could not be reached at all.
fn is_away(error: &ClientError) -> bool {
    use ClientError::{Scheme, Timeout, Tls, Unreachable};
    matches!(
        error,
        Unreachable { .. } | Timeout { .. } | Tls { .. } | Scheme { .. }
    )
}

async fn get<T: DeserializeOwned>(link: &Link<'_>, path: &str) -> Result<T, Fault> {
    Ok(link.client.send(Request::get(path).once()).await?.read()?)
}

/// Checks that the nodes reach one another and run the same version. Skipped for a single node.
/// `orphaned` is the number of shards without a node, or `None` if unknown.
async fn peers(link: &Link<'_>, orphaned: Option<u64>, report: &mut Report) {
    let nodes = match get::<api::Page<api::Node>>(link, "/v1/nodes").await {
        Ok(page) => page.items,
        Err(fault) => return report.fault("nodes", &fault),
    };
    if nodes.len() < 2 {
        return;
    }
    let bad = nodes
        .iter()
        .filter(|node| !is_well(node, orphaned, report))
        .count();
    if bad == 0 {
        report.ok("nodes", format!("{}, all reachable", nodes.len()));
    }
    let versions: BTreeSet<&str> = nodes.iter().map(|node| node.version.as_str()).collect();
    if versions.len() > 1 {
        let versions: Vec<&str> = versions.into_iter().collect();
        let detail = format!("versions differ: {}", versions.join(", "));
        report.warn("node_versions", detail, "finish the upgrade of all nodes");
    }
    for node in nodes {
        let ahead = node.live.clock_ahead_seconds.unwrap_or(0.0);
        if ahead.abs() * 1e3 > SKEW_WARN_MS as f64 {
            let hint =
                "synchronise all clocks by NTP; nodes whose clocks are a minute apart reject each other";
            let side = if ahead < 0.0 { "behind" } else { "ahead" };
            let detail = format!("{} is {} {side}", node.id, human::seconds(ahead.abs()));
            report.warn("node_clocks", detail, hint);
        }
    }
}

/// Returns true if a node is alive and reachable; otherwise adds a check that says why not.
fn is_well(node: &api::Node, orphaned: Option<u64>, report: &mut Report) -> bool {
    let (name, state) = (&node.id, &node.state);
    let is_gone = ["silent", "fenced"].contains(&state.as_str());
    if is_gone && orphaned == Some(0) {
        let detail = format!("{name} has not reported for too long; other nodes have taken over its work");
        let advice = "no work waits for it; start it again to use it";
        report.warn("nodes", detail, advice);
    } else if is_gone {
        let advice = "start it again, or let other nodes take over";
        report.warn("nodes", format!("{name} is {state}"), advice);
    } else if let Some(why) = &node.live.why {
        let address = node.address.as_deref().unwrap_or("no address");
        let hint = "check that it runs, that this node reaches its http.advertise, and that \
            auth.key_file is the same on all nodes";
        report.fail("nodes", format!("{name} ({address}) is unreachable: {why}"), hint);
    } else {
        return true;
    }
    false
}

fn versions(answer: &Answer, report: &mut Report) {
    let own = env!("CARGO_PKG_VERSION");
    match answer.read::<api::Version>() {
        Ok(node) if node.version == own => {
            report.ok("version", format!("{own}, same on the node {}", node.node))
        }
        Ok(node) => {
            let advice = "install the same version on both sides, so that they know the same commands";
            let detail = format!("{own} here, {} on {}", node.version, node.node);
            report.warn("version", detail, advice);
        }
        Err(error) => report.fault("version", &error.into()),
    }
}

/// Checks the difference between the clocks, at its smallest possible value.
fn clock(answer: &Answer, before_ms: i64, after_ms: i64, report: &mut Report) {
    let Some(node_ms) = answer.date_ms() else {
        return report.warn(
            "clock",
            "the response has no Date header",
            "check for a proxy in between",
        );
    };
    let skew = skew(node_ms, before_ms, after_ms);
    let detail = match skew {
        0 => "no difference".to_owned(),
        ahead @ 1.. => format!("the node is {} ahead", shown(ahead)),
        behind => format!("the node is {} behind", shown(behind)),
    };
    let outcome = match skew.saturating_abs() {
        0..=SKEW_WARN_MS => Outcome::Ok,
        gap if gap <= SKEW_FAIL_MS => Outcome::Warn,
        _ => Outcome::Fail,
    };
    report.came_out("clock", outcome, detail, "synchronise both clocks by NTP");
}

/// Returns the difference that neither the round trip nor the whole seconds of the node's time explain. Unit:
/// milliseconds.
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

fn shown(milliseconds: i64) -> String {
    human::span(Duration::from_millis(milliseconds.unsigned_abs()))
}

/// Checks that the node accepts work. Returns false if it is unreachable.
pub(super) async fn ready(link: &Link<'_>, report: &mut Report) -> bool {
    let answer = link.client.send_raw(Request::get("/readyz").once()).await;
    let told: api::Readiness = match answer.and_then(|answer| answer.read()) {
        Ok(told) => told,
        Err(error) => {
            let has_answered = !is_away(&error);
            report.fault("ready", &error.into());
            return has_answered;
        }
    };
    let texts = |list: &[api::ReadinessReason]| {
        let texts = list.iter().map(|one| one.text.as_str());
        texts.collect::<Vec<_>>().join("; ")
    };
    let degraded = texts(&told.degraded);
    if !told.ready {
        let advice = match told.reasons.first() {
            Some(first) if first.reason == "drained" => {
                "windrow node undrain NODE (windrow node list shows its name)"
            }
            _ => "see the node's log",
        };
        report.fail("ready", texts(&told.reasons), advice);
    } else if degraded.is_empty() {
        report.ok("ready", "accepts work");
    } else {
        let advice = "run windrow doctor --config FILE on the node's machine";
        report.warn("ready", format!("accepts work, but {degraded}"), advice);
    }
    true
}

/// Checks the shared database. Returns the number of shards without a node.
async fn store(link: &Link<'_>, report: &mut Report) -> Option<u64> {
    match get::<api::Cluster>(link, "/v1/cluster").await {
        Ok(cluster) => {
            let nodes = match cluster.nodes.len() {
                1 => "1 node".to_owned(),
                many => format!("{many} nodes"),
            };
            report.ok(
                "store",
                format!("{} {}, {nodes}", cluster.database, cluster.store),
            );
            report.durability(cluster.durability.durable, &cluster.durability.setting);
            Some(cluster.shards.orphaned)
        }
        Err(fault) => {
            report.fault("store", &fault);
            None
        }
    }
}

async fn handlers(link: &Link<'_>, report: &mut Report) {
    let all = Paging {
        limit: NonZeroU32::MIN,
        all: true,
    };
    let listed = link.list(Request::get("/v1/businesses"), Some(&all)).await;
    let businesses = match listed.and_then(|listed| listed.things::<api::Business>()) {
        Ok(businesses) => businesses,
        Err(fault) => return report.fault("handlers", &fault),
    };
    if businesses.is_empty() {
        report.ok("handlers", "no business is registered");
    }
    let checks = stream::iter(businesses.into_iter().map(|business| business.name))
        .map(async |name| (check(link, &name).await, name))
        .buffered(HANDLERS_AT_ONCE);
    for (checked, name) in checks.collect::<Vec<_>>().await {
        handler(&name, checked, report);
    }
}

async fn check(link: &Link<'_>, name: &str) -> Result<api::CheckReply, Fault> {
    let request = Request::post(&format!("/v1/businesses/{}/check", segment(name)));
    Ok(link.client.send(request.once()).await?.read()?)
}

fn handler(name: &str, checked: Result<api::CheckReply, Fault>, report: &mut Report) {
    let label = format!("handler {name}");
    let checked = match checked {
        Ok(checked) => checked,
        Err(fault) => return report.fault(&label, &fault),
    };
    let checks = checked.checks;
    let with = |result: &str| checks.iter().find(|check| check.result == result);
    let Some(worst) = with("fail").or_else(|| with("warn")) else {
        return report.ok(&label, format!("fulfils the contract ({} checks)", checks.len()));
    };
    let outcome = match checked.passed {
        true => Outcome::Warn,
        false => Outcome::Fail,
    };
    let detail = format!("{}: {}", worst.check.replace('_', " "), worst.detail);
    report
        .0
        .push(line(&label, outcome, detail, worst.advice.as_deref()));
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
        assert_eq!((shown(2_900).as_str(), shown(-2_900).as_str()), ("2.9s", "2.9s"));
    }
}
