//! `windrow cluster status`.

use serde_json::Value;

use super::args::StatusArgs;
use crate::Shell;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Form, Link};
use crate::output::screen;
use crate::output::table::human;
use crate::remote::node::list::NODES;

/// Shows whether all is well.
///
/// # Errors
/// As [`Link::send`].
pub(super) async fn status(args: &StatusArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get("/v1/cluster").await?;
    let cluster = answer.json()?;
    let is_well = cluster["status"] == "ok";
    match link.look.form {
        Form::Json => screen::put(&answer.text())?,
        Form::Table | Form::Wide => {
            for line in head(&cluster) {
                screen::put(&line)?;
            }
            let nodes = cluster["nodes"].as_array().cloned().unwrap_or_default();
            let is_wide = link.look.form == Form::Wide;
            screen::put(&NODES.table(&nodes, &link.look.times(0), link.look.paper, is_wide))?;
        }
        Form::Ndjson | Form::Name | Form::Csv => {
            let hint = "-o table, or -o json; `windrow node list` lists nodes";
            return Err(Fault::no_form("a cluster is no list", hint));
        }
    }
    Ok(if is_well { Exit::Ok } else { Exit::Failed })
}

fn head(cluster: &Value) -> Vec<String> {
    let text = |name: &str| cluster[name].as_str().unwrap_or_default();
    let count = |name: &str| human::count(cluster["shards"][name].as_u64().unwrap_or(0));
    let versions = cluster["versions"].as_object().into_iter().flatten();
    let versions: Vec<String> = versions
        .map(|(version, nodes)| format!("{version} on {nodes}"))
        .collect();
    let mut lines = vec![
        format!("status    {}", text("status")),
        format!(
            "store     {}  {}; witness {}",
            text("store"),
            text("database"),
            text("witness")
        ),
        format!("versions  {}", versions.join(", ")),
        format!(
            "shards    {} owned  {} to be taken over  {} released  {} recovering",
            count("owned"),
            count("orphaned"),
            count("released"),
            count("recovering")
        ),
    ];
    for reason in cluster["reasons"].as_array().into_iter().flatten() {
        lines.push(format!("  !  {}", reason["text"].as_str().unwrap_or_default()));
    }
    lines.push(String::new());
    lines
}
