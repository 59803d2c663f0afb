//! Every key with its value and where it was written, for people who ask what a node would run with.

use std::path::Path;

use toml::Value;

use super::fault::{Fault, Origin};
use super::layers::Layers;
use super::load::load;

/// Every key with its default, as it stands in the repository.
pub const DOCUMENTED: &str = include_str!("../../config.toml");
/// What stands for a secret.
const MASK: &str = "***";

/// A key.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// Such as `node.capacity_rate`.
    pub key: String,
    /// What holds: as it was written, a variable's text as text; a secret as `***`.
    pub value: Value,
    /// Where it was written.
    pub origin: Origin,
}

/// Every key of the configuration that a file and the environment make, in the order of their names.
///
/// # Errors
/// Every fault there is: what can't be run with isn't shown.
pub fn shown(
    path: Option<&Path>,
    env: impl Iterator<Item = (String, String)> + Clone,
) -> Result<Vec<Shown>, Vec<Fault>> {
    load(path, env.clone())?;
    let mut defaults = Layers::default();
    defaults
        .add_file(Path::new("config.toml"), DOCUMENTED)
        .map_err(|fault| vec![fault])?;
    let mut written = Layers::default();
    if let Some(path) = path {
        let text =
            std::fs::read_to_string(path).map_err(|error| vec![super::load::unreadable(path, &error)])?;
        written.add_file(path, &text).map_err(|fault| vec![fault])?;
    }
    written.add_env(env);
    let all = defaults.into_rest().map(|(key, default)| {
        let (value, origin) = match written.take(&key) {
            Some(entry) => (entry.value, entry.origin),
            None => (default.value, Origin::Default),
        };
        Shown {
            value: masked(&key, value),
            key,
            origin,
        }
    });
    Ok(all.collect())
}

/// The default of a key, as a file has it.
pub(super) fn documented(key: &str) -> Option<String> {
    let mut defaults = Layers::default();
    defaults.add_file(Path::new("config.toml"), DOCUMENTED).ok()?;
    defaults.take(key).map(|entry| entry.value.to_string())
}

/// Without what is nobody else's: variables of commands, and a user in an address.
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
