//! Rounds of shared limits run alongside the heartbeat: this node reports its use and demand, and receives its share.
//!
//! One transaction a second serves all limits of the session, sooner when something begins or must be given up. A
//! round is applied only if its answer arrives: a lost answer leaves a share unused, never used twice
//! (`windrow_core::limit::round`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use windrow_words::engine as say;

use crate::actors::membership::local_buckets::SharedPot;
use crate::actors::membership::session::Life;
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::in_time;
use crate::ports::StoreError;
use crate::ports::ownership::limit_store::RoundOutcome;
use windrow_core::ids::Moment;
use windrow_core::limit::Part;
use windrow_core::limit::local_bucket::LocalBucket;
use windrow_core::limit::rotation::Rotation;
use windrow_core::limit::round::{Allocated, Round};
use windrow_core::limit::units::Dealt;
use windrow_core::limit::units::bucket::Units;
use windrow_core::meter::amount::Amount;
use windrow_core::pace::STALE_AFTER;

/// Interval between allocations of a session: a change of demand is followed in two or three of them.
const DEAL_EVERY: Duration = Duration::from_secs(1);
/// Shortest interval between allocations, however often one is requested.
const DEAL_REST: Duration = Duration::from_millis(100);

/// Longest time for the last round of a session. Its actor has five seconds to end, and removes its row too.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// State of one limit from round to round.
#[derive(Default)]
struct Book {
    has_played: bool,
    rotation: Rotation,
    /// Highest number of a round so far.
    round_no: u64,
    /// Upper bound on the share until this moment, set when the database has lost rounds.
    careful: Option<(Moment, Part)>,
}

/// Values that a round was played with.
struct Play {
    local_bucket: Arc<SharedPot>,
    uses: Part,
    leaves: bool,
}

struct Allocator<'a> {
    node: &'a NodeContext,
    life: &'a Life,
    books: BTreeMap<String, Book>,
    fails: bool,
}

/// Allocates until the session is fenced.
pub(crate) async fn deal_on(node: &NodeContext, life: &Life) {
    let mut allocator = Allocator {
        node,
        life,
        books: BTreeMap::new(),
        fails: false,
    };
    while !life.trust.is_fenced() {
        if node.local_buckets.of(life.id).is_empty() {
            node.local_buckets.hurried().await;
            continue;
        }
        let is_urgent = allocator.allocate().await;
        if is_urgent {
            // Items taken from a share before it shrank have been sent by then, or come back.
            tokio::time::sleep(STALE_AFTER * 2).await;
            continue;
        }
        tokio::time::sleep(DEAL_REST).await;
        tokio::time::timeout(DEAL_EVERY - DEAL_REST, node.local_buckets.hurried())
            .await
            .ok();
    }
}

/// Plays a last round of the limits that no run is under any more, so that exactly what they used counts. What the
/// session held beyond it counts as unsure if that fails.
pub(crate) async fn leave(node: &NodeContext, life: &Life) {
    let local_buckets = node.local_buckets.of(life.id).into_iter();
    let left: Vec<Arc<SharedPot>> = local_buckets
        .filter(|local_bucket| local_bucket.look(LocalBucket::is_empty))
        .collect();
    // Rounds of an allocator that ended before may have been played.
    let book = |local_bucket: &Arc<SharedPot>| {
        let book = Book {
            has_played: true,
            ..Book::default()
        };
        (local_bucket.name.clone(), book)
    };
    let mut allocator = Allocator {
        node,
        life,
        books: left.iter().map(book).collect(),
        fails: false,
    };
    if let Err(error) = in_time(LAST_PATIENCE, say::the_store(), allocator.play(left)).await {
        tracing::warn!(%error, "last use of shared limits not reported; what this session held of totals counts as unsure");
    }
}

impl Allocator<'_> {
    /// Plays one round of each limit. Returns true if something was given up that others may wait for.
    async fn allocate(&mut self) -> bool {
        let local_buckets = self.node.local_buckets.of(self.life.id);
        let patience = self.node.times.lease_ttl / 3;
        let allocated = in_time(patience, say::the_store(), self.play(local_buckets)).await;
        let failed = allocated.is_err();
        if let Err(error) = &allocated
            && !self.fails
        {
            tracing::warn!(%error, "shared limits not allocated; shares stay as they are");
        }
        self.fails = failed;
        allocated.unwrap_or(false)
    }

    async fn play(&mut self, local_buckets: Vec<Arc<SharedPot>>) -> Result<bool, StoreError> {
        self.look_for_limits(&local_buckets).await?;
        let (mut plays, mut rounds) = (Vec::new(), Vec::new());
        for local_bucket in local_buckets {
            let leaves = local_bucket.look(LocalBucket::is_empty);
            let has_played = self
                .books
                .get(&local_bucket.name)
                .is_some_and(|book| book.has_played);
            if leaves && !has_played && !local_bucket.is_limited() {
                self.node
                    .local_buckets
                    .remove_empty(self.life.id, &local_bucket.name);
            } else if local_bucket.is_limited() || leaves {
                let round = self.round(&local_bucket, leaves);
                plays.push(Play {
                    uses: round.uses,
                    leaves,
                    local_bucket: local_bucket.clone(),
                });
                rounds.push((local_bucket.name.clone(), round));
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
    async fn look_for_limits(&self, local_buckets: &[Arc<SharedPot>]) -> Result<(), StoreError> {
        let free: BTreeSet<String> = local_buckets
            .iter()
            .filter(|local_bucket| !local_bucket.is_limited())
            .map(|local_bucket| local_bucket.name.clone())
            .collect();
        if free.is_empty() {
            return Ok(());
        }
        let found = self.node.limits.bounds(&free).await?;
        for local_bucket in local_buckets
            .iter()
            .filter(|local_bucket| found.contains_key(&local_bucket.name))
        {
            local_bucket.apply(Part::NONE, true, self.node.clock.now());
        }
        Ok(())
    }

    fn round(&mut self, local_bucket: &SharedPot, leaves: bool) -> Round {
        let now = self.node.clock.now();
        let demand = local_bucket.demand(now);
        let book = self.books.entry(local_bucket.name.clone()).or_default();
        book.has_played = true;
        let sent = local_bucket.look(LocalBucket::sent);
        if leaves && local_bucket.is_limited() {
            // A run that joins while the round is under way begins with nothing, as the row says.
            local_bucket.apply(Part::NONE, true, now);
        }
        Round {
            session: self.life.id,
            seq: self.node.local_buckets.next_round(),
            uses: if leaves {
                Part::NONE
            } else {
                local_bucket.look(LocalBucket::uses)
            },
            yields: book.rotation.is_over(sent, demand.batch, now),
            demand,
            leaves,
            units: local_bucket.report(leaves, now),
        }
    }

    fn on_played(&mut self, play: &Play, played: RoundOutcome) -> bool {
        let now = self.node.clock.now();
        let Play {
            local_bucket,
            uses,
            leaves,
        } = play;
        let Some(book) = self.books.get_mut(&local_bucket.name) else {
            return false;
        };
        match played {
            RoundOutcome::Late => false,
            RoundOutcome::Fenced => {
                local_bucket.apply(Part::NONE, true, now);
                false
            }
            RoundOutcome::Allocated { allocated, .. } if *leaves => {
                book.has_played = allocated.held != Part::NONE;
                self.node
                    .local_buckets
                    .remove_empty(self.life.id, &local_bucket.name);
                false
            }
            RoundOutcome::Allocated {
                bounds,
                allocated,
                units: (metering, dealt),
                round_no,
            } => {
                let lasts = self.node.times.lease_ttl;
                let part = book.usable(
                    &allocated,
                    (round_no, local_bucket.look(LocalBucket::part)),
                    now,
                    lasts,
                );
                book.rotation
                    .on_part(part, local_bucket.look(LocalBucket::sent), now);
                let bound = book.bound();
                local_bucket.apply_units((&metering, &dealt), bound, now);
                let is_limited = bounds.is_limited() || !metering.limits.is_empty();
                local_bucket.apply(part, is_limited, now);
                // Calls in flight free their share as they end; until then another round brings nothing new.
                allocated.gives_up() && local_bucket.look(LocalBucket::uses) != *uses
            }
        }
    }
}

impl Book {
    /// Returns the function that says what may be used of a limit in units: as for the share, the lesser of the old and
    /// the new bound while the database may have lost rounds.
    fn bound(&self) -> impl Fn(&Units, &Dealt) -> Amount + use<> {
        let is_careful = self.careful.is_some();
        move |units, reply| match is_careful {
            true => reply.usable().min(units.bound(&reply.key)),
            false => reply.usable(),
        }
    }

    /// Returns the usable share. A falling round number shows a database that lost what it had acknowledged: others
    /// may have been given what is used here, so for a while only the lesser of both is used.
    fn usable(
        &mut self,
        allocated: &Allocated,
        (round_no, part): (u64, Part),
        now: Moment,
        lasts: Duration,
    ) -> Part {
        let usable = allocated.usable();
        if round_no < self.round_no {
            self.careful = Some((now.plus(lasts), part.min(usable)));
        }
        self.round_no = round_no;
        self.careful = self.careful.filter(|(until, _)| now < *until);
        self.careful.map_or(usable, |(_, lesser)| usable.min(lesser))
    }
}
