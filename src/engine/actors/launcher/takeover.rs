//! Steps before a claim: holding the shard's lease, and fencing an owner that is silent (decision 0020, rules 9–12
//! and 14).
//!
//! - With leases the order is lease, fence, claim, even if the owner's session is fenced already: its run may live on
//!   its lease. Fence and claim are sent only while the candidate's lease is valid.
//! - A released shard has no owner: if the lease store doesn't answer, the session alone carries its run.
//! - A candidate that fails gives the lease back.

use std::time::Duration;

use crate::actors::launcher::opening::{NotClaimed, STEP_RETRY, STEP_TRIES};
use crate::actors::launcher::{Arguments, Unclaimable};
use crate::actors::membership::heartbeats::Owner;
use crate::actors::runtime::address::Route;
use crate::actors::runtime::context::NodeContext;
use crate::actors::writers::lease_keeper::{self, LeaseAnswer, LeaseRequest, Question};
use crate::ports::StoreError;
use crate::ports::ownership::gate::Gate;
use crate::ports::ownership::lease_store::{LeaseKey, LeaseReply};
use crate::ports::ownership::run_store::{ClaimOutcome, ClaimRequest};
use windrow_core::ids::{Moment, SessionId};
use windrow_core::shards::trust::Term;

/// Basis on which a candidate takes a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The shard's lease, valid until this moment.
    Lease(Moment),
    /// The candidate's session alone: there is no lease store, or no lease is needed.
    Session,
    /// The candidate's session alone, against an owner that may have a lease: the wait is longer.
    Blind,
}

impl Hold {
    /// True if the next step may be sent.
    fn is_good(self, now: Moment) -> bool {
        match self {
            Hold::Lease(until) => now < until,
            Hold::Session | Hold::Blind => true,
        }
    }

    /// Returns the time that an owner must have been silent beyond its lease.
    fn extra(self, node: &NodeContext) -> Duration {
        if self == Hold::Blind {
            node.times.lease_ttl
        } else {
            Duration::ZERO
        }
    }
}

/// Takes the shard's lease if there are leases, then fences its owner if needed.
///
/// # Errors
/// The reason why the claim may not be sent; the lease was given back.
pub(crate) async fn secure(arguments: &Arguments, key: LeaseKey, gate: &Gate) -> Result<Hold, NotClaimed> {
    let Arguments { node, candidate, .. } = arguments;
    if let Some(owner) = candidate.session
        && node.heartbeats.owner(owner, Duration::ZERO, node.clock.now()) == Owner::Alive
    {
        return Err(NotClaimed::LOST);
    }
    let secured = match take_lease(arguments, key, gate).await {
        Ok(hold) => fence(node, candidate.session, hold).await.map(|()| hold),
        Err(not_taken) => Err(not_taken),
    };
    if secured.is_err() {
        // Even without an answer: the request may have been carried out.
        give_lease_back(key, &arguments.routes.lease_keeper);
    }
    secured
}

async fn take_lease(arguments: &Arguments, key: LeaseKey, gate: &Gate) -> Result<Hold, NotClaimed> {
    let Arguments { node, candidate, .. } = arguments;
    let is_released = candidate.session.is_none();
    match ask(key, &arguments.routes.lease_keeper).await {
        Some(LeaseAnswer::SessionOnly) => Ok(Hold::Session),
        Some(LeaseAnswer::Said(LeaseReply::Held, sent)) => {
            let until = Term::new(node.times.lease_ttl).trusted_until(sent);
            if gate.extend_lease(until, node.clock.now()) {
                Ok(Hold::Lease(until))
            } else {
                // This session's heartbeat has stopped, so it must not claim.
                Err(NotClaimed::LOST)
            }
        }
        // Nobody holds the lease, and it can't be had: the lease store lost its data. A released shard needs none.
        Some(LeaseAnswer::Said(LeaseReply::Absent, _) | LeaseAnswer::Unknown(_)) if is_released => {
            Ok(Hold::Session)
        }
        Some(LeaseAnswer::Unknown(_)) if node.times.takeover_without_leases => Ok(Hold::Blind),
        Some(LeaseAnswer::Unknown(_)) => Err(NotClaimed::unclaimable(Unclaimable::NoWitness)),
        Some(LeaseAnswer::Said(LeaseReply::Lost | LeaseReply::Absent, _)) | None => Err(NotClaimed::LOST),
    }
}

/// Asks for the lease. Returns `None` if nobody answers because the keeper is being restarted.
async fn ask(key: LeaseKey, keeper: &Route<lease_keeper::Msg>) -> Option<LeaseAnswer> {
    let (sender, answer) = tokio::sync::oneshot::channel();
    let tell = Box::new(move |answer| {
        if sender.send(answer).is_err() {
            tracing::debug!("lease acquired for a launcher that is gone; it will expire");
        }
    });
    keeper.tell(lease_keeper::Msg::Ask(Question {
        key,
        wanted: LeaseRequest::Acquire,
        answer: tell,
    }));
    answer.await.ok()
}

/// Gives a lease back; one that stays behind expires on its own.
pub(crate) fn give_lease_back(key: LeaseKey, keeper: &Route<lease_keeper::Msg>) {
    keeper.tell(lease_keeper::Msg::Ask(Question {
        key,
        wanted: LeaseRequest::Release,
        answer: Box::new(|_| {}),
    }));
}

/// Fences a silent owner under its last heartbeat; passes if it is fenced already.
async fn fence(node: &NodeContext, owner: Option<SessionId>, hold: Hold) -> Result<(), NotClaimed> {
    let Some(owner) = owner else { return Ok(()) };
    let now = node.clock.now();
    match node.heartbeats.owner(owner, hold.extra(node), now) {
        Owner::Gone => Ok(()),
        // Silent, but not for long enough when its lease can't be seen.
        Owner::Alive if hold == Hold::Blind => Err(NotClaimed::unclaimable(Unclaimable::NoWitness)),
        Owner::Alive => Err(NotClaimed::LOST),
        Owner::Silent(_) if !hold.is_good(now) => Err(NotClaimed::LOST),
        Owner::Silent(heartbeat) => match node.fence(owner, heartbeat).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(NotClaimed::LOST),
            Err(error) => {
                tracing::warn!(session = %owner.0, %error, "silent session not fenced");
                Err(NotClaimed::LOST)
            }
        },
    }
}

/// Claims, and repeats the claim under the same id while the outcome is unknown and the lease is valid.
pub(crate) async fn claim(
    node: &NodeContext,
    request: ClaimRequest,
    hold: Hold,
) -> Result<ClaimOutcome, StoreError> {
    let mut outcome = Ok(ClaimOutcome::Lost);
    for tries in 0..=STEP_TRIES {
        if !hold.is_good(node.clock.now()) {
            return outcome;
        }
        outcome = node.runs.claim(request).await;
        match &outcome {
            Err(error @ StoreError::Unavailable(_)) if tries < STEP_TRIES => {
                tracing::debug!(%error, tries, "no response to the claim; claiming again under the same id");
                tokio::time::sleep(STEP_RETRY).await;
            }
            _ => return outcome,
        }
    }
    outcome
}
