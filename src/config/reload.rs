//! Changes of a configuration reload, and those that would need a restart.

use super::sections::Config;

/// Result of comparing the running configuration with a newly read one.
#[derive(Clone, Debug, PartialEq)]
pub struct Reload {
    /// Configuration to run with from now on.
    pub config: Config,
    /// Keys whose new values were applied.
    pub applied: Vec<String>,
    /// Changed keys that need a restart; their old values stay in force.
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
