//! The documentation is executed and checked: every command of a `console` block runs, word for word, in a fresh
//! directory; its output is what stands below it; links and headings that are pointed at exist; quoted files are
//! quoted exactly.
//!
//! How a block is written: `$ ` begins a command, `# exit 8` at its end is the exit code (else 0), ` &` at its end
//! keeps it running to the end of the page, a line `^C` presses Ctrl-C once the lines above it have appeared. Lines
//! may be left out; `…` stands for anything. What differs from run to run (times, decimals, hashes) is not compared,
//! and no number is in a block with a `^C`. Blocks of other languages are not run.

#![allow(clippy::unwrap_used, reason = "a test ends where something is wrong")]
#![allow(clippy::disallowed_methods, reason = "a test measures real time and reads its environment")]

mod deploy;
mod page;
mod shell;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use page::{Block, Page};
use shell::Shell;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every page of the documentation.
fn pages() -> Vec<Page> {
    let mut pages =
        vec![Page::read("README.md"), Page::read("CHANGELOG.md"), Page::read("examples/README.md")];
    for folder in ["docs", "docs/decisions"] {
        for entry in root().join(folder).read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "md") {
                pages.push(Page::read(&format!("{folder}/{}", path.file_name().unwrap().to_str().unwrap())));
            }
        }
    }
    pages
}

/// Runs every command of a page; returns how many.
fn run(file: &str) -> usize {
    let mut shell = Shell::new();
    let page = Page::read(file);
    let mut count = 0;
    for block in page.blocks.iter().filter(|block| block.language == "console") {
        let loose = block.lines.iter().any(|line| line == "^C");
        for step in block.steps() {
            shell.run(&step, loose).unwrap_or_else(|why| panic!("{file}: $ {}\n{why}", step.command));
            count += 1;
        }
    }
    count
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    assert!(run("README.md") >= 8, "commands are found");
}

#[test]
fn the_commands_of_the_examples_do_what_they_say() {
    assert!(run("examples/README.md") >= 10, "commands are found");
}

#[test]
fn commands_of_other_pages_do_what_they_say() {
    for page in pages().iter().filter(|page| page.file.starts_with("docs/")) {
        run(&page.file);
    }
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let mut dead = Vec::new();
    let mut count = 0;
    for page in pages() {
        for link in page.links() {
            count += 1;
            let (path, heading) = link.split_once('#').unwrap_or((&link, ""));
            let folder = Path::new(&page.file).parent().unwrap();
            let target = if path.is_empty() { PathBuf::from(&page.file) } else { folder.join(path) };
            let found = root().join(&target);
            let leads = found.exists()
                && (heading.is_empty() || Page::read(target.to_str().unwrap()).has_heading(heading));
            if !leads {
                dead.push(format!("{}: {link}", page.file));
            }
        }
    }
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
    assert!(count >= 15, "links are found: {count}");
}

/// The code map can't be wrong about what there is: every path in backticks exists, as seen from the root, from
/// `src/`, or from the page.
#[test]
fn paths_in_backticks_exist() {
    let (mut dead, mut count) = (Vec::new(), 0);
    for page in pages().iter().filter(|page| page.file != "CHANGELOG.md") {
        let folder = Path::new(&page.file).parent().unwrap().to_owned();
        for path in page.paths() {
            count += 1;
            let places = [root(), root().join("src"), root().join(&folder)];
            if !places.iter().any(|place| place.join(&path).exists()) {
                dead.push(format!("{}: {path}", page.file));
            }
        }
    }
    assert!(dead.is_empty(), "paths that don't exist:\n{}", dead.join("\n"));
    assert!(count > 50, "paths are found: {count}");
}

#[test]
fn every_source_file_has_its_place_on_the_code_map() {
    let map = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let named = |path: &str| map.contains(&format!("`{path}`"));
    let mut missing = Vec::new();
    for layer in ["src", "src/domain", "src/ports", "src/actors", "src/adapters", "src/cli", "src/config"] {
        for entry in root().join(layer).read_dir().unwrap() {
            let path = entry.unwrap().path();
            let inner = path.strip_prefix(root().join("src")).unwrap().to_str().unwrap().to_owned();
            let shown = if path.is_dir() { format!("{inner}/") } else { inner };
            // A folder beside a file of its name holds that file's parts.
            let part = path.is_dir() && path.with_extension("rs").exists();
            if !part && !shown.ends_with("mod.rs") && !named(&shown) {
                missing.push(shown);
            }
        }
    }
    missing.sort();
    assert!(missing.is_empty(), "docs/architecture.md does not name {missing:?}");
}

#[test]
fn quoted_files_are_quoted_exactly() {
    let mut count = 0;
    for page in pages() {
        for Block { quotes, lines, .. } in &page.blocks {
            let Some(file) = quotes else { continue };
            let whole = std::fs::read_to_string(root().join(file)).unwrap();
            let code: Vec<&str> = whole.lines().skip_while(|line| line.starts_with('#')).collect();
            assert_eq!(&code, lines, "{}: {file}", page.file);
            count += 1;
        }
    }
    assert!(count > 0, "quotes are found");
}

#[test]
fn the_first_screen_of_the_readme_is_short() {
    let page = Page::read("README.md");
    let at = page.text.lines().position(|line| line == "## Should I use this?").unwrap();
    assert!(at <= 45, "the first screen has {at} lines");
}

#[test]
fn shipped_handlers_are_short() {
    for entry in root().join("examples/handlers").read_dir().unwrap() {
        let path = entry.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 15, "{} has {lines} lines", path.display());
    }
}

/// Flags and exit codes are told by the program itself; what the readme says of them is no other.
#[test]
fn flags_and_exit_codes_of_the_readme_are_those_of_the_program() {
    let shell = Shell::new();
    let topics = ["run", "try", "serve", "dev", "init", "ctx add", "task create", "exit-codes"];
    let told =
        topics.map(|topic| shell.output(&format!("help {topic}").split(' ').collect::<Vec<_>>())).concat();
    let page = Page::read("README.md");
    let words = |text: &str| -> BTreeSet<String> {
        let ends = |c: char| !(c.is_ascii_lowercase() || c == '-');
        text.split(ends).filter(|word| word.starts_with("--") && word.len() > 3).map(str::to_owned).collect()
    };
    let prose: String = page
        .text
        .lines()
        .filter(|line| !line.contains("cargo ") && !line.contains("curl "))
        .collect::<Vec<_>>()
        .join("\n");
    let unknown: Vec<_> = words(&prose).difference(&words(&told)).cloned().collect();
    assert!(unknown.is_empty(), "the program has no {unknown:?}");
    let codes: Vec<&str> =
        told.lines().filter_map(|line| line.trim().split_once("  ")).map(|(code, _)| code).collect();
    let table = page.text.split("| exit code |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows: Vec<&str> = table.lines().skip(2).map(|row| row.split('|').nth(1).unwrap().trim()).collect();
    assert!(rows.len() >= 10, "{rows:?}");
    for code in rows {
        assert!(codes.contains(&code), "the program has no exit code {code}");
    }
}
