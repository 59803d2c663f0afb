//! What a reload of the configuration changes, and what it would take a restart to change.

use super::fault::{Fault, Origin};
use super::sections::Config;
use super::values::SuccessDetail;

/// What came of comparing the running configuration with one that was read anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Reload {
    /// The configuration to run with from now on.
    pub config: Config,
    /// The keys that it changes.
    pub applied: Vec<&'static str>,
    /// Keys that were changed and need a restart; the old values stay in force.
    pub ignored: Vec<&'static str>,
}

/// Every key with its place, and whether it can be reloaded. `task_defaults` is one: all of it can.
macro_rules! keys {
    ($($key:literal => $($field:ident).+ : $live:literal),+ $(,)?) => {
        impl Config {
            /// Takes over from `new` what can be changed while the node runs.
            pub fn reloaded(&self, new: &Config) -> Reload {
                let mut reload = Reload { config: self.clone(), applied: Vec::new(), ignored: Vec::new() };
                $(if self.$($field).+ != new.$($field).+ {
                    if $live {
                        reload.config.$($field).+ = new.$($field).+.clone();
                        reload.applied.push($key);
                    } else {
                        reload.ignored.push($key);
                    }
                })+
                reload
            }
        }

        const KEYS: &[(&str, bool)] = &[$(($key, $live)),+];
    };
}

keys! {
    "node.id" => node.id: false,
    "node.data_dir" => node.data_dir: false,
    "node.capacity_rate" => node.capacity_rate: true,
    "node.unlimited_reserves" => node.unlimited_reserves: false,
    "node.allow_unlimited" => node.allow_unlimited: false,
    "node.run_tasks" => node.run_tasks: true,
    "node.pools" => node.pools: false,
    "node.drain_timeout" => node.drain_timeout: false,
    "node.labels" => node.labels: false,
    "http.listen" => http.listen: false,
    "http.advertise" => http.advertise: false,
    "http.public_url" => http.public_url: false,
    "http.tls_cert_file" => http.tls_cert_file: false,
    "http.tls_key_file" => http.tls_key_file: false,
    "http.body_limit" => http.body_limit: false,
    "http.body_memory" => http.body_memory: false,
    "http.upload_limit" => http.upload_limit: false,
    "http.upload_quota" => http.upload_quota: false,
    "http.max_uploads" => http.max_uploads: false,
    "http.max_connections" => http.max_connections: false,
    "http.max_connections_per_peer" => http.max_connections_per_peer: false,
    "http.require_idempotency_key" => http.require_idempotency_key: false,
    "http.allowed_hosts" => http.allowed_hosts: false,
    "auth.mode" => auth.mode: false,
    "auth.bootstrap_token_file" => auth.bootstrap_token_file: false,
    "auth.proxy_header" => auth.proxy_header: false,
    "auth.proxy_trust" => auth.proxy_trust: false,
    "auth.always_token" => auth.always_token: false,
    "auth.key_file" => auth.key_file: false,
    "store.url" => store.url: false,
    "store.password_file" => store.password_file: false,
    "store.max_connections" => store.max_connections: false,
    "store.migrate_on_start" => store.migrate_on_start: false,
    "cluster.redis_url" => cluster.redis_url: false,
    "cluster.redis_password_file" => cluster.redis_password_file: false,
    "cluster.redis_ca_file" => cluster.redis_ca_file: false,
    "cluster.redis_prefix" => cluster.redis_prefix: false,
    "cluster.ca_file" => cluster.ca_file: false,
    "cluster.takeover_without_redis" => cluster.takeover_without_redis: false,
    "cluster.lease_ttl" => cluster.lease_ttl: false,
    "cluster.lease_renew" => cluster.lease_renew: false,
    "cluster.restore_scan" => cluster.restore_scan: false,
    "cluster.restore_window" => cluster.restore_window: false,
    "cluster.restore_max" => cluster.restore_max: false,
    "cluster.restore_backoff" => cluster.restore_backoff: false,
    "task_defaults" => task_defaults: true,
    "handler.http.connect_timeout" => http_handler.connect_timeout: false,
    "handler.http.pool_idle" => http_handler.pool_idle: false,
    "handler.http.http2" => http_handler.http2: false,
    "handler.http.proxy" => http_handler.proxy: false,
    "handler.http.ca_file" => http_handler.ca_file: false,
    "handler.http.allow_networks" => http_handler.allow_networks: false,
    "handler.http.deny_networks" => http_handler.deny_networks: false,
    "handler.http.source_networks" => http_handler.source_networks: false,
    "handler.http.insecure_skip_verify" => http_handler.insecure_skip_verify: false,
    "handler.command.enabled" => command_handler.enabled: false,
    "handler.command.startup_timeout" => command_handler.startup_timeout: false,
    "handler.command.kill_grace" => command_handler.kill_grace: false,
    "handler.command.max_line" => command_handler.max_line: false,
    "handler.command.commands" => command_handler.commands: false,
    "data_log.min_level" => data_log.min_level: true,
    "data_log.batch" => data_log.batch: false,
    "data_log.flush" => data_log.flush: false,
    "data_log.retention" => data_log.retention: false,
    "data_log.max_per_task" => data_log.max_per_task: false,
    "retention.failures" => retention.failures: false,
    "retention.success_detail" => retention.success_detail: false,
    "retention.tasks" => retention.tasks: false,
    "log.format" => log.format: false,
    "log.filter" => log.filter: true,
    "log.actor_tree" => log.actor_tree: false,
    "telemetry.metrics" => telemetry.metrics: false,
    "telemetry.otlp_endpoint" => telemetry.otlp_endpoint: false,
    "telemetry.sample" => telemetry.sample: false,
    "dashboard.enabled" => dashboard.enabled: false,
    "dashboard.base_path" => dashboard.base_path: false,
    "dashboard.locale" => dashboard.locale: false,
}

/// Whether a reload takes a changed value of this key.
pub(super) fn reloads(key: &str) -> bool {
    let is = |known: &str| key == known || key.strip_prefix(known).is_some_and(|rest| rest.starts_with('.'));
    KEYS.iter().any(|(known, live)| *live && is(known))
}

impl Config {
    /// What a node is asked for that this version can't do: better refused than ignored.
    pub fn not_built(&self) -> Vec<Fault> {
        let wanted = [
            (
                self.retention.success_detail != SuccessDetail::None,
                "retention.success_detail",
                "items that succeed have no rows in this version",
                "\"none\"",
            ),
            (
                self.telemetry.otlp_endpoint.is_some(),
                "telemetry.otlp_endpoint",
                "traces are not sent yet",
                "\"\"",
            ),
        ];
        let asked = wanted.into_iter().filter(|(asked, ..)| *asked);
        let fault = |(_, key, what, try_): (bool, &str, &str, &str)| Fault {
            key: key.to_owned(),
            origin: Origin::Default,
            what: what.to_owned(),
            try_: try_.to_owned(),
        };
        asked.map(fault).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::read;

    #[test]
    fn every_key_is_compared_and_those_that_reload_are_marked_in_the_documentation() {
        let whole = |key: &String| {
            if key.starts_with("task_defaults.") {
                "task_defaults".to_owned()
            } else {
                key.clone()
            }
        };
        let known: BTreeSet<String> = read::known_keys().keys().map(whole).collect();
        let compared: BTreeSet<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!(compared, known);
        let (text, mut section, mut marked) =
            (include_str!("../../config.toml"), String::new(), BTreeSet::new());
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
                name.clone_into(&mut section);
            }
            if line.contains("[reload]") {
                let key = line.split_once(" = ").map(|(key, _)| format!("{section}.{key}"));
                marked.insert(
                    key.filter(|_| !line.starts_with('['))
                        .unwrap_or_else(|| section.clone()),
                );
            }
        }
        let live: BTreeSet<String> = KEYS
            .iter()
            .filter(|(_, live)| *live)
            .map(|(key, _)| (*key).to_owned())
            .collect();
        assert_eq!(live, marked);
    }

    #[test]
    fn a_reload_takes_what_it_may_and_names_the_rest() {
        let old = Config::default();
        let mut new = old.clone();
        new.node.capacity_rate = "3000/s".parse().expect("a rate");
        new.task_defaults.tuning.parked_max = 7;
        new.http.listen = "127.0.0.1:1".parse().expect("an address");
        let reload = old.reloaded(&new);
        assert_eq!(reload.applied, ["node.capacity_rate", "task_defaults"]);
        assert_eq!(reload.ignored, ["http.listen"]);
        assert_eq!(reload.config.node.capacity_rate, new.node.capacity_rate);
        assert_eq!(reload.config.http, old.http);
        assert_eq!(
            old.reloaded(&old),
            Reload {
                config: old.clone(),
                applied: vec![],
                ignored: vec![]
            }
        );
    }

    #[test]
    fn what_is_not_built_is_refused_and_the_defaults_are_built() {
        assert_eq!(Config::default().not_built(), []);
        let mut config = Config::default();
        config.retention.success_detail = SuccessDetail::All;
        let keys: Vec<String> = config.not_built().into_iter().map(|fault| fault.key).collect();
        assert_eq!(keys, ["retention.success_detail"]);
    }
}
