//! End of a worker's life: orderly or not, no process of it survives, and its last output is read.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use super::life::{EOF_GRACE, Fate, Life};
use super::lines::Line;
use super::pool::End;
use super::protocol::{self, Said};
use super::{WORKER_CRASH, program};
use crate::wire;
use windrow_core::items::verdict::Failure;
use windrow_core::settings::text::span_text;

/// Time a worker has to end after SIGTERM, which follows its grace period.
const TERM_GRACE: Duration = Duration::from_secs(1);
/// Time after which a warning says that a worker which was told to end is still running.
const QUIET_GRACE: Duration = Duration::from_secs(2);
/// Space for stderr in a failure's message, in bytes; the output has more.
const STDERR_BYTES_MAX: usize = 640;

impl Life<'_> {
    /// Ends the process with all its children and reads the remaining output. Returns how it ended, and true if it
    /// had answered anything.
    pub(super) async fn finish(mut self, fate: Fate) -> (End, bool) {
        if matches!(fate, Fate::Closing) {
            self.say_goodbye().await;
        }
        // No item may be given to a worker that is sure to end.
        self.hang_up();
        // However it ends, the worker's children do not outlive it.
        self.group.kill();
        let status = self.child.wait().await;
        self.hear_the_rest().await;
        self.let_attached_end().await;
        self.shared.leftovers.remove(self.group.pid());
        let facts = self.shared.pool.edit(self.worker, |worker_state| {
            (
                worker_state.has_answered,
                worker_state.oldest_awaited().is_some(),
                worker_state.retiring.is_some(),
            )
        });
        let (has_answered, has_items, said_bye) = facts.unwrap_or_default();
        let end = match fate {
            Fate::Closing => End::Left,
            Fate::Kill(why, false) => End::Ended(why),
            Fate::Kill(why, true) => End::Crashed(why),
            Fate::Exited(exit) if has_answered && !has_items && (said_bye || is_success(&exit)) => End::Left,
            Fate::Exited(_) => End::Crashed(self.crash(&status, has_items)),
        };
        // The leader is reaped and the group killed: from now on its number may belong to another process.
        self.group.disarm();
        (end, has_answered)
    }

    /// Tells the worker to end and gives it the grace period, then SIGTERM.
    async fn say_goodbye(&mut self) {
        let grace = self.shared.settings.kill_grace;
        if self.handshake.kind().takes_orders() && self.handshake.has_begun() {
            let farewell = protocol::farewell(&span_text(grace));
            self.shared
                .pool
                .edit(self.worker, |worker_state| worker_state.tell(farewell));
        }
        self.hang_up();
        let quiet = grace.min(QUIET_GRACE);
        if !self.ends_within(quiet).await && !self.ends_loudly_within(grace - quiet).await {
            self.group.terminate();
            self.ends_within(grace.min(TERM_GRACE)).await;
        }
    }

    /// Logs what is being waited for, then waits.
    async fn ends_loudly_within(&mut self, grace: Duration) -> bool {
        if !grace.is_zero() {
            let (worker, program) = (self.worker + 1, self.shared.program.describe());
            tracing::warn!(
                worker,
                %program,
                killed_in = ?grace,
                "worker still running after it was told to exit (handler.command.kill_grace)"
            );
        }
        self.ends_within(grace).await
    }

    /// Closes stdin once everything is written.
    fn hang_up(&mut self) {
        self.outbox = None;
        self.shared
            .pool
            .edit(self.worker, |worker_state| worker_state.outbox = None);
    }

    /// Waits for the end while still reading stdout, so that the worker never blocks on it.
    async fn ends_within(&mut self, grace: Duration) -> bool {
        let clock = &self.shared.settings.clock;
        let mut over = clock.sleep_until(clock.now().plus(grace));
        loop {
            tokio::select! {
                status = self.child.wait() => return status.is_ok(),
                output = self.stdout.fill(), if !self.stdout_ended => self.on_last_output(&output),
                () = &mut over => return false,
            }
        }
    }

    /// Reads the answers still in the pipe, for a bounded time: a process that escaped the group could hold the pipe
    /// open forever.
    async fn hear_the_rest(&mut self) {
        let clock = &self.shared.settings.clock;
        let mut over = clock.sleep_until(clock.now().plus(EOF_GRACE));
        while !self.stdout_ended {
            tokio::select! {
                output = self.stdout.fill() => self.on_last_output(&output),
                () = &mut over => return,
            }
        }
        if let Some(rest) = self.stdout.take_rest() {
            self.hear_cut(rest);
        }
    }

    /// Handles a last line without a newline. A complete message counts; a partial one is due to the worker's death,
    /// and no fault of the handler.
    fn hear_cut(&mut self, rest: Vec<u8>) {
        if let Said::Garbage(_) = protocol::read(&rest) {
            let text = wire::quote(&rest);
            return self
                .notes
                .warn(&format!("ended in the middle of a line of its stdout: {text}"));
        }
        self.hear_last(Line::Whole(rest));
    }

    fn on_last_output(&mut self, output: &io::Result<usize>) {
        self.stdout_ended = !matches!(output, Ok(1..));
        while let Some(line) = self.stdout.take_line() {
            self.hear_last(line);
        }
    }

    /// Handles a line of a worker that is ending anyway, so no line can change its fate.
    fn hear_last(&mut self, line: Line) {
        drop(self.hear(line));
    }

    /// Waits for the capture of stderr, whose last words belong to the failure.
    async fn let_attached_end(&mut self) {
        let clock = &self.shared.settings.clock;
        let mut over = clock.sleep_until(clock.now().plus(EOF_GRACE));
        loop {
            tokio::select! {
                ended = self.attached.join_next() => if ended.is_none() { return },
                () = &mut over => return,
            }
        }
    }

    fn crash(&self, status: &io::Result<ExitStatus>, has_items: bool) -> Failure {
        let when = if has_items {
            "while items were in flight"
        } else {
            "with no item in flight"
        };
        let message = format!(
            "worker {} ({}) {} {when}; {}",
            self.worker + 1,
            self.shared.program.describe(),
            describe(status, &self.shared.program),
            self.tail.describe(STDERR_BYTES_MAX),
        );
        let mut failure = Failure::new(WORKER_CRASH, message);
        failure.output = self.tail.to_json();
        failure
    }
}

fn is_success(status: &io::Result<ExitStatus>) -> bool {
    status.as_ref().is_ok_and(ExitStatus::success)
}

/// Describes how a process ended, and what to try.
fn describe(status: &io::Result<ExitStatus>, program: &program::Program) -> String {
    let status = match status {
        Ok(status) => status,
        Err(why) => return format!("ended with an unknown status ({why})"),
    };
    match (status.code(), status.signal()) {
        (Some(127), _) => {
            format!(
                "exited with code 127 (command not found in PATH={})",
                program.search_path()
            )
        }
        (Some(126), _) => "exited with code 126 (found, but not executable; try chmod +x)".to_owned(),
        (Some(0), _) => "exited with code 0 (a worker must read lines until its stdin closes)".to_owned(),
        (Some(code), _) => format!("exited with code {code}"),
        (None, Some(9)) => "was killed by signal 9 (SIGKILL; out of memory?)".to_owned(),
        (None, signal) => format!("was killed by signal {}", signal.unwrap_or_default()),
    }
}
