//! What a reload of the configuration changes, and what it would take a restart to change.

use super::sections::Config;

/// What came of comparing the running configuration with one that was read anew.
#[derive(Clone, Debug, PartialEq)]
pub struct Reload {
    /// The configuration to run with from now on.
    pub config: Config,
    /// The keys that it changes.
    pub applied: Vec<String>,
    /// Keys that were changed and need a restart; the old values stay in force.
    pub ignored: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reload_takes_what_it_may_and_names_the_rest() {
        let old = Config::default();
        let mut new = old.clone();
        new.node.capacity_rate = "3000/s".parse().expect("a rate");
        new.task_defaults.tuning.parked_max = 7;
        new.http.listen = "127.0.0.1:1".parse().expect("an address");
        let reload = old.reloaded(&new);
        assert_eq!(reload.applied, ["node.capacity_rate", "task_defaults.parked_max"]);
        assert_eq!(reload.ignored, ["http.listen"]);
        assert_eq!(reload.config.node.capacity_rate, new.node.capacity_rate);
        assert_eq!(reload.config.http, old.http);
        let again = old.reloaded(&old);
        assert_eq!(
            (again.config, again.applied.len(), again.ignored.len()),
            (old, 0, 0)
        );
    }
}
