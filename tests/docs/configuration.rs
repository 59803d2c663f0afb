//! `docs/configuration.md` is made from the code: the keys, their types and whether they reload from `windrow_config`,
//! defaults and descriptions from what `windrow config default` prints.

use std::collections::BTreeMap;

use windrow_config::{Key, keys};

use super::generated::{cell, check};
use super::shell::Shell;

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

/// A key's line of the documented configuration.
struct Told {
    default: String,
    text: String,
}

/// What people write for a value of this Rust type. A type that isn't here is a failure: it has to be described.
fn written_as(name: &str, rust: &str) -> &'static str {
    let short: String = rust
        .split_inclusive(['<', '>', ',', ' '])
        .map(|part| part.rsplit("::").next().unwrap_or(part))
        .collect();
    match short.as_str() {
        "bool" => "true or false",
        "u32" | "u64" | "usize" | "NonZero<u32>" | "NonZero<u64>" | "NonZero<usize>" => "number",
        "Auto<NonZero<u32>>" | "Auto<NonZero<u64>>" | "Auto<u32>" | "Auto<u64>" => "number or \"auto\"",
        "Duration" => "span",
        "Rate" => "rate",
        "RateLimit" => "rate or \"unlimited\"",
        "ByteSize" => "size",
        "Burst" => "span of the rate, or \"N items\"",
        "Backoff" => "\"FIRST..LONGEST xFACTOR jitter N%\"",
        "ErrorBudget" => "rate, share, number, or \"none\"",
        "Share" => "share",
        "String" | "Option<String>" | "Auto<String>" => "text",
        "PathBuf" | "Option<PathBuf>" => "path",
        "SocketAddr" => "address:port",
        "StoreUrl" => "URL or \"auto\"",
        "StopDrain" => "\"timeout\" or span",
        "OnExhausted" | "AuthMode" | "DataLogLevel" | "LogFormat" | "SuccessDetail" | "Locale" => "one of",
        "ActorTree" => "some of",
        "Vec<String>" => "list of texts",
        "Vec<Network>" => "list of networks",
        "BTreeMap<String, String>" => "table of texts",
        "BTreeMap<String, Command>" => "tables",
        other => panic!("{name} is a {other} ({rust}): say here how people write it"),
    }
}

/// What the documented configuration says of each section and key: a comment goes on in lines that begin with blanks.
fn told(text: &str) -> (BTreeMap<String, String>, BTreeMap<String, Told>) {
    let (mut sections, mut keys): (BTreeMap<String, String>, BTreeMap<String, Told>) = Default::default();
    let (mut section, mut last) = (String::new(), None::<String>);
    for line in text.lines() {
        if let Some((name, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            name.clone_into(&mut section);
            sections.insert(section.clone(), reason(rest.trim().trim_start_matches('#')));
            last = None;
        } else if let Some(more) = line.strip_prefix(' ').map(str::trim) {
            let key = last.as_ref().expect("a comment goes on below a key");
            let told = keys.get_mut(key).unwrap();
            told.text = format!("{} {}", told.text, reason(more.trim_start_matches('#')));
        } else if let Some((name, rest)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) {
            let name = format!("{section}.{}", name.trim());
            let (default, text) = rest.split_once('#').unwrap_or((rest, ""));
            keys.insert(
                name.clone(),
                Told {
                    default: default.trim().to_owned(),
                    text: reason(text),
                },
            );
            last = Some(name);
        }
    }
    (sections, keys)
}

fn reason(comment: &str) -> String {
    comment.replace("[reload]", "").trim().to_owned()
}

fn row(key: &Key, told: &Told) -> String {
    let name = key.name.rsplit('.').next().unwrap();
    let kind = written_as(&key.name, key.type_name);
    assert!(
        !told.text.is_empty(),
        "{} has no description in config.toml",
        key.name
    );
    let reloads = if key.reloads { " ⟳" } else { "" };
    let variable = &key.env;
    let (default, text) = (cell(&told.default), cell(&told.text));
    format!(
        "| `{name}`{reloads} | {} | `{default}` | {text} | `{variable}` |\n",
        cell(kind)
    )
}

#[test]
fn generated_the_reference_of_the_configuration_is_what_the_program_reads() {
    let documented = Shell::new().output(&["config", "default"]);
    let (sections, told) = told(&documented);
    let mut page = HEAD.to_owned();
    // In the order of the documented file.
    let mut order: Vec<&String> = sections.keys().collect();
    order.sort_by_key(|section| documented.find(&format!("[{section}]")));
    let known = keys();
    let mut count = 0;
    for section in order {
        page.push_str(&format!("\n## {section}\n"));
        let about = &sections[section];
        if !about.is_empty() {
            page.push_str(&format!(
                "\nAll of it ⟳. {}{}.\n",
                about[..1].to_uppercase(),
                &about[1..]
            ));
        }
        page.push_str("\n| key | type | default | meaning | variable |\n|---|---|---|---|---|\n");
        let mut here: Vec<&Key> = known
            .iter()
            .filter(|key| key.name.rsplit_once('.').unwrap().0 == section)
            .collect();
        here.sort_by_key(|key| place(&documented, section, key));
        for key in here {
            page.push_str(&row(key, &told[&key.name]));
            count += 1;
        }
    }
    assert_eq!(count, known.len(), "each key stands in one section");
    check("docs/configuration.md", &page);
}

/// Where a key stands in the documented file.
fn place(documented: &str, section: &str, key: &Key) -> usize {
    let from = documented.find(&format!("[{section}]")).unwrap();
    let name = key.name.rsplit('.').next().unwrap();
    let lines = documented[from..].match_indices(&format!("\n{name} ")).next();
    lines
        .map(|(at, _)| at)
        .unwrap_or_else(|| panic!("{} isn't in config.toml", key.name))
}
