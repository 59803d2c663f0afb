//! Every key with its value and origin, to show what a node would run with.

use std::path::Path;

use toml::Value;

use super::fault::{Fault, Origin};
use super::keys::keys;
use super::layers::Layers;
use super::load::load;
use super::table::toml_of;

/// Replacement for a secret.
const MASK: &str = "***";

/// A key with its effective value.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Full name, such as `node.capacity_rate`.
    pub key: String,
    /// Effective value as written; the value of a variable is a string, a secret is `***`.
    pub value: Value,
    /// Origin of the value.
    pub origin: Origin,
}

/// Returns every key with the value that a file and the environment give it, sorted by name.
///
/// # Errors
/// Returns every fault: an invalid configuration isn't shown.
pub fn shown(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)> + Clone,
) -> Result<Vec<Shown>, Vec<Fault>> {
    load(path, env.clone())?;
    let mut written = Layers::default();
    if let Some(path) = path {
        let text =
            std::fs::read_to_string(path).map_err(|error| vec![super::load::unreadable(path, &error)])?;
        written.add_file(path, &text).map_err(|fault| vec![fault])?;
    }
    written.add_env(env);
    let all = keys().into_iter().filter_map(|key| {
        let (value, origin) = match written.take(&key.name) {
            Some(entry) => (entry.value, entry.origin),
            None => (toml_of(key.default)?, Origin::Default),
        };
        Some(Shown {
            value: masked(&key.name, value),
            key: key.name,
            origin,
        })
    });
    let mut all: Vec<Shown> = all.collect();
    all.sort_by(|a, b| a.key.cmp(&b.key));
    Ok(all)
}

/// Masks private values: the variables of commands, and a user in an address.
fn masked(key: &str, value: Value) -> Value {
    match value {
        Value::Table(commands) if key == "handler.command.commands" => {
            let all = commands
                .into_iter()
                .map(|(name, command)| (name, command_masked(command)));
            Value::Table(all.collect())
        }
        Value::String(_) if key == "handler.command.commands" => Value::String(MASK.to_owned()),
        Value::String(text) => Value::String(address_masked(&text)),
        other => other,
    }
}

fn command_masked(command: Value) -> Value {
    let Value::Table(mut command) = command else {
        return command;
    };
    if let Some(Value::Table(env)) = command.get_mut("env") {
        env.iter_mut()
            .for_each(|(_, value)| *value = Value::String(MASK.to_owned()));
    }
    Value::Table(command)
}

fn address_masked(text: &str) -> String {
    let user = text
        .split_once("://")
        .and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?)));
    match user {
        Some((scheme, (user, rest))) if !user.contains('/') => format!("{scheme}://{MASK}@{rest}"),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str, env: &[(&str, &str)]) -> Vec<Shown> {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("w.toml");
        std::fs::write(&file, text).expect("written");
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        shown(Some(&file), env).expect("sound")
    }

    fn one(all: &[Shown], key: &str) -> (String, String) {
        let found = all.iter().find(|one| one.key == key).expect("a key");
        let origin = match &found.origin {
            Origin::File(path) => path.file_name().expect("a name").to_string_lossy().into_owned(),
            other => other.to_string(),
        };
        (found.value.to_string(), origin)
    }

    #[test]
    fn every_key_has_its_value_and_origin() {
        let text = "[node]\ncapacity_rate = \"3000/s\"\npools = [\"a\"]\n";
        let all = of(
            text,
            &[
                ("WINDROW_NODE__RUN_TASKS", "false"),
                ("WINDROW_NODE__POOLS", "[\"b\"]"),
            ],
        );
        let expect = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
        assert_eq!(one(&all, "node.capacity_rate"), expect("\"3000/s\"", "w.toml"));
        assert_eq!(
            one(&all, "node.run_tasks"),
            expect("\"false\"", "WINDROW_NODE__RUN_TASKS")
        );
        assert_eq!(one(&all, "task_defaults.rate"), expect("\"100/s\"", "default"));
        assert_eq!(one(&all, "node.pools").1, "WINDROW_NODE__POOLS");
        let keys: Vec<&String> = all.iter().map(|one| &one.key).collect();
        assert!(keys.is_sorted() && keys.len() > 80, "{}", keys.len());
    }

    #[test]
    fn secrets_are_masked() {
        let text = "[handler.command]\nenabled = true\n[handler.command.commands.push]\ncmd = [\"x\"]\n\
                    env = { TOKEN = \"hush\" }\n[handler.http]\nproxy = \"http://proxy:3128\"\n";
        let all = of(text, &[]);
        let commands = one(&all, "handler.command.commands").0;
        assert!(
            commands.contains("TOKEN") && !commands.contains("hush"),
            "{commands}"
        );
        assert_eq!(one(&all, "handler.http.proxy").0, "\"http://proxy:3128\"");
        assert_eq!(address_masked("rediss://me:pw@host/0"), "rediss://***@host/0");
        assert_eq!(address_masked("http://host/a@b"), "http://host/a@b");
    }
}
