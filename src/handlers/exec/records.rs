//! Record of live processes on disk, so that the next process ends those that outlive a `kill -9` of this one.
//!
//! A file of fixed slots, one for each thread, written in place: before a process is started its item's key goes
//! there, then its number and the two moments between which it was started. Never ends what it cannot prove to be
//! ours: the leader of the group was started between these moments of the same boot, or a member of it has the item's
//! key in its environment. One file belongs to one `Records` at a time (guaranteed by the state directory's lock).

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::param::clock_ticks_per_second;
use rustix::time::{ClockId, clock_gettime};

use crate::command::group::ProcessGroup;
use crate::command::leftovers::boot_id;

/// Size of a slot with its newline, in bytes; keys of items are shorter than half of it.
const PLACE_BYTES: usize = 128;
/// Name of the file, which is beside the one of workers.
const FILE_NAME: &str = "processes";

/// Slots of a record file.
#[derive(Debug)]
pub struct Records {
    file: Option<File>,
    /// Free slots, and the highest slot that was ever taken.
    free: Mutex<(BTreeSet<u64>, u64)>,
}

impl Records {
    /// Returns the file in the directory that holds the one of workers.
    pub fn beside(workers: &Path) -> PathBuf {
        workers.with_file_name(FILE_NAME)
    }

    /// Kills what an earlier process left behind according to `file`, then takes the file over.
    pub fn take_over(file: Option<&Path>) -> Records {
        let file = file.and_then(|file| {
            end_left(file);
            let fresh = begin(file);
            if let Err(why) = &fresh {
                // A safety net: no process must fail because it can't be written.
                tracing::warn!(
                    file = %file.display(),
                    %why,
                    "can't record live processes; a crash may leave them running"
                );
            }
            fresh.ok()
        });
        Records {
            file,
            free: Mutex::default(),
        }
    }

    /// Takes a slot for one process at a time.
    pub(super) fn record(self: &Arc<Records>) -> Record {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let place = free.0.pop_first().unwrap_or_else(|| {
            free.1 += 1;
            free.1
        });
        Record {
            records: self.clone(),
            place,
            key: String::new(),
            begun: 0,
        }
    }
}

/// Slot of a thread, given back on drop.
pub(super) struct Record {
    records: Arc<Records>,
    place: u64,
    key: String,
    begun: u64,
}

impl Record {
    /// Records that a process is about to be started for the item of this key.
    pub(super) fn starting(&mut self, key: &str) {
        key.clone_into(&mut self.key);
        self.begun = ticks();
        self.write(&format!("starting {key}"));
    }

    /// Records the number of the process that was started.
    pub(super) fn running(&self, pid: i32) {
        let (begun, ended) = (self.begun, ticks() + 1);
        self.write(&format!("running {} {pid} {begun} {ended}", self.key));
    }

    /// Records that the process is gone, with everything that it left.
    pub(super) fn ended(&self) {
        self.write("free");
    }

    fn write(&self, text: &str) {
        let Some(file) = &self.records.file else { return };
        let line = format!("{text:<width$.width$}\n", width = PLACE_BYTES - 1);
        if let Err(why) = file.write_all_at(line.as_bytes(), self.place * PLACE_BYTES as u64) {
            tracing::debug!(%why, "can't record a live process");
        }
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let mut free = self.records.free.lock().unwrap_or_else(PoisonError::into_inner);
        free.0.insert(self.place);
    }
}

/// Returns the clock ticks since boot, as `/proc` counts them.
fn ticks() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let hertz = clock_ticks_per_second();
    let (secs, nanos) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
    secs * hertz + nanos * hertz / 1_000_000_000
}

/// Creates a new file, only for its owner, whose first slot names the boot.
fn begin(file: &Path) -> io::Result<File> {
    match fs::remove_file(file) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let fresh = options.write(true).create_new(true).mode(0o600).open(file)?;
    let line = format!("{:<width$.width$}\n", boot_id(), width = PLACE_BYTES - 1);
    fresh.write_all_at(line.as_bytes(), 0)?;
    Ok(fresh)
}

/// Process left behind, according to a slot.
#[derive(Debug, PartialEq, Eq)]
enum Left<'a> {
    Starting {
        key: &'a str,
    },
    Running {
        key: &'a str,
        pid: i32,
        begun: u64,
        ended: u64,
    },
}

fn left(line: &str) -> Option<Left<'_>> {
    let mut words = line.split_ascii_whitespace();
    match (words.next()?, words.next()?) {
        ("starting", key) => Some(Left::Starting { key }),
        ("running", key) => Some(Left::Running {
            key,
            pid: words.next()?.parse().ok()?,
            begun: words.next()?.parse().ok()?,
            ended: words.next()?.parse().ok()?,
        }),
        _ => None,
    }
}

fn end_left(file: &Path) {
    let text = match fs::read(file) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(why) => {
            if why.kind() != io::ErrorKind::NotFound {
                tracing::warn!(
                    file = %file.display(),
                    %why,
                    "can't read the processes recorded by an earlier windrow"
                );
            }
            return;
        }
    };
    let mut lines = text.split(['\n', '\0']);
    if lines.next().map(str::trim_end) != Some(boot_id().as_str()) {
        return;
    }
    let all: Vec<Left<'_>> = lines.filter_map(left).collect();
    if all.is_empty() {
        return;
    }
    let ours: BTreeSet<i32> = processes()
        .filter(|one| is_left(one, &all))
        .map(|one| one.group)
        .collect();
    for group in ours {
        let Some(mut group) = u32::try_from(group).ok().and_then(ProcessGroup::led_by) else {
            continue;
        };
        tracing::warn!(
            pgid = group.pid(),
            "killed a process left behind by an earlier windrow"
        );
        group.kill();
        group.disarm();
    }
}

/// Process of this machine.
struct Process {
    pid: i32,
    group: i32,
    started: u64,
}

fn is_left(one: &Process, all: &[Left<'_>]) -> bool {
    all.iter().any(|left| match *left {
        Left::Running {
            pid, begun, ended, ..
        } if one.pid == pid => one.group == pid && (begun..=ended).contains(&one.started),
        Left::Running { key, pid, .. } => one.group == pid && has_key(one.pid, key),
        Left::Starting { key } => one.group == one.pid && has_key(one.pid, key),
    })
}

fn has_key(pid: i32, key: &str) -> bool {
    let wanted = format!("WINDROW_KEY={key}");
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment
        .split(|byte| *byte == 0)
        .any(|variable| variable == wanted.as_bytes())
}

/// Lists all visible processes (proc(5)); the command in field 2 may itself contain brackets.
fn processes() -> impl Iterator<Item = Process> {
    let listed = fs::read_dir("/proc").into_iter().flatten().flatten();
    listed.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        Some(Process {
            pid,
            group: fields.get(2)?.parse().ok()?,
            started: fields.get(19)?.parse().ok()?,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt;
    use std::process::{Child, Command};

    fn sleeper(key: &str) -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000").env("WINDROW_KEY", key).process_group(0);
        command.spawn().expect("sleep can be started")
    }

    fn pid(child: &Child) -> i32 {
        i32::try_from(child.id()).expect("process ids fit")
    }

    fn was_killed(child: &mut Child) -> bool {
        let status = child.wait().expect("it ends");
        std::os::unix::process::ExitStatusExt::signal(&status) == Some(9)
    }

    #[test]
    fn what_was_left_is_ended_and_others_are_not() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join(FILE_NAME);
        let records = Arc::new(Records::take_over(Some(&file)));
        let mut places: Vec<Record> = (0..4).map(|_| records.record()).collect();
        places
            .iter_mut()
            .zip(["k-1", "k-2", "k-3", "k-4"])
            .for_each(|(place, key)| place.starting(key));
        let (mut run, mut begun, mut over) = (sleeper("k-1"), sleeper("k-2"), sleeper("k-3"));
        places[0].running(pid(&run));
        places[2].running(pid(&over));
        places[2].ended();
        // Somebody else's process by now: of another time, and without the key.
        let mut other = sleeper("z-9");
        places[3].begun = 1;
        places[3].write(&format!("running k-4 {} 1 2", pid(&other)));
        drop(Records::take_over(Some(&file)));
        assert!(was_killed(&mut run) && was_killed(&mut begun));
        for spared in [&mut over, &mut other] {
            assert!(spared.try_wait().expect("it can be looked at").is_none());
            spared.kill().expect("it can be ended");
            spared.wait().expect("it ends");
        }
    }

    #[test]
    fn places_are_used_again() {
        let records = Arc::new(Records::take_over(None));
        let (first, second) = (records.record(), records.record());
        let place = first.place;
        assert_ne!(place, second.place);
        drop(first);
        assert_eq!(records.record().place, place);
    }

    #[test]
    fn a_place_that_was_half_written_names_nobody() {
        for line in [
            "",
            "free",
            "running",
            "running k",
            "running k x 1 2",
            "running k 1 2",
        ] {
            assert_eq!(left(line), None, "{line:?}");
        }
        let running = Left::Running {
            key: "k",
            pid: 7,
            begun: 1,
            ended: 2,
        };
        assert_eq!(left("running k 7 1 2   "), Some(running));
        assert_eq!(left("starting k"), Some(Left::Starting { key: "k" }));
    }
}
