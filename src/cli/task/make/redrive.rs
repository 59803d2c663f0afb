//! `windrow task redrive`.

use serde_json::{Value, json};

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::body::{number, text};
use crate::output::table::human;
use crate::task::args::make::RedriveArgs;
use crate::task::look::follow::{Created, follow};
use crate::task::make::draft::Draft;
use crate::task::steer::tell;
use crate::task::wait::until;
use crate::task::words;
use windrow_client::Request;

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
    let total = number(&task["total"]);
    let keys = if args.new_keys { "new" } else { "same" };
    let left_out = match args.all && !args.again {
        true => left_out(&link, &origin, total).await?,
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
    match &followed.ended {
        Some(ended) if ended["status"] == "finished" => net(&link, &origin).await,
        _ => Ok(followed.exit),
    }
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
    draft.put("filter", filter)?;
    draft.put_option("new_keys", args.new_keys.then_some(true))?;
    draft.put_option("again", args.again.then_some(true))?;
    draft.identity(&args.identity)?;
    draft.settings(&args.settings)?;
    draft.begin(args.canary, args.begin)?;
    Ok(draft)
}

/// How many failures of the origin the redrive doesn't have; nothing where it has all.
async fn left_out(link: &Link<'_>, origin: &str, total: u64) -> Result<String, Fault> {
    let task = until::look(link, origin).await?.task;
    Ok(match number(&task["counts"]["abandoned"]).saturating_sub(total) {
        0 => String::new(),
        left_out => format!(
            "; without {} made good or under way already",
            human::count(left_out)
        ),
    })
}

/// Tells what is left of the origin's failures; the exit code says whether there are any.
async fn net(link: &Link<'_>, origin: &str) -> Result<Exit, Fault> {
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
    )?;
    let is_left = number(&net["still_failed"]) > 0;
    Ok(if is_left { Exit::WithFailures } else { Exit::Ok })
}

/// The report says so when redrives may share items and are too many to look at each.
pub(crate) fn at_least(net: &Value) -> &'static str {
    match net["exact"] == false {
        true => " or more (too many to look at each)",
        false => "",
    }
}
