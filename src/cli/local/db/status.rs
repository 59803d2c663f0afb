//! Implementation of `windrow db status` and `check`.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde_json::json;

use super::args::StatusArgs;
use super::{Target, configured};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::checks::{self, Outcome};
use crate::link::{Form, Look};
use crate::output::screen;
use crate::output::table::{Card, Tone, human};
use crate::shell::Shell;
use windrow_engine::ports::StoreError;
use windrow_node::database::{self, Schema};

/// Status of a database, as printed.
#[derive(Serialize)]
struct Seen<'a> {
    path: String,
    schema: Steps<'a>,
    sound: bool,
    faults: &'a [String],
    #[serde(flatten)]
    of: SeenOf,
}

/// Newest schema steps that the program and the database know, and the steps missing on either side.
#[derive(Serialize)]
struct Steps<'a> {
    program: Option<&'a String>,
    database: Option<&'a String>,
    pending: &'a [String],
    unknown: &'a [String],
}

/// Status members of one kind of database only. Unit: bytes.
#[derive(Serialize)]
#[serde(untagged)]
enum SeenOf {
    File {
        bytes: u64,
        wal_bytes: u64,
        free_bytes: Option<u64>,
    },
    Server {
        durable: bool,
        durability: String,
    },
}

/// Prints the status of a database.
///
/// # Errors
/// `NotFound` without a database. After printing: `Config` for a database of a newer program, `Failed` for a damaged
/// one.
pub(super) async fn status(args: &StatusArgs, shell: &Shell) -> Result<Exit, Fault> {
    let config = configured(&args.place, shell)?;
    let target = Target::of(&config)?;
    let inspection = target.opened().await?;
    let (schema, faults) = (inspection.schema().await?, inspection.quick_check().await?);
    let durability = inspection.durability().await?;
    inspection.close().await?;
    let look = Look::new(&args.view, shell);
    let of = match &target {
        Target::File(path) => {
            let size = |end: &str| fs::metadata(named(path, end)).map_or(0, |found| found.len());
            SeenOf::File {
                bytes: size(""),
                wal_bytes: size("-wal"),
                free_bytes: database::room(path).ok().map(|room| room.free),
            }
        }
        Target::Server(_) => SeenOf::Server {
            durable: durability.is_durable,
            durability: durability.setting,
        },
    };
    let seen = Seen {
        path: target.shown(),
        schema: Steps {
            program: schema.done.iter().chain(&schema.pending).max(),
            database: schema.done.iter().chain(&schema.unknown).max(),
            pending: &schema.pending,
            unknown: &schema.unknown,
        },
        sound: faults.is_empty(),
        faults: &faults,
        of,
    };
    match look.form {
        Form::Table | Form::Wide => screen::put(&card(&seen).text(look.paper))?,
        Form::Name => screen::put(&seen.path)?,
        Form::Json | Form::Ndjson | Form::Csv => screen::put(&json!(seen).to_string())?,
    }
    if !look.is_quiet && !schema.pending.is_empty() {
        shell.screen.must_say(match config.store.migrate_on_start {
            true => "hint: run windrow db migrate, or start a node, to migrate the schema",
            false => {
                "hint: run windrow db migrate to migrate the schema; nodes don't \
                (store.migrate_on_start = false)"
            }
        });
    }
    ended(&schema, &faults)
}

/// Appends a suffix to the name of a file.
fn named(path: &Path, end: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn card(seen: &Seen<'_>) -> Card {
    let Steps {
        program,
        database,
        pending,
        unknown,
    } = &seen.schema;
    let step = |step: &Option<&String>| step.map_or("none", String::as_str).to_owned();
    let (database, program) = (step(database), step(program));
    let mut card = Card::new().line("database", &seen.path);
    if let SeenOf::File {
        bytes,
        wal_bytes,
        free_bytes,
    } = seen.of
    {
        card = card
            .line("size", human::bytes(bytes))
            .line("WAL size", human::bytes(wal_bytes))
            .maybe(
                "room",
                free_bytes.map(|free| format!("{} free", human::bytes(free))),
            );
    }
    card = card.line("schema", format!("{database} (this program: {program})"));
    card = match pending.is_empty() {
        true => card.line("pending", "nothing"),
        false => card.toned("pending", pending.join(", "), Tone::Warn),
    };
    if !unknown.is_empty() {
        card = card.toned("newer", unknown.join(", "), Tone::Bad);
    }
    if let SeenOf::Server { durable, durability } = &seen.of {
        card = match durable {
            true => card.line("commits", format!("durable ({durability})")),
            false => card.toned(
                "commits",
                format!("not durable: a power cut can lose the latest ({durability})"),
                Tone::Warn,
            ),
        };
    }
    match seen.faults.first() {
        None => card.toned("sound", "yes; `windrow db check` checks more", Tone::Good),
        Some(fault) => card.toned("sound", format!("no: {fault}"), Tone::Bad),
    }
}

fn ended(schema: &Schema, faults: &[String]) -> Result<Exit, Fault> {
    if let Some(newer) = schema.unknown.first() {
        return Err(StoreError::NewerSchema(newer.clone()).into());
    }
    match faults.first() {
        None => Ok(Exit::Ok),
        Some(fault) => Err(damaged(fault)),
    }
}

fn damaged(fault: &str) -> Fault {
    Fault::new(Exit::Failed, "the database is damaged", fault).hint(
        "stop the node, keep the file, and restore the last backup; `windrow db check` shows \
            details",
    )
}

/// Checks a whole database.
///
/// # Errors
/// `NotFound` without a database; `Config` for a database of a newer program. After the report: `Failed` if something
/// is damaged.
pub(super) async fn check(args: &StatusArgs, shell: &Shell) -> Result<Exit, Fault> {
    let target = Target::of(&configured(&args.place, shell)?)?;
    let inspection = target.opened().await?;
    let (schema, found) = (inspection.schema().await?, inspection.check().await?);
    inspection.close().await?;
    let mut report = Vec::new();
    for finding in &found {
        if finding.faults.is_empty() {
            report.push(checks::line(finding.rule, Outcome::Ok, "", None));
        }
        report.extend(
            finding
                .faults
                .iter()
                .map(|fault| checks::line(finding.rule, Outcome::Fail, fault, None)),
        );
    }
    if !schema.pending.is_empty() {
        let detail = "rows not compared: the schema is out of date";
        report.push(checks::line(
            "schema",
            Outcome::Warn,
            detail,
            Some("windrow db migrate"),
        ));
    }
    checks::show(&Look::new(&args.view, shell), &report)?;
    let faults: Vec<String> = found.into_iter().flat_map(|finding| finding.faults).collect();
    ended(&schema, &faults)
}
