//! What must hold in every state (rules 19 and 20), what must be seen in some, and the search itself.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use stateright::{Checker, HasDiscoveries, Model, Property};

use crate::rules::{Bend, Setup, Witness};
use crate::state::{Life, State};
use crate::steps::Protocol;

/// What must have happened somewhere, or the search has looked at too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Sight {
    /// A shard that wasn't released was claimed.
    TakeOver,
    /// A released shard was claimed.
    HandOver,
    /// A node was told that it is fenced.
    Fenced,
    /// A candidate was told that the owner is back.
    OwnerBack,
    /// A repeated write or claim was recognised as done.
    LostAckRecognised,
    /// A write was refused since it came too late.
    LateWriteRefused,
    /// A lease was refused after data loss.
    Quarantine,
    /// An absent lease was set again.
    SetAgain,
    /// A claimant committed `stopped`.
    StopByClaimant,
    /// The owner committed `stopped`.
    StopByOwner,
    /// The owner committed `finished`.
    Finished,
    /// A shard that nobody ran was released by its own session.
    OrphanReleased,
    /// A gate was open by its lease alone.
    LeaseAlone,
    /// A gate was open by the heartbeat alone, though there are leases.
    HeartbeatAlone,
    /// A run that no lease may carry any more gave its own back.
    LeaseLetGo,
}

impl Sight {
    const ALL: [Sight; 15] = [
        Sight::TakeOver,
        Sight::HandOver,
        Sight::Fenced,
        Sight::OwnerBack,
        Sight::LostAckRecognised,
        Sight::LateWriteRefused,
        Sight::Quarantine,
        Sight::SetAgain,
        Sight::StopByClaimant,
        Sight::StopByOwner,
        Sight::Finished,
        Sight::OrphanReleased,
        Sight::LeaseAlone,
        Sight::HeartbeatAlone,
        Sight::LeaseLetGo,
    ];
}

/// Rule 20: at most one node in a shard's gate.
pub(crate) const ONE_IN_GATE: &str = "one node in a shard's gate";
/// Rule 20: no open gate after `stopped`.
pub(crate) const SHUT_AFTER_STOPPED: &str = "no open gate after stopped";

pub(crate) fn properties() -> Vec<Property<Protocol>> {
    vec![
        Property::<Protocol>::always(ONE_IN_GATE, is_one_in_gate),
        Property::<Protocol>::always(SHUT_AFTER_STOPPED, is_shut_after_stopped),
        Property::<Protocol>::always("a lease alone carries a run for a while", is_carried_for_a_while),
        Property::<Protocol>::always("one claim per epoch", |_, state| !state.broken.epoch_twice),
        Property::<Protocol>::always("no write of an older claim after a newer one", |_, state| {
            !state.broken.older_write
        }),
        Property::<Protocol>::always("progress never falls", |_, state| !state.broken.progress_fell),
        Property::<Protocol>::always("nothing counts as done that was not answered", is_answered),
    ]
}

fn is_one_in_gate(model: &Protocol, state: &State) -> bool {
    model.note(state);
    (0..model.setup.bounds.shards).all(|shard| {
        let open = (0..model.setup.bounds.nodes).filter(|node| model.setup.is_open(state, *node, shard));
        open.clone().count() <= 1 || open.clone().any(|node| model.is_excused(state, node, shard))
    })
}

fn is_carried_for_a_while(model: &Protocol, state: &State) -> bool {
    let setup = &model.setup;
    (0..setup.bounds.nodes)
        .filter(|node| setup.witness == Witness::Redis && state.node(*node).unheard >= setup.alone())
        .all(|node| (0..setup.bounds.shards).all(|shard| !setup.is_open(state, node, shard)))
}

fn is_shut_after_stopped(model: &Protocol, state: &State) -> bool {
    (0..model.setup.bounds.shards)
        .filter(|shard| state.shard(*shard).life == Life::Stopped)
        .all(|shard| {
            let mut open =
                (0..model.setup.bounds.nodes).filter(|node| model.setup.is_open(state, *node, shard));
            open.all(|node| model.is_excused(state, node, shard))
        })
}

impl Protocol {
    /// The exceptions (a) and (b) of rule 20, as decision 0023 words them.
    fn is_excused(&self, state: &State, node: u8, shard: u8) -> bool {
        let (owner, local) = (state.node(node), state.local(node, shard));
        let is_by_lost_lease = match self.setup.bend {
            Bend::LossNarrow => local.lease_lost,
            _ => local.lease_lost && owner.trust == 0,
        };
        let lease = state.leases[usize::from(shard)];
        let is_lease_live = lease.left > 0 && lease.token == local.token();
        let is_by_lost_heartbeat = owner.heartbeat_lost && !is_lease_live;
        is_by_lost_lease || is_by_lost_heartbeat || local.claim_lost
    }
}

fn is_answered(model: &Protocol, state: &State) -> bool {
    (0..usize::from(model.setup.bounds.shards)).all(|shard| {
        let row = &state.rows.shards[shard];
        row.progress <= state.answered[shard]
    })
}

/// A property that doesn't hold, and the steps that show it.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The property.
    pub property: &'static str,
    /// The steps from the beginning.
    pub steps: Vec<String>,
}

/// What a search found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Different states.
    pub states: usize,
    /// The most steps from the beginning to a state.
    pub depth: usize,
    /// What doesn't hold.
    pub faults: Vec<Fault>,
    seen: u32,
}

impl Outcome {
    /// Whether this was seen at least once.
    pub fn has_seen(&self, sight: Sight) -> bool {
        self.seen & (1 << sight as u32) != 0
    }

    /// What was never seen.
    pub fn unseen(&self) -> Vec<Sight> {
        Sight::ALL
            .into_iter()
            .filter(|sight| !self.has_seen(*sight))
            .collect()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} states, {} steps deep", self.states, self.depth)?;
        for fault in &self.faults {
            write!(
                f,
                "\n  not always: {} ({} steps)",
                fault.property,
                fault.steps.len()
            )?;
            for step in &fault.steps {
                write!(f, "\n    {step}")?;
            }
        }
        Ok(())
    }
}

/// Visits every state of a setup, with so many threads; ends at the first property that doesn't hold.
pub fn search(setup: Setup, threads: usize) -> Outcome {
    let model = Protocol::new(setup);
    let sights = Arc::clone(&model.sights);
    let checker = model
        .checker()
        .threads(threads)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let faults = checker.discoveries().into_iter().map(|(property, path)| {
        let steps = path
            .into_actions()
            .iter()
            .map(|step| format!("{step:?}"))
            .collect();
        Fault { property, steps }
    });
    Outcome {
        states: checker.unique_state_count(),
        depth: checker.max_depth(),
        faults: faults.collect(),
        seen: sights.load(Ordering::Relaxed),
    }
}
