//! The rules of ownership, tried in every order of steps, delays and faults within bounds (docs/guarantees.md). Here stand
//! the worlds that are searched, and what must be seen in them. `mutants` bends each rule.
//!
//! `cargo nextest run -p protocol-model --no-capture` prints a line for each world. `WINDROW_MODEL=deep` searches larger
//! worlds as well; they take long and much memory: `WINDROW_MODEL=deep cargo nextest run -p protocol-model deep`.

#![allow(
    clippy::disallowed_methods,
    reason = "a test measures real time and reads its environment"
)]

mod blocks;
mod limits;
mod mutants;
mod open;
mod publish;
mod schedules;

use std::time::Instant;

use protocol_model::{Bend, Bounds, Setup, Sight, Start, Times, Witness, search};

/// Two nodes, one shard that node 0 owns, leases that outlast the heartbeat.
const REDIS: Setup = Setup {
    bounds: Bounds::SMALL,
    times: Times {
        lease_duration: [2, 2, 2],
        ttl: 3,
        margin: 1,
    },
    witness: Witness::Redis,
    start: Start::Owned,
    quarantine: true,
    lease_lives: 1,
    bend: Bend::Nothing,
};

/// The same without leases.
const DATABASE: Setup = Setup {
    witness: Witness::Database,
    ..REDIS
};

/// The same where a node may take over without a lease if it can't reach Redis.
const OPTIONAL: Setup = Setup {
    witness: Witness::RedisOptional,
    ..REDIS
};

/// A setup with other bounds.
macro_rules! with {
    ($setup:expr; $($field:ident: $value:expr),* $(,)?) => {
        Setup { bounds: Bounds { $($field: $value,)* ..$setup.bounds }, ..$setup }
    };
}
pub(crate) use with;

/// Every state keeps all promises, and what should happen somewhere does.
fn holds(name: &str, setup: Setup, sights: &[Sight]) -> usize {
    let begun = Instant::now();
    let outcome = search(setup, 2);
    println!("{name}: {outcome}, {:.1} s", begun.elapsed().as_secs_f32());
    assert!(outcome.faults.is_empty(), "{name}: {outcome}");
    let missing: Vec<_> = sights.iter().filter(|sight| !outcome.has_seen(**sight)).collect();
    assert!(
        missing.is_empty(),
        "{name}: never seen: {missing:?}; the search looks at too little"
    );
    outcome.states
}

#[test]
fn with_leases_every_promise_is_kept_while_requests_are_late() {
    let seen = [
        Sight::TakeOver,
        Sight::HandOver,
        Sight::Fenced,
        Sight::OwnerBack,
        Sight::SetAgain,
        Sight::LostAckRecognised,
        Sight::LateWriteRefused,
        Sight::StopByClaimant,
        Sight::StopByOwner,
        Sight::OrphanReleased,
        Sight::LeaseAlone,
        Sight::HeartbeatAlone,
    ];
    let states = holds(
        "leases, late, stop, hand-over",
        with!(REDIS; late: 1, stops: 1, handovers: 1),
        &seen,
    );
    assert!(states > 1_000_000, "{states} states are too few to mean much");
}

#[test]
fn with_leases_every_promise_is_kept_while_work_goes_on() {
    holds(
        "leases, work",
        with!(REDIS; works: true, handovers: 1, stops: 1),
        &[Sight::Finished, Sight::TakeOver],
    );
}

#[test]
fn with_leases_a_released_shard_is_taken_by_one() {
    let setup = Setup {
        start: Start::Released,
        ..with!(REDIS; late: 1)
    };
    holds("leases, released", setup, &[Sight::HandOver, Sight::TakeOver]);
}

#[test]
fn with_leases_two_shards_of_a_dead_node_go_one_by_one() {
    holds(
        "leases, two shards",
        with!(REDIS; shards: 2, claims: 3),
        &[Sight::TakeOver, Sight::LeaseAlone],
    );
}

#[test]
fn after_data_loss_of_leases_every_promise_is_kept() {
    holds(
        "leases are lost",
        with!(REDIS; wipes: 1, stops: 1),
        &[Sight::Quarantine, Sight::SetAgain],
    );
}

/// Exception (a) of rule 20, and nothing beyond it.
#[test]
fn without_quarantine_only_what_the_exception_names_may_happen() {
    let setup = Setup {
        quarantine: false,
        ..with!(REDIS; wipes: 1, stops: 1)
    };
    holds("leases are lost, no quarantine", setup, &[Sight::TakeOver]);
    let times = Times {
        ttl: 4,
        ..REDIS.times
    };
    holds(
        "long leases are lost, no quarantine",
        Setup { times, ..setup },
        &[Sight::TakeOver],
    );
}

#[test]
fn without_leases_every_promise_is_kept() {
    let setup = with!(DATABASE; late: 1, repeats: 1, stops: 1, skews: 1);
    let seen = [
        Sight::TakeOver,
        Sight::Fenced,
        Sight::OwnerBack,
        Sight::StopByClaimant,
        Sight::StopByOwner,
    ];
    holds("database, late, clocks", setup, &seen);
}

#[test]
fn without_leases_progress_is_kept() {
    let setup = with!(DATABASE; late: 1, repeats: 1, works: true, items: 2);
    let seen = [
        Sight::Finished,
        Sight::LostAckRecognised,
        Sight::LateWriteRefused,
        Sight::OrphanReleased,
    ];
    holds("database, work", setup, &seen);
}

#[test]
fn without_leases_three_nodes_keep_every_promise() {
    let setup = with!(DATABASE; nodes: 3, sessions: 4, claims: 3, crashes: 1);
    holds("database, three nodes", setup, &[Sight::TakeOver, Sight::Fenced]);
}

/// Exception (b) of rule 20, and nothing beyond it.
#[test]
fn with_leases_after_a_failover_only_what_the_exception_names_may_happen() {
    let setup = with!(REDIS; failovers: 1);
    holds(
        "leases, database falls back",
        setup,
        &[Sight::TakeOver, Sight::LeaseAlone],
    );
    let times = Times {
        lease_duration: [3, 3, 3],
        ttl: 2,
        margin: 1,
    };
    holds(
        "short leases, database falls back",
        Setup { times, ..setup },
        &[Sight::TakeOver, Sight::HeartbeatAlone],
    );
}

/// The same without leases.
#[test]
fn after_a_failover_only_what_the_exception_names_may_happen() {
    let setup = with!(DATABASE; failovers: 1, sessions: 3, works: true);
    holds(
        "database falls back",
        setup,
        &[Sight::TakeOver, Sight::LateWriteRefused],
    );
}

#[test]
fn promises_of_different_length_are_kept() {
    let times = Times {
        lease_duration: [4, 2, 2],
        ttl: 3,
        margin: 1,
    };
    holds(
        "database, two promises",
        Setup {
            times,
            ..with!(DATABASE; late: 1, claims: 3, sessions: 3)
        },
        &[],
    );
}

#[test]
fn with_leases_or_without_every_promise_is_kept() {
    holds(
        "leases if they answer",
        OPTIONAL,
        &[Sight::TakeOver, Sight::LeaseAlone],
    );
}

#[test]
fn deep() {
    if std::env::var("WINDROW_MODEL").as_deref() != Ok("deep") {
        println!("larger worlds only with WINDROW_MODEL=deep");
        return;
    }
    let seen = [Sight::TakeOver, Sight::LostAckRecognised, Sight::Finished];
    holds(
        "deep: database, two late, clocks",
        with!(DATABASE; late: 2, repeats: 1, stops: 1, skews: 1),
        &[],
    );
    holds("deep: leases, work", with!(REDIS; late: 1, works: true), &seen);
    holds(
        "deep: leases are lost",
        with!(REDIS; late: 1, wipes: 1),
        &[Sight::Quarantine],
    );
    holds(
        "deep: leases if they answer",
        with!(OPTIONAL; late: 1),
        &[Sight::TakeOver],
    );
}
