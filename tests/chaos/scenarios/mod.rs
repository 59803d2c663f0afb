//! What happens to a cluster while a task flows; the name says it. Whoever plays one heals everything afterwards.

mod business;
mod database;
mod finish;
mod freezes;
mod owners;
mod redis;
mod several;

use std::future::Future;
use std::pin::Pin;

use crate::round::Round;
use crate::settings::{Settings, StoreKind};

type Acting<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// One of [`ALL`].
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) needs: Needs,
    pub(crate) act: for<'a, 'b> fn(&'a mut Round<'b>) -> Acting<'a>,
}

/// Without what a scenario makes no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Others,
    Server,
    Redis,
}

macro_rules! scenarios {
    ($($harmed:ident { $($name:ident: $needs:ident,)* })*) => {
        /// All of them.
        pub(crate) const ALL: &[Scenario] = &[$($(Scenario {
            name: stringify!($name),
            needs: Needs::$needs,
            act: |round| Box::pin($harmed::$name(round)),
        },)*)*];
    };
}

// By what is harmed: the file of that name.
scenarios! {
    owners {
        kill_9_owner: Nothing,
        kill_9_all: Nothing,
        kill_9_again_and_again: Nothing,
        stop_cont_beyond_ttl: Nothing,
        stop_cont_within_ttl: Nothing,
        sigterm_rolling_restart: Nothing,
        stop_and_start: Nothing,
        change_rate_during_kill: Nothing,
        stop_during_kill: Nothing,
        stop_during_pause: Others,
        kill_during_claim: Others,
        kill_during_close: Others,
    }
    finish {
        finish_before_takeover: Nothing,
        finish_after_takeover: Nothing,
        finish_then_kill: Nothing,
    }
    business {
        business_misbehaves: Nothing,
        business_is_busy: Nothing,
        partition_node_business: Nothing,
    }
    redis {
        redis_kill: Redis,
        redis_hang: Redis,
        redis_flushall: Redis,
        redis_restart: Redis,
        redis_slow: Redis,
        partition_node_redis: Redis,
        one_way_redis: Redis,
        redis_strand: Redis,
        stop_during_redis_hang: Redis,
    }
    database {
        db_kill: Server,
        db_restart: Server,
        db_hang: Server,
        db_lost_ack: Server,
        db_slow: Server,
        db_cut_connections: Server,
        db_disk_full: Server,
        partition_node_db: Server,
        partition_node_db_held: Server,
        one_way_db: Server,
        db_strand: Server,
        stop_during_db_hang: Server,
    }
    freezes {
        db_freezes_under_commands: Server,
    }
    several {
        partition_and_flushall: Redis,
        redis_and_db_hang: Redis,
        kill_during_redis_outage: Redis,
    }
    self {
        calm: Nothing,
        random: Nothing,
    }
}

/// The one of this name.
pub(crate) fn named(name: &str) -> &'static Scenario {
    let known = ALL.iter().find(|scenario| scenario.name == name);
    let names: Vec<&str> = ALL.iter().map(|scenario| scenario.name).collect();
    known.unwrap_or_else(|| panic!("no scenario is named {name}; there are {}", names.join(", ")))
}

/// Whether it makes sense on such a cluster.
pub(crate) fn fits(scenario: &Scenario, settings: &Settings) -> bool {
    match scenario.needs {
        Needs::Nothing => true,
        Needs::Others => settings.nodes > 1,
        Needs::Server => settings.store != StoreKind::Sqlite,
        Needs::Redis => settings.has_redis,
    }
}

async fn calm(round: &mut Round<'_>) {
    round.wait(500, 1_000).await;
}

/// Several of the others, one after the other, chosen by the dice.
async fn random(round: &mut Round<'_>) {
    let settings = &round.cluster.settings;
    let is_one = |scenario: &&Scenario| scenario.name != "random" && fits(scenario, settings);
    let fitting: Vec<&Scenario> = ALL.iter().filter(is_one).collect();
    for _ in 0..3 {
        let at = usize::try_from(round.rng.next() % fitting.len() as u64).expect("few");
        eprintln!("   · {}", fitting[at].name);
        (fitting[at].act)(round).await;
        round.wait(0, 500).await;
    }
}
