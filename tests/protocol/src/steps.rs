//! Which steps there are, and what each does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use stateright::{Model, Property};

use crate::check::{self, Sight};
use crate::rules::{Setup, Start};
use crate::state::{About, Answer, Life, Message, NONE, Part, SLOTS, State};

/// One step of one party. `late` = the request stays under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(
    missing_docs,
    reason = "each name says what happens; `node` and `world` say when"
)]
pub enum Step {
    Tick,
    TickMissedBy {
        node: u8,
    },
    Begin {
        node: u8,
    },
    Heartbeat {
        node: u8,
        late: bool,
    },
    Look {
        node: u8,
        session: u8,
        late: bool,
    },
    Stand {
        node: u8,
        shard: u8,
    },
    Acquire {
        node: u8,
        shard: u8,
        late: bool,
    },
    Fence {
        node: u8,
        shard: u8,
        late: bool,
    },
    Claim {
        node: u8,
        shard: u8,
        late: bool,
    },
    LookUpClaim {
        node: u8,
        shard: u8,
    },
    Renew {
        node: u8,
        shard: u8,
        late: bool,
    },
    GiveLeaseBack {
        node: u8,
        shard: u8,
        late: bool,
    },
    PassGate {
        node: u8,
        shard: u8,
    },
    BusinessAnswers {
        node: u8,
        shard: u8,
    },
    Save {
        node: u8,
        shard: u8,
        late: bool,
        again: bool,
    },
    CloseGate {
        node: u8,
        shard: u8,
    },
    ReopenGate {
        node: u8,
        shard: u8,
    },
    Release {
        node: u8,
        shard: u8,
        late: bool,
    },
    ReleaseOrphan {
        node: u8,
        shard: u8,
        late: bool,
    },
    Apply {
        slot: u8,
        twice: bool,
    },
    Deliver {
        slot: u8,
    },
    Crash {
        node: u8,
    },
    StopCommand {
        shard: u8,
    },
    LeasesLost,
    ReplicaFallsBehind,
    FailOver,
    DeleteSession {
        node: u8,
        session: u8,
    },
}

/// The protocol within one setup, as stateright searches it.
pub struct Protocol {
    pub(crate) setup: Setup,
    /// What was seen at least once. Beside the states: as part of them it would multiply them.
    pub(crate) sights: Arc<AtomicU32>,
}

impl Protocol {
    /// The protocol within this setup.
    pub fn new(setup: Setup) -> Protocol {
        Protocol {
            setup,
            sights: Arc::default(),
        }
    }

    pub(crate) fn see(&self, sight: Sight) {
        let bit = 1 << sight as u32;
        if self.sights.load(Ordering::Relaxed) & bit == 0 {
            self.sights.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Sends a request: answered at once, or late.
    fn send(&self, state: &mut State, request: Option<Message>, late: bool) -> Option<()> {
        let request = request?;
        if late {
            let free = state.net.iter().position(|slot| slot.about == About::Empty)?;
            state.left.late = state.left.late.checked_sub(1)?;
            state.net[free] = request;
            return Some(());
        }
        let reply = self.apply(state, request);
        self.receive(state, reply);
        Some(())
    }

    /// What is worth seeing of a request that is applied.
    fn apply(&self, state: &mut State, request: Message) -> Message {
        let before = *state.shard(request.shard);
        let has_run_out =
            request.about == About::Acquire && state.leases[usize::from(request.shard)].left == 0;
        let reply = self.setup.apply(state, request);
        let after = state.shard(request.shard);
        match (request.about, reply.answer) {
            (About::Acquire, Answer::No) if has_run_out => self.see(Sight::Quarantine),
            (About::Write, Answer::No) => self.see(Sight::LateWriteRefused),
            (About::Write | About::Claim, Answer::Yes) if before == *after => {
                self.see(Sight::LostAckRecognised)
            }
            (About::Write, Answer::Yes) if after.life == Life::Stopped => self.see(Sight::StopByOwner),
            (About::Write, Answer::Yes) if after.life == Life::Finished => self.see(Sight::Finished),
            _ => {}
        }
        reply
    }

    fn apply_late(&self, state: &mut State, slot: u8, twice: bool) -> Option<()> {
        let at = usize::from(slot);
        let request = state.net[at];
        if request.about == About::Empty || request.answer != Answer::Open {
            return None;
        }
        let reply = self.apply(state, request);
        if !twice {
            state.net[at] = reply;
            return Some(());
        }
        state.left.repeats = state.left.repeats.checked_sub(1)?;
        // The repeat stays under way; the first reply needs a place of its own, or is lost.
        if let Some(free) = state.net.iter().position(|slot| slot.about == About::Empty) {
            state.net[free] = reply;
        }
        Some(())
    }

    fn deliver(&self, state: &mut State, slot: u8) -> Option<()> {
        let at = usize::from(slot);
        let reply = state.net[at];
        if reply.about == About::Empty || reply.answer == Answer::Open {
            return None;
        }
        state.net[at] = Message::EMPTY;
        self.receive(state, reply);
        Some(())
    }

    /// The request that a step sends, and whether it is late; `None` for other steps.
    fn request(&self, state: &mut State, step: Step) -> Option<(Option<Message>, bool)> {
        let setup = &self.setup;
        Some(match step {
            Step::Heartbeat { node, late } => (setup.heartbeat(state, node), late),
            Step::Look { node, session, late } => (setup.look(state, node, session), late),
            Step::Acquire { node, shard, late } => (setup.acquire(state, node, shard), late),
            Step::Fence { node, shard, late } => (setup.fence(state, node, shard), late),
            Step::Claim { node, shard, late } => (setup.claim(state, node, shard), late),
            Step::Renew { node, shard, late } => (setup.renew(state, node, shard), late),
            Step::GiveLeaseBack { node, shard, late } => {
                let is_running = state.local(node, shard).part == Part::Run;
                let request = setup.give_back(state, node, shard);
                if request.is_some() && is_running && !setup.is_trusted(state, node, shard) {
                    self.see(Sight::LeaseLetGo);
                }
                (request, late)
            }
            Step::Save {
                node,
                shard,
                late,
                again,
            } => (setup.save(state, node, shard, again), late),
            Step::Release { node, shard, late } => (setup.finish(state, node, shard), late),
            Step::ReleaseOrphan { node, shard, late } => {
                let request = setup.release_orphan(state, node, shard);
                if request.is_some() && !late {
                    self.see(Sight::OrphanReleased);
                }
                (request, late)
            }
            _ => return None,
        })
    }

    /// What a step does; `None` = it can't be taken now.
    fn take(&self, state: &mut State, step: Step) -> Option<()> {
        if let Some((request, late)) = self.request(state, step) {
            return self.send(state, request, late);
        }
        let setup = &self.setup;
        match step {
            Step::Tick => {
                setup.tick(state, NONE);
                Some(())
            }
            Step::TickMissedBy { node } => {
                state.left.skews = state.left.skews.checked_sub(1)?;
                setup.tick(state, node);
                Some(())
            }
            Step::Begin { node } => setup.begin(state, node),
            Step::Stand { node, shard } => setup.stand(state, node, shard),
            Step::LookUpClaim { node, shard } => setup.look_up(state, node, shard),
            Step::PassGate { node, shard } => setup.pass(state, node, shard),
            Step::BusinessAnswers { node, shard } => setup.answer(state, node, shard),
            Step::CloseGate { node, shard } => setup.close(state, node, shard),
            Step::ReopenGate { node, shard } => setup.reopen(state, node, shard),
            Step::Apply { slot, twice } => self.apply_late(state, slot, twice),
            Step::Deliver { slot } => self.deliver(state, slot),
            Step::Crash { node } => setup.crash(state, node),
            Step::StopCommand { shard } => setup.stop(state, shard),
            Step::LeasesLost => setup.wipe(state),
            Step::ReplicaFallsBehind => setup.fall_behind(state),
            Step::FailOver => setup.fail_over(state),
            Step::DeleteSession { node, session } => setup.delete(state, node, session),
            _ => None,
        }
    }

    fn steps_of_shard(&self, node: u8, shard: u8, late: bool, steps: &mut Vec<Step>) {
        steps.extend([
            Step::Acquire { node, shard, late },
            Step::Fence { node, shard, late },
            Step::Claim { node, shard, late },
            Step::Renew { node, shard, late },
            Step::GiveLeaseBack { node, shard, late },
            Step::Save {
                node,
                shard,
                late,
                again: false,
            },
            Step::Save {
                node,
                shard,
                late,
                again: true,
            },
            Step::Release { node, shard, late },
            Step::ReleaseOrphan { node, shard, late },
        ]);
        if !late {
            steps.extend([
                Step::Stand { node, shard },
                Step::LookUpClaim { node, shard },
                Step::PassGate { node, shard },
                Step::BusinessAnswers { node, shard },
                Step::CloseGate { node, shard },
                Step::ReopenGate { node, shard },
            ]);
        }
    }

    fn steps_of_node(&self, state: &State, node: u8, steps: &mut Vec<Step>) {
        steps.extend([
            Step::TickMissedBy { node },
            Step::Begin { node },
            Step::Crash { node },
        ]);
        let has_late = state.left.late > 0;
        for late in [false, true].into_iter().filter(|late| !late || has_late) {
            steps.push(Step::Heartbeat { node, late });
            for session in 0..state.next_session {
                steps.push(Step::Look { node, session, late });
            }
            for shard in 0..self.setup.bounds.shards {
                self.steps_of_shard(node, shard, late, steps);
            }
        }
        if state.left.deletions > 0 {
            steps.extend((0..state.next_session).map(|session| Step::DeleteSession { node, session }));
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        debug_assert!(
            self.setup.start == Start::Released || self.setup.bounds.claims >= self.setup.bounds.shards
        );
        vec![self.setup.beginning()]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        steps.push(Step::Tick);
        for node in 0..self.setup.bounds.nodes {
            self.steps_of_node(state, node, steps);
        }
        for slot in 0..SLOTS as u8 {
            if state.net[usize::from(slot)].about != About::Empty {
                steps.extend([Step::Apply { slot, twice: false }, Step::Deliver { slot }]);
                if state.left.repeats > 0 {
                    steps.push(Step::Apply { slot, twice: true });
                }
            }
        }
        steps.extend((0..self.setup.bounds.shards).map(|shard| Step::StopCommand { shard }));
        steps.extend([Step::LeasesLost, Step::ReplicaFallsBehind, Step::FailOver]);
    }

    fn next_state(&self, last: &State, step: Step) -> Option<State> {
        let mut state = *last;
        self.take(&mut state, step)?;
        self.tidy(&mut state);
        (state != *last).then_some(state)
    }

    fn properties(&self) -> Vec<Property<Protocol>> {
        check::properties()
    }
}
