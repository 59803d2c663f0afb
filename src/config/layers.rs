//! The raw form: every value that was written, by its dotted key, with its origin. The environment wins over the file.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use super::fault::{Fault, Origin};

/// Keys whose value is a table that people fill freely; it is not looked into for keys.
const FREE_TABLES: [&str; 2] = ["node.labels", "handler.command.commands"];

/// What every variable of ours begins with.
const ENV_PREFIX: &str = "WINDROW_";

/// The variable of a key.
pub(super) fn env_name(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.to_ascii_uppercase().replace('.', "__"))
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// All that was written.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    entries: BTreeMap<String, Entry>,
}

impl Layers {
    /// Adds a file's text.
    pub(super) fn add_file(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        let origin = Origin::File(path.to_owned());
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| syntax_fault(&origin, text, &error))?;
        self.flatten("", table, &origin);
        Ok(())
    }

    /// Adds the variables that name a key; one without `__` names none, but may be meant to.
    pub(super) fn add_env(&mut self, env: impl Iterator<Item = (String, String)>) {
        for (name, text) in env {
            let Some(path) = name.strip_prefix(ENV_PREFIX) else {
                continue;
            };
            let key = path.to_ascii_lowercase().replace("__", ".");
            self.entries.insert(
                key,
                Entry {
                    value: Value::String(text),
                    origin: Origin::Env(name),
                },
            );
        }
    }

    /// Takes the value of a key.
    pub(super) fn take(&mut self, key: &str) -> Option<Entry> {
        self.entries.remove(key)
    }

    /// What nobody has taken: keys that don't exist.
    pub(super) fn into_rest(self) -> impl Iterator<Item = (String, Entry)> {
        self.entries.into_iter()
    }

    fn flatten(&mut self, prefix: &str, table: Table, origin: &Origin) {
        for (name, value) in table {
            let key = if prefix.is_empty() {
                name
            } else {
                format!("{prefix}.{name}")
            };
            match value {
                // An empty one is kept, so that its name is looked at.
                Value::Table(inner) if !FREE_TABLES.contains(&key.as_str()) && !inner.is_empty() => {
                    self.flatten(&key, inner, origin)
                }
                value => {
                    self.entries.insert(
                        key,
                        Entry {
                            value,
                            origin: origin.clone(),
                        },
                    );
                }
            }
        }
    }
}

fn syntax_fault(origin: &Origin, text: &str, error: &toml::de::Error) -> Fault {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map_or(1, |before| before.matches('\n').count() + 1);
    Fault {
        key: "config".to_owned(),
        origin: origin.clone(),
        what: format!("line {line} is not TOML: {}", error.message().replace('\n', " ")),
        try_: "compare it with config.toml of this release".to_owned(),
    }
}
