//! Rules across configuration keys. All faults are reported at once, each with the key to change.

use super::built;
use super::fault::{Fault, Origin};
use super::redis_url::RedisUrl;
use super::sections::{Auth, Config};
use super::values::{AuthMode, without_password};
use windrow_core::settings::check;
use windrow_core::settings::{Auto, Rate, RateLimit};
use windrow_core::shards::SHARDS_MAX;

/// Longest name of a group, in characters; the audit log keeps it with the role.
const GROUP_CHARS_MAX: usize = 100;

impl Config {
    /// Returns every fault across keys, for a caller that has changed some of them by flags.
    pub fn faults(&self) -> Vec<Fault> {
        faults(self)
    }
}

/// Collector of configuration faults.
#[derive(Default)]
pub(super) struct Faults(pub(super) Vec<Fault>);

impl Faults {
    /// Adds a fault unless a rule holds.
    pub(super) fn unless(&mut self, holds: bool, key: &str, what: &str, try_: &str) {
        if !holds {
            let (what, try_) = (what.to_owned(), try_.to_owned());
            self.0.push(Fault {
                key: key.to_owned(),
                origin: Origin::Default,
                what,
                try_,
            });
        }
    }
}

pub(super) fn faults(config: &Config) -> Vec<Fault> {
    let mut faults = Faults::default();
    config.check_bounds(&mut faults);
    check_node(config, &mut faults);
    check_http(config, &mut faults);
    check_hosts(config, &mut faults);
    check_auth(config, &mut faults);
    check_cluster(config, &mut faults);
    check_datasets(config, &mut faults);
    check_task_defaults(config, &mut faults);
    check_handlers(config, &mut faults);
    built::check(config, &mut faults);
    faults.unless(
        is_url(config.telemetry.traces_url.as_deref(), &["http", "https"]),
        "telemetry.traces_url",
        "not an http or https URL",
        "\"http://127.0.0.1:4318/v1/traces\", or \"\" for none",
    );
    faults.0
}

fn check_node(config: &Config, faults: &mut Faults) {
    let node = &config.node;
    let has_pools = !node.pools.is_empty() && node.pools.iter().all(|pool| is_slug(pool));
    faults.unless(
        has_pools || !node.run_tasks,
        "node.pools",
        "a node that runs tasks needs at least one pool, and pool names are lowercase letters, digits, - and \
         _",
        "[\"default\"]",
    );
    faults.unless(
        !node.capacity_rate.is_auto(),
        "node.capacity_rate",
        "a capacity is a rate or \"unlimited\"; \"auto\" is for tasks",
        "\"2000/s\"",
    );
    if let Some(capacity) = node.capacity_rate.most() {
        let reserves = node.unlimited_reserves.as_per_second();
        faults.unless(
            reserves <= capacity.as_per_second(),
            "node.unlimited_reserves",
            "more than node.capacity_rate, so no task without a rate could ever run",
            "at most the capacity",
        );
    }
}

fn check_http(config: &Config, faults: &mut Faults) {
    let http = &config.http;
    faults.unless(
        http.tls_cert_file.is_some() == http.tls_key_file.is_some(),
        "http.tls_key_file",
        "set both or neither: certificate and key belong together",
        "both of http.tls_cert_file and http.tls_key_file, or neither",
    );
    faults.unless(
        http.body_memory >= http.body_limit,
        "http.body_memory",
        "less than http.body_limit, so the largest request would never fit",
        "\"64 MiB\"",
    );
    let most = http.max_connections;
    faults.unless(
        !matches!(http.max_connections_per_peer, Auto::Fixed(share) if share > most),
        "http.max_connections_per_peer",
        "more than http.max_connections",
        "\"auto\"",
    );
    faults.unless(
        is_url(http.public_url.as_deref(), &["http", "https"]),
        "http.public_url",
        "not an http or https URL",
        "\"https://windrow.example.org\", or \"\" for none",
    );
}

fn check_hosts(config: &Config, faults: &mut Faults) {
    let is_host =
        |host: &String| !host.is_empty() && !host.contains(['/', '@', '*', '[']) && is_no_port(host);
    faults.unless(
        config.http.allowed_hosts.iter().all(is_host),
        "http.allowed_hosts",
        "a host is a name or an address, without scheme, port or wildcard",
        "[\"windrow.example.org\"]",
    );
}

/// True if a host has no port; a colon is allowed only in an IPv6 address.
fn is_no_port(host: &str) -> bool {
    !host.contains(':') || host.parse::<std::net::Ipv6Addr>().is_ok()
}

fn check_auth(config: &Config, faults: &mut Faults) {
    let auth = &config.auth;
    faults.unless(
        auth.mode != AuthMode::Off || config.http.listen.ip().is_loopback(),
        "auth.mode",
        "anyone who can reach the port would have full access",
        "\"token\", or http.listen = \"127.0.0.1:7700\"",
    );
    let is_proxy_sound = !auth.proxy_trust.is_empty() && !auth.proxy_header.is_empty();
    faults.unless(
        auth.mode != AuthMode::Proxy || is_proxy_sound,
        "auth.proxy_trust",
        "auth.mode = \"proxy\" needs trusted proxy addresses and a header",
        "proxy_trust = [\"127.0.0.1/32\"], proxy_header = \"X-Forwarded-User\"",
    );
    check_groups(auth, faults);
    faults.unless(
        auth.key_file.is_some() || !config.store.url.is_server(),
        "auth.key_file",
        "nodes that share a database server read each other's sealed secrets, so all need the same key",
        "a file with the key shared by all nodes; `openssl rand -base64 32` creates one",
    );
}

fn check_groups(auth: &Auth, faults: &mut Faults) {
    let has_header = auth.proxy_groups_header.is_some();
    faults.unless(
        auth.proxy_roles.is_empty() || has_header,
        "auth.proxy_groups_header",
        "auth.proxy_roles needs the header that has a user's groups",
        "proxy_groups_header = \"X-Forwarded-Groups\"",
    );
    faults.unless(
        !has_header || !auth.proxy_roles.is_empty(),
        "auth.proxy_roles",
        "no group has a role, so the header would be ignored",
        "proxy_roles = { ops = \"operator\" }, or no proxy_groups_header",
    );
    faults.unless(
        auth.proxy_groups_claim.is_none() || has_header,
        "auth.proxy_groups_header",
        "auth.proxy_groups_claim needs the header that has the JWT",
        "proxy_groups_header = \"X-Amzn-Oidc-Data\"",
    );
    let is_group = |group: &String| (1..=GROUP_CHARS_MAX).contains(&group.chars().count());
    faults.unless(
        auth.proxy_roles.keys().all(is_group),
        "auth.proxy_roles",
        "a group has 1 to 100 characters",
        "{ ops = \"operator\" }",
    );
}

fn check_cluster(config: &Config, faults: &mut Faults) {
    let cluster = &config.cluster;
    faults.unless(
        cluster.lease_renew <= cluster.lease_ttl / 4,
        "cluster.lease_renew",
        "must be at most a quarter of cluster.lease_ttl, so that lost renewals don't cost the lease",
        "lease_ttl = \"15s\", lease_renew = \"3s\"",
    );
    faults.unless(
        cluster.restore_scan <= cluster.lease_ttl || cluster.lease_ttl.is_zero(),
        "cluster.restore_scan",
        "longer than cluster.lease_ttl, so recovery would wait for the scan",
        "\"1s\"",
    );
    if let Some(url) = &cluster.redis_url {
        check_redis("cluster", url, &cluster.redis_prefix, faults);
        faults.unless(
            config.store.url.is_server(),
            "cluster.redis_url",
            "an embedded store belongs to one process and needs no leases",
            "\"\", or a database server in store.url",
        );
    }
}

fn check_datasets(config: &Config, faults: &mut Faults) {
    let datasets = &config.datasets;
    if let Some(url) = &datasets.redis_url {
        check_redis("datasets", url, &datasets.redis_prefix, faults);
    }
}

/// Checks the Redis settings of a section.
fn check_redis(section: &str, url: &str, prefix: &str, faults: &mut Faults) {
    let fault = RedisUrl::parse(url).err();
    faults.unless(
        fault.is_none(),
        &format!("{section}.redis_url"),
        fault.as_deref().unwrap_or_default(),
        "\"redis://redis:6379\", \"redis-sentinel://s1,s2,s3/mymaster\", \"redis-cluster://r1,r2,r3\", or \"\" for none",
    );
    faults.unless(
        without_password(url) == *url,
        &format!("{section}.redis_url"),
        "must not contain a password",
        &format!("put it in a file and set {section}.redis_password_file"),
    );
    faults.unless(
        is_slug(prefix),
        &format!("{section}.redis_prefix"),
        "must consist of lowercase letters, digits, - and _",
        "\"windrow\"",
    );
}

fn check_task_defaults(config: &Config, faults: &mut Faults) {
    let defaults = &config.task_defaults;
    for fault in check::faults(&defaults.tuning) {
        faults.unless(
            false,
            &format!("task_defaults.{}", fault.key),
            &fault.what,
            &fault.advice,
        );
    }
    let (rate, capacity) = (defaults.tuning.rate, config.node.capacity_rate);
    faults.unless(
        rate != RateLimit::Unlimited || config.node.allow_unlimited,
        "task_defaults.rate",
        "\"unlimited\" is forbidden by node.allow_unlimited",
        "\"100/s\", \"auto\", or allow_unlimited = true",
    );
    let fits = |(rate, capacity): (Rate, Rate)| !rate.is_faster_than(capacity);
    faults.unless(
        rate.most().zip(capacity.most()).is_none_or(fits),
        "task_defaults.rate",
        "more than node.capacity_rate, so such a task could never run here",
        "a lower rate",
    );
    let is_split = !matches!(defaults.shards, Auto::Fixed(shards) if shards.get() == 1);
    faults.unless(
        !(defaults.tuning.ordered && is_split),
        "task_defaults.shards",
        "an ordered task has one shard",
        "1",
    );
    faults.unless(
        !matches!(defaults.shards, Auto::Fixed(shards) if shards.get() > SHARDS_MAX),
        "task_defaults.shards",
        "more than the 256 shards a task may have",
        "\"auto\"",
    );
    faults.unless(
        defaults.max_params <= config.http.body_limit,
        "task_defaults.max_params",
        "more than http.body_limit, so no request could carry them",
        "\"64 KiB\"",
    );
}

fn check_handlers(config: &Config, faults: &mut Faults) {
    let http = &config.http_handler;
    faults.unless(
        http.client_cert_file.is_some() == http.client_key_file.is_some(),
        "handler.http.client_key_file",
        "set both or neither: certificate and key belong together",
        "both of handler.http.client_cert_file and handler.http.client_key_file, or neither",
    );
    faults.unless(
        is_url(config.http_handler.proxy.as_deref(), &["http", "https"]),
        "handler.http.proxy",
        "not an http or https URL",
        "\"http://proxy:3128\", or \"\" for none",
    );
    for (name, command) in &config.command_handler.commands {
        let key = format!("handler.command.commands.{name}");
        faults.unless(
            is_slug(name),
            &key,
            "command names are lowercase letters, digits, - and _",
            "\"push\"",
        );
        command.check(&key, faults);
    }
}

/// True if there is no URL, or it has a host and one of the schemes.
fn is_url(url: Option<&str>, schemes: &[&str]) -> bool {
    let Some(url) = url else { return true };
    let parts = url.split_once("://");
    parts.is_some_and(|(scheme, rest)| schemes.contains(&scheme) && !rest.trim_matches('/').is_empty())
}

fn is_slug(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    !text.is_empty() && text.chars().all(is_plain)
}
