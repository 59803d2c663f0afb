//! Heartbeats of all sessions as seen by this node: a board that the restorer writes and candidates for a shard read.
//!
//! Silence is measured on this node's clock (decision 0020, rule 9). The board outlives a crash of the restorer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::lock;
use crate::ports::StoreError;
use crate::ports::ownership::hints::Hint;
use crate::ports::ownership::session_store::SessionView;
use windrow_core::capacity::placement::Peer;
use windrow_core::checkpoint;
use windrow_core::ids::{Moment, SessionId};
use windrow_core::shards::trust::SilenceWatch;

/// Time for which scans are frequent after a session went or drained.
const RESTLESS: Duration = Duration::from_secs(5);

/// Obstacle between a candidate and a shard whose row names a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No obstacle: the session is fenced, or its row is gone.
    Gone,
    /// The heartbeat kept this value for the whole lease of its owner, so the session may be fenced under it.
    Silent(i64),
    Alive,
}

/// Time at which each node's heartbeat last moved, on this node's clock, and the conclusions from it.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats(Arc<Mutex<Board>>);

/// Last heartbeat seen from a session.
#[derive(Clone, Copy, Debug)]
struct Beat {
    heartbeat: i64,
    /// Time at which it was first seen.
    at: Moment,
    /// True if an earlier one was seen: the session was alive while this node watched.
    was_heard: bool,
}

#[derive(Debug, Default)]
struct Board {
    beats: BTreeMap<SessionId, Beat>,
    watch: SilenceWatch,
    sessions: BTreeMap<SessionId, SessionView>,
    restless_until: Option<Moment>,
    me: Option<SessionId>,
}

impl Heartbeats {
    /// Records the sessions listed at a moment and forgets all others.
    pub(crate) fn saw(&self, sessions: &[SessionView], at: Moment) {
        let mut board = self.board();
        let now = sessions.iter().map(|session| {
            let beat = match board.beats.get(&session.id) {
                Some(before) if before.heartbeat == session.heartbeat => *before,
                before => Beat {
                    heartbeat: session.heartbeat,
                    at,
                    was_heard: before.is_some(),
                },
            };
            (session.id, beat)
        });
        let beats = now.collect();
        board.beats = beats;
        let is_live = |id: &SessionId| {
            sessions
                .iter()
                .any(|session| session.id == *id && !session.fenced)
        };
        let went = board
            .sessions
            .iter()
            .any(|(id, before)| !before.fenced && !is_live(id));
        let drains = sessions
            .iter()
            .any(|session| !session.fenced && session.face.draining);
        if went || drains {
            board.restless_until = Some(at.plus(RESTLESS));
        }
        // A node never fences its own session: while the database can be read and not written (its disk is full),
        // that would drop calls that are done and not saved, for nobody's benefit.
        let me = board.me;
        let is_watched = |id: SessionId| is_live(&id) && Some(id) != me;
        board.watch.retain(is_watched);
        for session in sessions.iter().filter(|session| is_watched(session.id)) {
            board
                .watch
                .observe(session.id, session.heartbeat, session.lease_duration, at);
        }
        board.sessions = sessions
            .iter()
            .map(|session| (session.id, session.clone()))
            .collect();
    }

    pub(crate) fn i_am(&self, id: SessionId) {
        self.board().me = Some(id);
    }

    pub(crate) fn me(&self) -> Option<SessionId> {
        self.board().me
    }

    /// Describes a session for people: `n2, silent 15.2 s`; `None` if it was never seen. `unwritten` is the time
    /// since it wrote what is taken from it: the last sign of a session whose heartbeat this node never saw move.
    pub(crate) fn describe(&self, id: SessionId, unwritten: Duration, now: Moment) -> Option<String> {
        let board = self.board();
        let (session, beat) = (board.sessions.get(&id)?, board.beats.get(&id)?);
        let watched = now.since(beat.at);
        let silent = if beat.was_heard {
            watched
        } else {
            watched.max(unwritten)
        };
        Some(format!("{}, silent {:.1} s", session.node, silent.as_secs_f64()))
    }

    /// Returns the time since each heartbeat moved; sessions never seen are left out.
    pub(crate) fn ages(&self, now: Moment) -> BTreeMap<SessionId, Duration> {
        self.board()
            .beats
            .iter()
            .map(|(id, beat)| (*id, now.since(beat.at)))
            .collect()
    }

    /// Returns the state of a session for a candidate at `now`, when the session must have been silent for `extra`
    /// beyond its owner's lease; with an `extra`, even if it is fenced.
    pub(crate) fn owner(&self, id: SessionId, extra: Duration, now: Moment) -> Owner {
        let board = self.board();
        let seen = board.sessions.get(&id);
        if let Some(session) = seen.filter(|session| session.fenced && !extra.is_zero()) {
            // The session's run may live on a lease that can't be seen, and doesn't learn of the fence.
            let due = board
                .beats
                .get(&id)
                .map(|beat| beat.at.plus(session.lease_duration).plus(extra));
            return if due.is_some_and(|due| now >= due) {
                Owner::Gone
            } else {
                Owner::Alive
            };
        }
        if seen.is_none() && !extra.is_zero() {
            return Owner::Alive;
        }
        if seen.is_none_or(|session| session.fenced) {
            return Owner::Gone;
        }
        board
            .watch
            .silent_heartbeat(id, extra, now)
            .map_or(Owner::Alive, Owner::Silent)
    }

    /// Returns the sessions that were silent for their owner's lease and `extra`, each with its last heartbeat.
    pub(crate) fn silent(&self, extra: Duration, now: Moment) -> Vec<(SessionId, i64)> {
        let board = self.board();
        let live = board.sessions.values().filter(|session| !session.fenced);
        live.filter_map(|session| Some((session.id, board.watch.silent_heartbeat(session.id, extra, now)?)))
            .collect()
    }

    /// Marks a session as fenced before the next list shows it. Returns its node, unless it was marked already.
    fn was_fenced(&self, id: SessionId) -> Option<String> {
        let mut board = self.board();
        let session = board.sessions.get_mut(&id)?;
        (!std::mem::replace(&mut session.fenced, true)).then(|| session.node.clone())
    }

    fn node_of(&self, id: SessionId) -> Option<String> {
        let board = self.board();
        board.sessions.get(&id).map(|session| session.node.clone())
    }

    /// Measures the silence again, since the owner is back (rule 11).
    fn forget(&self, id: SessionId) {
        self.board().watch.forget(id);
    }

    /// Returns the next time to check a watched session: its time may be up then.
    pub(crate) fn next_due(&self, now: Moment) -> Option<Moment> {
        self.board().watch.next_due(now)
    }

    /// True if a session went or drains: its shards will be available in a moment.
    pub(crate) fn is_restless(&self, now: Moment) -> bool {
        self.board().restless_until.is_some_and(|until| now < until)
    }

    /// Returns the sessions that may take shards, as far as this node knows.
    pub(crate) fn peers(&self, now: Moment) -> Vec<Peer> {
        let board = self.board();
        let takes = board.sessions.values().filter(|session| {
            let rests = session.fenced || session.drain || session.face.draining;
            !rests
                && board
                    .watch
                    .silent_heartbeat(session.id, Duration::ZERO, now)
                    .is_none()
        });
        let peer = |session: &SessionView| Peer {
            session: session.id,
            capacity: session.face.capacity,
            pools: session.face.pools.clone(),
        };
        takes.map(peer).collect()
    }

    /// Returns the checkpoint version that every live session reads.
    pub(crate) fn checkpoint_version(&self) -> u8 {
        let board = self.board();
        let live = board.sessions.values().filter(|session| !session.fenced);
        checkpoint::version_for(live.map(|session| session.ckpt_version_max))
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        lock(&self.0)
    }
}

impl NodeContext {
    /// Fences a session under the heartbeat that was silent. Returns true if it is fenced now, false if its owner is
    /// back. This node knows at once; the session's own node gets a hint if hints are available.
    pub(crate) async fn fence(&self, id: SessionId, heartbeat: i64) -> Result<bool, StoreError> {
        let session = id.0;
        let is_fenced = self.sessions.fence(id, heartbeat, self.clock.wall()).await?;
        if is_fenced {
            if let Some(node) = self.heartbeats.was_fenced(id) {
                tracing::warn!(node, %session, "silent session fenced; its shards can be taken over");
            }
            self.hint(Hint::Session(id));
        } else {
            let node = self.heartbeats.node_of(id);
            tracing::info!(node, %session, "silent session is back; it keeps its shards");
            self.heartbeats.forget(id);
        }
        Ok(is_fenced)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ports::ownership::session_store::SessionFace;
    use windrow_core::ids::WallMs;

    fn n2(heartbeat: i64) -> SessionView {
        SessionView {
            id: SessionId(Uuid::from_u128(2)),
            node: "n2".to_owned(),
            heartbeat,
            fenced: true,
            lease_duration: Duration::from_secs(15),
            version: String::new(),
            ckpt_version_max: 1,
            started_at: WallMs(0),
            face: SessionFace::default(),
            drain: false,
        }
    }

    #[test]
    fn a_silence_counts_from_the_last_sign_of_the_lost_node() {
        let at = |ms| Moment(0).plus(Duration::from_millis(ms));
        let (board, id) = (Heartbeats::default(), n2(0).id);
        let said = |unwritten, now| board.describe(id, Duration::from_secs(unwritten), at(now));
        assert_eq!(said(12, 0), None, "never seen");
        // A node that has just begun meets the row of one that was killed before.
        board.saw(&[n2(7)], at(0));
        board.saw(&[n2(7)], at(100));
        assert_eq!(said(12, 100).as_deref(), Some("n2, silent 12.0 s"));
        assert_eq!(said(0, 15_200).as_deref(), Some("n2, silent 15.2 s"));
        // It was heard: what it wrote says nothing, since a task may rest.
        board.saw(&[n2(8)], at(20_000));
        assert_eq!(said(600, 23_500).as_deref(), Some("n2, silent 3.5 s"));
    }

    #[test]
    fn a_node_never_takes_its_own_session_for_a_silent_one() {
        let (board, id) = (Heartbeats::default(), n2(0).id);
        let (late, none) = (Moment(0).plus(Duration::from_secs(60)), Duration::ZERO);
        let look = || {
            let living = SessionView {
                fenced: false,
                ..n2(7)
            };
            for second in 0..=60 {
                board.saw(
                    std::slice::from_ref(&living),
                    Moment(0).plus(Duration::from_secs(second)),
                );
            }
            (board.owner(id, none, late), board.silent(none, late).len())
        };
        assert_eq!(look(), (Owner::Silent(7), 1), "another's");
        // The database can be read and not written: whoever runs here loses by a fence, and nobody wins.
        board.i_am(id);
        assert_eq!(look(), (Owner::Alive, 0), "its own");
        assert_eq!(board.next_due(late), None, "there is nothing to wait for");
    }

    #[test]
    fn a_fenced_session_is_told_once_and_with_its_node() {
        let (board, id) = (Heartbeats::default(), n2(0).id);
        let living = SessionView {
            fenced: false,
            ..n2(7)
        };
        board.saw(&[living], Moment(0));
        assert_eq!(board.was_fenced(id).as_deref(), Some("n2"));
        assert_eq!(
            board.was_fenced(id),
            None,
            "a second shard of it says nothing new"
        );
    }
}
