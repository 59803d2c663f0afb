//! Datasets and generations, in bodies.

use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::http::answer::time::rfc3339;
use crate::service::datasets::Pointers;
use windrow_core::dataset::Sink;
use windrow_engine::ports::datasets::store::{Dataset, Generation, Reading};

/// What readers know by a name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Dataset)]
pub(crate) struct DatasetJson {
    /// Its name in URLs; never changes.
    name: String,
    /// The business whose tasks publish it.
    business: String,
    /// The current generation; null before the first publication.
    generation: Option<u64>,
    /// The highest that was ever published; 0 before the first.
    highest: u64,
    /// Grows with each move of the pointer.
    publication: u64,
    /// When it moved last.
    #[schema(format = DateTime)]
    published_at: Option<String>,
    /// The number that was given to a task last.
    last: u64,
    /// So many of the newest generations stay.
    keep: u32,
    /// Grows with each change, publications too; the tag.
    version: u64,
    /// When its first task was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was changed last.
    #[schema(format = DateTime)]
    updated_at: String,
    /// Where the current generation is copied to: `none` or `redis`.
    sink: &'static str,
    /// What readers find there; null where it is copied nowhere.
    sink_state: Option<SinkStateJson>,
}

/// What readers of a sink find.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SinkState)]
pub(crate) struct SinkStateJson {
    /// The key with which they begin: a hash that names the others. Null where this node knows no Redis of readers.
    pointer: Option<String>,
    /// The publication; null before the first copy, and after it was lost.
    publication: Option<u64>,
    /// Its generation.
    generation: Option<u64>,
    /// Since when they find it.
    #[schema(format = DateTime)]
    copied_at: Option<String>,
    /// Since when that is something else than what is current; null where it isn't.
    #[schema(format = DateTime)]
    behind_since: Option<String>,
    /// Why the last try to copy failed; null where it didn't.
    fault: Option<String>,
}

impl SinkStateJson {
    fn of(dataset: &Dataset, pointers: &Pointers) -> Option<SinkStateJson> {
        let sink = dataset.sink.as_ref()?;
        Some(SinkStateJson {
            pointer: pointers.of(&dataset.name),
            publication: sink.copied.map(|copied| copied.publication),
            generation: sink.copied.map(|copied| copied.generation.0),
            copied_at: sink.copied.map(|copied| rfc3339(copied.at)),
            behind_since: dataset.behind_since().map(rfc3339),
            fault: sink.fault.clone(),
        })
    }
}

impl DatasetJson {
    pub(super) fn new(dataset: Dataset, pointers: &Pointers) -> DatasetJson {
        let pointer = dataset.pointer;
        let sink = if dataset.sink.is_some() {
            Sink::Redis
        } else {
            Sink::None
        };
        DatasetJson {
            sink: sink.as_str(),
            sink_state: SinkStateJson::of(&dataset, pointers),
            name: dataset.name,
            business: dataset.business,
            generation: pointer.current.map(|no| no.0),
            highest: pointer.highest.0,
            publication: pointer.publication,
            published_at: dataset.published_at.map(rfc3339),
            last: dataset.last.0,
            keep: dataset.keep.get(),
            version: dataset.version,
            created_at: rfc3339(dataset.created_at),
            updated_at: rfc3339(dataset.updated_at),
        }
    }
}

/// The results of one task, under one number.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Generation)]
pub(crate) struct GenerationJson {
    /// The dataset.
    dataset: String,
    /// Its number.
    generation: u64,
    /// `pending` until its task has ended, then `published`, or `withheld`.
    state: &'static str,
    /// Whether it is the current one.
    current: bool,
    /// Whether it stays however many come after it.
    pinned: bool,
    /// The task whose results it is; it may be gone.
    task: String,
    /// How many results it has.
    results: u64,
    /// The member of the outputs by which it can be looked up; null where it can't.
    key: Option<String>,
    /// The publication by which it first became current.
    publication: Option<u64>,
    /// Why it was withheld.
    why: Option<String>,
    /// When its task was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was published.
    #[schema(format = DateTime)]
    published_at: Option<String>,
}

impl GenerationJson {
    pub(super) fn new(dataset: &Dataset, generation: Generation) -> GenerationJson {
        GenerationJson {
            dataset: dataset.name.clone(),
            generation: generation.no.0,
            state: generation.state.as_str(),
            current: dataset.pointer.current == Some(generation.no),
            pinned: generation.pinned,
            task: generation.task.to_string(),
            results: generation.results,
            key: generation.key.map(|(member, _)| member),
            publication: generation.publication,
            why: generation.why,
            created_at: rfc3339(generation.created_at),
            published_at: generation.published_at.map(rfc3339),
        }
    }
}

/// A generation with its summary, as of one moment.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GenerationRead)]
pub(crate) struct ReadingJson {
    #[serde(flatten)]
    generation: GenerationJson,
    /// The number of the publication that is current now.
    current_publication: u64,
    /// What the reduce answered, any JSON; null without one.
    #[schema(value_type = Option<serde_json::Value>)]
    summary: Option<Box<RawValue>>,
}

impl From<Reading> for ReadingJson {
    fn from(reading: Reading) -> ReadingJson {
        let summary = reading.summary.map(String::from);
        ReadingJson {
            current_publication: reading.dataset.pointer.publication,
            generation: GenerationJson::new(&reading.dataset, reading.generation),
            // It was checked when it came in.
            summary: summary.and_then(|text| RawValue::from_string(text).ok()),
        }
    }
}
