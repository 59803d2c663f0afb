//! Implementation of `windrow biz register`: prints the report of the contract check, and the signing secret, which
//! is shown only once.

use api::{Business, CheckReply};
use serde_json::{Map, Value, json};

use super::list::{BUSINESSES, card};
use super::{RegisterArgs, path};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::checks;
use crate::link::{Form, Link, Named, NamedWrite, Write};
use crate::output::screen;
use crate::output::shell_word;
use crate::shell::Shell;
use windrow_client::{Answer, ClientError, Problem, Request};

/// Registers a business.
///
/// # Errors
/// `BadHandler`, after the report, if the handler violates the contract; otherwise same as [`Link::send`].
pub(super) async fn register(args: &RegisterArgs, shell: &Shell) -> Result<Exit, Fault> {
    let body = args.settings.body()?;
    let link = Link::open(&args.write.remote, shell)?;
    let Some(answer) = send(&link, (&args.name, body), &args.write, args.force).await? else {
        return Ok(Exit::Ok);
    };
    if args.force {
        link.hint(&format!(
            "handler not checked: windrow biz check {}",
            shell_word(&args.name)
        ));
    } else if link.look.form.is_for_people() {
        // A handler that passes may still have warnings.
        let request = Request::post(&format!("{}/check", path(&args.name)));
        let report: CheckReply = link.send(request).await?.read()?;
        for line in checks::lines(&report.checks, false) {
            link.say(&line);
        }
    }
    link.say(&format!("registered {}", args.name));
    tell_secret(&link, &answer)
}

/// Creates a new signing secret for a business.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn rotate_secret(args: &NamedWrite, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post(&format!("{}/rotate-secret", path(&args.name)));
    let Some(answer) = link.change(&args.write, request, Map::new()).await? else {
        return Ok(Exit::Ok);
    };
    link.say("the old secret stays valid for 24 hours; until then calls carry both signatures");
    tell_secret(&link, &answer)
}

/// Sends the registration and prints a failed check line by line. Returns `None` for a dry run, whose plan is
/// printed.
pub(super) async fn send(
    link: &Link<'_>,
    (name, mut body): (&str, Map<String, Value>),
    write: &Write,
    force: bool,
) -> Result<Option<Answer>, Fault> {
    body.insert("name".to_owned(), json!(name));
    let request = Request::post("/v1/businesses").query_option("check", force.then_some("skip"));
    if write.dry_run {
        return link.change(write, request, body).await;
    }
    match link.client.send(write.request(request, body)).await {
        Err(ClientError::Problem(problem)) if problem.slug() == "check-failed" => {
            Err(not_registered(name, &problem, link))
        }
        Err(ClientError::Problem(problem)) if problem.slug() == "name-taken" => {
            Err(Fault::from(ClientError::Problem(problem)).hint(format!(
                "`windrow biz edit {}` changes it with the same flags; or choose another name",
                shell_word(name)
            )))
        }
        sent => Ok(Some(sent?)),
    }
}

/// Prints the report on standard error and returns the resulting fault.
pub(crate) fn not_registered(name: &str, problem: &Problem, link: &Link<'_>) -> Fault {
    let report = problem.more.check_report.as_deref().unwrap_or_default();
    for line in checks::lines(report, false) {
        link.must_say(&line);
    }
    let what = format!("{name} was not registered: {}", checks::failed(report));
    Fault::new(Exit::BadHandler, what, &*problem.detail)
        .hint("correct the handler; --force registers it anyway")
}

/// Prints the secret on standard output. The forms `name` and `csv` have no place for it, so it goes to standard
/// error.
fn tell_secret(link: &Link<'_>, answer: &Answer) -> Result<Exit, Fault> {
    let business: Business = answer.read()?;
    let Some(secret) = business.secret else {
        return link.show_one(&BUSINESSES, answer, card);
    };
    match link.look.form {
        Form::Table | Form::Wide => link.say(
            "signing secret, shown only once; give it to the handler, which verifies calls with \
                it:",
        ),
        Form::Json | Form::Ndjson => {}
        Form::Name | Form::Csv => link.must_say(&format!("signing secret, shown only once: {secret}")),
    }
    link.show_done(&BUSINESSES, answer, &secret)
}

/// Checks the handler of a business.
///
/// # Errors
/// Same as [`Link::send`].
pub(super) async fn check(args: &Named, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = Request::post(&format!("{}/check", path(&args.name)));
    let answer = link.send(request).await?;
    let CheckReply { checks: report, .. } = answer.read()?;
    match link.look.form {
        Form::Json => screen::put(&answer.text())?,
        _ => checks::show(&link.look, &report)?,
    }
    if checks::passed(&report) {
        return Ok(Exit::Ok);
    }
    let failed = checks::failed(&report);
    link.say(&format!("{} violates the contract: {failed}", args.name));
    Ok(Exit::BadHandler)
}
