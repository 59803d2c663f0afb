//! Conversion of raw values to checked types, key by key, so that all faults are found at once.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::fault::{Fault, Origin};
use super::keys::{default_of, keys};
use super::layers::{Layers, env_name};
use super::sections::{Config, REMOVED};

/// Reader of keys that collects their faults.
pub(super) struct Reader {
    layers: Layers,
    origins: BTreeMap<String, Origin>,
    faults: Vec<Fault>,
}

/// Result of reading all keys.
pub(super) struct Read {
    /// Configuration as written, with defaults for missing and unreadable values.
    pub(super) config: Config,
    /// Origin of each written key.
    pub(super) origins: BTreeMap<String, Origin>,
    /// Faults of unreadable values.
    pub(super) faults: Vec<Fault>,
}

/// Reads all keys of the configuration.
pub(super) fn config(layers: Layers) -> Read {
    let mut reader = Reader {
        layers,
        origins: BTreeMap::new(),
        faults: Vec::new(),
    };
    let config = Config::read(&mut reader);
    Read {
        config,
        origins: std::mem::take(&mut reader.origins),
        faults: reader.finish(),
    }
}

impl Reader {
    /// Takes the value of a key, or `None` if it is missing or `read` fails.
    pub(super) fn key<T>(&mut self, key: &str, read: impl Fn(&Value) -> Result<T, String>) -> Option<T> {
        let entry = self.layers.take(key)?;
        self.origins.insert(key.to_owned(), entry.origin.clone());
        let read = read(&entry.value);
        read.map_err(|what| {
            let try_ = match default_of(key) {
                Some(default) => format!("the default is {default}"),
                None => "`windrow config default` explains every key".to_owned(),
            };
            self.faults.push(Fault {
                key: key.to_owned(),
                origin: entry.origin,
                what,
                try_,
            });
        })
        .ok()
    }

    /// Returns all faults, including one for each unknown key.
    fn finish(mut self) -> Vec<Fault> {
        let known: BTreeSet<String> = keys().into_iter().map(|key| key.name).collect();
        for (key, entry) in self.layers.into_rest() {
            if is_section(&key, &known) && entry.value.as_table().is_some_and(Table::is_empty) {
                continue;
            }
            let (what, try_) = match (&entry.origin, key.contains('.')) {
                // Other variables with the prefix have no section. Only one that spells a key with single underscores
                // is taken for that key.
                (Origin::Env(_), false) => match known.iter().find(|known| known.replace('.', "_") == key) {
                    Some(meant) => (
                        "a variable needs two underscores after its section".to_owned(),
                        env_name(meant),
                    ),
                    None => continue,
                },
                _ => unknown(&key, &known),
            };
            self.faults.push(Fault {
                key,
                origin: entry.origin,
                what,
                try_,
            });
        }
        self.faults
    }
}

fn is_section(key: &str, known: &BTreeSet<String>) -> bool {
    known.iter().any(|other| other.starts_with(&format!("{key}.")))
}

/// Returns the fault and the advice for an unknown key.
fn unknown(key: &str, known: &BTreeSet<String>) -> (String, String) {
    if is_section(key, known) {
        return ("this is a section, not a value".to_owned(), format!("[{key}]"));
    }
    if REMOVED.contains(&key) {
        return ("removed in an earlier version".to_owned(), "remove it".to_owned());
    }
    let name = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let likeness = |other: &&String| {
        // The right name in the wrong section is as likely a mistake as a misspelt name.
        strsim::jaro_winkler(key, other).max(0.95 * strsim::jaro_winkler(&name(key), &name(other)))
    };
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let advice = match nearest.filter(|other| likeness(other) > 0.8) {
        Some(other) => format!("did you mean {other}?"),
        None => "`windrow config default` lists every key".to_owned(),
    };
    ("unknown key".to_owned(), advice)
}
