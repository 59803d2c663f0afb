//! Data of the items to try: rows of a file, a template, or none.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::choice::Choice;
use crate::local::trial::args::TryArgs;
use crate::run::handler::request::RequestWanted;
use crate::run::items::{first_row, source};
use crate::shell::Shell;
use windrow_core::ids::{INDEX_MAX, ItemIndex, WallMs};
use windrow_engine::ports::handling::handler::CallRows;
use windrow_engine::ports::sources::source::{RowChunk, Source};
use windrow_node::sources::{SourceSpec, open_for_a_look};

/// Items that are called if none are chosen.
const ITEMS_DEFAULT: Range<u64> = 0..3;

/// Source of the data of tried items.
pub(super) enum Data {
    None,
    /// JSON template in which `{index}` stands for the item's number.
    Template(String),
    Rows(Arc<dyn Source>),
}

impl Data {
    /// Returns the data that the flags describe, and the items to call. A file is read once and not kept.
    pub(super) async fn of(
        args: &TryArgs,
        request: Option<&RequestWanted>,
        shell: &Shell,
        now: WallMs,
    ) -> Result<(Data, Choice), Fault> {
        let mut chosen = args
            .chosen
            .clone()
            .unwrap_or_else(|| Choice(ITEMS_DEFAULT.collect()));
        if chosen.0.iter().any(|index| *index > INDEX_MAX) {
            return Err(Fault::new(
                Exit::Usage,
                "no such item",
                format!("the highest index is {INDEX_MAX}"),
            ));
        }
        if let Some(template) = &args.data {
            return Ok((Data::Template(template.clone()), chosen));
        }
        let spec = source::spec(&args.items, (args.glob.as_deref(), false), 0)?;
        if let SourceSpec::Range { .. } = spec {
            request.map_or(Ok(()), |request| request.check_names(false, &[]))?;
            return Ok((Data::None, chosen));
        }
        source::look(&spec)?;
        if source::is_read_once(&spec) {
            let because = "`try` stores nothing, and a pipe can be read only once";
            return Err(Fault::new(Exit::Usage, "can't try piped items", because).hint("use a file"));
        }
        let opened = open_for_a_look(&spec, now).await?;
        if let Some(request) = request {
            request.check_columns(&opened).await?;
        }
        for doubt in first_row::look(&opened).await.doubts {
            shell.screen.must_say(&format!("warning: {doubt}"));
        }
        let total = opened.source.total().0;
        if args.chosen.is_none() {
            chosen.0.retain(|index| *index < total);
        }
        in_file(&chosen, total)?;
        Ok((Data::Rows(opened.source), chosen))
    }

    /// Returns the data of one call.
    pub(super) async fn rows(&self, items: &[u64]) -> Result<CallRows, Fault> {
        let mut chunks = Vec::with_capacity(items.len());
        for index in items {
            match self {
                Data::None => {}
                Data::Template(template) => chunks.push(Arc::new(filled(template, *index)?)),
                Data::Rows(source) => {
                    let read = source.read(ItemIndex(*index)).await;
                    let failed = |error: windrow_engine::ports::sources::source::SourceError| {
                        Fault::new(
                            Exit::Rejected,
                            format!("can't read item {index}"),
                            error.to_string(),
                        )
                    };
                    chunks.push(read.map_err(failed)?);
                }
            }
        }
        Ok(CallRows {
            chunks,
            positions: None,
        })
    }
}

/// Checks that a file with `total` items has the chosen ones.
fn in_file(chosen: &Choice, total: u64) -> Result<(), Fault> {
    match chosen.0.iter().find(|index| **index >= total) {
        None => Ok(()),
        Some(index) => Err(Fault::new(
            Exit::Rejected,
            format!("no item {index}"),
            format!("the file has {total} items, 0 to {}", total.saturating_sub(1)),
        )
        .hint("choose other items with --items")),
    }
}

/// Fills the template for one item. The result must be JSON.
fn filled(template: &str, index: u64) -> Result<RowChunk, Fault> {
    let text = template.replace("{index}", &index.to_string());
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&text) {
        let because = format!("{text} is not JSON: {error}");
        return Err(
            Fault::new(Exit::Usage, "invalid --data", because).hint("--data '{\"user_id\":\"u{index}\"}'")
        );
    }
    let end = u32::try_from(text.len())
        .map_err(|_| Fault::new(Exit::Usage, "invalid --data", "it is longer than 4 GiB"))?;
    Ok(RowChunk::new(ItemIndex(index), Bytes::from(text), vec![end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_with_the_index() {
        let chunk = filled(r#"{"user":"u{index}","n":{index}}"#, 7).expect("it is JSON");
        assert_eq!(chunk.row(ItemIndex(7)), Some(r#"{"user":"u7","n":7}"#));
        assert_eq!(filled("{index", 7).expect_err("no JSON").exit, Exit::Usage);
    }
}
