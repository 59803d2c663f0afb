//! `config.toml` and `docs/configuration.md` are made from the table of keys in `windrow_config`.

use std::path::PathBuf;

use windrow_config::{Key, documented, keys, sections};

use super::generated::{cell, check};
use super::root;

const HEAD: &str = "\
# Configuration

<!-- Made from the code by tests/docs/configuration.rs; write it anew with UPDATE_DOCS=1. -->

Every key, as this version reads it. Flag over environment over file over default; an unknown key is an error with a
guess at what was meant. A file needs only what differs from the defaults.

`windrow config default` prints a whole file with these defaults and reasons; `windrow config check FILE` names every
fault of a file and the environment at once.

Values as people write them:

| type | written as |
|---|---|
| span | `\"100ms\"`, `\"15s\"`, `\"2m\"`, `\"1h 30m\"`, `\"30d\"` |
| rate | `\"500/s\"`, `\"30/m\"`, `\"1/2s\"`, `\"10k/s\"` |
| size | `\"64 KiB\"`, `\"16 MiB\"`, `\"20 GiB\"` |
| path | relative to the working directory |

The environment holds texts: `WINDROW_NODE__RUN_TASKS=false`, `WINDROW_NODE__POOLS='[\"a\", \"b\"]'`. A key marked ⟳ takes a
changed value on SIGHUP (`systemctl reload windrow`); the others wait for a restart.
";

fn row(key: &Key) -> String {
    let (_, name) = key.place();
    let reloads = if key.reloads { " ⟳" } else { "" };
    let [kind, default, about] = [key.written, key.default, &key.about].map(cell);
    let variable = key.env();
    format!("| `{name}`{reloads} | {kind} | `{default}` | {about} | `{variable}` |\n")
}

#[test]
fn generated_the_reference_of_the_configuration_is_what_the_program_reads() {
    let (mut page, keys) = (HEAD.to_owned(), keys());
    for (section, about) in sections() {
        page.push_str(&format!("\n## {section}\n\n{}.\n", cell(&about)));
        page.push_str("\n| key | type | default | meaning | variable |\n|---|---|---|---|---|\n");
        page.extend(keys.iter().filter(|key| key.place().0 == section).map(row));
    }
    check("docs/configuration.md", &page);
}

#[test]
fn generated_the_documented_configuration_has_every_key() {
    check("config.toml", &documented());
}

/// Product code outside of what declares and checks keys.
fn sources() -> Vec<(PathBuf, String)> {
    let (mut open, mut files) = (vec![root().join("src")], Vec::new());
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let declares = ["src/config", "src/core/settings", "src/cli"]
                .iter()
                .any(|own| path.ends_with(own));
            if path.is_dir() && !declares {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") && !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let product = text.split("\nmod tests {").next().unwrap().to_owned();
                files.push((path, product));
            }
        }
    }
    files
}

/// Whether a text reads a field: `.name`, and it is no call.
fn reads(text: &str, name: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(&format!(".{name}"))
        .any(|(at, found)| !text[at + found.len()..].starts_with(|c: char| is_word(c) || c == '('))
}

#[test]
fn every_key_has_a_reader() {
    let sources = sources();
    let unread: Vec<String> = keys()
        .into_iter()
        .filter(|key| {
            let (section, name) = key.place();
            let about = section.rsplit('.').next().unwrap();
            // A run calls the settings of its whole task `whole`.
            let words = [about, "tuning", "config", "settings.whole"];
            !sources
                .iter()
                .any(|(_, text)| words.iter().any(|word| text.contains(word)) && reads(text, name))
        })
        .map(|key| key.name)
        .collect();
    assert_eq!(
        unread, [""; 0],
        "nothing obeys these: build them, or take them out of the table"
    );
}
