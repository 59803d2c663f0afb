//! From what was written to checked types, key by key, so that all faults are found at once.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::fault::{Fault, Origin};
use super::keys::{default_of, keys};
use super::layers::{Layers, env_name};
use super::sections::{Config, REMOVED};

/// Reads keys and collects what is wrong with them.
pub(super) struct Reader {
    layers: Layers,
    origins: BTreeMap<String, Origin>,
    faults: Vec<Fault>,
}

/// What was read.
pub(super) struct Read {
    /// What was written, with defaults for what wasn't or can't be read.
    pub(super) config: Config,
    /// Where each key that was written stands.
    pub(super) origins: BTreeMap<String, Origin>,
    /// What can't be read.
    pub(super) faults: Vec<Fault>,
}

/// Reads all keys.
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
    /// What was written as the value of a key, if anything that `read` can read.
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

    /// The faults, with one for each key that nobody asked for.
    fn finish(mut self) -> Vec<Fault> {
        let known: BTreeSet<String> = keys().into_iter().map(|key| key.name).collect();
        for (key, entry) in self.layers.into_rest() {
            if is_section(&key, &known) && entry.value.as_table().is_some_and(Table::is_empty) {
                continue;
            }
            let (what, try_) = match (&entry.origin, key.contains('.')) {
                // Other variables of ours have one word, or several: only what a key would become is meant as one.
                (Origin::Env(_), false) => match known.iter().find(|known| known.replace('.', "_") == key) {
                    Some(meant) => (
                        "a variable has two underscores behind its section".to_owned(),
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

/// What to say of a key that doesn't exist.
fn unknown(key: &str, known: &BTreeSet<String>) -> (String, String) {
    if is_section(key, known) {
        return ("it is a section, not a value".to_owned(), format!("[{key}]"));
    }
    if REMOVED.contains(&key) {
        return ("nothing obeys it".to_owned(), "take it out".to_owned());
    }
    let name = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let likeness = |other: &&String| {
        // The right name in a wrong section is as likely a mistake as a misspelt name.
        strsim::jaro_winkler(key, other).max(0.95 * strsim::jaro_winkler(&name(key), &name(other)))
    };
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    let advice = match nearest.filter(|other| likeness(other) > 0.8) {
        Some(other) => format!("did you mean {other}?"),
        None => "`windrow config default` lists every key".to_owned(),
    };
    ("there is no such key".to_owned(), advice)
}
