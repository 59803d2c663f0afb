//! Selection of the tasks that a command acts on, and the same action on each of them.

use super::args::steer::Which;
use super::words;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Danger, Form, Link, Paging};
use crate::output::screen;
use crate::output::table::{clean, human};
use crate::task::look::columns::TASKS;
use windrow_client::{Answer, Request};

/// Largest number of tasks named in a question.
const NAMED_MAX: usize = 5;

/// Action that a command performs on tasks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Action {
    /// Verb in messages, such as `stop`.
    pub(super) verb: &'static str,
    /// Last segment of the action's API path.
    pub(super) path: &'static str,
    /// Statuses to which the action applies, for tasks selected without a status.
    pub(super) usual: &'static str,
    /// Risk of the action, which decides about confirmation.
    pub(super) danger: Danger,
}

/// Result of an action on one task.
#[derive(Debug)]
pub(super) struct Became {
    /// Line printed for people.
    pub(super) line: String,
    /// Body of the API for scripts; empty if there is none.
    pub(super) answer: Answer,
    /// Exit code if this task is the only one.
    pub(super) exit: Exit,
}

impl Became {
    /// Creates the result of a successful action.
    pub(super) fn well(line: String, answer: Answer) -> Became {
        let exit = Exit::Ok;
        Became { line, answer, exit }
    }
}

/// Returns the numbers of the selected tasks, after confirmation if it is needed. A dry run needs none.
///
/// # Errors
/// `Usage` if confirmation is needed and there is no terminal; otherwise same as [`Link::send`].
pub(super) async fn chosen(
    link: &Link<'_>,
    which: &Which,
    action: Action,
    is_dry: bool,
) -> Result<Vec<String>, Fault> {
    if !which.tasks.is_empty() {
        let mut ids = Vec::with_capacity(which.tasks.len());
        for address in &which.tasks {
            let id = link.task(address).await?;
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        if action.danger == Danger::Final && !is_dry {
            agree(link, action, &ids, &which.tasks.join(", "))?;
        }
        return Ok(ids);
    }
    let request = Request::get("/v1/tasks")
        .query_option("business", which.business.as_deref())
        .query("status", which.status.as_deref().unwrap_or(action.usual))
        .query_option("label", which.label.as_deref())
        .query("sort", "id");
    let found: Vec<api::Task> = link.list(request, Some(&Paging::ALL)).await?.things()?;
    let ids: Vec<String> = found.iter().map(|task| task.id.clone()).collect();
    if ids.is_empty() {
        link.is_business(which.business.as_deref()).await?;
        link.say(&format!("no task to {}", action.verb));
    } else if !is_dry {
        agree(link, action, &ids, &named(&found))?;
    }
    Ok(ids)
}

/// Asks for confirmation. An irreversible action is confirmed by typing the task's number, or the number of tasks.
fn agree(link: &Link<'_>, action: Action, ids: &[String], names: &str) -> Result<(), Fault> {
    let (verb, count) = (capital(action.verb), human::count(ids.len() as u64));
    let question = match ids {
        [_] => format!("{verb} {names}?"),
        _ => format!("{verb} {count} tasks ({names})?"),
    };
    match (action.danger, ids) {
        (Danger::Ordinary, _) => link.confirm(action.danger, &question),
        (Danger::Final, [id]) => link.confirm_word(&format!("{question} It can't be undone."), id),
        (Danger::Final, _) => link.confirm_word(&format!("{question} It can't be undone."), &count),
    }
}

fn named(tasks: &[api::Task]) -> String {
    let some = tasks.iter().take(NAMED_MAX);
    let mut names: Vec<String> = some.map(|task| clean(&words::address(task))).collect();
    if tasks.len() > NAMED_MAX {
        names.push("…".to_owned());
    }
    names.join(", ")
}

fn capital(word: &str) -> String {
    let mut chars = word.chars();
    chars
        .next()
        .map(|first| first.to_uppercase().chain(chars).collect())
        .unwrap_or_default()
}

/// Performs the action on all tasks before waiting for the result of the first. A refusal doesn't affect the other
/// tasks; the exit code is that of the first refusal.
///
/// # Errors
/// Fails if the only task refuses, or if standard output can't be written.
pub(super) async fn each<T, D, B>(link: &Link<'_>, ids: &[String], do_it: D, tell: B) -> Result<Exit, Fault>
where
    D: AsyncFn(&str) -> Result<Option<T>, Fault>,
    B: AsyncFn(&str, T) -> Result<Became, Fault>,
{
    let mut done = Vec::with_capacity(ids.len());
    for id in ids {
        done.push((id, do_it(id).await));
    }
    let mut exit = Exit::Ok;
    let mut bodies = Vec::new();
    for (id, done) in done {
        let became = match done {
            // A dry run, whose plan is already printed.
            Ok(None) => continue,
            Ok(Some(done)) => tell(id, done).await,
            Err(fault) => Err(fault),
        };
        match became {
            Err(fault) if ids.len() == 1 => return Err(fault),
            Err(fault) => {
                link.must_say(&format!("{id}  {fault}"));
                exit = first(exit, fault.exit);
            }
            Ok(became) => {
                exit = first(exit, became.exit);
                match link.look.form {
                    Form::Table | Form::Wide => screen::put(&link.said(&became.line))?,
                    Form::Name => screen::put(id)?,
                    Form::Json | Form::Ndjson | Form::Csv => bodies.push(became.answer),
                }
            }
        }
    }
    bodies.retain(|body| !body.body.is_empty());
    show(link, &bodies, ids.len() == 1)?;
    Ok(exit)
}

fn first(one: Exit, other: Exit) -> Exit {
    if one == Exit::Ok { other } else { one }
}

/// Prints bodies for scripts: a single one verbatim, several one per line.
fn show(link: &Link<'_>, bodies: &[Answer], is_one: bool) -> Result<(), Fault> {
    match (link.look.form, bodies) {
        (_, []) => Ok(()),
        (Form::Csv, [.., last]) => {
            let tasks = bodies.iter().map(Answer::read).collect::<Result<Vec<_>, _>>()?;
            screen::put(&TASKS.csv(&tasks, &link.times(last), link.look.guard.into()))
        }
        (Form::Json, [body]) if is_one => screen::put(&body.text()),
        _ => screen::put(&bodies.iter().map(|body| body.line() + "\n").collect::<String>()),
    }
}
