//! One process, from its start to its end, on the thread that runs it.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions, pidfd_open, waitid};

use super::Shared;
use super::pipes::{self, Printed, Said};
use super::pool::Job;
use super::records::Record;
use super::verdict;
use crate::command::answer::Judged;
use crate::command::group::ProcessGroup;
use windrow_core::ids::Moment;
use windrow_core::items::verdict::{Failure, RetryAdvice};
use windrow_core::template::TEMPLATE_VALUE;
use windrow_core::template::program::{Filled, ItemFacts};
use windrow_engine::ports::handling::handler::ItemVerdict;

/// Time that children left by a process may hold its stdout or stderr open before they are killed.
const LEFT_GRACE: Duration = Duration::from_millis(100);
/// Interval of checks where the kernel has no descriptors for processes (before Linux 5.3).
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Starts the item's process and stays until it is gone.
pub(super) fn run(shared: &Shared, job: &Job, record: &mut Record) -> Judged {
    let key = shared.run.item_key(job.index);
    let data = job.call.rows.data(job.index);
    let facts = ItemFacts {
        index: job.index,
        key: &key,
        attempt: job.attempt,
        data,
    };
    let filled = match shared.settings.recipe.fill(&facts) {
        Ok(filled) => filled,
        Err(why) => return given_up(Failure::new(TEMPLATE_VALUE, why.to_string())),
    };
    let stdin = match pipes::stdin(data) {
        Ok(stdin) => stdin,
        Err(why) => return verdict::no_room(&why),
    };
    let mut command = command(shared, &facts, filled);
    command.stdin(stdin);
    if !shared.run.gate.is_open(shared.settings.clock.now()) || !job.stage.start() {
        return Judged::NotSent;
    }
    record.starting(&key);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(why) => {
            record.ended();
            return verdict::not_started(&why, &shared.program);
        }
    };
    // From now on, only the process has its ends of the pipes.
    drop(command);
    tend(shared, job, &mut child, record)
}

fn given_up(failure: Failure) -> Judged {
    Judged::Said(ItemVerdict::Failed {
        failure,
        advice: RetryAdvice::Fail,
    })
}

fn command(shared: &Shared, item: &ItemFacts<'_>, filled: Filled) -> Command {
    let program = &shared.program;
    let parent = shared.run.traces().id(item.index).parent(item.attempt);
    let mut command = Command::new(&program.path);
    command.arg0(&program.argv[0]).args(filled.arguments);
    command
        .env_clear()
        .envs(&program.environment)
        .envs(filled.variables);
    command
        .env("WINDROW_INDEX", item.index.0.to_string())
        .env("WINDROW_KEY", item.key)
        .env("WINDROW_ATTEMPT", item.attempt.get().to_string())
        .env("TRACEPARENT", OsStr::from_bytes(&parent));
    if let Some(cwd) = &shared.settings.cwd {
        command.current_dir(cwd);
    }
    let stdout = if shared.run.keeps_results {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    command.stdout(stdout).stderr(Stdio::piped()).process_group(0);
    command
}

/// Reads the output of the process until it is gone, with everything that it left.
fn tend(shared: &Shared, job: &Job, child: &mut Child, record: &mut Record) -> Judged {
    let Some(group) = ProcessGroup::led_by(child.id()) else {
        return verdict::no_room(&io::Error::other("the process has no id"));
    };
    record.running(group.pid());
    let pid = Pid::from_child(child);
    job.stage.run(group);
    let mut life = Life {
        exit: pidfd_open(pid, PidfdFlags::empty()).ok(),
        pid,
        printed: Printed::of(child),
        said: Said::new(job.index, &shared.notes),
    };
    let heard = life.hear(shared);
    let was_killed = job.stage.end();
    let status: io::Result<ExitStatus> = child.wait();
    record.ended();
    if let Err(why) = heard {
        tracing::warn!(%why, "can't read the output of a process");
    }
    let tail = life.said.finish();
    match status {
        Ok(status) if was_killed && status.code().is_none() => {
            Judged::Lost(verdict::timeout(job.call.timeout, Some(&tail)))
        }
        Ok(status) => {
            let unavailable = &shared.settings.unavailable_exits;
            verdict::judge(status, life.printed.stdout(), &tail, &shared.program, unavailable)
        }
        Err(why) => Judged::Lost(verdict::unknown(&why)),
    }
}

/// Live process, with its output.
struct Life<'a> {
    /// Descriptor that is readable once the process has exited; `None` if the kernel has none.
    exit: Option<OwnedFd>,
    pid: Pid,
    printed: Printed,
    said: Said<'a>,
}

impl Life<'_> {
    /// Returns once the process has exited and its pipes are closed, or once the grace for what it left is over.
    fn hear(&mut self, shared: &Shared) -> io::Result<()> {
        let mut until: Option<Moment> = None;
        loop {
            let now = || shared.settings.clock.now();
            if let Some(until) = until
                && (self.printed.is_over() || now() >= until)
            {
                return Ok(());
            }
            let timeout = match (until, &self.exit) {
                (Some(until), _) => Some(until.since(now())),
                (None, Some(_)) => None,
                (None, None) => Some(LOOK_EVERY),
            };
            let exited = self.wait(timeout)?;
            if exited && until.is_none() {
                until = Some(now().plus(LEFT_GRACE));
            }
        }
    }

    /// Reads what is available, for at most `timeout`. Returns true if the process has exited.
    fn wait(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(3);
        fds.extend(self.exit.as_ref().map(|exit| PollFd::new(exit, PollFlags::IN)));
        let pipes = self.printed.descriptors();
        fds.extend(
            pipes
                .iter()
                .map(|(_, pipe)| PollFd::from_borrowed_fd(*pipe, PollFlags::IN)),
        );
        let timeout = timeout.map(|span| Timespec {
            tv_sec: span.as_secs().cast_signed(),
            tv_nsec: span.subsec_nanos().into(),
        });
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(why) => return Err(why.into()),
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let (exit, rest) = ready.split_at(usize::from(self.exit.is_some()));
        let readable: Vec<_> = pipes
            .iter()
            .zip(rest)
            .filter_map(|((pipe, _), is_ready)| is_ready.then_some(*pipe))
            .collect();
        let has_exited = match exit {
            [has_exited] => *has_exited,
            _ => self.has_exited()?,
        };
        for pipe in readable {
            self.printed.read(pipe, &mut self.said)?;
        }
        Ok(has_exited)
    }

    /// Returns true if the process has exited, without reaping it.
    fn has_exited(&self) -> io::Result<bool> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(self.pid), options)?.is_some())
    }
}
