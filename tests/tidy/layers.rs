//! The import rule of `docs/architecture.md` as data: which crate may depend on which, and what belongs in a part of one.

use std::collections::BTreeSet;

/// The crates of the product below `src/`, and which of them each may depend on. Cargo keeps the rest: nothing can be
/// named that no manifest depends on.
pub(crate) const CRATES: &[(&str, &[&str])] = &[
    ("words", &[]),
    ("core", &["words"]),
    ("api", &["core"]),
    ("config", &["core"]),
    ("engine", &["words", "core"]),
    ("host", &["core", "engine"]),
    ("tls", &[]),
    ("net", &["core", "config", "engine", "tls"]),
    ("store", &["words", "core", "config", "engine", "host"]),
    ("handlers", &["core", "config", "engine", "tls", "net"]),
    ("sources", &["core", "engine", "net"]),
    ("server", &["words", "core", "api", "config", "engine"]),
    (
        "node",
        &[
            "core", "config", "engine", "host", "net", "store", "handlers", "sources", "server",
        ],
    ),
    ("client", &["api", "tls"]),
    (
        "cli",
        &[
            "words", "core", "api", "config", "engine", "server", "node", "client",
        ],
    ),
];

/// Inside a crate: a module, and the modules beside it that it may not name.
const ROOMS: &[(&str, &str, &[&str])] = &[
    ("engine", "ports", &["actors"]),
    ("store", "sql", &["redis"]),
    ("store", "redis", &["sql"]),
    ("server", "service", &["http", "telemetry"]),
    ("server", "telemetry", &["http", "service"]),
    ("cli", "fault", &["link", "run", "task", "job", "remote", "local"]),
    (
        "cli",
        "output",
        &["link", "run", "task", "job", "remote", "local"],
    ),
    ("cli", "link", &["run", "task", "job", "remote", "local"]),
    ("cli", "run", &["task", "job", "remote", "local"]),
    ("cli", "task", &["job", "remote", "local"]),
    ("cli", "job", &["remote", "local"]),
];

/// The modules of `core` that put its mechanisms together: a run, and a task's life over its runs.
const COMPOSERS: &[&str] = &["execution", "life", "alert"];

/// Rooms of `core` whose modules stand each for themselves; any other module is one with all that is below it.
const SHARED_ROOMS: &[&str] = &["items", "stats", "handler"];

/// What every module of `core` may import: words. Only those that compose import mechanisms.
const VOCABULARY: &[&str] = &[
    "ids",
    "text",
    "invariants",
    "items::run",
    "items::verdict",
    "items::counters",
    "stats::autopilot",
    "stats::histogram",
    "stats::stall",
    "stats::permits",
    "stats::tally",
    "handler::text",
    "handler::sight",
    "meter",
    "settings",
    "live_settings", // its macro, which Rust exports at the root of the crate
    "slugs",         // the same
    "task",
    "business",
    "shards",
    "zone",
];

/// A library and the only places that may name it, where they are less than what a manifest opens to it.
const HOMES: &[(&str, &[&str])] = &[
    ("sea_orm", &["src/store/sql", "migration/src"]),
    ("migration", &["src/store/sql", "migration/src"]),
    ("redis", &["src/store/redis"]),
    ("ractor", &["src/engine/actors"]),
    ("tokio_rustls", &["src/server/http"]),
    ("axum", &["src/server/http"]),
    ("utoipa", &["src/api", "src/server/http"]),
    (
        "hyper",
        &[
            "src/net",
            "src/handlers",
            "src/server/http",
            "src/client",
            "src/tls",
        ],
    ),
    ("csv", &["src/sources", "src/core/text"]),
    (
        "chrono",
        &[
            "src/core/schedule",
            "src/core/zone.rs",
            "src/core/meter/period.rs",
            "src/core/ids.rs",
            "src/cli",
        ],
    ),
    ("chrono_tz", &["src/core/schedule", "src/core/zone.rs"]),
    ("croner", &["src/core/schedule"]),
    ("unicode_security", &["src/core/text"]),
    ("clap", &["src/cli"]),
    ("console", &["src/cli"]),
    ("anyhow", &["src/cli"]),
    ("chacha20poly1305", &["src/host/vault.rs"]),
    ("tracing_subscriber", &["src/server/telemetry"]),
];

/// The crates that the pure core may use: types, derives and arithmetic.
const PURE_CRATES: &[&str] = &[
    "serde",
    "serde_json",
    "thiserror",
    "uuid",
    "humantime",
    "crc32c",
    "percent_encoding",
    "chrono",
    "chrono_tz",
    "croner",
    "strsim",
    "csv",
    "unicode_security",
    "windrow_words",
];

/// The parts of `std` that do something.
const IMPURE_STD: &[&str] = &["fs", "env", "process", "thread", "io", "os"];

/// The names under which the libraries of the workspace are used.
pub(crate) fn libraries(manifest: &str) -> BTreeSet<String> {
    let table: toml::Table = manifest.parse().expect("Cargo.toml is TOML");
    let libraries = table["workspace"]["dependencies"]
        .as_table()
        .expect("they are a table");
    libraries.keys().map(|name| name.replace('-', "_")).collect()
}

/// The crates of the product that a manifest depends on, but for its tests, without their prefix.
pub(crate) fn dependencies(manifest: &str) -> Vec<String> {
    let table: toml::Table = manifest.parse().expect("Cargo.toml is TOML");
    let table = table.get("dependencies").and_then(toml::Value::as_table);
    let names = table.into_iter().flat_map(toml::Table::keys);
    names
        .filter_map(|name| name.strip_prefix("windrow-"))
        .map(str::to_owned)
        .collect()
}

/// The crate and the modules of a file: `src/core/task/lifecycle/transitions.rs` is `lifecycle::transitions` of `core`. None
/// outside the crates of the product.
pub(crate) fn modules_of(file: &str) -> Option<(&str, Vec<String>)> {
    let path = file.strip_prefix("src/")?.strip_suffix(".rs")?;
    let (krate, path) = path.split_once('/')?;
    let path = path.strip_suffix("/mod").unwrap_or(path);
    let modules = if path == "lib" {
        Vec::new()
    } else {
        path.split('/').map(str::to_owned).collect()
    };
    Some((krate, modules))
}

/// Why a module may not name another one of its crate; none when it may.
pub(crate) fn import_fault(krate: &str, from: &[String], to: &[String]) -> Option<String> {
    let (module, target) = (from.first()?, to.first()?);
    let shut = ROOMS
        .iter()
        .find(|(of, name, shut)| *of == krate && name == module && shut.contains(&&**target));
    match shut {
        Some(_) => Some(format!("inside {krate}, {module} may not name {target}")),
        None if krate == "core" => mechanism_fault(from, to),
        None => None,
    }
}

fn mechanism_fault(from: &[String], to: &[String]) -> Option<String> {
    let (module, target) = (mechanism(from), mechanism(to));
    let is_free = COMPOSERS.contains(&&*module)
        || module == target
        || from[0] == target
        || VOCABULARY.contains(&&*target);
    // A type or function that `core/lib.rs` re-exports is no module.
    let is_module = target.chars().all(|c| c.is_ascii_lowercase() || "_:".contains(c));
    (!is_free && is_module).then(|| {
        format!("inside core only execution, life and alert compose; {module} may not name {target}")
    })
}

/// What a path in `core` belongs to.
fn mechanism(path: &[String]) -> String {
    let words = if SHARED_ROOMS.contains(&&*path[0]) { 2 } else { 1 };
    path[..words.min(path.len())].join("::")
}

/// Why a file may not name a crate; none when it may.
pub(crate) fn crate_fault(file: &str, name: &str) -> Option<String> {
    let homes = HOMES
        .iter()
        .find(|(krate, _)| *krate == name)
        .map(|(_, homes)| *homes)?;
    let is_home = |home: &str| {
        file.strip_prefix(home)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest == ".rs")
    };
    (!homes.iter().any(|home| is_home(home))).then(|| format!("{name} belongs in {}", homes.join(", ")))
}

/// Why the pure core may not name this; none when it may. `path` begins with the name of a crate.
pub(crate) fn purity_fault(path: &[String]) -> Option<String> {
    let (krate, part) = (path.first()?.as_str(), path.get(1).map_or("", String::as_str));
    match krate {
        "std" if IMPURE_STD.contains(&part) => Some(format!("core is pure: no std::{part}")),
        "std" | "core" | "alloc" => None,
        pure if PURE_CRATES.contains(&pure) => None,
        other => Some(format!("core is pure: no {other}")),
    }
}
