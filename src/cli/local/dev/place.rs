//! Where `windrow dev` keeps everything: a fresh directory that goes with the process, or one that stays.
//!
//! A directory that stays has a mark, so that it is never one of `windrow serve`: without sign-in, real tasks would be
//! open to everybody on this machine.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen::Screen;

/// The file that says whose directory it is.
const MARK: &str = "windrow-dev";
const MARK_TEXT: &str = "This directory belongs to `windrow dev`. Without this file it is refused.\n";
/// Where a fresh directory is made unless TMPDIR says otherwise.
const TEMPORARY: &str = "/tmp";

/// See the module.
pub(super) struct Place {
    path: PathBuf,
    /// Deletes it with the value; none where it stays.
    fresh: Option<TempDir>,
}

impl Place {
    /// The directory of `--data`, or a fresh one.
    ///
    /// # Errors
    /// When it can't be made; `Conflict` when it holds something else.
    pub(super) fn of(data: Option<&Path>, env: &[(String, String)]) -> Result<Place, Fault> {
        let Some(path) = data else { return fresh(env) };
        let failed = |error: io::Error| {
            Fault::new(
                Exit::Failed,
                format!("{} can't be used", path.display()),
                error.to_string(),
            )
            .hint("name another directory: --data DIR")
        };
        std::fs::create_dir_all(path).map_err(failed)?;
        let mark = path.join(MARK);
        if !mark.exists() {
            if std::fs::read_dir(path).map_err(failed)?.next().is_some() {
                let what = format!("{} can't be used", path.display());
                return Err(Fault::new(
                    Exit::Conflict,
                    what,
                    "it holds something that isn't of windrow dev",
                )
                .hint("name an empty or a new directory: --data DIR"));
            }
            std::fs::write(&mark, MARK_TEXT).map_err(failed)?;
        }
        Ok(Place {
            path: path.to_owned(),
            fresh: None,
        })
    }

    /// The directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it stays.
    pub(super) fn is_kept(&self) -> bool {
        self.fresh.is_none()
    }

    /// Deletes what doesn't stay.
    pub(super) fn close(self, screen: &Screen) {
        if let Some(Err(error)) = self.fresh.map(TempDir::close) {
            screen.must_say(&format!(
                "{} could not be deleted: {error}; delete it by hand",
                self.path.display()
            ));
        }
    }
}

fn fresh(env: &[(String, String)]) -> Result<Place, Fault> {
    let found = env
        .iter()
        .find(|(name, value)| name == "TMPDIR" && !value.is_empty());
    let base = found.map_or(TEMPORARY, |(_, value)| value);
    let made = tempfile::Builder::new()
        .prefix("windrow-dev-")
        .tempdir_in(base)
        .map_err(|error| {
            Fault::new(
                Exit::Failed,
                format!("no directory can be made in {base}"),
                error.to_string(),
            )
            .hint("name one: --data DIR, or set TMPDIR")
        })?;
    Ok(Place {
        path: made.path().to_owned(),
        fresh: Some(made),
    })
}
