//! Implementation of `windrow db restore`.

use std::fs;
use std::path::{Path, PathBuf};

use super::args::RestoreArgs;
use super::{configured, held, key, restored};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen;
use crate::output::table::human;
use crate::shell::Shell;
use windrow_config::Config;
use windrow_core::ids::WallMs;
use windrow_engine::ports::clock::Clock as _;
use windrow_node::database;
use windrow_node::database::restore::{self, RestoreError};
use windrow_node::{ServerKind, SystemClock};

/// Replaces a node's database with a backup.
///
/// # Errors
/// `NotFound` without the backup; `Usage` for a database server; `Conflict` while a node holds the directory, or if a
/// database or another key exists that may not be replaced; `Rejected` for a file that isn't a sound Windrow
/// database; `Config` for a database of a newer program; `Failed` if something can't be written.
pub(super) async fn restore(args: &RestoreArgs, shell: &Shell) -> Result<Exit, Fault> {
    let config = configured(&args.place, shell)?;
    if let Some(server) = database::address(&config)? {
        return Err(of_server(server.kind));
    }
    let database = database::path(&config);
    look(args, &database).await?;
    let directory = held(&config, "stop the node first: its current work would be lost")?;
    let now = SystemClock::new().wall();
    let old = Old::of(args, &config, (&database, now)).await?;
    let marks = (args.schedules.pause_schedules, now);
    let prepared = restore::prepare(&args.file, (&database, &directory), marks)
        .await
        .map_err(fault)?;
    let marked = prepared.restored.clone();
    if let (Some(file), true) = (&args.key, old.is_key_new)
        && let Err(error) = restore::put_key(file, &old.key, &old.key_kept)
    {
        prepared.give_up().map_err(fault)?;
        return Err(fault(error));
    }
    prepared.put(&database, &old.database_kept).map_err(fault)?;
    let size = fs::metadata(&database).map_or(0, |found| found.len());
    let say = |line: &str| shell.screen.must_say(line);
    say(&format!("{} verified and restored", human::bytes(size)));
    old.tell(&say);
    restored::tell(&marked, &database.display().to_string(), &say);
    screen::put(&database.display().to_string()).map(|()| Exit::Ok)
}

/// Checks all named files before anything is created.
async fn look(args: &RestoreArgs, database: &Path) -> Result<(), Fault> {
    let file = &args.file;
    if !file.is_file() {
        let fault = Fault::new(
            Exit::NotFound,
            "no such backup",
            format!("{} doesn't exist or isn't a file", file.display()),
        );
        return Err(fault.hint("name the file written by `windrow db backup`"));
    }
    if fs::canonicalize(file).ok() == fs::canonicalize(database).ok() {
        let fault = Fault::new(
            Exit::Usage,
            "nothing was restored",
            format!("{} is the node's database itself", file.display()),
        );
        return Err(fault.hint("if a backup was copied there by hand: windrow db restored"));
    }
    if let Some(key) = &args.key {
        restore::look_at_key(key).map_err(|error| {
            Fault::new(Exit::Rejected, "can't use the key", error.to_string())
                .hint("name the file `key` that was saved with the backup")
        })?;
    }
    restore::look(file).await.map_err(fault)
}

/// Files in place before the restore, and the names under which they are kept.
struct Old {
    is_replaced: bool,
    database_kept: PathBuf,
    key: PathBuf,
    key_kept: PathBuf,
    had_key: bool,
    /// True if a key was given that differs from the one in place.
    is_key_new: bool,
}

impl Old {
    /// Inspects the files in place, and fails if they may not be replaced.
    async fn of(args: &RestoreArgs, config: &Config, (database, now): (&Path, WallMs)) -> Result<Old, Fault> {
        let key = key(config);
        let stamp = free_stamp(&[database, &key], now);
        let text = |file: &Path| fs::read(file).ok();
        let old = Old {
            is_replaced: database.exists(),
            database_kept: before(database, &stamp),
            had_key: key.exists(),
            is_key_new: args.key.as_ref().is_some_and(|file| text(file) != text(&key)),
            key_kept: before(&key, &stamp),
            key,
        };
        let taken = if old.is_replaced {
            database
        } else if old.is_key_new && old.had_key {
            &old.key
        } else {
            return Ok(old);
        };
        // Without a key no node has run here: this repeats a restore that lacked the key.
        let lacked_key = old.is_replaced && old.is_key_new && !old.had_key;
        let is_again = lacked_key
            && restore::is_same_store(&args.file, database)
                .await
                .map_err(fault)?;
        if args.replace || is_again {
            return Ok(old);
        }
        let because = format!("{} already exists", taken.display());
        let hint = "--replace keeps the existing files under a name with the time, or choose another \
                --data-dir";
        Err(Fault::new(Exit::Conflict, "nothing was overwritten", because).hint(hint))
    }

    fn tell(&self, say: &impl Fn(&str)) {
        if self.is_replaced {
            say(&format!(
                "the previous database is now {}",
                self.database_kept.display()
            ));
        }
        let key = self.key.display();
        if self.is_key_new && self.had_key {
            say(&format!("the previous key is now {}", self.key_kept.display()));
        }
        match self.had_key || self.is_key_new {
            true => say(&format!(
                "the key is {key}: secrets sealed with another key can't be read"
            )),
            false => say(&format!(
                "{key} is missing: stored secrets can't be read without the backup's key. Copy it \
                    there before a node starts and creates a new one"
            )),
        }
    }
}

/// Returns the timestamp, with a number appended if files of that second are already kept.
fn free_stamp(paths: &[&Path], now: WallMs) -> String {
    let first = stamp(now);
    let numbered = (2..).map(|number| format!("{first}-{number}"));
    let mut stamps = std::iter::once(first.clone()).chain(numbered);
    let is_free = |stamp: &String| paths.iter().all(|path| !before(path, stamp).exists());
    stamps.find(is_free).unwrap_or(first)
}

/// Returns the name under which a file is kept.
fn before(path: &Path, stamp: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".before-");
    name.push(stamp);
    name.into()
}

/// Formats a time for a file name: `20261125T160612Z`.
fn stamp(now: WallMs) -> String {
    let text = now.to_rfc3339().replace(['-', ':'], "");
    let seconds = text.split('.').next().unwrap_or_default();
    format!("{seconds}Z")
}

/// Creates the fault for a database server: its own tools restore it, and `windrow db restored` then marks it.
fn of_server(kind: ServerKind) -> Fault {
    let tool = match kind {
        ServerKind::Postgres => "pg_restore",
        ServerKind::MySql => "mariadb",
    };
    Fault::new(
        Exit::Usage,
        "nothing was restored",
        "use the database server's own restore tools",
    )
    .hint(format!(
        "stop all nodes, restore with {tool}, run windrow db restored --config FILE, then start the nodes"
    ))
}

fn fault(error: RestoreError) -> Fault {
    let because = error.to_string();
    let told = |exit, hint: &str| Fault::new(exit, "nothing was restored", because.clone()).hint(hint);
    match error {
        RestoreError::Unusable { .. } => told(Exit::Rejected, "use another backup; nothing was changed"),
        RestoreError::Newer { .. } => told(Exit::Config, "use the newer windrow"),
        RestoreError::Io { .. } => told(
            Exit::Failed,
            "check the directory, its permissions and its free space",
        ),
        RestoreError::Store(error) => Fault::from(error),
    }
}
