//! Log lines of replies on their way to the store, committed with the checkpoint that holds the reports of these
//! replies.
//!
//! They wait in the run's cell and enter it under the same lock as the reports, so a draft holds the lines of exactly
//! its reports: a crash loses both, and the items are called again. Lines are bounded per run and per node. A line
//! without room is dropped, and the number of dropped lines is committed instead.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::actors::executor::results::DraftResults;
use crate::actors::runtime::context::NodeContext;
use crate::ports::handling::data_log::{DataLogLine, DropReason, LogOrigin};
use crate::ports::handling::handler::{LogLevel, LogLine};
use crate::ports::ownership::run_store::ShardCheckpoint;
use windrow_core::execution::CheckpointDraft;
use windrow_core::ids::{ShardId, WallMs};
use windrow_core::meter::unit::Unit;
use windrow_words::meter as words;

/// Code of the line about responses that don't say their cost.
const COST_MISSING: &str = "COST_MISSING";

/// Maximum number of unstored lines of a run; half as many ask for a checkpoint. One transaction inserts that many
/// within about a tenth of a second, for which it holds the task's lock.
const LINES_MAX: usize = 10_000;
/// Maximum number of bytes of a run's unstored lines: a transaction of that size is far below a database's limit.
const RUN_BYTES_MAX: u64 = 4 << 20;
/// Maximum number of bytes of lines that all runs of a node hold together while the store is unavailable.
const NODE_BYTES_MAX: u64 = 64 << 20;

/// Bytes that the lines of all runs of a node may still take.
#[derive(Debug)]
pub(crate) struct LineRoom(AtomicU64);

impl LineRoom {
    pub(crate) fn new() -> LineRoom {
        LineRoom(AtomicU64::new(NODE_BYTES_MAX))
    }

    fn try_take(&self, bytes: u64) -> bool {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.checked_sub(bytes)
        });
        taken.is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Filter that returns true for log levels to keep.
pub(crate) type LevelSieve = Arc<dyn Fn(LogLevel) -> bool + Send + Sync>;

/// Draft with the log lines and outputs of the replies whose reports it holds.
pub(crate) struct Drafted {
    pub(crate) draft: CheckpointDraft,
    pub(crate) lines: DraftLines,
    pub(crate) results: DraftResults,
}

/// Log lines of a draft, and the number dropped for lack of room.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct DraftLines {
    pub(crate) lines: Vec<DataLogLine>,
    pub(crate) dropped: u64,
}

impl DraftLines {
    /// Adds the line that alerts people to responses which don't say their cost.
    pub(crate) fn miss_cost(&mut self, shard: ShardId, unit: &Unit, at: WallMs) {
        self.lines.push(DataLogLine {
            shard,
            at,
            origin: LogOrigin::System,
            code: Some(COST_MISSING.to_owned()),
            line: LogLine {
                index: None,
                level: LogLevel::Warn,
                message: words::cost_missing(unit.as_str()).to_string(),
                extra: None,
            },
        });
    }
}

/// Number and size of the lines that a draft took, until it is stored.
struct Parcel {
    draft_no: u64,
    lines: usize,
    bytes: u64,
}

/// Log lines of a run that are not stored yet.
pub(crate) struct ReplyLines {
    keeps: LevelSieve,
    room: Arc<LineRoom>,
    waiting: Vec<DataLogLine>,
    waiting_bytes: u64,
    dropped: u64,
    out: Vec<Parcel>,
}

impl ReplyLines {
    pub(crate) fn new(keeps: LevelSieve, room: Arc<LineRoom>) -> ReplyLines {
        ReplyLines {
            keeps,
            room,
            waiting: Vec::new(),
            waiting_bytes: 0,
            dropped: 0,
            out: Vec::new(),
        }
    }

    /// True if the next draft would carry neither lines nor a number of dropped ones.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.dropped == 0
    }

    /// True if half of the room is used and no draft is on its way, so that a checkpoint would make room.
    #[inline]
    pub(crate) fn is_checkpoint_due(&self) -> bool {
        (self.waiting.len() >= LINES_MAX / 2 || self.waiting_bytes >= RUN_BYTES_MAX / 2)
            && self.out.is_empty()
    }

    /// Takes lines in, up to the bounds; leaves out levels that are not kept.
    pub(crate) fn take_in(&mut self, lines: &mut Vec<DataLogLine>) {
        for line in lines.drain(..) {
            if (self.keeps)(line.line.level) {
                self.add(line);
            }
        }
    }

    fn add(&mut self, line: DataLogLine) {
        let bytes = line.bytes();
        let (held, held_bytes) = self.held();
        let fits = held < LINES_MAX && held_bytes + bytes <= RUN_BYTES_MAX;
        if fits && self.room.try_take(bytes) {
            self.waiting_bytes += bytes;
            self.waiting.push(line);
        } else {
            self.dropped += 1;
        }
    }

    fn held(&self) -> (usize, u64) {
        let out = self
            .out
            .iter()
            .fold((0, 0), |sum, one| (sum.0 + one.lines, sum.1 + one.bytes));
        (self.waiting.len() + out.0, self.waiting_bytes + out.1)
    }

    /// Moves all waiting lines into the draft `draft_no`.
    pub(crate) fn take_for(&mut self, draft_no: u64) -> DraftLines {
        let lines = std::mem::take(&mut self.waiting);
        let bytes = std::mem::take(&mut self.waiting_bytes);
        self.out.push(Parcel {
            draft_no,
            lines: lines.len(),
            bytes,
        });
        DraftLines {
            lines,
            dropped: std::mem::take(&mut self.dropped),
        }
    }

    /// Frees the room of this draft and all earlier ones, which are now stored.
    pub(crate) fn on_stored(&mut self, draft_no: u64) {
        let is_stored = |one: &mut Parcel| one.draft_no <= draft_no;
        let bytes = self.out.extract_if(.., is_stored).map(|one| one.bytes).sum();
        self.room.give_back(bytes);
    }
}

impl Drop for ReplyLines {
    fn drop(&mut self) {
        self.room.give_back(self.held().1);
    }
}

/// Counts the log lines of a stored checkpoint in the metrics.
pub(crate) fn count_lines(checkpoint: &ShardCheckpoint, node: &NodeContext) {
    for replies in &checkpoint.lines {
        replies
            .lines
            .iter()
            .for_each(|line| node.meters.stored_lines(line.line.level, 1));
        node.meters.dropped_lines(DropReason::Queue, replies.dropped);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::handling::data_log::LogOrigin;
    use crate::ports::handling::handler::LogLine;
    use windrow_core::ids::{ShardId, TaskId, WallMs};

    fn lines(count: usize, bytes: usize) -> Vec<DataLogLine> {
        let line = DataLogLine {
            shard: ShardId {
                task: TaskId(1),
                no: 0,
            },
            at: WallMs(1),
            origin: LogOrigin::Business,
            code: None,
            line: LogLine {
                index: None,
                level: LogLevel::Info,
                message: "x".repeat(bytes),
                extra: None,
            },
        };
        vec![line; count]
    }

    fn keeping_all(room: &Arc<LineRoom>) -> ReplyLines {
        ReplyLines::new(Arc::new(|_| true), room.clone())
    }

    #[test]
    fn what_finds_no_room_is_counted_in_the_same_draft() {
        let mut waiting = keeping_all(&Arc::new(LineRoom::new()));
        waiting.take_in(&mut lines(LINES_MAX + 3, 1));
        let first = waiting.take_for(1);
        assert_eq!((first.lines.len(), first.dropped), (LINES_MAX, 3));
        waiting.take_in(&mut lines(2, 1));
        assert_eq!(
            waiting.take_for(2),
            DraftLines {
                lines: Vec::new(),
                dropped: 2
            },
            "the first is not stored yet"
        );
        waiting.on_stored(1);
        waiting.take_in(&mut lines(2, 1));
        assert_eq!(waiting.take_for(3).lines.len(), 2);
    }

    #[test]
    fn a_run_holds_so_many_bytes_and_asks_for_a_checkpoint_at_half_of_them() {
        let mut waiting = keeping_all(&Arc::new(LineRoom::new()));
        let eighth = (RUN_BYTES_MAX / 8) as usize - 200;
        waiting.take_in(&mut lines(4, eighth));
        assert!(!waiting.is_checkpoint_due());
        waiting.take_in(&mut lines(1, eighth));
        assert!(waiting.is_checkpoint_due());
        waiting.take_in(&mut lines(4, eighth));
        let draft = waiting.take_for(1);
        assert_eq!((draft.lines.len(), draft.dropped), (8, 1));
        waiting.take_in(&mut lines(5, eighth));
        assert!(!waiting.is_checkpoint_due(), "one is on its way");
    }

    #[test]
    fn a_node_bounds_the_lines_of_all_its_runs_and_gets_back_what_they_held() {
        let room = Arc::new(LineRoom::new());
        let runs = usize::try_from(NODE_BYTES_MAX / RUN_BYTES_MAX).expect("few");
        let full: Vec<ReplyLines> = (0..runs).map(|_| fill(&room)).collect();
        let mut late = keeping_all(&room);
        late.take_in(&mut lines(1, 1 << 20));
        assert_eq!(late.take_for(1).dropped, 1);
        drop(full);
        late.take_in(&mut lines(1, 1 << 20));
        assert_eq!(late.take_for(2).lines.len(), 1);
        late.on_stored(2);
        drop(late);
        assert_eq!(room.0.load(Ordering::Relaxed), NODE_BYTES_MAX);
    }

    fn fill(room: &Arc<LineRoom>) -> ReplyLines {
        let mut run = keeping_all(room);
        run.take_in(&mut lines(16, (RUN_BYTES_MAX / 16) as usize - 200));
        run.take_in(&mut lines(16, 1));
        run
    }

    #[test]
    fn levels_that_nobody_keeps_take_no_room_and_are_not_missed() {
        let mut waiting = ReplyLines::new(
            Arc::new(|level| level >= LogLevel::Warn),
            Arc::new(LineRoom::new()),
        );
        waiting.take_in(&mut lines(3, 1));
        assert_eq!(waiting.take_for(1), DraftLines::default());
    }
}
