//! `/v1/cluster`: all nodes and the health of the cluster.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;

use super::all;
use crate::http::answer::Of;
use crate::http::front::App;
use crate::http::problem::HttpResult;
use crate::service::cluster::nodes::ShardCounts;
use windrow_config::Cluster;
use windrow_core::settings::text::span_text;

impl Of<ShardCounts> for api::ClusterShards {
    fn of(counts: ShardCounts) -> Self {
        api::ClusterShards {
            owned: counts.owned,
            orphaned: counts.orphaned,
            released: counts.released,
            recovering: counts.recovering,
            counted_up_to: counts.counted_up_to,
        }
    }
}

/// Get the state of the whole cluster
#[utoipa::path(
    get, path = "/v1/cluster", operation_id = "show_cluster", tag = "node", security(("bearer" = ["viewer"])),
    responses((status = 200, body = api::Cluster))
)]
pub(crate) async fn cluster(State(app): State<App>) -> HttpResult<Json<api::Cluster>> {
    let store = app.service.tasks.store.store_id().await?;
    let nodes = all(&app).await?;
    let counts = app.service.cluster.shard_counts().await?;
    let found = app.service.cluster.parts.durable.durability().await?;
    let config = app.service.config();
    let reasons = reasons(&nodes, counts.orphaned, &config.cluster);
    let mut versions: BTreeMap<String, u64> = BTreeMap::new();
    // A fenced node no longer runs any version.
    for node in nodes.iter().filter(|node| node.judged().1 != "fenced") {
        *versions.entry(node.version.clone()).or_default() += 1;
    }
    Ok(Json(api::Cluster {
        store: store.0,
        database: app.service.cluster.parts.database.to_owned(),
        durability: api::ClusterDurability {
            durable: found.is_durable,
            setting: found.setting,
        },
        witness: if config.cluster.redis_url.is_some() {
            "redis".to_owned()
        } else {
            "database".to_owned()
        },
        status: if reasons.is_empty() {
            "ok".to_owned()
        } else {
            "degraded".to_owned()
        },
        reasons,
        versions,
        shards: api::ClusterShards::of(counts),
        nodes,
    }))
}

/// Lists the reasons why the cluster is degraded. A takeover by other nodes is announced only if they are able to do
/// it.
fn reasons(nodes: &[api::Node], orphaned: u64, cluster: &Cluster) -> Vec<api::ClusterReason> {
    let lost = Lost::of(nodes.iter().map(face));
    let is_lost = lost.as_ref().is_some_and(|lost| lost.is_everywhere);
    let mut reasons: Vec<api::ClusterReason> = Vec::new();
    reasons.extend(lost.map(|lost| api::ClusterReason {
        reason: "redis_lost".to_owned(),
        text: lost.text(cluster),
    }));
    let prospect = prospect(is_lost, cluster);
    reasons.extend(nodes.iter().filter_map(|node| reason(node, &prospect)));
    if orphaned > 0 {
        let when = if is_lost && !cluster.takeover_without_redis {
            ", which needs Redis to be back"
        } else {
            ""
        };
        reasons.push(api::ClusterReason {
            reason: "orphaned".to_owned(),
            text: format!("shards waiting for another node to take them over: {orphaned}{when}"),
        });
    }
    reasons.extend(none_takes_tasks(nodes));
    reasons
}

/// Name of a node, whether it was reached, and the reason why it can't reach Redis, if any.
type Face<'a> = (&'a str, bool, Option<&'a str>);

fn face(node: &api::Node) -> Face<'_> {
    let (name, _, is_asked) = node.judged();
    (name, is_asked, node.redis_fault.as_deref())
}

/// Nodes that can't reach the Redis used for leases.
struct Lost<'a> {
    nodes: Vec<&'a str>,
    /// Error reported by the first of them.
    fault: &'a str,
    /// True if none of the reached nodes can reach Redis.
    is_everywhere: bool,
}

impl<'a> Lost<'a> {
    fn of(faces: impl Iterator<Item = Face<'a>>) -> Option<Lost<'a>> {
        let (mut nodes, mut first, mut asked) = (Vec::new(), None, 0);
        for (name, is_asked, fault) in faces {
            asked += usize::from(is_asked);
            if let Some(fault) = fault {
                nodes.push(name);
                first = first.or(Some(fault));
            }
        }
        first.map(|fault| Lost {
            is_everywhere: nodes.len() == asked,
            nodes,
            fault,
        })
    }

    fn text(&self, cluster: &Cluster) -> String {
        let (nodes, fault) = (self.nodes.join(", "), self.fault);
        if self.is_everywhere {
            let meaning = cluster.without_redis("nodes take");
            format!("Redis is down: {meaning}; {nodes}: {fault}")
        } else {
            format!(
                "{nodes} can't reach Redis: tasks there continue, and other nodes take over the tasks of a \
                 dead node; {fault}"
            )
        }
    }
}

/// Describes the fate of the shards of a silent node.
fn prospect(is_lost: bool, cluster: &Cluster) -> String {
    match (is_lost, cluster.takeover_without_redis) {
        (false, _) => "other nodes take over its tasks when its lease expires".to_owned(),
        (true, false) => "other nodes take over its tasks once Redis is back".to_owned(),
        (true, true) => format!(
            "other nodes take over its tasks {} after its lease expires, without Redis",
            span_text(cluster.lease_ttl)
        ),
    }
}

fn reason(node: &api::Node, prospect: &str) -> Option<api::ClusterReason> {
    let (name, state, is_asked) = node.judged();
    let why = node.live.why.as_deref().unwrap_or_default();
    let (reason, text) = match state {
        "silent" => ("node_silent", format!("{name} is silent; {prospect}")),
        "fenced" => (
            "node_fenced",
            format!("{name} has lost its session and not started another"),
        ),
        _ if !is_asked => {
            let age = node.heartbeat_age_seconds.unwrap_or_default();
            let text =
                format!("{name} sent its last heartbeat {age} s ago and can't be reached from here: {why}");
            ("node_unreachable", text)
        }
        _ => return None,
    };
    Some(api::ClusterReason {
        reason: reason.to_owned(),
        text,
    })
}

/// Reports that every node able to run tasks is drained by people: nothing runs, and nothing else looks wrong.
fn none_takes_tasks(nodes: &[api::Node]) -> Option<api::ClusterReason> {
    let drained: Vec<&str> = nodes
        .iter()
        .filter(|node| node.is_drained())
        .map(|node| node.judged().0)
        .collect();
    if drained.is_empty() || nodes.iter().any(api::Node::takes_tasks) {
        return None;
    }
    let text = format!(
        "no node accepts tasks: {} drained; run `windrow node undrain {}` to accept tasks again",
        match drained.as_slice() {
            [one] => format!("{one} is"),
            several => format!("{} are", several.join(", ")),
        },
        drained[0]
    );
    Some(api::ClusterReason {
        reason: "none_takes_tasks".to_owned(),
        text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_redis_promises_no_takeover_that_waits_for_it() {
        let mut cluster = Cluster::default();
        let fault = Some("it is off");
        let everywhere =
            Lost::of([("n1", true, fault), ("n2", true, fault), ("n3", false, None)].into_iter());
        let lost = everywhere.expect("it is lost");
        assert!(lost.is_everywhere, "a node that can't be asked reaches nothing");
        let text = lost.text(&cluster);
        assert!(
            text.contains("nodes take over no tasks of a dead node until Redis is back")
                && text.ends_with("n1, n2: it is off"),
            "{text}"
        );
        assert_eq!(
            prospect(true, &cluster),
            "other nodes take over its tasks once Redis is back"
        );
        assert!(prospect(false, &cluster).ends_with("when its lease expires"));

        cluster.takeover_without_redis = true;
        let text = lost.text(&cluster);
        assert!(
            text.contains("nodes take over the tasks of a dead node 15s later"),
            "{text}"
        );
        assert!(prospect(true, &cluster).contains("15s after its lease expires, without Redis"));

        let partly = Lost::of([("n1", true, None), ("n2", true, fault)].into_iter()).expect("one lost it");
        let text = partly.text(&cluster);
        assert!(!partly.is_everywhere && text.starts_with("n2 can't reach Redis: tasks there continue"));
        assert!(Lost::of([("n1", true, None)].into_iter()).is_none());
    }
}
