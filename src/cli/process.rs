//! System duties of this process: file limits and, as process 1 of a container, reaping orphans.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Resource, Signal, WaitId, WaitIdOptions, getpid, getrlimit, waitid};
use tokio::signal::unix::{SignalKind, signal};

use super::exit::Exit;
use super::fault::Fault;

/// Number of files that a job with one call at a time has open, with some reserve.
const OPEN_FILES_MIN: u64 = 64;
/// Limit of open files below which a failure to open one is probably due to the limit.
const OPEN_FILES_FEW: u64 = 1024;
/// Interval between two searches for zombies.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Consecutive searches after which a zombie counts as an orphan: code here that starts a process collects its exit
/// status at once.
const LOOKS: u32 = 3;

/// Fails early if limits are too low for any work, and reaps orphans as process 1.
///
/// # Errors
/// Fails if too few files may be open.
pub(super) fn begin() -> Result<(), Fault> {
    if let Some(most) = open_files_max().filter(|most| *most < OPEN_FILES_MIN) {
        let because = format!(
            "at most {most} files may be open at once; it needs {OPEN_FILES_MIN}, plus one for each \
                call"
        );
        return Err(Fault::new(Exit::Failed, "can't start windrow", because)
            .hint("run ulimit -n 1024, or set LimitNOFILE= of the service, then start it again"));
    }
    if getpid() == Pid::INIT {
        let started = thread::Builder::new()
            .name("windrow-reaper".to_owned())
            .spawn(reap_orphans);
        if let Err(error) = started {
            tracing::warn!(%error, "orphaned processes stay zombies");
        }
    }
    Ok(())
}

/// Makes a file that exceeds its size limit an error of the write instead of the end of this process. Child processes
/// keep the default behaviour. Must be called on a runtime.
pub(super) fn outlive_file_limit() {
    if let Err(error) = signal(SignalKind::from_raw(Signal::XFSZ.as_raw())) {
        tracing::debug!(%error, "a file beyond the size limit ends this process");
    }
}

/// Describes the limits of this process that may have prevented opening or writing a file.
pub(super) fn limits_text() -> Option<String> {
    let files = open_files_max().filter(|most| *most < OPEN_FILES_FEW);
    let files = files.map(|most| format!("{most} open files (ulimit -n)"));
    let bytes = getrlimit(Resource::Fsize).current;
    let bytes = bytes.map(|most| format!("{most} bytes per file (ulimit -f)"));
    let limits: Vec<String> = files.into_iter().chain(bytes).collect();
    (!limits.is_empty()).then(|| limits.join(" and "))
}

fn open_files_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Reaps zombies that nobody waits for, in an endless loop.
fn reap_orphans() {
    let mut seen = HashMap::new();
    loop {
        thread::sleep(LOOK_EVERY);
        seen = reap_seen(&seen, getpid());
    }
}

/// Returns the zombies below this process with the number of searches that found each. Reaps those found in enough
/// searches.
fn reap_seen(before: &HashMap<i32, u32>, parent: Pid) -> HashMap<i32, u32> {
    let zombies = zombies(parent).unwrap_or_default();
    let counted = zombies
        .into_iter()
        .map(|pid| (pid, before.get(&pid).map_or(1, |looks| looks + 1)));
    let (orphans, waiting): (Vec<_>, HashMap<_, _>) = {
        let (orphans, waiting): (Vec<_>, Vec<_>) = counted.partition(|(_, looks)| *looks >= LOOKS);
        (orphans, waiting.into_iter().collect())
    };
    for pid in orphans.into_iter().filter_map(|(pid, _)| Pid::from_raw(pid)) {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(pid), options) {
            Ok(_) => tracing::debug!(pid = pid.as_raw_nonzero().get(), "reaped an orphan"),
            Err(error) => tracing::debug!(%error, "orphan reaped by another process"),
        }
    }
    waiting
}

/// Returns the children of a process that have ended but weren't reaped.
fn zombies(parent: Pid) -> io::Result<Vec<i32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // The process may be gone by now.
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        if is_zombie_of(&stat, parent) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// True if `stat`, the line of `/proc/PID/stat`, describes a zombie child of `parent`. The program's name in brackets
/// may contain anything.
fn is_zombie_of(stat: &str, parent: Pid) -> bool {
    let behind = stat.rsplit_once(") ").map_or("", |(_, behind)| behind);
    let mut words = behind.split(' ');
    let state = words.next();
    let of = words.next().and_then(|word| word.parse().ok());
    state == Some("Z") && of == Some(parent.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use rustix::process::set_child_subreaper;

    use super::*;

    #[test]
    fn a_zombie_is_told_by_its_state_and_its_parent() {
        let me = Pid::INIT;
        assert!(is_zombie_of("12 (a) Z (b)) Z 1 12 12 0", me));
        assert!(!is_zombie_of("12 (a) Z 2 12 12 0", me));
        assert!(!is_zombie_of("12 (a) S 1 12 12 0", me));
        assert!(!is_zombie_of("", me));
    }

    #[test]
    fn an_orphan_is_reaped_and_a_child_keeps_its_status_until_it_is_asked_for() {
        // Orphans of this process come to it, as they come to process 1.
        set_child_subreaper(Some(getpid())).expect("Linux");
        let script = "sh -c 'exit 3' & exit 0";
        let started = Command::new("sh").args(["-c", script]).status();
        assert!(started.expect("a shell").success());
        let mut own = Command::new("sh")
            .args(["-c", "exit 5"])
            .spawn()
            .expect("a shell");
        let pid = i32::try_from(own.id()).expect("a pid");
        let mut seen = HashMap::new();
        // The orphan may take a moment to end.
        while !seen.contains_key(&pid) || seen.len() < 2 {
            seen = reap_seen(&HashMap::new(), getpid());
            thread::yield_now();
        }
        assert_eq!(own.wait().expect("its status").code(), Some(5));
        for _ in 0..LOOKS {
            seen = reap_seen(&seen, getpid());
        }
        assert_eq!((seen.len(), zombies(getpid()).expect("/proc").len()), (0, 0));
    }
}
