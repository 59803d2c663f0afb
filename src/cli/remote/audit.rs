//! Implementation of `windrow audit`: changes of all objects, with author and reason.

use api::AuditEntry;
use clap::Args;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::moment::{self, Lean};
use crate::link::{Link, Paging, Remote};
use crate::output::difference::change;
use crate::output::table::times::written;
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use windrow_client::Request;

/// Examples of `windrow audit`, for the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  windrow audit --since 2h
  windrow audit --object schedule:push/nightly
  windrow audit --object task:t12 --action task.stop
  windrow audit --actor ada --since 2026-11-01 --until 2026-12-01 --all -o csv

An object is a kind and a name: task:t12, schedule:push/nightly, limit:vendor,
token:ops, session:7, business:push, dataset:push.users, node:n1.";

/// Arguments of `windrow audit`.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Filters")]
pub struct AuditArgs {
    /// Only changes to this object: KIND:NAME, such as task:t12 or schedule:push/nightly
    #[arg(long, value_name = "OBJECT")]
    pub object: Option<String>,
    /// Only changes to this business itself
    #[arg(long, value_name = "NAME")]
    pub business: Option<String>,
    /// Only changes by this person or program
    #[arg(long, value_name = "NAME")]
    pub actor: Option<String>,
    /// Only this action, such as task.start
    #[arg(long)]
    pub action: Option<String>,
    /// Changes since a time or a span ago; 10m, 2h, 3d, 22:00, yesterday 18:00, 2026-11-20 or RFC 3339
    #[arg(long, visible_alias = "from", value_name = "SPAN|TIME")]
    pub since: Option<String>,
    /// Changes before a time or a span ago, as for --since
    #[arg(long, visible_alias = "to", value_name = "SPAN|TIME")]
    pub until: Option<String>,
    /// Flags for the number of entries.
    #[command(flatten)]
    pub paging: Paging,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Listing of changes to all kinds of objects.
const CHANGES: Listing<AuditEntry> = Listing {
    columns: &[
        Column::time("AT", Keep::Always, |entry| Some(&entry.at)),
        Column::text("ACTOR", Keep::Rank(60), 6, |entry| &entry.actor),
        Column::text("ACTION", Keep::Always, 8, |entry: &AuditEntry| &entry.action).tone(Tone::Strong),
        Column::new("OBJECT", Side::Left, Keep::Always, 8, |entry, _| object(entry)),
        Column::new("CHANGE", Side::Left, Keep::Rank(40), 16, change),
        Column::maybe("REASON", Keep::Rank(55), 10, |entry| entry.reason.as_deref()),
        Column::text("SOURCE", Keep::Wide, 4, |entry| &entry.source),
        Column::maybe("ROLE", Keep::Wide, 6, |entry| entry.role.as_deref()),
        Column::maybe("REQUEST", Keep::Wide, 8, |entry: &AuditEntry| {
            entry.request_id.as_deref()
        })
        .named("request_id"),
        Column::plain("ID", Keep::Wide, 3, |entry| Some(entry.id.to_string())),
    ],
    name: |entry| entry.id.to_string(),
    none: "no matching changes",
};

/// Formats the object as `--object` takes it, such as `schedule:push/nightly`.
fn object(entry: &AuditEntry) -> Cell {
    let object = entry.object.as_ref();
    Cell::text(object.map(|object| format!("{}:{}", object.kind, object.name)))
}

/// Lists changes, newest first.
///
/// # Errors
/// `Usage` for an invalid time; otherwise same as [`Link::send`].
pub(crate) async fn audit(args: &AuditArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let time = |flag, text: Option<&String>| -> Result<Option<String>, Fault> {
        let given = moment::given_option(flag, text, Lean::Back, &link)?;
        Ok(given.and_then(|given| written(given.at_ms)))
    };
    let request = Request::get("/v1/audit")
        .query_option("object", args.object.as_deref())
        .query_option("business", args.business.as_deref())
        .query_option("actor", args.actor.as_deref())
        .query_option("action", args.action.as_deref())
        .query_option("since", time("--since", args.since.as_ref())?)
        .query_option("until", time("--until", args.until.as_ref())?);
    let listed = link.list(request, Some(&args.paging)).await?;
    link.show_list(&CHANGES, &listed, &listed.things()?)
}
