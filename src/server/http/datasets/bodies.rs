//! Request and response bodies of datasets and generations.

use serde_json::value::RawValue;

use crate::http::answer::Of;
use crate::http::answer::time::rfc3339;
use crate::service::datasets::Pointers;
use windrow_core::dataset::Sink;
use windrow_engine::ports::datasets::store::{Dataset, Generation, Reading};

pub(crate) fn show_sink(dataset: &Dataset, pointers: &Pointers) -> Option<api::SinkState> {
    let sink = dataset.sink.as_ref()?;
    Some(api::SinkState {
        pointer: pointers.of(&dataset.name),
        publication: sink.copied.map(|copied| copied.publication),
        generation: sink.copied.map(|copied| copied.generation.0),
        copied_at: sink.copied.map(|copied| rfc3339(copied.at)),
        behind_since: dataset.behind_since().map(rfc3339),
        fault: sink.fault.clone(),
    })
}

pub(crate) fn show_dataset(dataset: Dataset, pointers: &Pointers) -> api::Dataset {
    let pointer = dataset.pointer;
    let sink = if dataset.sink.is_some() {
        Sink::Redis
    } else {
        Sink::None
    };
    api::Dataset {
        sink: sink.as_str().to_owned(),
        sink_state: show_sink(&dataset, pointers),
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

pub(crate) fn show_generation(dataset: &Dataset, generation: Generation) -> api::Generation {
    api::Generation {
        dataset: dataset.name.clone(),
        generation: generation.no.0,
        state: generation.state.as_str().to_owned(),
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

impl Of<Reading> for api::GenerationRead {
    fn of(reading: Reading) -> Self {
        let summary = reading.summary.map(String::from);
        api::GenerationRead {
            current_publication: reading.dataset.pointer.publication,
            generation: show_generation(&reading.dataset, reading.generation),
            // Always valid: it was checked when it arrived.
            summary: summary.and_then(|text| RawValue::from_string(text).ok()),
        }
    }
}
