//! What every run of the tests plays.

use crate::cluster::Cluster;
use crate::round::play;
use crate::scenarios::named;
use crate::settings::{Settings, StoreKind};

/// Plays these scenarios on one cluster; all must be without findings.
async fn plays(settings: &Settings, names: &[&str]) {
    let mut cluster = Cluster::start(settings).await;
    let mut faults = Vec::new();
    for name in names {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), name);
        let judgement = play(&mut cluster, named(name), seed).await;
        if !judgement.findings.is_empty() {
            let store = format!("{:?}", settings.store).to_lowercase();
            let witness = if settings.has_redis { "redis" } else { "database" };
            let again = format!(
                "scripts/chaos.sh --scenario {name} --seed {seed} --store {store} --witness {witness}"
            );
            faults.push(format!("{name}: {:#?}\nreplay: {again}", judgement.findings));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_node_on_its_embedded_database_survives_kills_and_pauses() {
    let settings = Settings::new(StoreKind::Sqlite, false);
    let names = ["calm", "kill_9_owner", "stop_cont_within_ttl", "sigterm_rolling_restart", "stop_and_start"];
    plays(&settings, &names).await;
}
