//! Data directories that are made once on this machine and copied for each server: a copy takes a tenth of the time.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use super::process::{Dir, run, words};

/// The file of a template that names its program and its options; one with other words is made anew.
const RECIPE: &str = "recipe";

/// Copies the directory `data` of the template of this kind into `dir`; `make` returns the directory that has it first.
///
/// The template belongs to the build's directory, and to one version of `program` with these options.
pub fn copy(kind: &str, program: &str, options: &[String], dir: &Dir, make: impl FnOnce() -> Dir) {
    let place = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&place).expect("the build's temporary directory");
    let template = place.join(format!("{kind}-template"));
    let recipe = recipe(program, options);
    let lock = File::create(place.join(format!("{kind}-template.lock"))).expect("a lock");
    lock.lock_shared().expect("a shared lock");
    if !is_made(&template, &recipe) {
        // Given back first: two who hold it shared would wait for each other.
        lock.unlock().expect("unlocked");
        lock.lock().expect("a lock");
        // Somebody else may have held it meanwhile.
        if !is_made(&template, &recipe) {
            fill(&template, &recipe, &make());
        }
    }
    duplicate(&template.join("data"), dir.path(), dir.is_small());
}

/// The program as it lies on the disk, which an update changes, and the options.
fn recipe(program: &str, options: &[String]) -> String {
    let about = std::fs::metadata(program).expect("the server's program");
    let changed = about.modified().expect("a time of change");
    let changed = changed.duration_since(UNIX_EPOCH).expect("after 1970");
    format!("{program} {} {changed:?} {options:?}", about.len())
}

fn is_made(template: &Path, recipe: &str) -> bool {
    std::fs::read_to_string(template.join(RECIPE)).is_ok_and(|made| made == recipe)
}

/// Renamed into place whole, so that a run which is killed leaves none that is half made.
fn fill(template: &Path, recipe: &str, made: &Dir) {
    let unfinished = template.with_extension("unfinished");
    for old in [template, &unfinished] {
        if old.exists() {
            std::fs::remove_dir_all(old).expect("an old template goes");
        }
    }
    std::fs::create_dir(&unfinished).expect("a directory");
    duplicate(&made.path().join("data"), &unfinished, false);
    std::fs::write(unfinished.join(RECIPE), recipe).expect("a recipe");
    std::fs::rename(&unfinished, template).expect("renamed");
}

/// With owners and rights. On a disk that gets full, holes would be writes that fail where a server expects none to.
fn duplicate(from: &Path, into: &Path, is_dense: bool) {
    let sparse = if is_dense {
        "--sparse=never"
    } else {
        "--sparse=always"
    };
    let (from, into) = (from.display().to_string(), into.display().to_string());
    run(
        None,
        &words(&["cp", "-a", "--reflink=auto", sparse, &from, &into]),
    );
}
