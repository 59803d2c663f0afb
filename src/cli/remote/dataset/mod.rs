//! Implementation of `windrow dataset`, for published results of finished tasks.

pub mod args;
mod get;

use std::num::NonZeroU32;

use api::{Dataset, Generation};
use serde_json::{Map, Value, json};

use self::args::{
    CreateArgs, DatasetArgs, GenerationWrite, Generations, RollBackArgs, SetArgs, SinkWord, Verb,
};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::{Danger, Link, Named, NamedWrite, Pages, word};
use crate::output::body::joined;
use crate::output::difference::differences;
use crate::output::table::times::Times;
use crate::output::table::{Card, Cell, Column, Keep, Listing, Side, Tone};
use crate::shell::Shell;
use windrow_client::{Request, segment};

/// Listing of datasets with their current generations.
const DATASETS: Listing<Dataset> = Listing {
    columns: &[
        Column::text("NAME", Keep::Always, 8, |dataset: &Dataset| &dataset.name).tone(Tone::Strong),
        Column::text("BUSINESS", Keep::Rank(60), 8, |dataset| &dataset.business),
        Column::count("CURRENT", Keep::Always, 3, |dataset: &Dataset| dataset.generation).named("generation"),
        Column::time("PUBLISHED", Keep::Rank(80), |dataset: &Dataset| {
            dataset.published_at.as_deref()
        })
        .named("published_at"),
        Column::plain("KEEPS", Keep::Rank(30), 3, |dataset: &Dataset| {
            Some(dataset.keep.to_string())
        })
        .named("keep"),
        Column::count("LAST", Keep::Rank(20), 3, |dataset| Some(dataset.last)),
        Column::new("SINK", Side::Left, Keep::Rank(40), 5, sink),
    ],
    name: |dataset| dataset.name.clone(),
    none: "no datasets",
};

/// Listing of the generations of a dataset.
const GENERATIONS: Listing<Generation> = Listing {
    columns: &[
        Column::count("GENERATION", Keep::Always, 3, |one| Some(one.generation)),
        Column::new("STATE", Side::Left, Keep::Always, 9, state),
        Column::text("TASK", Keep::Rank(70), 4, |one| &one.task),
        Column::count("RESULTS", Keep::Rank(60), 3, |one| Some(one.results)),
        Column::time("PUBLISHED", Keep::Rank(80), |one: &Generation| {
            one.published_at.as_deref()
        })
        .named("published_at"),
        Column::maybe("WHY", Keep::Rank(50), 10, |one| one.why.as_deref()),
    ],
    name: |one| one.generation.to_string(),
    none: "no generations",
};

/// Formats the state of a generation: `current`, `published, pinned`, `withheld`.
fn state(generation: &Generation, _: &Times) -> Cell {
    let state = generation.state.as_str();
    let (word, tone) = match state {
        _ if generation.current => ("current", Tone::Good),
        "withheld" => (state, Tone::Dim),
        _ => (state, Tone::Plain),
    };
    let pinned = if generation.pinned { ", pinned" } else { "" };
    Cell::new(format!("{word}{pinned}")).tone(tone).plain(state)
}

/// Formats the target of copies: `redis` or `redis, behind`, empty without one.
fn sink(dataset: &Dataset, _: &Times) -> Cell {
    let kind = dataset.sink.as_str();
    let state = dataset.sink_state.as_ref();
    match kind {
        "" | "none" => Cell::new("").plain(kind),
        _ if state.is_some_and(|state| state.behind_since.is_some()) => {
            Cell::new(format!("{kind}, behind")).tone(Tone::Warn).plain(kind)
        }
        _ => Cell::new(kind),
    }
}

/// Adds the state of the copy to the card.
fn sink_lines(card: Card, dataset: &Dataset, times: &Times) -> Card {
    let Some(state) = &dataset.sink_state else {
        return card;
    };
    let shown = match state.generation {
        Some(no) => format!("{}, generation {no}", dataset.sink),
        None => format!("{}, not copied yet", dataset.sink),
    };
    card.line("sink", shown)
        .time("behind since", state.behind_since.as_deref(), times)
        .maybe("pointer", state.pointer.as_deref())
        .maybe("copy error", state.fault.as_deref())
}

/// Executes the verb; lists the datasets without one.
///
/// # Errors
/// Same as the verb.
pub(crate) async fn dataset(args: &DatasetArgs, shell: &Shell) -> Result<Exit, Fault> {
    match &args.verb {
        None => list(&args.list, shell).await,
        Some(Verb::List(args)) => list(args, shell).await,
        Some(Verb::Show(args)) => show(args, shell).await,
        Some(Verb::Create(args)) => create(args, shell).await,
        Some(Verb::Generations(args)) => generations(args, shell).await,
        Some(Verb::Get(args)) => get::get(args, shell).await,
        Some(Verb::Pin(args)) => pin(args, true, shell).await,
        Some(Verb::Unpin(args)) => pin(args, false, shell).await,
        Some(Verb::Rollback(args)) => roll_back(args, shell).await,
        Some(Verb::Set(args)) => set(args, shell).await,
        Some(Verb::Delete(args)) => delete(args, shell).await,
    }
}

/// Returns the API path of a dataset.
fn path(name: &str) -> String {
    format!("/v1/datasets/{}", segment(name))
}

async fn list(args: &Pages, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let listed = link
        .list(Request::get("/v1/datasets"), Some(&args.paging))
        .await?;
    link.show_list(&DATASETS, &listed, &listed.things()?)
}

async fn show(args: &Named, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let answer = link.get(&path(&args.name)).await?;
    link.show_one(&DATASETS, &answer, card)
}

/// Formats a dataset as a card.
fn card(dataset: &Dataset, times: &Times) -> Card {
    let current = dataset.generation;
    let current = current.map_or_else(|| "none".to_owned(), |no| format!("generation {no}"));
    let card = Card::new()
        .title(&dataset.name, Tone::Strong)
        .line("business", &dataset.business)
        .line("current", current)
        .line("publications", dataset.publication.to_string())
        .time("published", dataset.published_at.as_deref(), times)
        .line("keeps", format!("the newest {}", dataset.keep))
        .line("last generation", dataset.last.to_string())
        .time("created", Some(&dataset.created_at), times);
    sink_lines(card, dataset, times)
}

async fn generations(args: &Generations, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.remote, shell)?;
    let request = Request::get(&format!("{}/generations", path(&args.name)));
    let listed = link.list(request, Some(&args.paging)).await?;
    link.show_list(&GENERATIONS, &listed, &listed.things()?)
}

async fn pin(args: &GenerationWrite, on: bool, shell: &Shell) -> Result<Exit, Fault> {
    let (verb, done) = if on {
        ("pin", "pinned")
    } else {
        ("unpin", "unpinned")
    };
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post(&format!(
        "{}/generations/{}/{verb}",
        path(&args.name),
        args.generation
    ));
    match link.change(&args.write, request, Map::new()).await? {
        Some(answer) => {
            let text = format!("{done} generation {} of {}", args.generation, args.name);
            link.show_done(&DATASETS, &answer, &text)
        }
        None => Ok(Exit::Ok),
    }
}

async fn roll_back(args: &RollBackArgs, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    let (name, no) = (&args.name, args.generation);
    if !args.write.dry_run {
        let question = format!("Make generation {no} of {name} current again for all readers?");
        link.confirm(Danger::Ordinary, &question)?;
    }
    let mut body = Map::new();
    body.insert("generation".to_owned(), json!(no));
    let request = Request::post(&format!("{}/rollback", path(name)));
    match link.change(&args.write, request, body).await? {
        Some(answer) => link.show_done(&DATASETS, &answer, &format!("{name} is back at generation {no}")),
        None => Ok(Exit::Ok),
    }
}

/// Returns the members of a body for these flags.
fn terms(keep: Option<NonZeroU32>, sink: Option<SinkWord>) -> Map<String, Value> {
    let keep = keep.map(|keep| ("keep".to_owned(), json!(keep)));
    keep.into_iter()
        .chain(sink.map(|sink| ("sink".to_owned(), json!(word(&sink)))))
        .collect()
}

async fn create(args: &CreateArgs, shell: &Shell) -> Result<Exit, Fault> {
    let mut body = terms(args.keep, args.sink);
    body.insert("name".to_owned(), json!(args.name));
    body.insert("business".to_owned(), json!(args.business));
    let link = Link::open(&args.write.remote, shell)?;
    let request = Request::post("/v1/datasets");
    match link.change(&args.write, request, body).await? {
        Some(answer) => link.show_done(&DATASETS, &answer, &format!("created {}", args.name)),
        None => Ok(Exit::Ok),
    }
}

async fn set(args: &SetArgs, shell: &Shell) -> Result<Exit, Fault> {
    let body = terms(args.keep, args.sink);
    let link = Link::open(&args.write.remote, shell)?;
    let Some((before, answer)) = link.patch(&args.write, &path(&args.name), body).await? else {
        return Ok(Exit::Ok);
    };
    let mut changed = differences(&before, &answer.json()?);
    changed.retain(|one| ["keep", "sink"].contains(&one.member.as_str()));
    let changed: Vec<String> = changed.iter().map(|one| one.line()).collect();
    let what = joined(&changed, "  ").unwrap_or_else(|| "unchanged".to_owned());
    link.show_done(&DATASETS, &answer, &format!("{}  {what}", args.name))
}

async fn delete(args: &NamedWrite, shell: &Shell) -> Result<Exit, Fault> {
    let link = Link::open(&args.write.remote, shell)?;
    if !args.write.dry_run {
        let question = format!("Delete the dataset {} with all its generations?", args.name);
        link.confirm(Danger::Final, &question)?;
    }
    let request = Request::delete(&path(&args.name));
    match link.change(&args.write, request, Map::new()).await? {
        Some(_) => link.show_gone(&args.name, &format!("deleted the dataset {}", args.name)),
        None => Ok(Exit::Ok),
    }
}
