//! `windrow task redrive`.

use serde_json::{Value, json};

use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::table::human;
use crate::task::args::make::RedriveArgs;
use crate::task::look::follow::{Made, follow};
use crate::task::make::draft::{Draft, Operation};
use crate::task::steer::tell;
use crate::task::words;
use windrow_client::segment;

/// Does failures again.
///
/// # Errors
/// What the node refused.
pub(crate) async fn redrive(args: &RedriveArgs, shell: &Shell) -> Result<Exit, Fault> {
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
    draft.known(&args.known)?;
    draft.settings(&args.settings)?;
    draft.begin(args.canary, args.begin.starts())?;
    let link = Link::open(&args.remote, shell)?;
    let origin = link.task(&args.task).await?;
    let Some(answer) = draft
        .send(&link, &args.write, Operation::REDRIVE, &origin)
        .await?
    else {
        return Ok(Exit::Ok);
    };
    let task: Value = answer.json()?;
    let total = task["total"].as_u64().unwrap_or(0);
    let keys = if args.new_keys {
        "new idempotency keys"
    } else {
        "same idempotency keys"
    };
    let left_out = if args.all && !args.again {
        left_out(&link, &origin, total).await?
    } else {
        String::new()
    };
    let line = format!(
        "created  {} (redrive of {origin}, {}, {keys}{left_out})   {}",
        task["id"].as_str().unwrap_or_default(),
        human::counted(total, "item"),
        words::status(&task).0
    );
    let made = Made {
        answer,
        line,
        begin: args.begin,
        then: args.canary.then(),
    };
    let followed = follow(&link, made).await?;
    match &followed.ended {
        Some(ended) if ended["status"] == "finished" => net(&link, &origin).await,
        _ => Ok(followed.exit),
    }
}

/// How many failures of the origin the redrive doesn't have; nothing where it has all.
async fn left_out(link: &Link<'_>, origin: &str, total: u64) -> Result<String, Fault> {
    let task: Value = link
        .get(&format!("/v1/tasks/{}", segment(origin)))
        .await?
        .json()?;
    let left_out = task["counts"]["abandoned"]
        .as_u64()
        .unwrap_or(0)
        .saturating_sub(total);
    Ok(match left_out {
        0 => String::new(),
        _ => format!(
            "; without {} made good or under way already",
            human::count(left_out)
        ),
    })
}

/// Tells what is left of the origin's failures; the exit code says whether there are any.
async fn net(link: &Link<'_>, origin: &str) -> Result<Exit, Fault> {
    let report: Value = link
        .get(&format!("/v1/tasks/{}/report", segment(origin)))
        .await?
        .json()?;
    let count = |of: &Value, name: &str| of[name].as_u64().unwrap_or(0);
    let (net, counts) = (&report["net"], &report["counts"]);
    let left = count(net, "still_failed");
    // The report says so when redrives may share items and are too large to look at each.
    let shared = if net["exact"] == false {
        " or more (too many to look at each)"
    } else {
        ""
    };
    tell(
        link,
        &format!(
            "net result of {origin}: succeeded {}  skipped {}  made good {}  abandoned {}{shared}",
            human::count(count(counts, "succeeded")),
            human::count(count(counts, "skipped")),
            human::count(count(net, "made_good")),
            human::count(left)
        ),
    )?;
    Ok(if left == 0 { Exit::Ok } else { Exit::WithFailures })
}
