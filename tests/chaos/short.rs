//! What every run of the tests plays.

use crate::check::judge;
use crate::cluster::Cluster;
use crate::evidence::Harm;
use crate::round::{begin, end, play};
use crate::scenarios::named;
use crate::settings::{Settings, StoreKind};

/// Plays these scenarios on one cluster; all must be without findings. How many items they left out together.
async fn plays(settings: &Settings, names: &[&str]) -> u64 {
    let mut cluster = Cluster::start(settings).await;
    let (mut faults, mut excluded) = (Vec::new(), 0);
    for name in names {
        let seed = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), name);
        let judgement = play(&mut cluster, named(name), seed).await;
        excluded += judgement.excluded;
        if !judgement.findings.is_empty() {
            let again = format!(
                "scripts/chaos.sh --scenario {name} --seed {seed} {}",
                settings.flags()
            );
            faults.push(format!("{name}: {:#?}\nreplay: {again}", judgement.findings));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    excluded
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn finishing_early_around_a_kill_leaves_out_only_what_was_never_called() {
    let mut settings = Settings::new(StoreKind::Postgres, true);
    // Longer than a run reaches ahead of what it saved, so that something is left to be excluded.
    (settings.rate, settings.items) = (100, 2_600);
    let names = [
        "finish_before_takeover",
        "finish_after_takeover",
        "finish_then_kill",
    ];
    assert_ne!(plays(&settings, &names).await, 0, "nothing was left out");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_node_on_its_embedded_database_survives_kills_and_pauses() {
    let mut settings = Settings::new(StoreKind::Sqlite, false);
    (settings.rate, settings.items) = (500, 2_000);
    let names = [
        "calm",
        "kill_9_owner",
        "stop_cont_within_ttl",
        "sigterm_rolling_restart",
        "stop_and_start",
    ];
    plays(&settings, &names).await;
}

/// The judge on a real life that somebody tampered with: in the database while it went on, and in the logs after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_life_that_is_spoilt_is_condemned() {
    let mut settings = Settings::new(StoreKind::Sqlite, false);
    (settings.rate, settings.items) = (300, 600);
    let mut cluster = Cluster::start(&settings).await;
    let task = begin(&mut cluster, 1).await;
    let sound = end(&mut cluster, task).await;
    assert_eq!(judge(&sound).findings, Vec::<String>::new());
    let spoilt = |spoil: fn(&mut crate::evidence::Evidence)| {
        let mut evidence = sound.clone();
        spoil(&mut evidence);
        judge(&evidence).findings
    };
    let lost = spoilt(|life| life.deliveries.retain(|delivery| delivery.index != 123));
    assert!(
        lost.iter().any(|finding| finding.starts_with("nothing is lost")),
        "{lost:#?}"
    );
    let twice = spoilt(|life| life.writes.push(life.writes[life.writes.len() - 3].clone()));
    assert!(
        twice.iter().any(|finding| finding.starts_with("one writer")),
        "{twice:#?}"
    );
    assert!(!sound.had(Harm::Node, 0, i64::MAX));

    let task = begin(&mut cluster, 2).await;
    cluster.business.reaches(cluster.business.count() + 200).await;
    // What a zombie without a fence would do.
    cluster
        .audit
        .run(&format!(
            "UPDATE shard SET watermark = watermark - 5 WHERE task_id = {task}"
        ))
        .await;
    let findings = judge(&end(&mut cluster, task).await).findings;
    assert!(
        findings.iter().any(|finding| finding.starts_with("one writer")),
        "{findings:#?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_on_postgresql_with_redis_survive_the_key_faults() {
    let names = [
        "kill_9_owner",
        "stop_cont_beyond_ttl",
        "sigterm_rolling_restart",
        "redis_restart",
        "partition_node_db_held",
        "db_lost_ack",
        "db_strand",
        "stop_during_kill",
    ];
    plays(&Settings::new(StoreKind::Postgres, true), &names).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_nodes_on_mariadb_alone_survive_the_key_faults() {
    let names = [
        "kill_9_owner",
        "stop_cont_beyond_ttl",
        "one_way_db",
        "db_kill",
        "business_misbehaves",
    ];
    plays(&Settings::new(StoreKind::Mariadb, false), &names).await;
}
