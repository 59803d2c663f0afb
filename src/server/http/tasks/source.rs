//! Where a task's items come from, as a request says it and as a task shows it.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::{INDEX_MAX, ItemCount};
use windrow_engine::ports::sources::resolver::{INLINE_BYTES_MAX, RowFormat, SourceRequest};

/// The kinds of sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SourceKind {
    /// `total` numbers.
    Range,
    /// A short list: `items`.
    Inline,
    /// An upload: `upload`.
    File,
    /// A file at an address: `url`, fetched once, now.
    Url,
}

/// How the bytes at an address become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileFormat {
    /// Comma-separated values and their relatives.
    Csv,
    /// One JSON value per line.
    Ndjson,
    /// One text per line: `{"line": "…"}`.
    Lines,
    /// The same of texts that a NUL ends.
    Nul,
}

/// Where a task's items come from. Each type has members of its own.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SourceBody {
    /// Which.
    #[serde(rename = "type")]
    kind: SourceKind,
    /// `range`: how many.
    #[schema(minimum = 0, maximum = 9223372036854775807_u64)]
    total: Option<u64>,
    /// `inline`: the items, each one JSON value.
    #[schema(value_type = Option<Vec<Value>>)]
    items: Option<Box<RawValue>>,
    /// `file`: the upload's number, `u7`.
    #[schema(pattern = "^u[1-9][0-9]{0,17}$")]
    upload: Option<String>,
    /// `url`: `http` or `https`.
    #[schema(pattern = "^https?://", max_length = 2048)]
    url: Option<String>,
    /// `url`: how its bytes become rows; by the ending of the path if it isn't said, the one before `.gz`, `.zst`, `.bz2` or
    /// `.xz`. What is compressed is unpacked.
    format: Option<FileFormat>,
    /// `url` of a CSV: between fields.
    #[schema(min_length = 1, max_length = 1)]
    delimiter: Option<char>,
    /// `url` of a CSV: whether the first row names the columns.
    header: Option<bool>,
}

impl SourceBody {
    /// The request; members of another type are refused.
    pub(in crate::http) fn read(self) -> Result<SourceRequest, ServiceError> {
        self.refuse_foreign()?;
        let missing = |member: &str| {
            ServiceError::invalid(
                format!("/source/{member}"),
                format!("a source of this type has {member}"),
            )
        };
        match self.kind {
            SourceKind::Range => {
                let total = self.total.ok_or_else(|| missing("total"))?;
                if total > INDEX_MAX {
                    let text = format!("a task has at most {INDEX_MAX} items");
                    return Err(ServiceError::invalid("/source/total", text));
                }
                Ok(SourceRequest::Range {
                    total: ItemCount(total),
                })
            }
            SourceKind::Inline => list(self.items.ok_or_else(|| missing("items"))?),
            SourceKind::File => {
                let text = self.upload.ok_or_else(|| missing("upload"))?;
                let upload = text
                    .parse()
                    .map_err(|why: String| ServiceError::invalid("/source/upload", why))?;
                Ok(SourceRequest::Upload { upload })
            }
            SourceKind::Url => {
                let format = self.row_format()?;
                let url = self.url.ok_or_else(|| missing("url"))?;
                // Until it is known that no business asks.
                Ok(SourceRequest::Url {
                    url,
                    format,
                    is_guarded: true,
                })
            }
        }
    }

    fn row_format(&self) -> Result<RowFormat, ServiceError> {
        let path = self.url.as_deref().unwrap_or_default();
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let is_packing = |ending: &str| ["gz", "zst", "bz2", "xz"].contains(&ending);
        let path = match path.rsplit_once('.') {
            Some((plain, ending)) if is_packing(ending) => plain,
            _ => path,
        };
        let told = match path.rsplit_once('.').map(|(_, ending)| ending) {
            Some("csv") => Some(FileFormat::Csv),
            Some("ndjson" | "jsonl") => Some(FileFormat::Ndjson),
            Some("txt") => Some(FileFormat::Lines),
            _ => None,
        };
        match self.format.or(told) {
            Some(FileFormat::Csv) => Ok(RowFormat::Csv {
                delimiter: self.delimiter.unwrap_or(','),
                header: self.header.unwrap_or(true),
                quote: Some('"'),
                lenient: false,
            }),
            Some(FileFormat::Ndjson) => Ok(RowFormat::Ndjson),
            Some(FileFormat::Lines) => Ok(RowFormat::Lines),
            Some(FileFormat::Nul) => Ok(RowFormat::Nul),
            None => Err(ServiceError::invalid(
                "/source/format",
                "say csv, ndjson or lines: the path doesn't tell",
            )),
        }
    }

    fn refuse_foreign(&self) -> Result<(), ServiceError> {
        let named = [
            ("total", self.total.is_some(), SourceKind::Range),
            ("items", self.items.is_some(), SourceKind::Inline),
            ("upload", self.upload.is_some(), SourceKind::File),
            ("url", self.url.is_some(), SourceKind::Url),
            ("format", self.format.is_some(), SourceKind::Url),
            ("delimiter", self.delimiter.is_some(), SourceKind::Url),
            ("header", self.header.is_some(), SourceKind::Url),
        ];
        let foreign = named
            .into_iter()
            .filter(|(_, is_named, owner)| *is_named && *owner != self.kind);
        let faults: Vec<FieldFault> = foreign
            .map(|(member, _, _)| {
                FieldFault::new(
                    format!("/source/{member}"),
                    "it belongs to another type of source",
                )
            })
            .collect();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(ServiceError::Invalid(faults))
        }
    }
}

/// A list of items, while it is one text still: millions of items are not made before somebody has looked how long it is.
fn list(items: Box<RawValue>) -> Result<SourceRequest, ServiceError> {
    let (text, fault) = (items.get(), |what| {
        Err(ServiceError::invalid("/source/items", what))
    });
    if !text.starts_with('[') {
        return fault("a list is expected");
    }
    if text.len() > INLINE_BYTES_MAX {
        let text = format!(
            "the list has {} bytes; one in a request has at most {INLINE_BYTES_MAX}",
            text.len()
        );
        return Err(ServiceError::TooLarge(text));
    }
    Ok(SourceRequest::Inline { items })
}

/// A task's source, without its items.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceJson {
    /// `range`, `inline`, `csv`, `ndjson`, `lines`, `redrive`, or `appended` of an open task.
    #[serde(rename = "type")]
    kind: String,
    /// The upload that holds the rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    upload: Option<String>,
    /// The address that they were fetched from.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// The task whose failures they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

impl SourceJson {
    /// What of a stored description is for people: neither items nor paths of a node.
    pub(super) fn of(stored: &str) -> SourceJson {
        let value: Value = serde_json::from_str(stored).unwrap_or_default();
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        SourceJson {
            kind: text("kind").unwrap_or_else(|| "unknown".to_owned()),
            upload: value["upload"].as_i64().map(|id| format!("u{id}")),
            url: text("url"),
            origin: value["origin"].as_i64().map(|id| format!("t{id}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<SourceRequest, ServiceError> {
        serde_json::from_str::<SourceBody>(text)
            .expect("it is JSON of this shape")
            .read()
    }

    #[test]
    fn each_type_takes_its_own_members_and_no_others() {
        assert!(matches!(
            read(r#"{"type":"range","total":3}"#),
            Ok(SourceRequest::Range { .. })
        ));
        let long = r#"{"type":"inline","items":[123456789012345678901234567890]}"#;
        match read(long) {
            Ok(SourceRequest::Inline { items }) => {
                assert_eq!(
                    items.get(),
                    "[123456789012345678901234567890]",
                    "as it was written"
                );
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(
            read(r#"{"type":"file","upload":"u7"}"#),
            Ok(SourceRequest::Upload { .. })
        ));
        let url = r#"{"type":"url","url":"https://x.example/a.jsonl?b=1.csv"}"#;
        assert!(matches!(
            read(url),
            Ok(SourceRequest::Url {
                format: RowFormat::Ndjson,
                ..
            })
        ));
        let text = r#"{"type":"url","url":"https://x.example/urls.txt.zst?v=1"}"#;
        assert!(matches!(
            read(text),
            Ok(SourceRequest::Url {
                format: RowFormat::Lines,
                ..
            })
        ));
        for wrong in [
            r#"{"type":"range"}"#,
            r#"{"type":"inline","items":{"0":1}}"#,
            r#"{"type":"range","total":9223372036854775808}"#,
            r#"{"type":"range","total":3,"upload":"u7"}"#,
            r#"{"type":"file","upload":"7"}"#,
            r#"{"type":"url","url":"https://x.example/a"}"#,
        ] {
            assert!(matches!(read(wrong), Err(ServiceError::Invalid(_))), "{wrong}");
        }
    }

    #[test]
    fn a_shown_source_tells_neither_items_nor_paths() {
        let shown = |stored| serde_json::to_string(&SourceJson::of(stored)).expect("it is JSON");
        assert_eq!(
            shown(r#"{"kind":"inline","items":[{"secret":1}]}"#),
            r#"{"type":"inline"}"#
        );
        assert_eq!(
            shown(r#"{"kind":"csv","path":"/home/ann/u.csv"}"#),
            r#"{"type":"csv"}"#
        );
        assert_eq!(
            shown(r#"{"kind":"csv","upload":7}"#),
            r#"{"type":"csv","upload":"u7"}"#
        );
    }
}
