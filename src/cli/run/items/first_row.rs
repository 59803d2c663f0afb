//! Preview of the items and of probable mistakes in them, before the first one is dispatched.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use console::truncate_str;
use serde::de::IgnoredAny;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::flags::Items;
use windrow_core::ids::ItemIndex;
use windrow_core::text::steers;
use windrow_engine::ports::sources::source::{RowChunk, Source};
use windrow_node::sources::{OpenedSource, Packing};

/// Maximum length of the line of columns, and of the first item, in the preview. Unit: characters.
const COLUMNS_CHARS_MAX: usize = 200;
const ITEM_CHARS_MAX: usize = 100;
/// Separators used in tables.
const SEPARATORS: [(char, &str); 4] = [(';', "';'"), ('\t', "tab"), ('|', "'|'"), (',', "','")];

/// Warning about a byte order mark.
pub(crate) const HAS_BOM: &str = "the file starts with a byte order mark (EF BB BF), which is removed";

/// Preview of the items.
#[derive(Debug, Default)]
pub(crate) struct FirstRow {
    /// Lines with the columns and the first item.
    pub(in crate::run) lines: Vec<String>,
    /// Probable mistakes in the items.
    pub(crate) doubts: Vec<String>,
}

/// Examines the first item, unless items are only counted. An unreadable row is reported when it is needed.
pub(crate) async fn look(opened: &OpenedSource) -> FirstRow {
    let Some(chunk) = first(&*opened.source).await else {
        return FirstRow::default();
    };
    let Some(row) = chunk.row(ItemIndex(0)) else {
        return FirstRow::default();
    };
    let columns = opened
        .indexed
        .as_ref()
        .map(|indexed| indexed.columns.as_slice())
        .unwrap_or_default();
    let mut lines = Vec::new();
    if !columns.is_empty() {
        lines.push(format!(
            "columns: {}",
            shown(&columns.join(", "), COLUMNS_CHARS_MAX)
        ));
    }
    lines.push(format!("item 0: {}", shown(row, ITEM_CHARS_MAX)));
    let bom = opened.has_bom.then(|| HAS_BOM.to_owned());
    let doubts = bom
        .into_iter()
        .chain(doubt(row, columns))
        .chain(joined(&chunk, columns));
    FirstRow {
        lines,
        doubts: doubts.collect(),
    }
}

/// Refuses rows that were probably parsed wrongly, unless the user named the delimiter of the CSV.
///
/// # Errors
/// Same as [`refused`].
pub(in crate::run) async fn check(items: &Items, opened: &OpenedSource) -> Result<(), Fault> {
    let (Some(file), None) = (items.files().next(), items.delimiter) else {
        return Ok(());
    };
    let name = if file == "-" { "standard input" } else { file };
    let chunk = first(&*opened.source).await;
    let row = chunk.as_ref().and_then(|chunk| chunk.row(ItemIndex(0)));
    let columns = opened.indexed.as_ref().map(|indexed| indexed.columns.as_slice());
    let rows = opened.source.total().0;
    refused(name, row.unwrap_or_default(), columns.unwrap_or_default(), rows).map_or(Ok(()), Err)
}

/// Returns the warning about a byte order mark within a file with columns, as in concatenated files: it is part of
/// the first value of its row. Only the rows read together with the first one are examined.
fn joined(chunk: &RowChunk, columns: &[String]) -> Option<String> {
    let begins = format!("{{{}:\"\u{feff}", serde_json::to_string(columns.first()?).ok()?);
    let has_mark = |index: &u64| {
        chunk
            .row(ItemIndex(*index))
            .is_some_and(|row| row.starts_with(&begins))
    };
    let index = (chunk.first().0..chunk.end().0).find(has_mark)?;
    Some(format!(
        "item {index} starts with a byte order mark (EF BB BF), as in joined files: it is part of \
            {:?}; write the file without it",
        columns[0]
    ))
}

/// Returns the warning for a file whose name contradicts its content. The content counts.
pub(in crate::run) fn packed(path: &Path, packing: Option<Packing>) -> Option<String> {
    let (told, name) = (Packing::of_name(path), path.display());
    match packing {
        _ if told == packing || path == Path::new("-") => None,
        Some(packing) => Some(format!(
            "{name} contains {packing} data despite its name; it is read as such"
        )),
        None => told.map(|told| {
            format!("{name} is {told} by its name, but not by its content; it is read uncompressed")
        }),
    }
}

/// Returns the keys of the first item, empty if it isn't an object. Other items may have other keys.
pub(in crate::run) async fn keys(opened: &OpenedSource) -> Vec<String> {
    keys_in(&*opened.source).await
}

/// Returns the keys of the first item of a source.
pub(in crate::run) async fn keys_in(source: &dyn Source) -> Vec<String> {
    let chunk = first(source).await;
    let row = chunk.as_ref().and_then(|chunk| chunk.row(ItemIndex(0)));
    keys_of(row.unwrap_or_default())
}

/// Returns the keys of a row, empty if it isn't an object.
pub(in crate::run) fn keys_of(row: &str) -> Vec<String> {
    let object = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(row);
    object
        .map(|object| object.into_keys().collect())
        .unwrap_or_default()
}

async fn first(source: &dyn Source) -> Option<Arc<RowChunk>> {
    let has_some = source.has_data() && source.total().0 > 0;
    if has_some {
        source.read(ItemIndex(0)).await.ok()
    } else {
        None
    }
}

fn shown(text: &str, chars_max: usize) -> String {
    // A tab in a name is probably the delimiter.
    let text = text.replace('\t', "\\t");
    let text: String = text.chars().filter(|c| !steers(*c)).collect();
    truncate_str(&text, chars_max, "…").into_owned()
}

/// Returns the probable mistake in the first row of a file, or in its columns.
pub(crate) fn doubt(row: &str, columns: &[String]) -> Option<String> {
    if let Some(first) = columns.first().filter(|first| first.starts_with('\u{feff}')) {
        let name = first.trim_start_matches('\u{feff}');
        return Some(format!(
            "the first column's name starts with a byte order mark, so it is not {name:?}; write the \
                file without it"
        ));
    }
    if let [only] = columns {
        let found = SEPARATORS.iter().find(|(separator, _)| only.contains(*separator));
        return found
            .map(|(_, flag)| format!("found one column, {only:?}; for several, give --delimiter {flag}"));
    }
    (columns.is_empty() && row.starts_with('[')).then(|| {
        "the first item is a JSON array; to use its elements as items, write one per line: jq -c '.[]' \
            FILE"
            .to_owned()
    })
}

/// Returns a fault for mistakes so probable that no item may be dispatched until the user confirms: columns that
/// weren't split, or a whole list taken for one item. `Rejected`, as for other rows that can't be items.
pub(crate) fn refused(name: &str, row: &str, columns: &[String], rows: u64) -> Option<Fault> {
    let what = format!("{name} can't be used as items");
    let fault = |because: String, hint: String| Some(Fault::new(Exit::Rejected, what, because).hint(hint));
    if let [only] = columns {
        // A comma in a name was quoted deliberately.
        let mut cuts = SEPARATORS.iter().filter(|(separator, _)| *separator != ',');
        let (_, flag) = cuts.find(|(separator, _)| only.contains(*separator))?;
        return fault(
            format!(
                "found one column, {:?}, whose name contains a likely delimiter",
                bare(only)
            ),
            format!("--delimiter {flag}; or --delimiter ',' if it really is one column"),
        );
    }
    let within = row
        .strip_prefix('[')
        .filter(|_| columns.is_empty() && rows == 1)?;
    // Only the beginning of a long row may be known.
    if !within.trim_start().starts_with('{') {
        return None;
    }
    fault(
        "its only line is an array of objects, which would be one item".to_owned(),
        "write one item per line: jq -c '.[]' FILE; or wrap it in an object to use it as one item: jq \
            -c '{items: .}' FILE"
            .to_owned(),
    )
}

/// Returns a column's name without a byte order mark.
fn bare(name: &str) -> &str {
    name.trim_start_matches('\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_wrong_is_refused_with_what_mends_it() {
        let table = |name: &str| refused("u.csv", "{}", &[name.to_owned()], 3).map(|fault| fault.to_string());
        for (name, mends) in [("id;name", "';'"), ("id\tname", "tab"), ("id|name", "'|'")] {
            let said = table(name).expect(name);
            assert!(said.contains(&format!("--delimiter {mends}; or")), "{said}");
        }
        assert_eq!((table("user_id"), table("last, first")), (None, None));
        let lines = |row: &str, rows| refused("u.json", row, &[], rows).map(|fault| fault.to_string());
        let said = lines(r#"[{"a":1},{"a":2}]"#, 1).expect("a list");
        assert!(
            said.contains("an array of objects") && said.contains("jq -c '.[]' FILE"),
            "{said}"
        );
        for (row, rows) in [(r#"[{"a":1}]"#, 2), ("[1,2]", 1), ("[]", 1), (r#"{"a":[]}"#, 1)] {
            assert_eq!(lines(row, rows), None, "{row}");
        }
    }

    #[test]
    fn a_table_that_was_cut_at_the_wrong_character_is_told() {
        let one = |name: &str| doubt("{}", &[name.to_owned()]);
        assert!(one("id;name").is_some_and(|said| said.contains("--delimiter ';'")));
        assert!(one("id,name").is_some_and(|said| said.contains("--delimiter ','")));
        assert!(one("id\tname").is_some_and(|said| said.contains("--delimiter tab")));
        assert_eq!(one("user_id"), None);
        assert_eq!(doubt("{}", &["a;b".to_owned(), "c".to_owned()]), None);
        assert!(doubt("{}", &["\u{feff}id".to_owned(), "b".to_owned()]).is_some());
    }

    #[test]
    fn a_name_that_says_something_else_than_the_content_is_told() {
        let said = |name: &str, packing| packed(Path::new(name), packing);
        assert_eq!(said("u.csv.gz", Some(Packing::Gzip)), None);
        assert_eq!(said("u.csv", None), None);
        assert_eq!(said("-", Some(Packing::Xz)), None);
        assert!(said("u.csv", Some(Packing::Gzip)).is_some_and(|said| said.contains("contains gzip data")));
        assert!(said("u.gz", Some(Packing::Zstd)).is_some_and(|said| said.contains("contains zstd data")));
        assert!(said("u.gz", None).is_some_and(|said| said.contains("is gzip by its name")));
    }

    #[test]
    fn an_array_in_a_line_is_told() {
        assert!(doubt("[{\"a\":1}]", &[]).is_some_and(|said| said.contains("jq -c")));
        assert_eq!(doubt("{\"a\":[1]}", &[]), None);
    }
}
