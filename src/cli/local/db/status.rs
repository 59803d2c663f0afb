//! `windrow db status` and `check`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

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

/// Shows a database.
///
/// # Errors
/// `NotFound`, `Config` for one of a newer program, after it was shown; `Failed` for one that is damaged.
pub(super) async fn status(args: &StatusArgs, shell: &Shell) -> Result<Exit, Fault> {
    let config = configured(&args.place, shell)?;
    let target = Target::of(&config)?;
    let inspection = target.opened().await?;
    let (schema, faults) = (inspection.schema().await?, inspection.quick_check().await?);
    let durability = inspection.durability().await?;
    inspection.close().await?;
    let look = Look::new(&args.view, shell);
    let mut seen = json!({
        "path": target.shown(),
        "schema": {
            "program": schema.done.iter().chain(&schema.pending).max(),
            "database": schema.done.iter().chain(&schema.unknown).max(),
            "pending": schema.pending,
            "unknown": schema.unknown,
        },
        "sound": faults.is_empty(),
        "faults": faults,
    });
    match &target {
        Target::File(path) => {
            let size = |end: &str| fs::metadata(named(path, end)).map_or(0, |found| found.len());
            seen["bytes"] = json!(size(""));
            seen["wal_bytes"] = json!(size("-wal"));
            seen["free_bytes"] = json!(database::room(path).ok().map(|room| room.free));
        }
        Target::Server(_) => {
            seen["durable"] = json!(durability.is_durable);
            seen["durability"] = json!(durability.setting);
        }
    }
    match look.form {
        Form::Table | Form::Wide => screen::put(&card(&seen).text(look.paper))?,
        Form::Name => screen::put(&target.shown())?,
        Form::Json | Form::Ndjson | Form::Csv => screen::put(&seen.to_string())?,
    }
    if !look.is_quiet && !schema.pending.is_empty() {
        shell.screen.must_say(match config.store.migrate_on_start {
            true => "hint: windrow db migrate, or the start of a node, brings it up to date",
            false => "hint: windrow db migrate brings it up to date; a node doesn't (store.migrate_on_start = false)",
        });
    }
    ended(&schema, &faults)
}

/// The same file with another end of its name.
fn named(path: &Path, end: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

fn card(seen: &Value) -> Card {
    let bytes = |name: &str| seen[name].as_u64().map(human::bytes);
    let schema = &seen["schema"];
    let step = |name: &str| schema[name].as_str().unwrap_or("none");
    let list = |name: &str| {
        let steps = schema[name]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        steps.collect::<Vec<_>>().join(", ")
    };
    let mut card = Card::new()
        .line("database", seen["path"].as_str().unwrap_or_default())
        .maybe("size", bytes("bytes"))
        .maybe("not merged", bytes("wal_bytes"))
        .maybe("room", bytes("free_bytes").map(|free| format!("{free} free")))
        .line(
            "schema",
            format!("{}, this program's {}", step("database"), step("program")),
        );
    let pending = list("pending");
    card = if pending.is_empty() {
        card.line("pending", "nothing")
    } else {
        card.toned("pending", pending, Tone::Warn)
    };
    let unknown = list("unknown");
    if !unknown.is_empty() {
        card = card.toned("newer", unknown, Tone::Bad);
    }
    if let Some(setting) = seen["durability"].as_str() {
        card = match seen["durable"].as_bool() {
            Some(true) => card.line("commits", format!("durable ({setting})")),
            _ => card.toned(
                "commits",
                format!("a power cut can take back the last ones ({setting})"),
                Tone::Warn,
            ),
        };
    }
    match seen["faults"].get(0).and_then(Value::as_str) {
        None => card.toned("sound", "yes; `windrow db check` looks at more", Tone::Good),
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
    Fault::new(Exit::Failed, "the database is damaged", fault)
        .hint("stop the node, keep the file, and go back to the last backup; `windrow db check` says more")
}

/// Checks all of a database.
///
/// # Errors
/// `NotFound`; `Config` for one of a newer program; `Failed` when something is broken, after the report.
pub(super) async fn check(args: &StatusArgs, shell: &Shell) -> Result<Exit, Fault> {
    let target = Target::of(&configured(&args.place, shell)?)?;
    let inspection = target.opened().await?;
    let (schema, found) = (inspection.schema().await?, inspection.check().await?);
    inspection.close().await?;
    let mut report: Vec<Value> = Vec::new();
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
        let detail = "rows weren't compared: the schema is an older one";
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
