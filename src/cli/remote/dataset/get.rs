//! Implementation of `windrow dataset get`: published data, for people and scripts.

use api::{GenerationItem, GenerationRead};
use serde_json::Value;
use serde_json::value::RawValue;

use super::args::GetArgs;
use super::path;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Link, word};
use crate::shell::Shell;
use crate::task::look::export::{deliver, is_there, row_form};
use windrow_client::{Request, segment};

/// Prints the summary of a generation, its results, or the outputs of items.
///
/// # Errors
/// Fails if the node refuses, or if the output file exists.
pub(super) async fn get(args: &GetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let out = args.out.as_deref().filter(|path| path.as_os_str() != "-");
    if let Some(path) = out.filter(|path| !args.force && path.exists()) {
        return Err(is_there(path));
    }
    let link = Link::open(&args.remote, shell)?;
    let own = path(&args.name);
    let read = match args.generation {
        Some(no) => link.get(&format!("{own}/generations/{no}")).await?,
        None => link.get(&format!("{own}/current")).await?,
    };
    let read: GenerationRead = read.read()?;
    // Everything below reads this generation, even if another is published meanwhile.
    let generation = format!("{own}/generations/{}", read.generation.generation);
    if args.results {
        let request = Request::get(&format!("{generation}/results"))
            .query("format", word(&row_form(args.format, &link, out)))
            .query_option("after", args.after)
            .query_option("columns", args.columns.as_deref())
            .accept("*/*");
        return deliver(&link, request, (out, args.force)).await;
    }
    if let Some(index) = args.item {
        let answer = link.get(&format!("{generation}/items/{index}")).await?;
        let item: GenerationItem = answer.read()?;
        return link.put(line(Some(&item.output)).as_bytes());
    }
    if let Some(key) = &args.key {
        return print_matches(&link, &format!("{generation}/keys/{}", segment(key))).await;
    }
    link.put(line(read.summary.as_deref()).as_bytes())
}

/// Formats JSON on one line, members ordered by name.
fn line(raw: Option<&RawValue>) -> String {
    let value = raw.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    format!("{}\n", value.unwrap_or_default())
}

/// Prints the outputs of all items with the key. If there are none, fails as for any missing object.
async fn print_matches(link: &Link<'_>, path: &str) -> Result<Exit, Fault> {
    let listed = link.list(Request::get(path), None).await?;
    let found: Vec<GenerationItem> = listed.things()?;
    if found.is_empty() {
        return Err(Fault::new(Exit::NotFound, "not found", "no item has this key"));
    }
    let lines: String = found.iter().map(|item| line(Some(&item.output))).collect();
    link.put(lines.as_bytes())
}
