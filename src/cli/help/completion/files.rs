//! Completion of file names and of programs: those in the folders of `PATH`, and files of the current directory.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};

/// Completes a value given directly or as `@FILE`.
pub(super) fn at_file(word: &OsStr) -> Vec<CompletionCandidate> {
    let Some(path) = word.to_str().and_then(|word| word.strip_prefix('@')) else {
        return Vec::new();
    };
    let found = PathCompleter::any().complete(OsStr::new(path));
    found.into_iter().map(|file| file.add_prefix("@")).collect()
}

/// Completes the first word of a command: a program, or a path to one.
pub(super) fn program(word: &OsStr, path: Option<&str>) -> Vec<CompletionCandidate> {
    let mut found = PathCompleter::any().complete(word);
    // Without a first letter there would be thousands of candidates.
    let Some(begun) = word
        .to_str()
        .filter(|word| !word.is_empty() && !word.contains('/'))
    else {
        return found;
    };
    let folders = std::env::split_paths(path.unwrap_or_default());
    let mut programs: Vec<String> = folders.flat_map(|folder| programs_in(&folder, begun)).collect();
    programs.sort();
    programs.dedup();
    found.extend(programs.into_iter().map(CompletionCandidate::new));
    found
}

fn programs_in(folder: &Path, begun: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|entry| Some((entry.path(), entry.file_name().into_string().ok()?)));
    let fitting = names.filter(|(path, name)| name.starts_with(begun) && is_program(path));
    fitting.map(|(_, name)| name).collect()
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
