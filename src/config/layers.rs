//! Raw values by dotted key, with their origin. The environment overrides the file.

use std::collections::BTreeMap;
use std::path::Path;

use toml::{Table, Value};

use super::fault::{Fault, Origin};

/// Keys with free-form tables, which are not searched for keys.
const FREE_TABLES: [&str; 3] = ["node.labels", "auth.proxy_roles", "handler.command.commands"];

/// Prefix of Windrow's environment variables.
const ENV_PREFIX: &str = "WINDROW_";

/// Returns the environment variable of a key.
pub(super) fn env_name(key: &str) -> String {
    format!("{ENV_PREFIX}{}", key.to_ascii_uppercase().replace('.', "__"))
}

/// A raw value with its origin.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) origin: Origin,
}

/// All raw values of file and environment.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers {
    entries: BTreeMap<String, Entry>,
}

impl Layers {
    /// Adds the values of a file.
    pub(super) fn add_file(&mut self, path: &Path, text: &str) -> Result<(), Fault> {
        let origin = Origin::File(path.to_owned());
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| syntax_fault(&origin, text, &error))?;
        self.flatten("", table, &origin);
        Ok(())
    }

    /// Adds the variables with the prefix. One without `__` names no key, but may have been meant to.
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

    /// Removes and returns the value of a key.
    pub(super) fn take(&mut self, key: &str) -> Option<Entry> {
        self.entries.remove(key)
    }

    /// Returns the values that were not taken: their keys don't exist.
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
                // An empty table is kept, so that its name is checked.
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
        what: format!(
            "line {line} is not valid TOML: {}",
            error.message().replace('\n', " ")
        ),
        try_: "compare it with config.toml of this release".to_owned(),
    }
}
