//! The documentation is executed and checked: every command of a `console` block runs, word for word, in a fresh
//! directory; its output is what stands below it; links and headings that are pointed at exist; quoted files are
//! quoted exactly.
//!
//! How a block is written: `$ ` begins a command, ` \` at the end of its line lets it go on, `# exit 8` at its end is the exit code (else 0), ` &` at its end
//! keeps it running to the end of the page, a line `^C` presses Ctrl-C once the lines above it have appeared. Lines
//! may be left out; `…` stands for anything. What differs from run to run (times, decimals, hashes) is not compared,
//! and no number is in a block with a `^C`. Blocks of other languages are not run.

#![allow(clippy::unwrap_used, reason = "a test ends where something is wrong")]
#![allow(
    clippy::disallowed_methods,
    reason = "a test measures real time and reads its environment"
)]

mod chinese;
mod cli;
mod commands;
mod configuration;
mod deploy;
mod generated;
mod messages;
mod page;
mod shell;
mod tutorial;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use page::{Block, Page};
use shell::Shell;
use windrow_cli::exit::Exit;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every page of the documentation.
fn pages() -> Vec<Page> {
    let mut pages = vec![
        Page::read("README.md"),
        Page::read("README.zh-CN.md"),
        Page::read("CHANGELOG.md"),
        Page::read("examples/README.md"),
    ];
    for folder in ["docs", "docs/decisions"] {
        for entry in root().join(folder).read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "md") {
                pages.push(Page::read(&format!(
                    "{folder}/{}",
                    path.file_name().unwrap().to_str().unwrap()
                )));
            }
        }
    }
    pages
}

/// Runs every command of a page; returns how many there are, or what went wrong first.
fn run(file: &str) -> Result<usize, String> {
    let mut shell = Shell::new();
    let page = Page::read(file);
    let mut count = 0;
    let runs = |block: &&Block| block.language == "console";
    for block in page.blocks.iter().filter(runs) {
        let loose = block.lines.iter().any(|line| line == "^C");
        for step in block.steps() {
            shell
                .run(&step, loose)
                .map_err(|why| format!("{file}: $ {}\n{why}", step.command))?;
            count += 1;
        }
    }
    Ok(count)
}

/// Runs every command of a page, of which there are at least so many.
fn run_all(file: &str, expected: usize) {
    let count = run(file).unwrap_or_else(|why| panic!("{why}"));
    assert!(count >= expected, "{file}: commands are found: {count}");
}

#[test]
fn the_commands_of_the_readme_do_what_it_says() {
    run_all("README.md", 6);
}

#[test]
fn the_commands_of_the_page_on_jobs_do_what_it_says() {
    run_all("docs/jobs.md", 6);
}

#[test]
fn the_commands_of_the_examples_do_what_they_say() {
    run_all("examples/README.md", 10);
}

#[test]
fn the_commands_of_the_guide_for_handlers_do_what_they_say() {
    run_all("docs/handlers.md", 15);
}

#[test]
fn the_recipes_do_what_they_say() {
    run_all("docs/recipes.md", 25);
}

#[test]
fn the_commands_for_operators_do_what_they_say() {
    run_all("docs/operations.md", 10);
}

#[test]
fn commands_of_other_pages_do_what_they_say() {
    let own_test = [
        "docs/handlers.md",
        "docs/jobs.md",
        "docs/operations.md",
        "docs/recipes.md",
        tutorial::PAGE,
    ];
    // The commands of a translation are those of its original, word for word.
    let others = pages()
        .into_iter()
        .map(|page| page.file)
        .filter(|file| file.starts_with("docs/"));
    let faults: Vec<String> = others
        .filter(|file| !own_test.contains(&file.as_str()) && !file.ends_with(".zh-CN.md"))
        .filter_map(|file| run(&file).err())
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
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
            let target = if path.is_empty() {
                PathBuf::from(&page.file)
            } else {
                folder.join(path)
            };
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
    for page in &pages() {
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
    // A folder is named as such, or by the file that it begins with.
    let named = |path: &str| {
        [path.to_owned(), format!("{path}mod.rs")]
            .iter()
            .any(|name| map.contains(&format!("`{name}`")))
    };
    let mut missing = Vec::new();
    let folders = [
        "core",
        "config",
        "engine",
        "engine/ports",
        "engine/actors",
        "host",
        "net",
        "store",
        "store/sql",
    ];
    let folders = folders
        .into_iter()
        .chain(["handlers", "sources", "server", "client", "cli"]);
    for folder in folders
        .map(|folder| root().join("src").join(folder))
        .chain([root().join("src")])
    {
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let inner = path
                .strip_prefix(root().join("src"))
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let shown = if path.is_dir() { format!("{inner}/") } else { inner };
            let is_frame = ["mod.rs", "lib.rs", "Cargo.toml"]
                .iter()
                .any(|name| shown.ends_with(name));
            if !is_frame && !named(&shown) {
                missing.push(shown);
            }
        }
    }
    missing.sort();
    assert!(
        missing.is_empty(),
        "docs/architecture.md does not name {missing:?}"
    );
}

#[test]
fn quoted_files_are_quoted_exactly() {
    let mut count = 0;
    for page in pages() {
        for block in &page.blocks {
            let Some(file) = block.quotes() else { continue };
            let whole = std::fs::read_to_string(root().join(file)).unwrap();
            let is_comment = |line: &&str| line.starts_with('#') || line.starts_with("//");
            let code: Vec<&str> = whole.lines().skip_while(is_comment).collect();
            assert_eq!(code, block.lines, "{}: {file}", page.file);
            count += 1;
        }
    }
    assert!(count > 0, "quotes are found");
}

#[test]
fn the_readme_and_its_first_screen_are_short() {
    let page = Page::read("README.md");
    let lines: Vec<&str> = page.text.lines().collect();
    assert!(lines.len() <= 200, "it has {} lines", lines.len());
    let first = lines.iter().position(|line| *line == "## A job").unwrap();
    assert!(first <= 45, "the first screen has {first} lines");
    let claim = page.text.split("**").nth(1).unwrap();
    let words = claim.split_whitespace().count();
    assert!(words <= 14, "{claim:?} has {words} words");
    assert!(!page.text.contains("[test]("), "tests are named in docs/why.md");
}

#[test]
fn shipped_handlers_are_short() {
    for entry in root().join("examples/handlers").read_dir().unwrap() {
        let path = entry.unwrap().path();
        let lines = std::fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 15, "{} has {lines} lines", path.display());
    }
}

/// Flags that the first pages speak of are flags of some command, and the exit codes are those of the program; the
/// commands themselves are judged one by one in `commands`.
#[test]
fn flags_and_exit_codes_of_the_first_pages_are_those_of_the_program() {
    let first = ["README.md", "docs/jobs.md", "docs/service.md", tutorial::PAGE];
    let texts = first.map(|file| Page::read(file).text);
    let words = |text: &str| -> BTreeSet<String> {
        let ends = |c: char| !(c.is_ascii_lowercase() || c == '-');
        let flags = text.split(ends).filter_map(|word| word.strip_prefix("--"));
        flags.filter(|word| word.len() > 1).map(str::to_owned).collect()
    };
    let others = ["cargo ", "curl ", "GNU parallel"];
    let prose: String = texts
        .iter()
        .flat_map(|text| text.lines())
        .filter(|line| others.iter().all(|name| !line.contains(name)))
        .collect::<Vec<_>>()
        .join("\n");
    let known = cli::flags_of_all(&cli::program());
    let unknown: Vec<_> = words(&prose).difference(&known).cloned().collect();
    assert!(unknown.is_empty(), "the program has no {unknown:?}");
    let codes: Vec<String> = Exit::ALL
        .iter()
        .map(|(exit, _)| (*exit as u8).to_string())
        .collect();
    let table = texts[1]
        .split("| exit code |")
        .nth(1)
        .unwrap()
        .split("\n\n")
        .next()
        .unwrap();
    let rows: Vec<&str> = table
        .lines()
        .skip(2)
        .map(|row| row.split('|').nth(1).unwrap().trim())
        .collect();
    assert!(rows.len() >= 10, "{rows:?}");
    for code in rows {
        assert!(
            codes.iter().any(|known| known == code),
            "the program has no exit code {code}"
        );
    }
}
