//! `windrow task redrive`.

use serde_json::{Value, json};

use crate::exit::Exit;
use crate::fault::{Fault, as_flags};
use crate::link::{Form, Link};
use crate::output::body::{list, number, text, texts};
use crate::output::table::human;
use crate::run::args::IfEmpty;
use crate::shell::Shell;
use crate::task::args::redrive::RedriveArgs;
use crate::task::look::follow::{Created, follow};
use crate::task::make::draft::Draft;
use crate::task::steer::tell;
use crate::task::words;
use windrow_client::{Answer, Request};

/// Does failures again.
///
/// # Errors
/// What the node refused.
pub(crate) async fn redrive(args: &RedriveArgs, shell: &Shell) -> Result<Exit, Fault> {
    let draft = draft(args)?;
    let link = Link::open(&args.write.remote, shell)?;
    let origin = link.task(&args.task).await?;
    let request = Request::post(&format!("/v1/tasks/{origin}/redrives"));
    let Some(answer) = draft.send(&link, &args.write, request, &origin).await? else {
        return Ok(Exit::Ok);
    };
    let task = answer.json()?;
    if task["id"].is_null() {
        return nothing(&link, &answer, &task);
    }
    let total = number(&task["total"]);
    let keys = if args.new_keys { "new" } else { "same" };
    let left_out = match args.all && !args.again {
        true => left_out(&link, &origin, &task).await?,
        false => String::new(),
    };
    let line = format!(
        "created  {} (redrive of {origin}, {}, {keys} idempotency keys{left_out})   {}",
        text(&task["id"]),
        human::counted(total, "item"),
        words::status(&task).0
    );
    let created = Created {
        answer,
        line,
        begin: args.begin,
        then: args.canary.then(),
    };
    let followed = follow(&link, created).await?;
    if followed.ended.is_some_and(|ended| ended["status"] == "finished") {
        tell_net(&link, &origin).await?;
    }
    Ok(followed.exit)
}

/// Says why no task was made. Scripts that want JSON get the answer, those that want a name get none.
fn nothing(link: &Link<'_>, answer: &Answer, told: &Value) -> Result<Exit, Fault> {
    if matches!(link.look.form, Form::Json | Form::Ndjson) {
        return link.put(answer.line().as_bytes());
    }
    link.say(text(&told["detail"]));
    for advice in texts(&told["try"]) {
        link.hint(&as_flags(advice));
    }
    Ok(Exit::Ok)
}

fn draft(args: &RedriveArgs) -> Result<Draft, Fault> {
    let mut draft = Draft::default();
    let mut filter = json!({});
    if !args.codes.is_empty() {
        filter["codes"] = json!(args.codes);
    }
    if let Some(indexes) = &args.indexes {
        filter["indexes"] = json!(indexes.replace(' ', ""));
    }
    if args.unconfirmed {
        filter["unconfirmed"] = json!(true);
    }
    draft.put("filter", filter)?;
    draft.put_option("new_keys", args.new_keys.then_some(true))?;
    draft.put_option("again", args.again.then_some(true))?;
    draft.put_option("if_empty", (args.if_empty == IfEmpty::Error).then_some("error"))?;
    draft.identity(&args.identity)?;
    draft.settings(&args.settings)?;
    draft.begin(args.canary, args.begin)?;
    Ok(draft)
}

/// How many failures of the origin the redrive doesn't have, and who has them without working on them; nothing where it has
/// all.
async fn left_out(link: &Link<'_>, origin: &str, redrive: &Value) -> Result<String, Fault> {
    let report = link.get(&format!("/v1/tasks/{origin}/report")).await?.json()?;
    let failed = number(&report["counts"]["abandoned"]);
    let left_out = match failed.saturating_sub(number(&redrive["total"])) {
        0 => return Ok(String::new()),
        left_out => human::count(left_out),
    };
    let rests = |other: &&Value| {
        other["id"] != redrive["id"] && matches!(text(&other["status"]), "created" | "stopped")
    };
    let resting: Vec<String> = list(&report["redrives"])
        .iter()
        .filter(rests)
        .map(|other| {
            format!(
                "{} is {}: windrow task start {0}",
                text(&other["id"]),
                text(&other["status"])
            )
        })
        .collect();
    let resting = match resting.is_empty() {
        true => String::new(),
        false => format!(" ({})", resting.join("; ")),
    };
    Ok(format!(
        "; without {left_out} made good or under way already{resting}"
    ))
}

/// Tells what is left of the origin's failures. The exit code is the redrive's: it may never have been about the others.
async fn tell_net(link: &Link<'_>, origin: &str) -> Result<(), Fault> {
    let report = link.get(&format!("/v1/tasks/{origin}/report")).await?.json()?;
    let (net, counts) = (&report["net"], &report["counts"]);
    let count = |value: &Value| human::count(number(value));
    tell(
        link,
        &format!(
            "net result of {origin}: succeeded {}  skipped {}  made good {}  abandoned {}{}",
            count(&counts["succeeded"]),
            count(&counts["skipped"]),
            count(&net["made_good"]),
            count(&net["still_failed"]),
            at_least(net)
        ),
    )
}

/// The report says so when redrives may share items and are too many to look at each.
pub(crate) fn at_least(net: &Value) -> &'static str {
    match net["exact"] == false {
        true => " or more (too many to look at each)",
        false => "",
    }
}
