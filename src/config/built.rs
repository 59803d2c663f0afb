//! Adapters that this program is built with, and keys that ask for another one.

use super::check::Faults;
use super::sections::Config;
use super::values::StoreUrl;

/// Adapters of a program.
#[derive(Clone, Copy, Debug)]
struct Built {
    mysql: bool,
    otlp: bool,
    postgres: bool,
    redis: bool,
}

const BUILT: Built = Built {
    mysql: cfg!(feature = "mysql"),
    otlp: cfg!(feature = "otlp"),
    postgres: cfg!(feature = "postgres"),
    redis: cfg!(feature = "redis"),
};

/// Adds a fault for each key that needs an adapter which this program lacks.
pub(super) fn check(config: &Config, faults: &mut Faults) {
    check_against(BUILT, config, faults);
}

fn check_against(built: Built, config: &Config, faults: &mut Faults) {
    let url = &config.store.url;
    let keys = [
        (
            "store.url",
            "mysql",
            built.mysql || !matches!(url, StoreUrl::MySql(_)),
        ),
        (
            "store.url",
            "postgres",
            built.postgres || !matches!(url, StoreUrl::Postgres(_)),
        ),
        (
            "cluster.redis_url",
            "redis",
            built.redis || config.cluster.redis_url.is_none(),
        ),
        (
            "datasets.redis_url",
            "redis",
            built.redis || config.datasets.redis_url.is_none(),
        ),
        (
            "telemetry.traces_url",
            "otlp",
            built.otlp || config.telemetry.traces_url.is_none(),
        ),
    ];
    for (key, feature, holds) in keys {
        faults.unless(
            holds,
            key,
            &format!("this program is built without the feature `{feature}`"),
            &format!("build windrow with the feature `{feature}`"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_needs_an_adapter_which_is_not_built_is_refused() {
        let mut config = Config::default();
        let refused = |built, config: &Config| {
            let mut faults = Faults::default();
            check_against(built, config, &mut faults);
            faults
                .0
                .into_iter()
                .map(|fault| fault.to_string())
                .collect::<Vec<_>>()
        };
        let none = Built {
            mysql: false,
            otlp: false,
            postgres: false,
            redis: false,
        };
        assert_eq!(refused(none, &config), [] as [&str; 0]);
        config.store.url = StoreUrl::Postgres("postgres://db/windrow".to_owned());
        config.cluster.redis_url = Some("redis://redis".to_owned());
        config.datasets.redis_url = Some("redis://redis".to_owned());
        let fault = |key: &str, feature: &str| {
            format!(
                "{key}: this program is built without the feature `{feature}`; \
                 try: build windrow with the feature `{feature}`"
            )
        };
        let redis = [
            fault("cluster.redis_url", "redis"),
            fault("datasets.redis_url", "redis"),
        ];
        let with_redis = Built { redis: true, ..none };
        assert_eq!(refused(with_redis, &config), [fault("store.url", "postgres")]);
        let with_postgres = Built {
            postgres: true,
            ..none
        };
        assert_eq!(refused(with_postgres, &config), redis);
        config.cluster.redis_url = None;
        config.datasets.redis_url = None;
        config.telemetry.traces_url = Some("http://127.0.0.1:4318/v1/traces".to_owned());
        assert_eq!(
            refused(with_postgres, &config),
            [fault("telemetry.traces_url", "otlp")]
        );
        config.telemetry.traces_url = None;
        config.store.url = StoreUrl::MySql("mysql://db/windrow".to_owned());
        assert_eq!(refused(with_redis, &config), [fault("store.url", "mysql")]);
    }
}
