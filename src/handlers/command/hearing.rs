//! Interpretation of a worker's lines for its items.

use super::BAD_REPLY_PATIENCE;
use super::answer::{Answer, Judged};
use super::life::{Fate, Life};
use super::lines::Line;
use super::program::COMMAND_NOT_STARTED;
use super::protocol::{self, Said};
use crate::wire;
use windrow_core::execution::Usage;
use windrow_core::ids::ItemIndex;
use windrow_core::items::verdict::{Failure, Outcome};
use windrow_engine::ports::handling::handler::{ItemReplies, ItemVerdict};

impl Life<'_> {
    /// Handles all lines that have been read, until one decides the worker's fate.
    pub(super) fn hear_all(&mut self) -> Option<Fate> {
        while let Some(line) = self.stdout.take_line() {
            if let Some(fate) = self.hear(line) {
                return Some(fate);
            }
        }
        None
    }

    /// Handles one line. Returns the worker's fate if the line decides it.
    pub(super) fn hear(&mut self, line: Line) -> Option<Fate> {
        self.line_no += 1;
        if self.line_no == 1 {
            self.shared
                .pool
                .edit(self.worker, |worker_state| worker_state.has_spoken = true);
        }
        self.hint_at = None;
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.is_awaited = false;
        }
        match line {
            // Some languages begin their output with a byte order mark.
            Line::Whole(line) if self.line_no == 1 => self.understand(wire::unmarked(&line)),
            Line::Whole(line) => self.understand(&line),
            Line::Overlong(start) => Some(self.on_overlong(&start)),
        }
    }

    fn understand(&mut self, line: &[u8]) -> Option<Fate> {
        match protocol::read(line) {
            Said::Word(result) => self.on_answer(None, result.as_bytes()),
            Said::Result { id } => self.on_answer(id, line),
            Said::Ready { concurrency } => self.on_ready(concurrency),
            Said::Log => self.on_log(line),
            Said::Command => self.on_command(line),
            Said::Bye => self.on_bye(),
            Said::Pong | Said::Nothing => None,
            Said::Echo => self.on_echo(line),
            Said::Garbage(why) => {
                self.on_garbage(&why, line);
                None
            }
        }
    }

    fn on_ready(&mut self, concurrency: u32) -> Option<Fate> {
        let step = self.handshake.on_ready();
        self.shared.learn(self.handshake.kind());
        let fate = self.step(step);
        let concurrency = concurrency.min(self.shared.settings.max_in_flight.get());
        self.shared
            .pool
            .edit(self.worker, |worker_state| worker_state.concurrency = concurrency);
        fate
    }

    fn on_answer(&mut self, id: Option<u64>, body: &[u8]) -> Option<Fate> {
        // Before the first item, every answer is one to the hello, whatever its id.
        let id = id.filter(|_| self.handshake.has_begun());
        if id.is_none()
            && let Some(step) = self.handshake.on_bare_answer()
        {
            return self.step(step);
        }
        match (self.shared.pool.take(self.worker, id), id) {
            (Some(item), _) => {
                let answer = self.judged(body, item.index);
                self.shared.pool.answer(item, answer);
                None
            }
            (None, None) => Some(self.on_surplus_answer()),
            (None, Some(id)) => {
                self.on_unknown_id(id);
                None
            }
        }
    }

    /// Converts an answer to the outcome of its item. The plainest answer, which fast workers give a million times,
    /// isn't parsed.
    fn judged(&self, body: &[u8], index: ItemIndex) -> Answer {
        if body == wire::OK.as_bytes() {
            return Judged::Said(ItemVerdict::Settled(Outcome::Succeeded)).into();
        }
        match wire::item_result(body, index) {
            Ok(replies) => Answer {
                used: self
                    .shared
                    .costs
                    .as_ref()
                    .map_or_else(Usage::new, |costs| costs.read(body)),
                ..said(replies)
            },
            Err(why) => Judged::BadReply(self.with_line(&why)).into(),
        }
    }

    /// Handles an answer to an item that is not outstanding. A late one is no fault; one to an id that never existed
    /// explains why other items get no answer.
    fn on_unknown_id(&mut self, id: u64) {
        if self.shared.pool.has_given_out(id) {
            tracing::debug!(
                worker = self.worker + 1,
                id,
                "answer to an item that is not outstanding"
            );
            return;
        }
        let before = self
            .shared
            .pool
            .edit(self.worker, |worker_state| worker_state.strange_id.replace(id));
        if before == Some(None) {
            let line = self.line_no;
            self.notes.warn(&format!(
                "line {line} answers the unknown id {id}; copy the item's id into its answer"
            ));
        }
    }

    /// Handles an answer that nobody asked for: the worker may have answered items before it got them, so it can't be
    /// trusted with the next one.
    fn on_surplus_answer(&mut self) -> Fate {
        self.handshake.on_surplus_answer();
        self.shared.learn(self.handshake.kind());
        let message = format!(
            "worker {} answered (line {}) though no item was outstanding; answer each line exactly once, \
             or include the id",
            self.worker + 1,
            self.line_no
        );
        self.notes.warn(&message);
        let failure = Failure::new(wire::BAD_REPLY, message);
        self.shared.pool.on_surplus_answer(&failure);
        Fate::Kill(failure, false)
    }

    fn on_log(&mut self, line: &[u8]) -> Option<Fate> {
        match wire::parse_log(line) {
            Ok(line) => (self.shared.settings.sink)(line),
            Err(why) => self.notes.warn(&self.with_line(&why).message),
        }
        None
    }

    fn on_command(&mut self, line: &[u8]) -> Option<Fate> {
        match wire::parse_command(line) {
            Ok(command) => self.shared.pool.on_command(self.worker, command),
            Err(why) => self.notes.warn(&self.with_line(&why).message),
        }
        None
    }

    /// Handles an echo of what the worker was sent. A worker that echoes the hello would echo the items too, and
    /// never report a result.
    fn on_echo(&mut self, line: &[u8]) -> Option<Fate> {
        if self.handshake.has_begun() {
            self.on_garbage("it repeats what the worker was sent", line);
            return None;
        }
        let message = format!(
            "worker {} ({}) echoes its input; print ok, skip, retry or fail for each item instead",
            self.worker + 1,
            self.shared.program.describe(),
        );
        Some(Fate::Kill(Failure::new(COMMAND_NOT_STARTED, message), true))
    }

    /// Gives the worker no more items, and the usual grace period to leave.
    fn on_bye(&mut self) -> Option<Fate> {
        let at = self.now().plus(self.shared.settings.kill_grace);
        self.shared
            .pool
            .edit(self.worker, |worker_state| worker_state.retiring = Some(at));
        None
    }

    fn on_garbage(&mut self, why: &str, line: &[u8]) {
        let message = format!(
            "line {} of the worker's stdout is not a protocol line: {} ({why}); stdout is for the \
             protocol only, print everything else to stderr",
            self.line_no,
            wire::quote(line)
        );
        let until = self
            .now()
            .plus(self.shared.settings.kill_grace.min(BAD_REPLY_PATIENCE));
        let failure = Failure::new(wire::BAD_REPLY, &message);
        if self.shared.pool.on_garbage(self.worker, failure, until) {
            self.garbage = Some(self.line_no);
        } else {
            self.notes.warn(&message);
        }
    }

    fn on_overlong(&mut self, start: &[u8]) -> Fate {
        let message = format!(
            "line {} of the worker's stdout is longer than {} bytes (max_line): {}",
            self.line_no,
            self.shared.settings.max_line,
            wire::quote(start)
        );
        let failure = Failure::new(wire::BAD_REPLY, message);
        let now = self.now();
        self.shared.pool.on_garbage(self.worker, failure.clone(), now);
        Fate::Kill(Failure::new(super::WORKER_RESTARTED, failure.message), false)
    }

    fn with_line(&self, failure: &Failure) -> Failure {
        let message = format!(
            "line {} of the worker's stdout: {}",
            self.line_no, failure.message
        );
        Failure::new(failure.code.clone(), message)
    }
}

fn said(replies: ItemReplies) -> Answer {
    let ItemReplies {
        verdicts,
        commands,
        logs,
    } = replies;
    let judged = match verdicts.into_iter().next() {
        Some((_, verdict)) => Judged::Said(verdict),
        // `item_result` always gives one verdict.
        None => Judged::BadReply(Failure::new(wire::BAD_REPLY, "the reply has no verdict")),
    };
    Answer {
        judged,
        commands,
        logs,
        used: Usage::new(),
    }
}
