//! `windrow biz register`: with the contract check as people see it, and the secret, once.

use serde_json::{Map, Value};

use super::args::{ChangeArgs, RegisterArgs};
use super::list::BUSINESSES;
use super::path;
use super::show::card;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link, Write};
use crate::output::checks;
use crate::output::screen;
use windrow_client::{Answer, ClientError, Problem, Request};

/// Registers a business.
///
/// # Errors
/// `BadHandler` with the report when the handler breaks the contract; else as [`Link::send`].
pub(super) async fn register(args: &RegisterArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut body = args.settings.body()?;
    body.insert("name".to_owned(), Value::String(args.name.clone()));
    let link = Link::open(&args.remote, shell)?;
    let Some(answer) = send(&link, shell, body, &args.write, args.force).await? else {
        return Ok(Exit::Ok);
    };
    if args.force {
        link.hint(&format!(
            "its handler wasn't called: windrow biz check {}",
            args.name
        ));
    } else if matches!(link.look.form, Form::Table | Form::Wide) {
        // A handler that passed may have been warned of something.
        let report = link
            .send(Request::post(&format!("{}/check", path(&args.name))))
            .await?
            .json()?;
        let report = report["checks"].as_array().map(Vec::as_slice).unwrap_or_default();
        checks::lines(report, false)
            .iter()
            .for_each(|line| link.say(line));
    }
    link.say(&format!("registered {}", args.name));
    tell_secret(&link, shell, &answer)
}

/// Gives it a new secret.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn rotate_secret(args: &ChangeArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = args.write.request(
        Request::post(&format!("{}/rotate-secret", path(&args.name))),
        Map::new(),
    );
    let Some(answer) = link.change(&args.write, request).await? else {
        return Ok(Exit::Ok);
    };
    link.say("the secret before it stays valid for 24 hours: calls carry both signatures until then");
    tell_secret(&link, shell, &answer)
}

/// Sends the wish to register; a failed check is told in lines. None is a dry run, which is printed.
pub(super) async fn send(
    link: &Link<'_>,
    shell: &Shell,
    body: Map<String, Value>,
    write: &Write,
    force: bool,
) -> Result<Option<Answer>, Fault> {
    let name = body
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    let request = Request::post("/v1/businesses").query_option("check", force.then_some("skip"));
    let request = write.request(request, body);
    if write.dry_run {
        return link.change(write, request).await;
    }
    match link.client.send(request).await {
        Ok(answer) => Ok(Some(answer)),
        Err(ClientError::Problem(problem)) if problem.slug() == "check-failed" => {
            Err(broken(&name, &problem, shell))
        }
        Err(error) => Err(error.into()),
    }
}

/// The report on standard error, and what it comes to.
fn broken(name: &str, problem: &Problem, shell: &Shell) -> Fault {
    let report = problem.more.get("check_report").and_then(Value::as_array);
    let report = report.map(Vec::as_slice).unwrap_or_default();
    checks::lines(report, false)
        .iter()
        .for_each(|line| shell.screen.must_say(line));
    Fault::new(
        Exit::BadHandler,
        format!("{name} is not registered: {}", checks::failed(report)),
        &*problem.detail,
    )
    .hint("mend the handler; --force registers it all the same")
}

/// The secret, on standard output in every form but two, which have no place for it.
fn tell_secret(link: &Link<'_>, shell: &Shell, answer: &Answer) -> Result<Exit, Fault> {
    let business = answer.json()?;
    let Some(secret) = business["secret"].as_str() else {
        return link.show_one(&BUSINESSES, answer, card);
    };
    match link.look.form {
        Form::Table | Form::Wide => {
            link.say(
                "its signing secret, shown this once; give it to the handler, which checks calls with it:",
            );
            screen::put(secret).map(|()| Exit::Ok)
        }
        Form::Json | Form::Ndjson => link.show_one(&BUSINESSES, answer, card),
        Form::Name | Form::Csv => {
            shell
                .screen
                .must_say(&format!("its signing secret, shown this once: {secret}"));
            link.show_one(&BUSINESSES, answer, card)
        }
    }
}
