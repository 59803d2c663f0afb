//! Handshake with a worker: tells three kinds of workers apart, without ever giving an answer to the wrong item.
//!
//! Pure. See `docs/decisions/0002-worker-hello.md`:
//! - *announcing* workers answer with `ready`;
//! - *line-by-line* workers answer every line, including the hello, with a bare word (or a result without id): `while
//!   read -r line; do …; echo ok; done`;
//! - *silent* workers skip the hello, and every other line that is no item.
//!
//! No item is sent before the kind is known. Once the worker has read the hello, the first byte of the next line is
//! written, without the rest. A worker that reads this byte asks for its next line, so it has sent any answer to the
//! hello by then. A worker that is still busy with the hello (or loads a model before it says `ready`) does not read
//! it. Only a worker that reads ahead while it works could still answer later: so a silent one is given
//! [`HELLO_GRACE`] before it counts as silent.

use std::time::Duration;

use windrow_core::ids::Moment;

/// Time in which a worker that asks for its next line may still answer the hello. (Only workers that read ahead need
/// it; 100 ms is many times what an event loop takes to answer.)
pub(super) const HELLO_GRACE: Duration = Duration::from_millis(100);

/// Kind of a command's workers, as far as their answers to the hello have shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WorkerKind {
    /// Not known yet, or no longer.
    #[default]
    Unknown,
    /// Answers the hello with `ready`.
    Announcing,
    /// Answers the hello with a bare word, like every line.
    LineByLine,
    /// Does not answer the hello.
    Silent,
}

impl WorkerKind {
    /// Returns true if a worker may be sent `cancel`, `ping` and the like: one that answers every line would answer
    /// those too.
    pub(super) fn takes_orders(self) -> bool {
        matches!(self, WorkerKind::Announcing | WorkerKind::Silent)
    }
}

/// Start of one life, until its worker may get items.
#[derive(Debug)]
pub(super) struct Handshake {
    kind: WorkerKind,
    has_begun: bool,
    has_read_hello: bool,
    startup_at: Moment,
    grace_at: Option<Moment>,
}

/// Consequence for the life of the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing to do yet.
    Wait,
    /// The worker may get items.
    Begin,
    /// The worker did not start in time: it never read its input.
    NotReading,
    /// The worker did not start in time: it read the hello, but neither answered it nor asked for the next line.
    NotAnswering,
}

impl Handshake {
    /// Creates the handshake of a life that begins now with workers of this kind, and must be ready for items by
    /// `startup_at`.
    pub(super) fn new(kind: WorkerKind, startup_at: Moment) -> Handshake {
        Handshake {
            kind,
            has_begun: false,
            has_read_hello: false,
            startup_at,
            grace_at: None,
        }
    }

    /// Returns the kind of the worker, as far as known.
    pub(super) fn kind(&self) -> WorkerKind {
        self.kind
    }

    /// Returns true once the worker may get items.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Returns the time at which `on_time` must be called; `None` once the worker may get items.
    pub(super) fn due_at(&self) -> Option<Moment> {
        (!self.has_begun).then(|| {
            self.grace_at
                .map_or(self.startup_at, |grace| grace.min(self.startup_at))
        })
    }

    /// Records that the worker has read the hello.
    pub(super) fn on_hello_read(&mut self) -> Step {
        self.has_read_hello = true;
        if self.kind == WorkerKind::Silent {
            self.begin(WorkerKind::Silent)
        } else {
            Step::Wait
        }
    }

    /// Records that the worker asks for the line after the hello. `has_printed` is true if there is output that was
    /// not examined yet.
    pub(super) fn on_next_line_begun(&mut self, has_printed: bool, now: Moment) {
        if self.kind == WorkerKind::Unknown && !has_printed {
            self.grace_at = Some(now.plus(HELLO_GRACE));
        }
    }

    /// Checks the deadlines for the grace and the start.
    pub(super) fn on_time(&mut self, now: Moment) -> Step {
        match self.grace_at {
            _ if self.has_begun => Step::Wait,
            Some(grace) if grace <= now => self.begin(WorkerKind::Silent),
            _ if now < self.startup_at => Step::Wait,
            _ if self.has_read_hello => Step::NotAnswering,
            _ => Step::NotReading,
        }
    }

    /// Records that the worker said `ready`; a late one is accepted too.
    pub(super) fn on_ready(&mut self) -> Step {
        self.begin(WorkerKind::Announcing)
    }

    /// Records an answer without an id. Returns `None` unless it was the answer to the hello.
    pub(super) fn on_bare_answer(&mut self) -> Option<Step> {
        (!self.has_begun).then(|| self.begin(WorkerKind::LineByLine))
    }

    /// Records a surplus answer: the worker counts lines differently than assumed.
    pub(super) fn on_surplus_answer(&mut self) {
        self.kind = WorkerKind::LineByLine;
    }

    fn begin(&mut self, kind: WorkerKind) -> Step {
        self.kind = kind;
        if std::mem::replace(&mut self.has_begun, true) {
            Step::Wait
        } else {
            Step::Begin
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTUP: Moment = Moment(10_000_000_000);

    fn handshake(kind: WorkerKind) -> Handshake {
        Handshake::new(kind, STARTUP)
    }

    #[test]
    fn a_bare_word_before_the_first_item_answers_the_hello() {
        let mut handshake = handshake(WorkerKind::Unknown);
        assert_eq!(handshake.on_hello_read(), Step::Wait);
        handshake.on_next_line_begun(true, Moment(1));
        assert_eq!(
            handshake.due_at(),
            Some(STARTUP),
            "it has spoken, so no grace runs"
        );
        assert_eq!(handshake.on_bare_answer(), Some(Step::Begin));
        assert_eq!(handshake.on_bare_answer(), None, "the next one means an item");
        assert_eq!(handshake.kind(), WorkerKind::LineByLine);
    }

    #[test]
    fn a_worker_that_asks_for_the_next_line_in_silence_is_silent() {
        let mut handshake = handshake(WorkerKind::Unknown);
        assert_eq!(handshake.on_hello_read(), Step::Wait);
        handshake.on_next_line_begun(false, Moment(5));
        let grace = handshake.due_at().expect("grace runs");
        assert_eq!(
            (handshake.on_time(Moment(grace.0 - 1)), handshake.on_time(grace)),
            (Step::Wait, Step::Begin)
        );
        assert_eq!(
            (handshake.on_bare_answer(), handshake.kind()),
            (None, WorkerKind::Silent)
        );
    }

    #[test]
    fn a_worker_that_is_busy_with_the_hello_gets_no_item() {
        let mut handshake = handshake(WorkerKind::Unknown);
        assert_eq!(handshake.on_hello_read(), Step::Wait);
        assert_eq!(handshake.on_time(Moment(STARTUP.0 - 1)), Step::Wait);
        assert_eq!(handshake.on_time(STARTUP), Step::NotAnswering);
    }

    #[test]
    fn a_known_manner_is_not_guessed_again() {
        assert_eq!(handshake(WorkerKind::Silent).on_hello_read(), Step::Begin);
        for kind in [WorkerKind::Announcing, WorkerKind::LineByLine] {
            let mut known = handshake(kind);
            known.on_next_line_begun(false, Moment(1));
            assert_eq!(
                (known.on_hello_read(), known.due_at()),
                (Step::Wait, Some(STARTUP))
            );
        }
    }

    #[test]
    fn a_late_ready_is_learned_for_the_next_life() {
        let mut handshake = handshake(WorkerKind::Silent);
        assert_eq!(handshake.on_hello_read(), Step::Begin);
        assert_eq!(
            (handshake.on_ready(), handshake.kind()),
            (Step::Wait, WorkerKind::Announcing)
        );
    }

    #[test]
    fn a_worker_that_never_reads_did_not_start() {
        let mut handshake = handshake(WorkerKind::Unknown);
        assert_eq!(handshake.on_time(Moment(STARTUP.0 - 1)), Step::Wait);
        assert_eq!(handshake.on_time(STARTUP), Step::NotReading);
    }
}
