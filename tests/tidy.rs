//! What the compiler doesn't check: the import rule, sizes, banned words, links, and what must not be in the tree.
//!
//! `code` judges one source text at a time, as a syntax tree; `tree` looks at all other files. Each rule is shown to
//! fail on a text that breaks it, so that a rule that has gone blind is noticed.

#[path = "tidy/code.rs"]
mod code;
#[path = "tidy/features.rs"]
mod features;
#[path = "tidy/house.rs"]
mod house;
#[path = "tidy/layers.rs"]
mod layers;
#[path = "tidy/tree.rs"]
mod tree;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

/// Faults that are tolerated for now, as (file, rule). It may only shrink.
const RATCHET: &[(&str, &str)] = &[
    ("src/handlers/command/pool/mod.rs", "file-size"),
    ("src/handlers/wire/mod.rs", "file-size"),
    ("src/store/sql/task/life.rs", "file-size"),
];

/// One thing that isn't tidy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fault {
    file: String,
    line: usize,
    rule: &'static str,
    text: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{} [{}] {}", self.file, self.line, self.rule, self.text)
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file of the tree by its path from the root, except what is built or belongs to git.
fn files() -> Vec<String> {
    let mut open = vec![root()];
    let mut files = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the tree can be read") {
            let path = entry.expect("an entry can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // `.git` is a file in a linked work tree.
            if ["target", ".git", "node_modules"].contains(&name.as_ref()) {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else {
                files.push(relative(&path));
            }
        }
    }
    files.sort();
    files
}

fn relative(path: &Path) -> String {
    let inner = path.strip_prefix(root()).expect("the file is in the tree");
    inner.to_string_lossy().replace('\\', "/")
}

fn read(file: &str) -> Option<String> {
    std::fs::read_to_string(root().join(file)).ok()
}

fn faults() -> Vec<Fault> {
    let crates = layers::libraries(&read("Cargo.toml").expect("Cargo.toml can be read"));
    let files = files();
    let mut faults = Vec::new();
    for file in &files {
        // What isn't text (golden files) has nothing to say.
        let Some(text) = read(file) else { continue };
        if file.ends_with(".rs") {
            faults.extend(code::faults(file, &text, &crates));
        }
        faults.extend(tree::faults(file, &text, &files));
    }
    faults.sort();
    faults
}

#[test]
fn the_tree_is_tidy() {
    let faults = faults();
    let tolerated = |fault: &Fault| RATCHET.contains(&(fault.file.as_str(), fault.rule));
    let lines: Vec<String> = faults
        .iter()
        .filter(|fault| !tolerated(fault))
        .map(Fault::to_string)
        .collect();
    assert!(lines.is_empty(), "{} faults:\n{}", lines.len(), lines.join("\n"));
    let found: BTreeSet<(&str, &str)> = faults
        .iter()
        .map(|fault| (fault.file.as_str(), fault.rule))
        .collect();
    let stale: Vec<_> = RATCHET.iter().filter(|entry| !found.contains(*entry)).collect();
    assert!(stale.is_empty(), "no longer needed in RATCHET: {stale:?}");
}

#[test]
fn documentation_is_demanded_where_it_must_be_complete() {
    for module in ["src/core/lib.rs", "src/engine/ports/mod.rs", "src/config/lib.rs"] {
        let text = read(module).expect(module);
        assert!(
            text.contains("#![warn(missing_docs)]"),
            "{module} must demand documentation of public items"
        );
    }
}

/// The rules that a source text breaks, were it this file.
fn broken(file: &str, text: &str) -> Vec<&'static str> {
    let crates = [
        "sea_orm", "ractor", "hyper", "clap", "anyhow", "tokio", "tracing", "serde", "bytes",
    ];
    let crates = crates.iter().map(|name| (*name).to_owned()).collect();
    let mut faults = if file.ends_with(".rs") {
        code::faults(file, text, &crates)
    } else {
        Vec::new()
    };
    faults.extend(tree::faults(file, text, &["docs/a.md".to_owned()]));
    faults.into_iter().map(|fault| fault.rule).collect()
}

#[test]
fn each_crate_depends_on_what_stands_below_it() {
    let crates: Vec<&str> = layers::CRATES.iter().map(|(name, _)| *name).collect();
    for (name, allowed) in layers::CRATES {
        let manifest = read(&format!("src/{name}/Cargo.toml")).expect(name);
        for dependency in layers::dependencies(&manifest) {
            assert!(
                allowed.contains(&&*dependency),
                "{name} may not depend on {dependency}"
            );
        }
    }
    let folders = files()
        .into_iter()
        .filter_map(|file| Some(file.strip_prefix("src/")?.split_once('/')?.0.to_owned()));
    let unknown: BTreeSet<String> = folders.filter(|folder| !crates.contains(&&**folder)).collect();
    assert!(
        unknown.is_empty(),
        "crates without a place in tests/tidy/layers.rs: {unknown:?}"
    );
}

#[test]
fn every_crate_has_the_licence_of_the_house() {
    let manifests: Vec<String> = files()
        .into_iter()
        .filter(|file| file.ends_with("Cargo.toml") && !file.starts_with("scripts/peers/"))
        .collect();
    assert!(manifests.len() > 15, "{manifests:?}");
    for file in manifests {
        let text = read(&file).expect(&file);
        assert!(
            text.contains("license.workspace = true"),
            "{file} must inherit its license"
        );
    }
}

#[test]
fn imports_against_the_arrows_are_seen_however_they_are_written() {
    for (file, text) in [
        ("src/engine/ports/clock.rs", "fn f() { crate::actors::go(); }"),
        ("src/engine/ports/mod.rs", "fn f() { super::actors::go(); }"),
        (
            "src/engine/ports/clock.rs",
            "mod inner { use super::super::super::actors::X; }",
        ),
        ("src/store/sql/mod.rs", "use crate::redis::Leases;"),
        ("src/store/redis/mod.rs", "fn f() { assert!(crate::sql::ok()); }"),
        ("src/server/service/mod.rs", "use crate::http::problem::Problem;"),
        (
            "src/server/service/tasks/mod.rs",
            "use crate::{service::X, http::Y};",
        ),
        ("src/core/pace.rs", "use super::window::Window;"),
    ] {
        assert_eq!(broken(file, text), ["import"], "{file}: {text}");
    }
    for (file, text) in [
        (
            "src/core/pace.rs",
            "use super::ids::Moment; use crate::settings::Rate;",
        ),
        (
            "src/core/execution/grant/mod.rs",
            "use crate::window::Window; use super::types::X;",
        ),
        ("src/core/checkpoint.rs", "mod bytes; use bytes::Reader;"),
        ("src/engine/actors/mod.rs", "use crate::ports::clock::Clock;"),
        ("src/server/http/tasks.rs", "use crate::service::Service;"),
    ] {
        assert_eq!(broken(file, text), [] as [&str; 0], "{file}: {text}");
    }
}

#[test]
fn libraries_stay_where_they_belong() {
    for (file, text) in [
        ("src/engine/ports/tasks/store.rs", "use sea_orm::DbErr;"),
        ("src/store/redis/mod.rs", "fn f() -> sea_orm::DbErr {}"),
        ("src/server/service/mod.rs", "use ractor::ActorRef;"),
        ("src/sources/lib.rs", "use hyper::Client;"),
        ("src/node/lib.rs", "use anyhow::Result;"),
        ("src/engine/actors/mod.rs", "fn f() { clap::Parser::parse(); }"),
    ] {
        assert_eq!(broken(file, text), ["crate"], "{file}: {text}");
    }
    for text in [
        "use tokio::sync::mpsc;",
        "fn f() { tracing::info!(\"x\"); }",
        "use std::fs;",
        "async fn f() {}",
    ] {
        assert_eq!(broken("src/core/pace.rs", text), ["pure"], "{text}");
    }
    assert!(broken("src/store/sql/mod.rs", "use sea_orm::DbErr;").is_empty());
    assert!(broken("migration/src/lib.rs", "use sea_orm_migration::prelude::*;").is_empty());
}

#[test]
fn sizes_are_counted_outside_tests() {
    let long = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(49));
    assert_eq!(broken("src/node/lib.rs", &long), ["fn-size"]);
    let fits = format!("fn f() {{\n{}}}\n", "    g();\n".repeat(48));
    assert!(broken("src/node/lib.rs", &fits).is_empty());
    assert_eq!(
        broken("src/node/lib.rs", &"const A: u8 = 1;\n".repeat(401)),
        ["file-size"]
    );
    let tested = format!(
        "const A: u8 = 1;\n#[cfg(test)]\nmod tests {{\n{}}}\n",
        "    const B: u8 = 1;\n".repeat(500)
    );
    assert!(broken("src/node/lib.rs", &tested).is_empty());
    assert!(broken("tests/big.rs", &"const A: u8 = 1;\n".repeat(900)).is_empty());
}

#[test]
fn banned_words_are_seen_and_tests_may_use_theirs() {
    for (text, rule) in [
        ("fn f() { g().unwrap(); }", "unwrap"),
        ("fn f() { todo!() }", "unfinished"),
        ("fn f() { if x { unimplemented!(\"later\") } }", "unfinished"),
        ("fn f() { dbg!(x); }", "unfinished"),
        ("fn f() { let t = Instant::now(); }", "clock"),
        ("fn f() { let t = std::time::SystemTime::now(); }", "clock"),
        ("fn f() { std::env::var(\"HOME\"); }", "env"),
        ("fn f() { let _ = g(); }", "dropped"),
        ("fn f() { let _: u8 = g(); }", "dropped"),
        ("#[test]\n#[ignore]\nfn f() {}", "ignored"),
        (
            "#[cfg(test)] mod tests { #[test] #[ignore = \"slow\"] fn f() {} }",
            "ignored",
        ),
        ("macro_rules! m { () => { x.unwrap() } }", "unwrap"),
        ("fn f() { assert!(x.unwrap()); }", "unwrap"),
    ] {
        assert_eq!(broken("src/node/lib.rs", text), [rule], "{text}");
    }
    assert!(
        broken(
            "src/node/lib.rs",
            "#[cfg(test)] mod tests { fn f() { g().unwrap(); let _ = h(); } }"
        )
        .is_empty()
    );
    assert!(broken("tests/cli/main.rs", "fn f() { g().unwrap(); }").is_empty());
    assert_eq!(broken("tests/cli/main.rs", "fn f() { todo!() }"), ["unfinished"]);
    assert!(broken("src/host/clock.rs", "fn f() { Instant::now(); }").is_empty());
    let timer = "use tokio::time::Instant; fn f() { Instant::now(); }";
    assert!(
        broken("src/handlers/http/mod.rs", timer).is_empty(),
        "the start of a timer is no reading of a clock"
    );
    assert!(broken("src/config/load/mod.rs", "fn f() { std::env::var(\"X\"); }").is_empty());
}

#[test]
fn dead_links_and_foreign_paths_are_seen() {
    assert_eq!(
        broken(
            "docs/x.md",
            "[there](a.md) [not](b.md#part) [web](https://example.org) [here](#part)"
        ),
        ["link"]
    );
    assert_eq!(
        broken("README.md", "[there](docs/a.md), `docs/a.md`, `docs/gone.md`"),
        ["link"]
    );
    for text in [
        concat!("see /wo", "rk/shared"),
        concat!("https://index.crates", ".io/"),
        concat!("https://py", "pi.org/x"),
    ] {
        assert_eq!(broken("scripts/x.sh", text), ["foreign"], "{text}");
    }
    assert_eq!(
        broken(
            "Cargo.lock",
            concat!("source = \"sparse+https://index.crates", ".io/\"")
        ),
        ["foreign"]
    );
}

#[test]
fn decision_records_without_their_form_are_seen() {
    let file = "docs/decisions/0007-a.md";
    let head = "# 0007: A title\n\n**Status:** accepted, 2026-11-28.\n\n";
    let whole = format!("{head}## Context\n\n## Decision\n\n### Files\n\n## Measured\n");
    assert_eq!(broken(file, &whole), [] as [&str; 0]);
    for text in [
        whole.replace("0007", "0008"),
        whole.replace("**Status:** ", ""),
        whole.replace("Decision", "Choice"),
        format!("{head}## Decision\n\n## Context\n"),
        format!("{head}## Context\n"),
    ] {
        assert_eq!(broken(file, &text), ["record"], "{text}");
    }
}
