//! Plays the rounds of shared limits beside the heartbeat: says what this node uses and wants, hears what it may use.
//!
//! One transaction a second for all limits of the session, sooner where something begins or is to be given up. What a
//! round came to is applied only if its answer arrives; a lost answer leaves a part unused, never used twice
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

/// How often a session deals: demand that moves is followed by two or three deals.
const DEAL_EVERY: Duration = Duration::from_secs(1);
/// However often somebody hurries.
const DEAL_REST: Duration = Duration::from_millis(100);

/// What is known of one limit from round to round.
#[derive(Default)]
struct Book {
    has_played: bool,
    turn: Turn,
    /// The highest number of a round.
    round_no: u64,
    /// The database has lost rounds: until then no more than this is used.
    careful: Option<(Moment, Part)>,
}

/// What a round was played with.
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

/// Deals until the session is fenced.
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
            // What was taken from a part before it shrank has departed, or comes back.
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
    /// One round of each limit; says whether something was given up that others may wait for.
    async fn deal(&mut self) -> bool {
        let pots = self.node.pots.of(self.life.id);
        let patience = self.node.times.lease_ttl / 3;
        let dealt = in_time(patience, say::the_store(), self.play(pots)).await;
        let failed = dealt.is_err();
        if let Err(error) = &dealt
            && !self.fails
        {
            tracing::warn!(%error, "shared limits not dealt; parts stay as they are");
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

    /// What limited nothing may limit something now: then nothing leaves before this node has a part.
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
                // Calls in flight are given up as they end: then another round tells nothing new.
                dealt.gives_up() && pot.look(Pot::uses) != *uses
            }
        }
    }
}

impl Book {
    /// What may be used. A round number that falls shows a database that lost what it had acknowledged: others may have
    /// been given what is used here, so for a while only the lesser of both is.
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
