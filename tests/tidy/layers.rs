//! The import rule of `docs/architecture.md` as data: which layer may name which, and where each crate belongs.

use std::collections::BTreeSet;

/// A layer, and the layers that it may name. `lib.rs` only declares modules and has no layer.
const LAYERS: &[(&str, &[&str])] = &[
    ("domain", &["domain"]),
    ("ports", &["domain", "ports"]),
    ("config", &["domain", "config"]),
    ("telemetry", &["domain", "config", "telemetry"]),
    ("tls", &["tls"]),
    ("adapters", &["domain", "ports", "config", "telemetry", "tls", "adapters"]),
    ("actors", &["domain", "ports", "config", "telemetry", "actors"]),
    ("service", &["domain", "ports", "config", "telemetry", "actors", "service"]),
    ("http", &["domain", "ports", "config", "telemetry", "service", "http"]),
    ("client", &["domain", "tls", "client"]),
    ("node", &["domain", "ports", "config", "telemetry", "adapters", "actors", "service", "http", "node"]),
    ("cli", &["domain", "ports", "config", "telemetry", "service", "http", "client", "node", "cli"]),
    ("main", &["config", "telemetry", "node", "cli"]),
];

/// The modules of `domain` that put its mechanisms together: a run, and a task's life over its runs.
const COMPOSERS: &[&str] = &["execution", "life"];

/// What every module of `domain` may import: words. Only those that compose import mechanisms.
const VOCABULARY: &[&str] = &[
    "ids",
    "run",
    "verdict",
    "counters",
    "latency",
    "histogram",
    "invariants",
    "stall",
    "permits",
    "tally",
    "handler_text",
    "handler_sight",
    "network",
    "settings",
    "settings_text",
    "settings_serde",
    "task",
    "tuning_patch",
    "business",
    "access",
    "lifecycle",
    "meaning",
    "shards",
];

/// A crate and the only places that may name it.
const HOMES: &[(&str, &[&str])] = &[
    ("sea_orm", &["src/adapters/sql", "migration/src"]),
    ("sqlx", &["src/adapters/sql", "migration/src"]),
    ("sea_orm_migration", &["src/adapters/sql", "migration/src"]),
    ("migration", &["src/adapters/sql", "migration/src"]),
    ("ractor", &["src/actors"]),
    ("redis", &["src/adapters/redis"]),
    ("hyper", &["src/adapters/handler", "src/adapters/peers", "src/http", "src/client", "src/tls"]),
    ("hyper_util", &["src/adapters/handler", "src/adapters/peers", "src/http", "src/client", "src/tls"]),
    ("hyper_rustls", &["src/adapters/handler", "src/adapters/peers", "src/client"]),
    ("http_body_util", &["src/adapters/handler", "src/adapters/peers", "src/http", "src/client"]),
    ("rustls", &["src/adapters/handler", "src/adapters/peers", "src/http", "src/client", "src/tls"]),
    ("csv", &["src/adapters/source", "src/cli"]),
    ("axum", &["src/http"]),
    ("tower", &["src/http"]),
    ("tower_http", &["src/http"]),
    ("utoipa", &["src/http"]),
    ("utoipa_axum", &["src/http"]),
    ("tokio_rustls", &["src/http"]),
    ("chacha20poly1305", &["src/adapters/vault.rs"]),
    ("sd_notify", &["src/node"]),
    ("clap", &["src/cli", "src/main.rs"]),
    ("indicatif", &["src/cli", "src/main.rs"]),
    ("console", &["src/cli"]),
    ("chrono", &["src/cli"]),
    ("anyhow", &["src/cli", "src/main.rs"]),
    ("tracing_subscriber", &["src/telemetry"]),
];

/// The crates that the pure core may use: types, derives and arithmetic.
const PURE_CRATES: &[&str] = &["serde", "serde_json", "thiserror", "uuid", "humantime", "crc32c"];

/// The parts of `std` that do something.
const IMPURE_STD: &[&str] = &["fs", "env", "process", "thread", "io", "os"];

/// The names under which the dependencies of a manifest are used.
pub(crate) fn dependencies(manifest: &str) -> BTreeSet<String> {
    let table: toml::Table = manifest.parse().expect("Cargo.toml is TOML");
    let tables = ["dependencies", "dev-dependencies"].iter().filter_map(|name| table.get(*name)?.as_table());
    tables.flat_map(|table| table.keys()).map(|name| name.replace('-', "_")).collect()
}

/// The modules of a file: `src/domain/lifecycle/transitions.rs` is `domain::lifecycle::transitions`.
/// None outside `src`, and for `lib.rs`.
pub(crate) fn modules_of(file: &str) -> Option<Vec<String>> {
    let path = file.strip_prefix("src/")?.strip_suffix(".rs")?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    (path != "lib").then(|| path.split('/').map(str::to_owned).collect())
}

/// Why a module may not name another one, both from the root of the crate; none when it may.
pub(crate) fn import_fault(from: &[String], to: &[String]) -> Option<String> {
    let (layer, target) = (from.first()?, to.first()?);
    let allowed = LAYERS.iter().find(|(name, _)| name == layer).map(|(_, allowed)| *allowed);
    let is_layer = LAYERS.iter().any(|(name, _)| name == target);
    match allowed {
        None => Some(format!("{layer} is not a layer; place it in tests/tidy/layers.rs")),
        Some(allowed) if is_layer && !allowed.contains(&target.as_str()) => {
            Some(format!("{layer} may not name {target}; it may name {}", allowed.join(", ")))
        }
        Some(_) if layer == "domain" && target == "domain" => mechanism_fault(from, to),
        Some(_) => None,
    }
}

fn mechanism_fault(from: &[String], to: &[String]) -> Option<String> {
    let (module, target) = (from.get(1)?, to.get(1)?);
    let is_free =
        COMPOSERS.contains(&module.as_str()) || module == target || VOCABULARY.contains(&target.as_str());
    // A type or function that `domain/mod.rs` re-exports is no module.
    let is_module = target.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (!is_free && is_module)
        .then(|| format!("inside domain only execution and life compose; {module} may not name {target}"))
}

/// Why a file may not name a crate; none when it may.
pub(crate) fn crate_fault(file: &str, name: &str) -> Option<String> {
    let homes = HOMES.iter().find(|(krate, _)| *krate == name).map(|(_, homes)| *homes)?;
    let is_home = |home: &str| {
        file.strip_prefix(home).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest == ".rs")
    };
    (!homes.iter().any(|home| is_home(home))).then(|| format!("{name} belongs in {}", homes.join(", ")))
}

/// Why the pure core may not name this; none when it may. `path` begins with the name of a crate.
pub(crate) fn purity_fault(path: &[String]) -> Option<String> {
    let (krate, part) = (path.first()?.as_str(), path.get(1).map_or("", String::as_str));
    match krate {
        "std" if IMPURE_STD.contains(&part) => Some(format!("domain is pure: no std::{part}")),
        "std" | "core" | "alloc" => None,
        pure if PURE_CRATES.contains(&pure) => None,
        other => Some(format!("domain is pure: no {other}")),
    }
}
