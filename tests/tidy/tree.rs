//! What isn't code: links of the documentation, and what must not be in the tree at all.

use super::Fault;

/// Folders whose files documentation names in backticks.
const NAMED: [&str; 6] = ["src/", "tests/", "docs/", "scripts/", "migration/", "examples/"];

/// Paths of a developer's machine and hosts of package registries. Split, so that this file isn't a fault itself.
const FOREIGN: [&str; 8] = [
    concat!("/wo", "rk/"),
    concat!("/tmp/", "wt"),
    concat!("/ro", "ot/"),
    concat!("crates", ".io"),
    concat!("py", "pi.org"),
    concat!("python", "hosted.org"),
    concat!("npm", "js."),
    concat!("proxy.go", "lang.org"),
];

/// The one source that the lock file may name; cargo writes it wherever the crates really come from.
const LOCK_SOURCE: &str = concat!("registry+https://github.com/rust-lang/crates", ".io-index");

/// Sections of a decision record, in their order; the first two are in each.
const SECTIONS: [&str; 6] = [
    "Context",
    "Decision",
    "Reasons",
    "Rejected",
    "Consequences",
    "Measured",
];

/// All faults of a file of text; `files` are all that there are.
pub(crate) fn faults(file: &str, text: &str, files: &[String]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut add = |rule, text: String| {
            faults.push(Fault {
                file: file.to_owned(),
                line: at + 1,
                rule,
                text,
            })
        };
        let own = line.replace(LOCK_SOURCE, "");
        for word in FOREIGN.iter().filter(|word| own.contains(**word)) {
            add("foreign", format!("{word} has no place here"));
        }
        if file.ends_with(".md") {
            for target in dead_links(file, line, files) {
                add("link", format!("{target} doesn't exist"));
            }
        }
    }
    if file.starts_with("docs/decisions/") && !has_form(file, text) {
        faults.push(Fault {
            file: file.to_owned(),
            line: 1,
            rule: "record",
            text: format!(
                "no number and status at its head, or other sections than {SECTIONS:?}, or in another order"
            ),
        });
    }
    faults
}

/// Tells a decision record in the one form that all have.
fn has_form(file: &str, text: &str) -> bool {
    let mut lines = text.lines();
    let number = file.rsplit('/').next().and_then(|name| name.get(..4));
    let title = lines
        .next()
        .and_then(|line| line.strip_prefix("# ")?.split_once(": "));
    let status = lines.nth(1).is_some_and(|line| line.starts_with("**Status:** "));
    let sections: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let ordered: Vec<&str> = SECTIONS
        .into_iter()
        .filter(|name| sections.contains(name))
        .collect();
    title.map(|(number, _)| number) == number
        && status
        && sections == ordered
        && sections.starts_with(&SECTIONS[..2])
}

fn dead_links(file: &str, line: &str, files: &[String]) -> Vec<String> {
    let folder = file.rsplit_once('/').map_or("", |(folder, _)| folder);
    let links = line
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split([')', ' ']).next());
    let links = links.filter(|link| !link.contains("://") && !link.starts_with("mailto:"));
    let links = links
        .map(|link| link.split('#').next().unwrap_or_default())
        .filter(|link| !link.is_empty());
    let links = links.map(|link| joined(folder, link));
    let named = line
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|word| NAMED.iter().any(|start| word.starts_with(start)));
    let named = named.filter(|word| {
        word.chars()
            .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
    });
    links
        .chain(named.map(str::to_owned))
        .filter(|target| !exists(target, files))
        .collect()
}

/// A link from a folder, as a path from the root.
fn joined(folder: &str, link: &str) -> String {
    let mut parts: Vec<&str> = if link.starts_with('/') {
        Vec::new()
    } else {
        folder.split('/').collect()
    };
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            name => parts.push(name),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts.join("/")
}

/// A file, or a folder that holds one.
fn exists(target: &str, files: &[String]) -> bool {
    let folder = format!("{}/", target.trim_end_matches('/'));
    files
        .iter()
        .any(|file| file == target || file.starts_with(&folder))
}
