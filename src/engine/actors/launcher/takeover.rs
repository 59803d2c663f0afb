//! What comes before a claim: the shard's lease, held, and the fence of an owner that is silent (decision 0020, rules
//! 9–12 and 14).
//!
//! - Where there are leases the order is lease, fence, claim, also when the owner's session is fenced already: its run
//!   may live on its lease. Fence and claim are sent only while the own lease is trusted.
//! - A released shard has no owner: without an answer of the lease store the session alone carries its run.
//! - Whoever doesn't get through gives the lease back.

use std::time::Duration;

use crate::actors::launcher::opening::{NotClaimed, STEP_RETRY, STEP_TRIES};
use crate::actors::membership::heartbeats::Owner;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::tree::Line;
use crate::actors::writers::lease_keeper::{self, LeaseAnswer, Wanted};
use crate::ports::StoreError;
use crate::ports::ownership::gate::Gate;
use crate::ports::ownership::lease_store::{LeaseKey, LeaseReply};
use crate::ports::ownership::run_store::{Candidate, ClaimOutcome, ClaimRequest};
use windrow_core::ids::{Moment, SessionId};
use windrow_core::shards::trust::Term;

/// What a candidate may lean on while it takes a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// The shard's lease, trusted until then.
    Lease(Moment),
    /// The own session alone: there is no lease store, or none is needed.
    Session,
    /// The own session alone, against an owner that may have a lease: it is waited longer for.
    Blind,
}

impl Hold {
    /// Whether the next step may be sent.
    fn is_good(self, now: Moment) -> bool {
        match self {
            Hold::Lease(until) => now < until,
            Hold::Session | Hold::Blind => true,
        }
    }

    /// How long an owner must have been silent beyond its promise.
    fn extra(self, node: &NodeContext) -> Duration {
        if self == Hold::Blind {
            node.times.lease_ttl
        } else {
            Duration::ZERO
        }
    }
}

/// Takes the shard's lease where there are leases, then fences its owner where that is needed.
///
/// # Errors
/// Why the claim may not be sent; the lease was given back.
pub(crate) async fn secure(
    node: &NodeContext,
    candidate: &Candidate,
    key: LeaseKey,
    gate: &Gate,
    keeper: &Line<lease_keeper::Msg>,
) -> Result<Hold, NotClaimed> {
    if let Some(owner) = candidate.session
        && node.heartbeats.owner(owner, Duration::ZERO, node.clock.now()) == Owner::Alive
    {
        return Err(NotClaimed::Lost);
    }
    let secured = match take_lease(node, candidate, key, gate, keeper).await {
        Ok(hold) => fence(node, candidate.session, hold).await.map(|()| hold),
        Err(barred) => Err(barred),
    };
    if secured.is_err() {
        // Also where nothing was answered: the request may have been obeyed.
        give_lease_back(key, keeper);
    }
    secured
}

async fn take_lease(
    node: &NodeContext,
    candidate: &Candidate,
    key: LeaseKey,
    gate: &Gate,
    keeper: &Line<lease_keeper::Msg>,
) -> Result<Hold, NotClaimed> {
    let is_released = candidate.session.is_none();
    match ask(key, keeper).await {
        Some(LeaseAnswer::SessionOnly) => Ok(Hold::Session),
        Some(LeaseAnswer::Said(LeaseReply::Held, sent)) => {
            let until = Term::new(node.times.lease_ttl).trusted_until(sent);
            if gate.extend_lease(until, node.clock.now()) {
                Ok(Hold::Lease(until))
            } else {
                // The own heart has not beaten: no claim of this session is wanted.
                Err(NotClaimed::Lost)
            }
        }
        // Nobody holds it, and it can't be had: the lease store lost its data. A released shard needs none.
        Some(LeaseAnswer::Said(LeaseReply::Absent, _) | LeaseAnswer::Unknown(_)) if is_released => {
            Ok(Hold::Session)
        }
        Some(LeaseAnswer::Unknown(_)) if node.times.takeover_without_leases => Ok(Hold::Blind),
        Some(LeaseAnswer::Unknown(_)) => Err(NotClaimed::NoWitness),
        Some(LeaseAnswer::Said(LeaseReply::Lost | LeaseReply::Absent, _)) | None => Err(NotClaimed::Lost),
    }
}

/// None when nobody answers: the keeper is being restarted.
async fn ask(key: LeaseKey, keeper: &Line<lease_keeper::Msg>) -> Option<LeaseAnswer> {
    let (sender, answer) = tokio::sync::oneshot::channel();
    let tell = Box::new(move |answer| {
        if sender.send(answer).is_err() {
            tracing::debug!("a lease was taken for a launcher that is gone; it runs out");
        }
    });
    keeper.tell(lease_keeper::Msg::Ask {
        key,
        wanted: Wanted::Acquire,
        answer: tell,
    });
    answer.await.ok()
}

/// Gives a lease back; one that stays behind runs out by itself.
pub(crate) fn give_lease_back(key: LeaseKey, keeper: &Line<lease_keeper::Msg>) {
    keeper.tell(lease_keeper::Msg::Ask {
        key,
        wanted: Wanted::Release,
        answer: Box::new(|_| {}),
    });
}

/// Fences a silent owner under the heartbeat that was silent; passes where it is fenced already.
async fn fence(node: &NodeContext, owner: Option<SessionId>, hold: Hold) -> Result<(), NotClaimed> {
    let Some(owner) = owner else { return Ok(()) };
    let now = node.clock.now();
    match node.heartbeats.owner(owner, hold.extra(node), now) {
        Owner::Gone => Ok(()),
        // Silent, but not for long enough where its lease can't be seen.
        Owner::Alive if hold == Hold::Blind => Err(NotClaimed::NoWitness),
        Owner::Alive => Err(NotClaimed::Lost),
        Owner::Silent(_) if !hold.is_good(now) => Err(NotClaimed::Lost),
        Owner::Silent(heartbeat) => match node.sessions.fence(owner, heartbeat, node.clock.wall()).await {
            Ok(true) => {
                node.note_fenced(owner);
                Ok(())
            }
            Ok(false) => {
                tracing::info!(session = %owner.0, "a session that was silent is back; its shards stay with it");
                node.heartbeats.forget(owner);
                Err(NotClaimed::Lost)
            }
            Err(error) => {
                tracing::warn!(session = %owner.0, %error, "silent session not fenced");
                Err(NotClaimed::Lost)
            }
        },
    }
}

/// Claims, and claims again under the same id while the outcome is unknown and the lease is trusted.
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
                tracing::debug!(%error, tries, "claim not answered; claiming again under the same id");
                tokio::time::sleep(STEP_RETRY).await;
            }
            _ => return outcome,
        }
    }
    outcome
}
