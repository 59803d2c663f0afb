//! Follow-up of a new task: its canary and its end.

use api::Task;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::output::screen;
use crate::output::table::{clean, human};
use crate::task::args::make::{Begin, Then};
use crate::task::ending;
use crate::task::look::carried::who;
use crate::task::look::columns::TASKS;
use crate::task::look::failures;
use crate::task::make::warnings;
use crate::task::steer::tell;
use crate::task::wait::until::{self, TaskAnswer};
use crate::task::words;
use windrow_client::{Answer, Request};

/// Number of failures shown when the user asks for them.
const FAILURES_SHOWN: u32 = 20;

/// New task, with the requested follow-up.
pub(crate) struct Created {
    pub(crate) answer: Answer,
    /// Line printed for people.
    pub(crate) line: String,
    pub(crate) begin: Begin,
    /// Action after its canary, if it has one.
    pub(crate) then: Option<Then>,
}

/// Result of following a new task.
pub(crate) struct Followed {
    pub(crate) exit: Exit,
    /// Task at its end, if the command waited for it.
    pub(crate) ended: Option<Task>,
}

impl Followed {
    /// Creates the result for a task whose end isn't awaited.
    fn no_further(exit: Exit) -> Followed {
        Followed { exit, ended: None }
    }
}

/// Prints the new task, then watches its canary and waits for its end if requested.
///
/// # Errors
/// Fails if the node can't be reached any more; the task goes on.
pub(crate) async fn follow(link: &Link<'_>, created: Created) -> Result<Followed, Fault> {
    let task: Task = created.answer.read()?;
    let id = task.id.as_str();
    tell(link, &created.line)?;
    if link.look.form == Form::Name {
        screen::put(id)?;
    }
    if let Some(note) = canary_of_all(&task) {
        link.say(&note);
    }
    // Don't wait at the terminal for a start in the future.
    let begins = created.begin.starts() && !words::waits_for_its_time(&task);
    let asks = created.then == Some(Then::Ask) && begins;
    if !asks && !created.begin.wait {
        print(link, &created.answer, &task)?;
        hint(link, &created, &task);
        return Ok(Followed::no_further(Exit::Ok));
    }
    let mut p95 = None;
    let watched = |task: &Task| {
        p95 = latency_p95(task).or(p95);
        ending::ended(task).is_some()
    };
    let mut end = until::until(link, id, watched).await?;
    if end.task.stop_reason.as_deref() == Some("canary_done") && end.task.status == "stopped" {
        report(link, &end.task, p95).await?;
        if let Decision::Stay(exit) = decide(link, &end.task, asks).await? {
            print(link, &end.answer, &end.task)?;
            let line = format!("{id}  stopped after its canary   continue: windrow task start {id}");
            tell(link, &line)?;
            // A command with `--wait` reports that the task hasn't ended, like `wait` and `watch`.
            let exit = if created.begin.wait { Exit::Stopped } else { exit };
            return Ok(Followed::no_further(exit));
        }
        let request = Request::post(&format!("/v1/tasks/{id}/start")).body("application/json", "{}");
        let answer = link.send(request).await?;
        if !created.begin.wait {
            print(link, &answer, &answer.read()?)?;
            return Ok(Followed::no_further(Exit::Ok));
        }
        end = until::until(link, id, |task| ending::ended(task).is_some()).await?;
    }
    let TaskAnswer { answer, task } = end;
    tell(link, &until::outcome(&task))?;
    print(link, &answer, &task)?;
    Ok(Followed {
        exit: ending::ended(&task).unwrap_or(Exit::Stopped),
        ended: Some(task),
    })
}

fn latency_p95(task: &Task) -> Option<f64> {
    task.live.as_ref()?.latency_p95_seconds
}

/// Returns a warning if the canary covers all items, so that nothing is held back. The total of an open task isn't
/// known.
fn canary_of_all(task: &Task) -> Option<String> {
    let (canary, total) = (task.spec.canary?.items.get(), task.total);
    let covers = canary >= total && task.intake.is_none();
    covers.then(|| {
        format!(
            "warning: the canary of {} covers all {}, so no items are held back",
            human::count(canary),
            human::counted(total, "item")
        )
    })
}

/// Prints the next command for a user who doesn't wait.
fn hint(link: &Link<'_>, created: &Created, task: &Task) {
    let id = &task.id;
    let is_told = warnings::has(task, "not_started");
    if !created.begin.starts() && task.status == "created" && !is_told {
        link.hint(&format!("not started: windrow task start {id}"));
    }
    if created.then == Some(Then::Ask) && words::waits_for_its_time(task) {
        link.hint(&format!(
            "it stops after its canary; continue: windrow task start {id}"
        ));
    }
}

/// Prints the body, for scripts only.
fn print(link: &Link<'_>, answer: &Answer, task: &Task) -> Result<(), Fault> {
    screen::put(&match link.look.form {
        Form::Table | Form::Wide | Form::Name => return Ok(()),
        Form::Json => answer.text(),
        Form::Ndjson => answer.line(),
        Form::Csv => TASKS.csv(
            std::slice::from_ref(task),
            &link.times(answer),
            link.look.guard.into(),
        ),
    })
}

/// Prints the outcome of a canary.
async fn report(link: &Link<'_>, task: &Task, p95: Option<f64>) -> Result<(), Fault> {
    let items = human::counted(words::done(task).0, "item");
    let p95 = p95.map(|p95| format!("   p95 {}", human::seconds(p95)));
    let counts = until::counts(task);
    tell(
        link,
        &format!("canary   {items}   {counts}{}", p95.unwrap_or_default()),
    )?;
    for failure in failures::told(link, &task.id).await? {
        tell(link, &clean(&format!("  failed: {failure}")))?;
    }
    Ok(())
}

/// Decision after the canary.
enum Decision {
    GoOn,
    /// Leave the task stopped and exit.
    Stay(Exit),
}

/// Asks the user. Without a terminal the task stays stopped.
async fn decide(link: &Link<'_>, task: &Task, asks: bool) -> Result<Decision, Fault> {
    let failed = words::has_failures(task);
    let unasked = Decision::Stay(if failed { Exit::WithFailures } else { Exit::Ok });
    if !asks {
        return Ok(unasked);
    }
    let left = human::count(task.counts.pending);
    let question = format!("Continue with the remaining {left}?  [y]es / [n]o stop / [f]ailures ▸");
    loop {
        match link.choose(&question, &['y', 'n', 'f']).await? {
            None => return Ok(unasked),
            Some('y') => return Ok(Decision::GoOn),
            Some('f') => failed_items(link, &task.id).await?,
            Some(_) => return Ok(Decision::Stay(Exit::Stopped)),
        }
    }
}

async fn failed_items(link: &Link<'_>, id: &str) -> Result<(), Fault> {
    let request = Request::get(&format!("/v1/tasks/{id}/failures")).query("limit", FAILURES_SHOWN);
    let found = link.list(request.query("data", "*"), None).await?;
    for item in &found.things::<api::Failure>()? {
        let [code, message] = [&item.code, &item.message].map(|text| text.as_deref().unwrap_or("–"));
        let who = who(item.data.as_deref());
        link.say(&clean(&format!("  #{}  {code}  {message}{who}", item.index)));
    }
    Ok(())
}
