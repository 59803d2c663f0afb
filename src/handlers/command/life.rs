//! One life of a worker: from the start of its process until nothing of it is left.
//!
//! A single task that waits for the next event and hands it on: lines are interpreted in `hearing`, the end is in
//! `ending`. Dropping a life kills the process with all its children.

use std::io;
use std::process::{ExitStatus, Stdio};

use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::group::ProcessGroup;
use super::handshake::{Handshake, Step, WorkerKind};
use super::lines::LineReader;
use super::pool::End;
use super::program::COMMAND_NOT_STARTED;
use super::protocol;
use super::stderr::{Capture, Notes, Tail};
use super::worker::Shared;
use super::worker_state::Due;
use super::writer::{ReadSoFar, Writer};
use super::{WORKER_CRASH, WORKER_HUNG};
use windrow_core::ids::Moment;
use windrow_core::items::verdict::Failure;

/// Time a worker may live after it closed its stdout: usually it is just exiting.
pub(super) const EOF_GRACE: std::time::Duration = std::time::Duration::from_secs(1);

/// Process of a worker, with everything attached to it.
pub(super) struct Life<'a> {
    pub(super) shared: &'a Shared,
    pub(super) worker: usize,
    pub(super) child: Child,
    pub(super) group: ProcessGroup,
    pub(super) stdout: LineReader<ChildStdout>,
    pub(super) stdout_ended: bool,
    pub(super) line_no: u64,
    pub(super) handshake: Handshake,
    /// Queue of lines for the worker; `None` once stdin is to be closed.
    pub(super) outbox: Option<mpsc::UnboundedSender<String>>,
    read: watch::Receiver<ReadSoFar>,
    probes: watch::Sender<bool>,
    /// Tasks that write stdin and capture stderr.
    pub(super) attached: JoinSet<()>,
    pub(super) tail: Tail,
    pub(super) notes: Notes,
    eof_at: Option<Moment>,
    /// Time to hint that the worker may not flush stdout; set with the first item, reset by the first line.
    pub(super) hint_at: Option<Moment>,
    pub(super) heartbeat: Option<Heartbeat>,
    /// Number of the last stdout line that took the place of an answer.
    pub(super) garbage: Option<u64>,
}

/// State of the pings to a worker.
pub(super) struct Heartbeat {
    next_at: Moment,
    number: u64,
    pub(super) is_awaited: bool,
}

/// Event in the life of a worker.
enum Event {
    Output(io::Result<usize>),
    Read(ReadSoFar),
    Exited(io::Result<ExitStatus>),
    Closing,
    /// Time passed, or the pool changed something.
    Look,
}

/// Reason why a life ends.
pub(super) enum Fate {
    /// The process has exited.
    Exited(io::Result<ExitStatus>),
    /// The process is to be killed; the flag is true if its items are suspects.
    Kill(Failure, bool),
    /// The handler is closing.
    Closing,
}

impl<'a> Life<'a> {
    /// Starts the process and sends the hello.
    ///
    /// # Errors
    /// If the process can't be started.
    pub(super) fn begin(shared: &'a Shared, worker: usize) -> Result<Life<'a>, Failure> {
        let mut child = spawn(shared).map_err(|why| not_started(shared, &why))?;
        let group = child.id().and_then(ProcessGroup::led_by);
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(group), (Some(stdin), Some(stdout), Some(stderr))) = (group, pipes) else {
            let why = io::Error::other("the process has no id or no pipes");
            return Err(not_started(shared, &why));
        };
        shared.leftovers.add(group.pid());
        let settings = &shared.settings;
        let (outbox, lines) = mpsc::unbounded_channel();
        let (read_sender, read) = watch::channel(ReadSoFar::Nothing);
        let kind = shared.kind();
        let (probes, probes_receiver) = watch::channel(kind == WorkerKind::Unknown);
        let tail = Tail::default();
        let prefix = format!("worker {}", worker + 1);
        let notes = Notes::new(prefix, settings.sink.clone(), settings.clock.clone());
        let writer = Writer {
            stdin,
            lines,
            read: read_sender,
            probes: probes_receiver,
        };
        let mut attached = JoinSet::new();
        attached.spawn(writer.run());
        attached.spawn(Capture::of(&tail, &notes).run(stderr));
        let hello = protocol::hello(&shared.run, settings.max_in_flight.get(), settings.heartbeat);
        drop(outbox.send(hello));
        let startup_at = settings.clock.now().plus(settings.startup_timeout);
        Ok(Life {
            shared,
            worker,
            child,
            group,
            stdout: LineReader::new(stdout, settings.max_line),
            stdout_ended: false,
            line_no: 0,
            handshake: Handshake::new(kind, startup_at),
            outbox: Some(outbox),
            read,
            probes,
            attached,
            tail,
            notes,
            eof_at: None,
            hint_at: None,
            heartbeat: None,
            garbage: None,
        })
    }

    /// Runs until the end. Returns how the life ended, and true if the worker answered anything.
    pub(super) async fn live(mut self) -> (End, bool) {
        let fate = loop {
            let event = self.next_event().await;
            if let Some(fate) = self.on_event(event) {
                break fate;
            }
        };
        self.finish(fate).await
    }

    pub(super) fn now(&self) -> Moment {
        self.shared.settings.clock.now()
    }

    async fn next_event(&mut self) -> Event {
        let wake_at = self.wake_at();
        let clock = &self.shared.settings.clock;
        let wake = async {
            match wake_at {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        let mut closing = self.shared.pool.closing();
        let watches = !self.handshake.has_begun();
        tokio::select! {
            biased;
            // The pool outlives this life, so the channel is never closed.
            _ = closing.wait_for(|closing| *closing) => Event::Closing,
            output = self.stdout.fill(), if !self.stdout_ended => Event::Output(output),
            Ok(()) = self.read.changed(), if watches => Event::Read(*self.read.borrow_and_update()),
            status = self.child.wait() => Event::Exited(status),
            () = self.shared.pool.stirred(self.worker) => Event::Look,
            () = wake => Event::Look,
        }
    }

    /// Returns the earliest time at which something is due without an event.
    fn wake_at(&self) -> Option<Moment> {
        let items = match self.shared.pool.review(self.worker, self.now()) {
            Due::At(at) => at,
            Due::Kill => Some(self.now()),
        };
        let ping = self.heartbeat.as_ref().map(|heartbeat| heartbeat.next_at);
        [items, self.handshake.due_at(), self.eof_at, self.hint_at, ping]
            .into_iter()
            .flatten()
            .min()
    }

    fn on_event(&mut self, event: Event) -> Option<Fate> {
        match event {
            Event::Closing => Some(Fate::Closing),
            Event::Exited(status) => Some(Fate::Exited(status)),
            // A worker that prints all the time must not delay what is due.
            Event::Output(Ok(1..)) => self.hear_all().or_else(|| self.look()),
            Event::Output(_) => {
                self.stdout_ended = true;
                self.eof_at = Some(self.now().plus(EOF_GRACE));
                None
            }
            Event::Read(so_far) => self.on_read(so_far),
            Event::Look => self.look(),
        }
    }

    fn on_read(&mut self, so_far: ReadSoFar) -> Option<Fate> {
        match so_far {
            ReadSoFar::Nothing => None,
            ReadSoFar::Hello => {
                let step = self.handshake.on_hello_read();
                self.step(step)
            }
            ReadSoFar::NextLineBegun => {
                // Order matters: the worker has read, so whatever it printed before is in the pipe by now.
                let unread = rustix::io::ioctl_fionread(self.stdout.inner()).unwrap_or(0);
                let has_printed = unread > 0 || !self.stdout.is_drained();
                self.handshake.on_next_line_begun(has_printed, self.now());
                None
            }
        }
    }

    /// Performs the step that the handshake asks for.
    pub(super) fn step(&mut self, step: Step) -> Option<Fate> {
        match step {
            Step::Wait => None,
            Step::Begin => {
                self.begin_items();
                None
            }
            Step::NotReading => Some(self.not_ready("did not read its input")),
            Step::NotAnswering => {
                self.shared.learn(WorkerKind::Unknown);
                Some(self.not_ready("read the hello, but neither answered it nor asked for the next line"))
            }
        }
    }

    fn begin_items(&mut self) {
        let kind = self.handshake.kind();
        self.shared.learn(kind);
        self.probes.send_replace(false);
        let Some(outbox) = self.outbox.clone() else { return };
        self.shared
            .pool
            .began(self.worker, outbox, kind.takes_orders(), self.line_no > 0);
        let settings = &self.shared.settings;
        if self.line_no == 0 {
            self.hint_at = Some(self.now().plus(settings.startup_timeout));
        }
        if let (Some(every), WorkerKind::Announcing) = (settings.heartbeat, kind) {
            self.heartbeat = Some(Heartbeat {
                next_at: self.now().plus(every),
                number: 0,
                is_awaited: false,
            });
        }
    }

    fn not_ready(&self, what: &str) -> Fate {
        self.shared.pool.on_late_start();
        let settings = &self.shared.settings;
        let message = format!(
            "worker {} ({}) {what} within {}; read stdin line by line, or raise \
             handler.command.startup_timeout for a slow start (for `windrow run`: \
             WINDROW_HANDLER__COMMAND__STARTUP_TIMEOUT=2m); {}",
            self.worker + 1,
            self.shared.program.describe(),
            humantime::format_duration(settings.startup_timeout),
            self.tail.describe(600),
        );
        Fate::Kill(Failure::new(COMMAND_NOT_STARTED, message), true)
    }

    /// Handles everything that is due now.
    fn look(&mut self) -> Option<Fate> {
        let now = self.now();
        if self.eof_at.is_some_and(|at| at <= now) {
            let message = format!(
                "worker {} closed its stdout but keeps running, so it can't answer",
                self.worker + 1
            );
            return Some(Fate::Kill(Failure::new(WORKER_CRASH, message), true));
        }
        if self.shared.pool.review(self.worker, now) == Due::Kill {
            let failure = Failure::new(WORKER_HUNG, self.overdue());
            return Some(Fate::Kill(failure, false));
        }
        if self.hint_at.is_some_and(|at| at <= now) {
            self.hint_at = None;
            self.notes
                .warn("has not printed a line yet; did you flush stdout? (python3 -u)");
        }
        let step = self.handshake.on_time(now);
        self.step(step).or_else(|| self.beat(now))
    }

    /// Explains why the worker gets no more time for the items that nobody waits for.
    fn overdue(&self) -> String {
        let worker = self.worker + 1;
        match self.garbage {
            Some(line) => format!(
                "worker {worker} printed line {line}, which is not an answer, and no answer for that \
                 item; restarting it"
            ),
            None => format!("worker {worker} held an item long after its timeout"),
        }
    }

    fn beat(&mut self, now: Moment) -> Option<Fate> {
        let (every, heartbeat) = self.shared.settings.heartbeat.zip(self.heartbeat.as_mut())?;
        if heartbeat.next_at > now {
            return None;
        }
        if heartbeat.is_awaited {
            let every = humantime::format_duration(every);
            let message = format!(
                "worker {} printed nothing for {every} (heartbeat) after a ping",
                self.worker + 1
            );
            return Some(Fate::Kill(Failure::new(WORKER_HUNG, message), false));
        }
        heartbeat.number += 1;
        heartbeat.is_awaited = true;
        heartbeat.next_at = now.plus(every);
        let ping = protocol::ping(heartbeat.number);
        self.shared
            .pool
            .edit(self.worker, |worker_state| worker_state.tell(ping));
        None
    }
}

fn spawn(shared: &Shared) -> io::Result<Child> {
    let program = &shared.program;
    let mut command = Command::new(&program.path);
    command.arg0(&program.argv[0]).args(&program.argv[1..]);
    command.env_clear().envs(&program.environment);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command.process_group(0).kill_on_drop(true).spawn()
}

fn not_started(shared: &Shared, why: &io::Error) -> Failure {
    let hint = match why.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NOEXEC) => "; does the script start with a line such as #!/bin/sh?",
        Some(rustix::io::Errno::NOENT) => {
            "; was it removed, or is the interpreter in its first line missing?"
        }
        Some(rustix::io::Errno::ACCESS) => "; try chmod +x",
        _ => "",
    };
    Failure::new(
        COMMAND_NOT_STARTED,
        format!("{} can't be started: {why}{hint}", shared.program.describe()),
    )
}
