//! What nodes do before they run a shard: they live, die and claim.

use std::time::Duration;

use uuid::Uuid;
use windrow_core::ids::{ClaimId, SessionId};
use windrow_engine::ports::ownership::run_store::{CandidateQuery, ClaimOutcome, ClaimRequest};

use super::{Run, Twins, both};
use crate::fixture::{hunt, new_session};

impl Twins {
    pub(super) async fn begin(&mut self, step: u32) {
        let id = SessionId(self.uuid());
        both!(self, step, store => store.begin(&new_session(id))).unwrap();
        self.sessions.push(id);
    }

    fn session(&mut self) -> SessionId {
        match self.below(self.sessions.len() as u64 + 1) as usize {
            0 => SessionId(Uuid::from_u128(7)),
            some => self.sessions[some - 1],
        }
    }

    pub(super) async fn fence(&mut self, step: u32) {
        let id = self.session();
        if self.below(4) == 0 {
            both!(self, step, store => store.fence_all_but(id)).unwrap();
        } else if self.below(3) == 0 {
            both!(self, step, store => store.end(id)).unwrap();
        } else if self.sessions.contains(&id) {
            for harness in [&self.memory, &self.sql] {
                let sessions = harness.store.list().await.unwrap();
                if let Some(session) = sessions.iter().find(|session| session.id == id) {
                    assert!(
                        harness
                            .store
                            .fence(id, session.heartbeat, self.now)
                            .await
                            .unwrap()
                    );
                }
            }
        }
        both!(self, step, store => store.beat(id)).unwrap();
    }

    pub(super) async fn claim(&mut self, step: u32) {
        let (now, limit) = (self.now, 1 + self.below(5) as u32);
        let alive: Vec<SessionId> = self
            .sessions
            .iter()
            .copied()
            .filter(|id| id.0.as_u128() % 2 == 0)
            .collect();
        let mut hunt = CandidateQuery {
            alive,
            now,
            restore_window: Duration::from_secs(2),
            limit,
            ..hunt()
        };
        let mut found = Vec::new();
        loop {
            let page = both!(self, step, store => store.candidates(&hunt)).unwrap();
            found.extend(page.found);
            hunt.after = page.next;
            if hunt.after.is_none() {
                break;
            }
        }
        let again = self.last_claim.filter(|_| self.below(4) == 0);
        let fresh = found
            .get(self.below(5) as usize)
            .or_else(|| found.first())
            .map(|candidate| ClaimRequest {
                shard: candidate.rank.shard,
                seen: candidate.epoch,
                claim: ClaimId(Uuid::nil()),
                session: SessionId(Uuid::nil()),
                now,
            });
        let Some(request) = again.or(fresh) else { return };
        let request = if again.is_some() {
            request
        } else {
            ClaimRequest {
                claim: ClaimId(self.uuid()),
                session: self.session(),
                ..request
            }
        };
        self.last_claim = Some(request);
        let outcome = both!(self, step, store => store.claim(request)).unwrap();
        if let ClaimOutcome::Claimed(run) = outcome {
            self.claims += 1;
            let (shard, epoch, claim) = (run.shard, run.epoch, run.claim);
            let (start, end) = (run.range.start.0, run.finish_at.unwrap_or(run.range.end).0);
            self.runs.push(Run {
                shard,
                epoch,
                claim,
                seq: 0,
                start,
                end,
                watermark: run.watermark.0,
            });
        }
    }
}
