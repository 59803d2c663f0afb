//! Implementation of `windrow apply`: brings a node to the state that files describe.

use api::{Business, Token};
use serde::Serialize;
use serde_json::json;

use super::differing::text;
use super::plan::{Outcome, Step, plan};
use super::schema::Schemas;
use super::{ApplyArgs, read};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Danger, Form, Link};
use crate::output::body::joined;
use crate::output::difference::Difference;
use crate::output::screen;
use crate::output::table::{csv, human};
use crate::remote::biz::not_registered;
use crate::shell::Shell;
use windrow_client::{Answer, ClientError};

/// Largest number of objects named in a question.
const NAMED_MAX: usize = 20;

/// Applies the files.
///
/// # Errors
/// `Rejected` for what can't be applied, before anything is changed; afterwards the refusal of a request, with what was
/// done before it.
pub(crate) async fn apply(args: &ApplyArgs, shell: &Shell) -> Result<Exit, Fault> {
    let wanted = read::wanted(args, shell)?;
    let link = Link::open(&args.write.remote, shell)?.of_file();
    let schemas = Schemas::of(&link).await?;
    let steps = plan((&link, args), &schemas, wanted).await?;
    if args.write.dry_run {
        let done: Vec<Applied> = steps.iter().map(Applied::of).collect();
        tell(&link, &done, true)?;
        return Ok(Exit::Ok);
    }
    confirm(&link, &steps)?;
    let mut done = Vec::new();
    for step in &steps {
        match carry_out(&link, args, step).await {
            Ok(applied) => done.push(applied),
            Err(fault) => {
                tell(&link, &done, false)?;
                return Err(broken_off(fault, step, &steps, &done));
            }
        }
    }
    tell(&link, &done, false)?;
    Ok(Exit::Ok)
}

/// Asks before anything is removed.
fn confirm(link: &Link<'_>, steps: &[Step]) -> Result<(), Fault> {
    let removed = steps.iter().filter(|step| step.outcome == Outcome::Removed);
    let removed: Vec<&str> = removed.map(|step| step.address.as_str()).collect();
    let Some(named) = joined(&removed[..removed.len().min(NAMED_MAX)], ", ") else {
        return Ok(());
    };
    let rest = match removed.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        rest => format!(" and {rest} more"),
    };
    let question = format!(
        "Remove {named}{rest}? Businesses are archived and tasks cancelled; everything else is deleted."
    );
    link.confirm(Danger::Final, &question)
}

/// Result of one object.
#[derive(Serialize)]
struct Applied<'a> {
    object: &'a str,
    outcome: &'static str,
    diff: &'a [Difference],
    /// Signing secret of a new business. The node returns it only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// Value of a new token. The node returns it only once.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl Applied<'_> {
    fn of(step: &Step) -> Applied<'_> {
        Applied {
            object: &step.address,
            outcome: match step.outcome {
                Outcome::Created => "created",
                Outcome::Changed => "changed",
                Outcome::Removed => "removed",
                Outcome::Unchanged => "unchanged",
            },
            diff: &step.diff,
            secret: None,
            token: None,
        }
    }

    /// Values that are shown only once.
    fn once(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let all = [("signing secret", &self.secret), ("token", &self.token)];
        all.into_iter()
            .filter_map(|(what, value)| Some((what, value.as_deref()?)))
    }

    /// Formats the object for people; unchanged ones are only counted.
    fn lines(&self) -> String {
        let sign = match self.outcome {
            "created" => '+',
            "changed" => '~',
            "removed" => '-',
            _ => return String::new(),
        };
        let change = |one: &Difference| format!("{} {} → {}", one.member, text(&one.from), text(&one.to));
        let changes: Vec<String> = self.diff.iter().map(change).collect();
        let changes = joined(&changes, ", ")
            .map(|changes| format!("  {changes}"))
            .unwrap_or_default();
        let once = self
            .once()
            .map(|(what, value)| format!("  {what}, shown only once  {value}\n"));
        format!("{sign} {}{changes}\n{}", self.object, once.collect::<String>())
    }
}

/// Sends the requests of a step.
async fn carry_out<'a>(link: &Link<'_>, args: &ApplyArgs, step: &'a Step) -> Result<Applied<'a>, Fault> {
    let mut applied = Applied::of(step);
    for order in &step.orders {
        let answer = match link.client.send(order.request(args)).await {
            Err(ClientError::Problem(problem)) if problem.slug() == "check-failed" => {
                return Err(not_registered(&step.name, &problem, link));
            }
            Err(error) => return Err(Fault::of_client(error, crate::fault::Names::Members)),
            Ok(answer) => answer,
        };
        applied.secret = applied
            .secret
            .or_else(|| secret(&answer, &step.address, "business/", |one: Business| one.secret));
        applied.token = applied
            .token
            .or_else(|| secret(&answer, &step.address, "token/", |one: Token| one.token));
    }
    Ok(applied)
}

fn secret<T: serde::de::DeserializeOwned>(
    answer: &Answer,
    address: &str,
    kind: &str,
    of: impl Fn(T) -> Option<String>,
) -> Option<String> {
    let is_of_kind = address.starts_with(kind) && !answer.body.is_empty();
    is_of_kind.then(|| answer.read::<T>().ok()).flatten().and_then(of)
}

/// Adds to a refusal how far the plan was carried out.
fn broken_off(mut fault: Fault, at: &Step, steps: &[Step], done: &[Applied<'_>]) -> Fault {
    for because in &mut fault.because {
        *because = format!("{}: {because}", at.address);
    }
    let is_change = |step: &&Step| step.outcome != Outcome::Unchanged;
    let all = steps.iter().filter(is_change).count();
    let made = steps[..done.len()].iter().filter(is_change).count();
    fault.because.push(format!(
        "{made} of {} were made before it",
        human::counted(all as u64, "change")
    ));
    fault.or_hint("correct it and apply the files again: what is done stays done")
}

fn tell(link: &Link<'_>, done: &[Applied<'_>], is_dry: bool) -> Result<(), Fault> {
    let count = |outcome: &str| done.iter().filter(|one| one.outcome == outcome).count();
    let unchanged = count("unchanged");
    let told: String = match link.look.form {
        Form::Json => json!({"dry_run": is_dry, "items": done}).to_string(),
        Form::Ndjson => done.iter().map(|one| json!(one).to_string() + "\n").collect(),
        Form::Name => done.iter().map(|one| format!("{}\n", one.object)).collect(),
        Form::Csv => {
            let rows = done.iter().map(|one| (one.object, one.outcome));
            let rows = std::iter::once(("object", "outcome")).chain(rows);
            csv(
                rows.map(|(object, outcome)| vec![object.to_owned(), outcome.to_owned()]),
                link.look.guard.into(),
            )
        }
        Form::Table | Form::Wide => {
            let same = (unchanged > 0).then(|| format!("= {unchanged} unchanged\n"));
            done.iter().map(Applied::lines).chain(same).collect()
        }
    };
    screen::put(&told)?;
    // These forms have no place for them.
    if matches!(link.look.form, Form::Name | Form::Csv) {
        for one in done {
            one.once().for_each(|(what, value)| {
                link.must_say(&format!("{}: {what}, shown only once: {value}", one.object));
            });
        }
    }
    let [created, changed, removed] = ["created", "changed", "removed"].map(count);
    let what = if is_dry {
        "dry run, nothing was changed: "
    } else {
        ""
    };
    link.say(&format!(
        "{what}{created} created, {changed} changed, {removed} removed, {unchanged} unchanged"
    ));
    Ok(())
}
