//! The keys that exist, for the reference in `docs/configuration.md`: what the code says of them, nothing written twice.

use super::layers::env_name;
use super::{read, reload};

/// A key of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its sections and name, with dots.
    pub name: String,
    /// The Rust type that its value becomes.
    pub type_name: &'static str,
    /// Whether SIGHUP takes a changed value.
    pub reloads: bool,
    /// The environment variable that wins over a file.
    pub env: String,
}

/// Every key, in the order of its name.
pub fn keys() -> Vec<Key> {
    let known = read::known_keys().into_iter();
    known
        .map(|(name, type_name)| Key {
            type_name,
            reloads: reload::reloads(&name),
            env: env_name(&name),
            name,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_told_with_its_variable_and_whether_it_reloads() {
        let keys = keys();
        let of = |name: &str| keys.iter().find(|key| key.name == name).expect(name);
        assert_eq!(of("node.capacity_rate").env, "WINDROW_NODE__CAPACITY_RATE");
        assert!(of("node.capacity_rate").reloads && of("task_defaults.timeout").reloads);
        assert!(!of("http.listen").reloads);
        assert_eq!(of("task_defaults.timeout").type_name, "core::time::Duration");
    }
}
