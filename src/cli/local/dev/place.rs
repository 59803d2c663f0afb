//! Data directory of `windrow dev`: a temporary one that is deleted on exit, or a permanent one.
//!
//! A permanent directory has a marker file, so that it is never mistaken for one of `windrow serve`: without sign-in,
//! real tasks would be open to everybody on this machine.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen::Screen;

/// File that marks a directory as one of `windrow dev`.
const MARK: &str = "windrow-dev";
const MARK_TEXT: &str = "This directory belongs to `windrow dev`, which requires this file.\n";
/// Parent of temporary directories unless TMPDIR is set.
const TEMPORARY: &str = "/tmp";

/// Data directory, temporary or permanent.
pub(super) struct Place {
    path: PathBuf,
    /// Deletes the directory on drop; `None` if it is permanent.
    fresh: Option<TempDir>,
}

impl Place {
    /// Returns the directory of `--data`, or a temporary one.
    ///
    /// # Errors
    /// Fails if it can't be created; `Conflict` if it contains something else.
    pub(super) fn of(data: Option<&Path>, env: &[(String, String)]) -> Result<Place, Fault> {
        let Some(path) = data else { return fresh(env) };
        let failed = |error: io::Error| {
            Fault::new(
                Exit::Failed,
                format!("can't use {}", path.display()),
                error.to_string(),
            )
            .hint("choose another directory: --data DIR")
        };
        std::fs::create_dir_all(path).map_err(failed)?;
        let mark = path.join(MARK);
        if !mark.exists() {
            if std::fs::read_dir(path).map_err(failed)?.next().is_some() {
                let what = format!("can't use {}", path.display());
                return Err(Fault::new(
                    Exit::Conflict,
                    what,
                    "it holds files that windrow dev didn't create",
                )
                .hint("choose an empty or new directory: --data DIR"));
            }
            std::fs::write(&mark, MARK_TEXT).map_err(failed)?;
        }
        Ok(Place {
            path: path.to_owned(),
            fresh: None,
        })
    }

    /// Returns the path of the directory.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// True if the directory is permanent.
    pub(super) fn is_kept(&self) -> bool {
        self.fresh.is_none()
    }

    /// Deletes the directory if it is temporary.
    pub(super) fn close(self, screen: &Screen) {
        if let Some(Err(error)) = self.fresh.map(TempDir::close) {
            screen.must_say(&format!(
                "can't delete {}: {error}; delete it by hand",
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
                format!("can't create a directory in {base}"),
                error.to_string(),
            )
            .hint("choose one: --data DIR, or set TMPDIR")
        })?;
    Ok(Place {
        path: made.path().to_owned(),
        fresh: Some(made),
    })
}
