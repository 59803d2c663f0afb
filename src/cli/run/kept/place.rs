//! Directory for the progress of a job unless `--state` names one. Each job has its own, so that different jobs of
//! one user can run at the same time, and the same job can't.

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use xxhash_rust::xxh3::xxh3_64;

use crate::exit::Exit;
use crate::fault::Fault;
use windrow_core::text::{names as spelt, steers};
use windrow_node::StateDir;

/// Maximum length of the readable part of a directory's name. Unit: characters.
const READABLE_CHARS_MAX: usize = 48;

/// Prefix of a directory's name while it is being removed.
const REMOVED: &str = ".removed-";

/// Returns the directory of a job by its name. Unnamed jobs fed by a pipe share one, since their identity is known
/// only after the pipe has been read into it.
///
/// # Errors
/// Fails if the environment has no home directory.
pub(crate) fn of_job(name: Option<&str>, env: &[(String, String)]) -> Result<PathBuf, Fault> {
    Ok(of_jobs(env)?.join(name.map_or_else(|| "stdin".to_owned(), directory)))
}

/// Returns the directories that may hold a job of this name: the given one, or else its own and that of unnamed
/// pipes.
///
/// # Errors
/// Same as [`of_job`].
pub(crate) fn candidates(
    name: &str,
    state: Option<&Path>,
    env: &[(String, String)],
) -> Result<Vec<PathBuf>, Fault> {
    match state {
        Some(place) => Ok(vec![place.to_owned()]),
        None => Ok(vec![of_job(Some(name), env)?, of_job(None, env)?]),
    }
}

/// Returns the parent of the jobs' directories.
///
/// # Errors
/// Same as [`of_job`].
pub(crate) fn of_jobs(env: &[(String, String)]) -> Result<PathBuf, Fault> {
    let value = |wanted: &str| {
        let found = env
            .iter()
            .find(|(name, value)| name == wanted && !value.is_empty());
        found
            .map(|(_, value)| PathBuf::from(value))
            .filter(|path| path.is_absolute())
    };
    let base = value("XDG_STATE_HOME").or_else(|| value("HOME").map(|home| home.join(".local/state")));
    let base = base.ok_or_else(|| {
        let because = "neither XDG_STATE_HOME nor HOME is an absolute path";
        Fault::new(Exit::Config, "no directory for progress", because).hint("name a directory: --state DIR")
    })?;
    Ok(base.join("windrow"))
}

/// Returns the jobs that ran without `--state` and whose directories reveal their whole names, latest first. Empty if
/// nothing can be read.
pub(crate) fn names(env: &[(String, String)]) -> Vec<String> {
    let whole = |place: PathBuf| {
        let name = readable(&place)?;
        (place.file_name()? == directory(&name).as_str()).then_some(name)
    };
    kept_in(env).into_iter().filter_map(whole).collect()
}

/// Returns the directories of all jobs that ran without `--state`, latest first.
pub(crate) fn kept_in(env: &[(String, String)]) -> Vec<PathBuf> {
    let Some(listed) = of_jobs(env).ok().and_then(|base| base.read_dir().ok()) else {
        return Vec::new();
    };
    let named = listed.flatten().filter_map(|entry| {
        let place = entry.path();
        let written = StateDir::database_in(&place).metadata().ok()?.modified().ok()?;
        readable(&place).map(|_| (written, place))
    });
    let mut named: Vec<(SystemTime, PathBuf)> = named.collect();
    named.sort_unstable_by(|one, other| other.cmp(one));
    named.into_iter().map(|(_, place)| place).collect()
}

/// Returns the readable part of a directory's name, which is the job's whole name if that has only plain letters.
pub(crate) fn readable(place: &Path) -> Option<String> {
    let name = place.file_name()?.to_str()?;
    let (readable, _hash) = name.strip_prefix("job-")?.rsplit_once('-')?;
    Some(readable.to_owned())
}

/// Returns a directory name that is readable, safe in any file system, and different for each job name.
fn directory(name: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') {
            c
        } else {
            '-'
        }
    };
    let readable: String = name.chars().map(safe).take(READABLE_CHARS_MAX).collect();
    format!("job-{readable}-{:016x}", xxh3_64(name.as_bytes()))
}

/// Removes a directory that holds only this job. It is renamed first, so that a partly removed one is never taken for
/// a job.
pub(crate) fn remove_directory(place: &Path) -> Result<(), Fault> {
    let failed = |error: io::Error| {
        let what = format!("can't remove {}", place.display());
        Fault::new(Exit::Failed, what, error.to_string()).hint("remove the directory by hand")
    };
    let (Some(base), Some(name)) = (place.parent(), place.file_name()) else {
        return Err(Fault::bug("a job's directory has no name"));
    };
    let away = base.join(format!(
        "{REMOVED}{}-{}",
        std::process::id(),
        name.to_string_lossy()
    ));
    std::fs::rename(place, away).map_err(failed)?;
    for entry in std::fs::read_dir(base).map_err(failed)?.flatten() {
        // Also removes leftovers of an earlier removal that was cut off.
        if entry.file_name().to_string_lossy().starts_with(REMOVED) {
            std::fs::remove_dir_all(entry.path()).map_err(failed)?;
        }
    }
    Ok(())
}

/// Maximum length of a name given by a user. Unit: bytes; the database column holds 190.
const NAME_BYTES_MAX: usize = 128;

/// Checks that a job may have this name.
///
/// # Errors
/// Returns why it may not.
pub(crate) fn job_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > NAME_BYTES_MAX || text.chars().any(steers) {
        return Err(format!(
            "must have 1 to {NAME_BYTES_MAX} bytes without control characters"
        ));
    }
    Ok(text.to_owned())
}

/// Checks a new name by a node's rules for task names, which appear in URLs and shells. A name derived from a source
/// may contain more, and a job that already has another name is resumed with `--resume`.
///
/// # Errors
/// Returns why the name isn't accepted.
pub(crate) fn new_name(text: &str) -> Result<String, String> {
    if text.contains(|c: char| c.is_whitespace() || c == '/') {
        return Err(
            "must not contain spaces or slashes; to resume a job that already has such a name, use --resume"
                .to_owned(),
        );
    }
    if let Some(why) = spelt::fault(text) {
        return Err(format!("the name {why}"));
    }
    job_name(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn the_state_home_wins_over_the_home() {
        let both = env(&[("HOME", "/h"), ("XDG_STATE_HOME", "/s")]);
        let path = of_job(Some("a"), &both).expect("a place");
        assert!(path.starts_with("/s/windrow"), "{path:?}");
        let path = of_job(None, &env(&[("HOME", "/h"), ("XDG_STATE_HOME", "")])).expect("a place");
        assert_eq!(path, PathBuf::from("/h/.local/state/windrow/stdin"));
        assert_eq!(
            of_job(None, &env(&[("HOME", "relative")]))
                .expect_err("no home")
                .exit,
            Exit::Config
        );
    }

    #[test]
    fn jobs_that_have_run_are_named() {
        let home = tempfile::tempdir().expect("a directory");
        let env = [("XDG_STATE_HOME".to_owned(), home.path().display().to_string())];
        assert_eq!(names(&env), Vec::<String>::new());
        for (name, has_run) in [("push-1", true), ("never", false), ("a/b", true)] {
            let place = of_job(Some(name), &env).expect("a place");
            std::fs::create_dir_all(&place).expect("made");
            if has_run {
                std::fs::write(StateDir::database_in(&place), "").expect("written");
            }
        }
        assert_eq!(names(&env), ["push-1"], "a-b is not the name of the other one");
        assert_eq!(kept_in(&env).len(), 2);
    }

    #[test]
    fn names_that_look_alike_have_different_directories() {
        assert_ne!(directory("a b"), directory("a-b"));
        assert!(!directory("../../etc").contains('/'));
    }
}
