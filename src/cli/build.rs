//! Build script that tells `version` the commit and the target, as the variables WINDROW_COMMIT and WINDROW_TARGET.
//!
//! A build outside a clone takes the commit from WINDROW_COMMIT (`7710890b 2026-11-29`), else it is unknown. Builds for
//! debugging don't look: each commit would build every test again.

use std::path::Path;
use std::process::Command;

/// Repository, relative to this crate. A folder, or in a linked work tree a file.
const REPOSITORY: &str = "../../.git";

#[expect(
    clippy::disallowed_methods,
    reason = "Cargo tells a build script so what it builds"
)]
fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=WINDROW_COMMIT");
    let var = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let is_debug = var("PROFILE").as_deref() == Some("debug");
    let commit = match var("WINDROW_COMMIT") {
        None if is_debug => "debug build".to_owned(),
        None => head().unwrap_or_else(|| "unknown".to_owned()),
        Some(commit) => commit,
    };
    println!("cargo::rustc-env=WINDROW_COMMIT={commit}");
    let target = var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=WINDROW_TARGET={target}");
}

/// Returns the commit with its date. Has it looked up again once HEAD moves, which appends to this log.
fn head() -> Option<String> {
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["log", "-1", "--abbrev=8", "--format=%h %cs"])
}

/// Returns the output of a git command on this repository, never on one around it.
fn git(words: &[&str]) -> Option<String> {
    let done = Command::new("git")
        .args(["--git-dir", REPOSITORY])
        .args(words)
        .output()
        .ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.trim().to_owned())
}
