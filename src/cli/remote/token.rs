//! Implementation of `windrow token`, for the tokens that grant access to the API.

use std::num::NonZeroU64;
use std::time::Duration;

use api::Token;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, json};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::moment::{self, Lean};
use crate::link::{Danger, Form, Link, Pages, Write, word};
use crate::output::table::times::{Times, written};
use crate::output::table::{Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use windrow_client::Request;
use windrow_core::settings::text::{parse_span, span_text};
use windrow_engine::ports::clock::Clock;
use windrow_node::SystemClock;

/// Examples of creating tokens, for the help.
const CREATE_EXAMPLES: &str = "Examples:
  windrow token create --role viewer --name wall-display
  windrow token create --role business --business push --expires-in 90d
  windrow token create --role operator --name ci > operator.token

The token is printed once, alone on standard output; the node stores only a hash.";

/// Arguments of `windrow token`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct TokenArgs {
    /// Verb to execute; without one the tokens are listed.
    #[command(subcommand)]
    pub verb: Option<Verb>,
    /// Flags of the list, without a verb.
    #[command(flatten)]
    pub list: Pages,
}

/// Verbs of `windrow token`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List tokens, including revoked ones
    List(Pages),
    /// Create a token and print it once
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// Revoke tokens at once and for good
    Revoke(RevokeArgs),
}

/// Roles of a token, for `--role`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleWord {
    /// Read everything, change nothing
    Viewer,
    /// Read everything, and control tasks
    Operator,
    /// Manage everything: businesses, tokens, nodes
    Admin,
    /// Read and control the tasks of one business
    Business,
    /// Read datasets, of one business or of all
    Reader,
}

/// Arguments of `windrow token create`.
#[derive(Clone, Debug, Args)]
pub struct CreateArgs {
    /// Role that defines its permissions
    #[arg(long, value_enum)]
    pub role: RoleWord,
    /// Business for --role business; limits a reader to its datasets, which by default are all
    #[arg(long, value_name = "NAME", required_if_eq("role", "business"))]
    pub business: Option<String>,
    /// Holder of the token, for the audit log; defaults to $USER, $LOGNAME or 'ROLE token'
    #[arg(long, value_name = "TEXT")]
    pub name: Option<String>,
    /// Lifetime of the token; by default it is valid until revoked
    #[arg(long, value_name = "SPAN", value_parser = parse_span)]
    pub expires_in: Option<Duration>,
    /// Expiry time of the token; 22:00, tomorrow 06:00, 8h, 2027-01-31 or RFC 3339
    #[arg(long, value_name = "TIME", conflicts_with = "expires_in")]
    pub expires_at: Option<String>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Arguments of `windrow token revoke`.
#[derive(Clone, Debug, Args)]
pub struct RevokeArgs {
    /// Numbers of the tokens (`windrow token list`)
    #[arg(required = true, value_name = "ID")]
    pub ids: Vec<NonZeroU64>,
    /// Flags for the reason and the dry run.
    #[command(flatten)]
    pub write: Write,
}

/// Listing of tokens without their secrets.
const TOKENS: Listing<Token> = Listing {
    columns: &[
        Column::plain("ID", Keep::Always, 2, |token| Some(token.id.to_string())),
        Column::text("NAME", Keep::Always, 8, |token: &Token| &token.name).tone(Tone::Strong),
        Column::text("ROLE", Keep::Always, 6, |token| &token.role),
        Column::maybe("BUSINESS", Keep::Rank(60), 8, |token| token.business.as_deref()),
        Column::text("PREFIX", Keep::Rank(50), 8, |token| &token.prefix),
        Column::new("STATE", Side::Left, Keep::Rank(80), 8, state),
        Column::time("CREATED", Keep::Rank(30), |token| Some(&token.created_at)),
        Column::text("BY", Keep::Rank(20), 6, |token| &token.created_by),
        Column::time("EXPIRES", Keep::Wide, |token| token.expires_at.as_deref()),
        Column::time("REVOKED", Keep::Wide, |token| token.revoked_at.as_deref()),
    ],
    name: |token| token.id.to_string(),
    none: "no tokens",
};

fn state(token: &Token, times: &Times) -> Cell {
    if token.revoked_at.is_some() {
        return Cell::new("revoked").tone(Tone::Dim);
    }
    let at = token.expires_at.as_deref().unwrap_or_default();
    match times.since(at) {
        Some(since) if since >= 0 => Cell::new("expired").tone(Tone::Dim),
        Some(_) => {
            let valid = Cell::new(format!("valid, expires {}", times.text(at)));
            valid.short("valid").plain("valid")
        }
        None => Cell::new("valid").tone(Tone::Good),
    }
}

/// Executes the verb; lists the tokens without one.
///
/// # Errors
/// Same as the verb.
pub(crate) async fn token(args: &TokenArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list(&args.list, shell).await,
        Some(Verb::List(args)) => list(args, shell).await,
        Some(Verb::Create(args)) => create(args, shell).await,
        Some(Verb::Revoke(args)) => revoke(args, shell).await,
    }
}

async fn list(args: &Pages, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let listed = link.list(Request::get("/v1/tokens"), Some(&args.paging)).await?;
    link.show_list(&TOKENS, &listed, &listed.things()?)
}

/// Creates a token and prints it, once.
async fn create(args: &CreateArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let expires_at = moment::given_option("--expires-at", args.expires_at.as_ref(), Lean::Ahead, &link)?;
    let expires_in = args.expires_in.map(after).transpose()?;
    let members = [
        ("name", Some(name(args, shell))),
        ("role", Some(word(&args.role))),
        ("business", args.business.clone()),
        ("expires_at", expires_in.or_else(|| expires_at.map(|at| at.exact))),
    ];
    let members = members
        .into_iter()
        .filter_map(|(name, text)| Some((name.to_owned(), json!(text?))));
    let request = Request::post("/v1/tokens");
    let Some(answer) = link.change(&args.write, request, members.collect()).await? else {
        return Ok(Exit::Ok);
    };
    let made: Token = answer.read()?;
    let token = made.token.unwrap_or_default();
    match link.look.form {
        Form::Table | Form::Wide => link.say(&format!(
            "token {} for {:?}, role {}; shown only once:",
            made.id, made.name, made.role
        )),
        Form::Json | Form::Ndjson => {}
        // These forms have no place for the token.
        Form::Name | Form::Csv => link.must_say(&format!("the token, shown only once: {token}")),
    }
    link.show_done(&TOKENS, &answer, &token)
}

/// Returns the holder of the token. Without a name the role is more useful in the audit log than nothing.
fn name(args: &CreateArgs, shell: &Shell) -> String {
    let given = args.name.clone();
    let user = || shell.known_user().map(str::to_owned);
    given
        .or_else(user)
        .unwrap_or_else(|| format!("{} token", word(&args.role)))
}

/// Returns the time after this span, in the API's format.
fn after(span: Duration) -> Result<String, Fault> {
    let at = i64::try_from(span.as_millis())
        .ok()
        .and_then(|ms| SystemClock::new().wall().0.checked_add(ms));
    at.and_then(written).ok_or_else(|| {
        let because = format!("--expires-in {}", span_text(span));
        Fault::new(Exit::Usage, "the time is too far in the future", because)
            .hint("omit it: the token is then valid until it is revoked")
    })
}

/// Revokes tokens. If one fails, those before it are already revoked.
async fn revoke(args: &RevokeArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    if !args.write.dry_run {
        let ids: Vec<String> = args.ids.iter().map(ToString::to_string).collect();
        let ids = ids.join(", ");
        let question = format!("Revoke token {ids}? This is permanent; its holder is locked out.");
        link.confirm(Danger::Final, &question)?;
    }
    for id in &args.ids {
        let request = Request::delete(&format!("/v1/tokens/{id}"));
        if link.change(&args.write, request, Map::new()).await?.is_some() {
            link.show_gone(&id.to_string(), &format!("revoked token {id}"))?;
        }
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::times::parsed;

    #[test]
    fn a_span_becomes_a_time_that_the_api_reads() {
        let at = after(Duration::from_secs(60)).expect("a time");
        let read = parsed(&at).expect("RFC 3339");
        assert!(read.timestamp_millis() > SystemClock::new().wall().0, "{at}");
        let never = after(Duration::from_secs(u64::MAX)).expect_err("no time");
        assert_eq!(never.exit, Exit::Usage);
    }
}
