//! What happens after a task was made: its canary, its end.

use serde_json::Value;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::output::screen;
use crate::output::table::{clean, human};
use crate::task::args::make::{Begin, Then};
use crate::task::ending;
use crate::task::make::warnings;
use crate::task::steer::tell;
use crate::task::wait::until::{self, Seen};
use crate::task::words;
use windrow_client::{Answer, Request, segment};

/// Failures that are shown when a person asks for them.
const FAILURES_SHOWN: u32 = 20;

/// A task that was made now, and what is wanted of it.
pub(crate) struct Made {
    pub(crate) answer: Answer,
    /// What is told to people.
    pub(crate) line: String,
    pub(crate) begin: Begin,
    /// What follows its canary, if it has one.
    pub(crate) then: Option<Then>,
}

/// How that went.
pub(crate) struct Followed {
    pub(crate) exit: Exit,
    /// The task at its end, if that was awaited.
    pub(crate) ended: Option<Value>,
}

/// Prints it, watches its canary and waits for its end, as far as that is wanted.
///
/// # Errors
/// When the node can't be asked any more; the task goes on.
pub(crate) async fn follow(link: &Link<'_>, made: Made) -> Result<Followed, Fault> {
    let task: Value = made.answer.json()?;
    let id = task["id"].as_str().unwrap_or_default().to_owned();
    tell(link, &made.line)?;
    if link.look.form == Form::Name {
        screen::put(&id)?;
    }
    let asks = made.then == Some(Then::Ask) && made.begin.starts();
    if !asks && !made.begin.wait {
        print(link, &made.answer, &task)?;
        let is_told = warnings::has(&task, "not_started");
        if !made.begin.starts() && task["status"] == "created" && !is_told {
            link.hint(&format!("it isn't started: windrow task start {id}"));
        }
        return Ok(Followed {
            exit: Exit::Ok,
            ended: None,
        });
    }
    let mut p95 = None;
    let watched = |task: &Value| {
        p95 = task["live"]["latency_p95_seconds"].as_f64().or(p95);
        ending::ended(task).is_some()
    };
    let mut seen = until::until(link, &id, watched).await?;
    if seen.task["stop_reason"] == "canary_done" && seen.task["status"] == "stopped" {
        report(link, &seen.task, p95).await?;
        match decide(link, &seen.task, asks).await? {
            Decision::GoOn => {
                let path = format!("/v1/tasks/{}/start", segment(&id));
                let answer = link
                    .send(Request::post(&path).body("application/json", "{}"))
                    .await?;
                if !made.begin.wait {
                    print(link, &answer, &answer.json()?)?;
                    return Ok(Followed {
                        exit: Exit::Ok,
                        ended: None,
                    });
                }
                seen = until::until(link, &id, |task| ending::ended(task).is_some()).await?;
            }
            Decision::Stay(exit) => {
                print(link, &seen.answer, &seen.task)?;
                tell(
                    link,
                    &format!("{id}  stopped after its canary   go on: windrow task start {id}"),
                )?;
                return Ok(Followed { exit, ended: None });
            }
        }
    }
    end(link, seen)
}

fn end(link: &Link<'_>, seen: Seen) -> Result<Followed, Fault> {
    tell(link, &until::outcome(&seen.task))?;
    print(link, &seen.answer, &seen.task)?;
    Ok(Followed {
        exit: ending::ended(&seen.task).unwrap_or(Exit::Stopped),
        ended: Some(seen.task),
    })
}

/// Prints the body for scripts.
fn print(link: &Link<'_>, answer: &Answer, task: &Value) -> Result<(), Fault> {
    match link.look.form {
        Form::Table | Form::Wide | Form::Name => Ok(()),
        Form::Json => screen::put(&answer.text()),
        Form::Ndjson => screen::put(&answer.text().replace(['\n', '\r'], " ")),
        Form::Csv => screen::put(&crate::task::TASKS.csv(std::slice::from_ref(task), &link.times(answer))),
    }
}

/// Tells what a canary came to.
async fn report(link: &Link<'_>, task: &Value, p95: Option<f64>) -> Result<(), Fault> {
    let (done, _) = words::done(task);
    let p95 = p95
        .map(|p95| format!("   p95 {:.0} ms", p95 * 1000.0))
        .unwrap_or_default();
    tell(
        link,
        &format!(
            "canary   {}   {}{p95}",
            human::counted(done, "item"),
            until::counts(task)
        ),
    )?;
    let id = task["id"].as_str().unwrap_or_default();
    let groups: Value = link
        .get(&format!("/v1/tasks/{}/failures/groups", segment(id)))
        .await?
        .json()?;
    for group in groups["items"].as_array().into_iter().flatten() {
        let count = human::count(group["count"].as_u64().unwrap_or(0));
        let code = group["code"].as_str().unwrap_or_default();
        let example = group["example"].as_str().unwrap_or_default();
        tell(
            link,
            &clean(&format!(
                "  abandoned: {code} ×{count} (#{} {example})",
                group["example_index"]
            )),
        )?;
    }
    Ok(())
}

/// What follows the canary.
enum Decision {
    GoOn,
    /// It stays where it is, and the program ends.
    Stay(Exit),
}

/// Asks a person; without one it stays stopped.
async fn decide(link: &Link<'_>, task: &Value, asks: bool) -> Result<Decision, Fault> {
    let failed = task["counts"]["abandoned"]
        .as_u64()
        .is_some_and(|count| count > 0);
    let unasked = Decision::Stay(if failed { Exit::WithFailures } else { Exit::Ok });
    if !asks {
        return Ok(unasked);
    }
    let left = human::count(task["counts"]["pending"].as_u64().unwrap_or(0));
    let question = format!("Continue with the remaining {left}?  [y]es / [n]o stop / [f]ailures ▸");
    loop {
        match link.choose(&question, &['y', 'n', 'f']).await? {
            None => return Ok(unasked),
            Some('y') => return Ok(Decision::GoOn),
            Some('f') => failures(link, task["id"].as_str().unwrap_or_default()).await?,
            Some(_) => return Ok(Decision::Stay(Exit::Stopped)),
        }
    }
}

async fn failures(link: &Link<'_>, id: &str) -> Result<(), Fault> {
    let request = Request::get(&format!("/v1/tasks/{}/failures", segment(id))).query("limit", FAILURES_SHOWN);
    let found: Value = link.send(request).await?.json()?;
    for item in found["items"].as_array().into_iter().flatten() {
        let text = |name: &str| item[name].as_str().unwrap_or("–").to_owned();
        let (code, message) = (text("code"), text("message"));
        link.say(&clean(&format!("  #{}  {code}  {message}", item["index"])));
    }
    Ok(())
}
