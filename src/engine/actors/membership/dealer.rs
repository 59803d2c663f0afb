//! Rounds of shared limits run alongside the heartbeat: this node reports its use and demand, and receives its share.
//!
//! One transaction a second serves all limits of the session, sooner when something begins or must be given up. A
//! round is applied only if its answer arrives: a lost answer leaves a share unused, never used twice
//! (`windrow_core::limit::round`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use crate::actors::membership::pots::SharedPot;
use crate::actors::membership::session::Life;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::in_time;
use crate::ports::StoreError;
use crate::ports::ownership::limit_store::RoundOutcome;
use windrow_core::ids::Moment;
use windrow_core::limit::Part;
use windrow_core::limit::pot::Pot;
use windrow_core::limit::round::{Dealt, Round};
use windrow_core::limit::turn::Turn;
use windrow_core::pace::STALE_AFTER;

/// Interval between allocations of a session: a change of demand is followed in two or three of them.
const DEAL_EVERY: Duration = Duration::from_secs(1);
/// Shortest interval between allocations, however often one is requested.
const DEAL_REST: Duration = Duration::from_millis(100);

/// State of one limit from round to round.
#[derive(Default)]
struct Book {
    has_played: bool,
    turn: Turn,
    /// Highest number of a round so far.
    round_no: u64,
    /// Upper bound on the share until this moment, set when the database has lost rounds.
    careful: Option<(Moment, Part)>,
}

/// Values that a round was played with.
struct Play {
    pot: Arc<SharedPot>,
    uses: Part,
    leaves: bool,
}

struct Dealer<'a> {
    node: &'a NodeContext,
    life: &'a Life,
    books: BTreeMap<String, Book>,
    fails: bool,
}

/// Allocates until the session is fenced.
pub(crate) async fn deal_on(node: &NodeContext, life: &Life) {
    let mut dealer = Dealer {
        node,
        life,
        books: BTreeMap::new(),
        fails: false,
    };
    while !life.trust.is_fenced() {
        if node.pots.of(life.id).is_empty() {
            node.pots.hurried().await;
            continue;
        }
        let is_urgent = dealer.deal().await;
        if is_urgent {
            // Items taken from a share before it shrank have been sent by then, or come back.
            tokio::time::sleep(STALE_AFTER * 2).await;
            continue;
        }
        tokio::time::sleep(DEAL_REST).await;
        tokio::time::timeout(DEAL_EVERY - DEAL_REST, node.pots.hurried())
            .await
            .ok();
    }
}

impl Dealer<'_> {
    /// Plays one round of each limit. Returns true if something was given up that others may wait for.
    async fn deal(&mut self) -> bool {
        let pots = self.node.pots.of(self.life.id);
        let patience = self.node.times.lease_ttl / 3;
        let dealt = in_time(patience, say::the_store(), self.play(pots)).await;
        let failed = dealt.is_err();
        if let Err(error) = &dealt
            && !self.fails
        {
            tracing::warn!(%error, "shared limits not allocated; shares stay as they are");
        }
        self.fails = failed;
        dealt.unwrap_or(false)
    }

    async fn play(&mut self, pots: Vec<Arc<SharedPot>>) -> Result<bool, StoreError> {
        self.look_for_limits(&pots).await?;
        let (mut plays, mut rounds) = (Vec::new(), Vec::new());
        for pot in pots {
            let leaves = pot.look(Pot::is_empty);
            let has_played = self.books.get(&pot.name).is_some_and(|book| book.has_played);
            if leaves && !has_played && !pot.is_limited() {
                self.node.pots.remove_empty(self.life.id, &pot.name);
            } else if pot.is_limited() || leaves {
                let round = self.round(&pot, leaves);
                plays.push(Play {
                    uses: round.uses,
                    leaves,
                    pot: pot.clone(),
                });
                rounds.push((pot.name.clone(), round));
            }
        }
        if rounds.is_empty() {
            return Ok(false);
        }
        let played = self.node.limits.play(&rounds).await?;
        Ok(plays.iter().zip(played).fold(false, |urgent, (play, played)| {
            self.on_played(play, played) | urgent
        }))
    }

    /// Checks limits that limited nothing before. If one does now, nothing is sent until this node has a share.
    async fn look_for_limits(&self, pots: &[Arc<SharedPot>]) -> Result<(), StoreError> {
        let free: BTreeSet<String> = pots
            .iter()
            .filter(|pot| !pot.is_limited())
            .map(|pot| pot.name.clone())
            .collect();
        if free.is_empty() {
            return Ok(());
        }
        let found = self.node.limits.bounds(&free).await?;
        for pot in pots.iter().filter(|pot| found.contains_key(&pot.name)) {
            pot.apply(Part::NONE, true, self.node.clock.now());
        }
        Ok(())
    }

    fn round(&mut self, pot: &SharedPot, leaves: bool) -> Round {
        let now = self.node.clock.now();
        let demand = pot.demand(now);
        let book = self.books.entry(pot.name.clone()).or_default();
        book.has_played = true;
        let sent = pot.look(Pot::sent);
        Round {
            session: self.life.id,
            seq: self.node.pots.next_round(),
            uses: if leaves { Part::NONE } else { pot.look(Pot::uses) },
            yields: book.turn.is_over(sent, demand.batch, now),
            demand,
            leaves,
        }
    }

    fn on_played(&mut self, play: &Play, played: RoundOutcome) -> bool {
        let now = self.node.clock.now();
        let Play { pot, uses, leaves } = play;
        let Some(book) = self.books.get_mut(&pot.name) else {
            return false;
        };
        match played {
            RoundOutcome::Late => false,
            RoundOutcome::Fenced => {
                pot.apply(Part::NONE, true, now);
                false
            }
            RoundOutcome::Dealt { dealt, .. } if *leaves => {
                book.has_played = dealt.held != Part::NONE;
                self.node.pots.remove_empty(self.life.id, &pot.name);
                false
            }
            RoundOutcome::Dealt {
                bounds,
                dealt,
                round_no,
            } => {
                let lasts = self.node.times.lease_ttl;
                let part = book.usable(&dealt, (round_no, pot.look(Pot::part)), now, lasts);
                book.turn.on_part(part, pot.look(Pot::sent), now);
                pot.apply(part, bounds.is_limited(), now);
                // Calls in flight free their share as they end; until then another round brings nothing new.
                dealt.gives_up() && pot.look(Pot::uses) != *uses
            }
        }
    }
}

impl Book {
    /// Returns the usable share. A falling round number shows a database that lost what it had acknowledged: others
    /// may have been given what is used here, so for a while only the lesser of both is used.
    fn usable(&mut self, dealt: &Dealt, (round_no, part): (u64, Part), now: Moment, lasts: Duration) -> Part {
        let usable = dealt.usable();
        if round_no < self.round_no {
            self.careful = Some((now.plus(lasts), part.min(usable)));
        }
        self.round_no = round_no;
        self.careful = self.careful.filter(|(until, _)| now < *until);
        self.careful.map_or(usable, |(_, lesser)| usable.min(lesser))
    }
}
