//! Record of live workers on disk, so that the next process ends those that outlive a `kill -9` of this one.
//!
//! A worker is identified by its process id, its start time and the boot of the machine: a process id alone may have
//! been reused. Never kills what it cannot prove to be ours. One file belongs to one process at a time (guaranteed by
//! the state directory's lock) and to one `Leftovers`, which factories may share.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::{fs, io};

use super::group::ProcessGroup;

/// Live workers of one factory, or of all that share it.
#[derive(Debug)]
pub struct Leftovers {
    file: Option<PathBuf>,
    /// Start times, by the leader's process id.
    live: Mutex<BTreeMap<i32, u64>>,
}

impl Leftovers {
    /// Kills what an earlier process left behind according to `file`, then takes the file over.
    pub fn take_over(file: Option<PathBuf>) -> Leftovers {
        if let Some(file) = &file {
            for mut group in recorded(file) {
                tracing::info!(
                    pgid = group.pid(),
                    "killed a worker left behind by an earlier process"
                );
                group.kill();
                group.disarm();
            }
            report(write(file, &BTreeMap::new()), file);
        }
        Leftovers {
            file,
            live: Mutex::new(BTreeMap::new()),
        }
    }

    /// Records a worker as live.
    pub(crate) fn add(&self, pid: i32) {
        // A process without a start time has already ended.
        let Some(started) = start_time(pid) else { return };
        self.change(|live| live.insert(pid, started));
    }

    /// Removes a worker that has ended.
    pub(crate) fn remove(&self, pid: i32) {
        self.change(|live| live.remove(&pid));
    }

    fn change<T>(&self, edit: impl FnOnce(&mut BTreeMap<i32, u64>) -> T) {
        let Some(file) = &self.file else { return };
        let mut live = self
            .live
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        edit(&mut live);
        report(write(file, &live), file);
    }
}

/// Logs a failure. The file is a safety net: a worker must not fail because it can't be written.
fn report(result: io::Result<()>, file: &Path) {
    if let Err(why) = result {
        tracing::warn!(
            file = %file.display(),
            %why,
            "can't record live workers; a crash may leave them running"
        );
    }
}

/// Writes one line with the boot, then `pid start_time` for each worker. Renamed into place, so that a crash leaves
/// the old or the new file.
fn write(file: &Path, live: &BTreeMap<i32, u64>) -> io::Result<()> {
    let mut text = format!("{}\n", boot_id());
    live.iter()
        .for_each(|(pid, started)| text.push_str(&format!("{pid} {started}\n")));
    let fresh = file.with_extension("new");
    // Never write into a file that a crash or someone else left: it keeps its permissions.
    match fs::remove_file(&fresh) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    let mut options = fs::OpenOptions::new();
    options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)?
        .write_all(text.as_bytes())?;
    fs::rename(&fresh, file)
}

/// Returns the recorded groups whose leader is provably still the one that was recorded.
fn recorded(file: &Path) -> Vec<ProcessGroup> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(why) => {
            if why.kind() != io::ErrorKind::NotFound {
                report(Err(why), file);
            }
            return Vec::new();
        }
    };
    let mut lines = text.lines();
    if lines.next() != Some(boot_id().as_str()) {
        return Vec::new();
    }
    lines.filter_map(still_ours).collect()
}

fn still_ours(line: &str) -> Option<ProcessGroup> {
    let (pid, started) = line.split_once(' ')?;
    let (pid, started): (i32, u64) = (pid.parse().ok()?, started.parse().ok()?);
    (start_time(pid)? == started).then_some(())?;
    ProcessGroup::led_by(u32::try_from(pid).ok()?)
}

/// Returns the id of the machine's current boot; empty if the kernel doesn't provide one.
pub(crate) fn boot_id() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|id| id.trim().to_owned())
        .unwrap_or_default()
}

/// Returns the start time of a process in clock ticks since boot: field 22 of `/proc/PID/stat` (proc(5)). The command
/// in field 2 may itself contain spaces and brackets, so the fields are counted after the last bracket.
pub(crate) fn start_time(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recycled_process_id_is_left_alone() {
        let me = i32::try_from(std::process::id()).expect("process ids fit");
        let mine = start_time(me).expect("this process lives");
        assert!(still_ours(&format!("{me} {}", mine + 1)).is_none());
        assert!(still_ours("garbage").is_none());
        assert!(still_ours("2147483000 5").is_none());
    }

    #[test]
    fn the_file_is_its_owners_alone_whatever_a_crash_left() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("workers.json");
        fs::write(file.with_extension("new"), "left").expect("written");
        drop(Leftovers::take_over(Some(file.clone())));
        let mode =
            std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).expect("there").permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_of_another_boot_names_nobody() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("workers");
        let me = i32::try_from(std::process::id()).expect("process ids fit");
        let mine = start_time(me).expect("this process lives");
        fs::write(&file, format!("another-boot\n{me} {mine}\n")).expect("written");
        assert!(recorded(&file).is_empty());
    }
}
