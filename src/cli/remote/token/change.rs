//! `windrow token create` and `revoke`.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat};
use clap::ValueEnum;
use serde_json::{Map, json};

use super::args::{CreateArgs, RevokeArgs};
use super::list::TOKENS;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::moment::{self, Lean};
use crate::link::{Danger, Form, Link};
use crate::output::screen;
use crate::output::table::Card;
use windrow_client::Request;
use windrow_engine::ports::clock::Clock;
use windrow_node::SystemClock;

/// Makes a token and prints it, this one time.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn create(args: &CreateArgs, shell: &Shell) -> Result<Exit, Fault> {
    let role = args
        .role
        .to_possible_value()
        .map(|value| value.get_name().to_owned());
    let mut body = Map::new();
    body.insert(
        "name".to_owned(),
        json!(args.name.clone().unwrap_or_else(|| shell.user())),
    );
    body.insert("role".to_owned(), json!(role));
    if let Some(business) = &args.business {
        body.insert("business".to_owned(), json!(business));
    }
    let link = Link::open(&args.remote, shell)?;
    let expires_at = moment::given_option("--expires-at", args.expires_at.as_ref(), Lean::Ahead, &link)?;
    let expires_at = expires_at.map(|at| at.exact);
    if let Some(at) = args.expires_in.map(after).transpose()?.or(expires_at) {
        body.insert("expires_at".to_owned(), json!(at));
    }
    let request = args.write.request(Request::post("/v1/tokens"), body);
    let Some(answer) = link.change(&args.write, request).await? else {
        return Ok(Exit::Ok);
    };
    let made = answer.json()?;
    let token = made["token"].as_str().unwrap_or_default();
    match link.look.form {
        Form::Table | Form::Wide => {
            let (id, name) = (&made["id"], made["name"].as_str().unwrap_or_default());
            let role = made["role"].as_str().unwrap_or_default();
            link.say(&format!(
                "token {id} for {name:?}, role {role}; it is shown this once:"
            ));
            screen::put(token).map(|()| Exit::Ok)
        }
        Form::Json | Form::Ndjson => link.show_one(&TOKENS, &answer, |_, _| Card::new()),
        // These forms have no place for it.
        Form::Name | Form::Csv => {
            shell
                .screen
                .must_say(&format!("the token, shown this once: {token}"));
            link.show_one(&TOKENS, &answer, |_, _| Card::new())
        }
    }
}

/// The time after this span, as the API writes it.
fn after(span: Duration) -> Result<String, Fault> {
    let at = i64::try_from(span.as_millis())
        .ok()
        .and_then(|ms| SystemClock::new().wall().0.checked_add(ms));
    let at = at.and_then(DateTime::from_timestamp_millis);
    // The years that RFC 3339 can write.
    let at = at
        .map(|at| at.to_rfc3339_opts(SecondsFormat::Millis, true))
        .filter(|text| text.len() == 24);
    at.ok_or_else(|| {
        Fault::new(
            Exit::Usage,
            "no clock goes that far",
            format!("--expires-in {}", humantime::format_duration(span)),
        )
        .hint("leave it out: it is believed until it is revoked")
    })
}

/// Takes tokens' validity away.
///
/// # Errors
/// `Usage` without a yes; else as [`Link::send`]. Those before it are revoked then.
pub(super) async fn revoke(args: &RevokeArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    if !args.write.dry_run {
        let ids: Vec<String> = args.ids.iter().map(ToString::to_string).collect();
        let question = format!(
            "Revoke token {}? Who holds it is refused from then on, for good.",
            ids.join(", ")
        );
        link.confirm(Danger::Final, &question)?;
    }
    for id in &args.ids {
        let request = args
            .write
            .bare_request(Request::delete(&format!("/v1/tokens/{id}")));
        if link.change(&args.write, request).await?.is_none() {
            continue;
        }
        match link.look.form {
            Form::Table | Form::Wide => screen::put(&format!("revoked token {id}"))?,
            Form::Name => screen::put(&id.to_string())?,
            // The API answers with no body.
            Form::Json | Form::Ndjson | Form::Csv => {}
        }
    }
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_becomes_a_time_that_the_api_reads() {
        let at = after(Duration::from_secs(60)).expect("a time");
        let read = DateTime::parse_from_rfc3339(&at).expect("RFC 3339");
        assert!(read.timestamp_millis() > SystemClock::new().wall().0, "{at}");
        let never = after(Duration::from_secs(u64::MAX)).expect_err("no time");
        assert_eq!(never.exit, Exit::Usage);
    }
}
