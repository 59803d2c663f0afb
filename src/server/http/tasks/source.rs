//! Item sources in requests and in tasks.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::http::answer::Of;
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::{INDEX_MAX, ItemCount};
use windrow_engine::ports::sources::resolver::{INLINE_BYTES_MAX, RowFormat, SourceRequest};

/// Reads a source; members that belong to another type are rejected.
pub(crate) fn read_source(body: api::NewSource) -> Result<SourceRequest, ServiceError> {
    refuse_foreign(&body)?;
    let missing = |member: &str| {
        ServiceError::invalid(
            format!("/source/{member}"),
            format!("this type of source requires {member}"),
        )
    };
    match body.kind {
        api::SourceKind::Range => {
            let total = body.total.ok_or_else(|| missing("total"))?;
            if total > INDEX_MAX {
                let text = format!("must be at most {INDEX_MAX} items");
                return Err(ServiceError::invalid("/source/total", text));
            }
            Ok(SourceRequest::Range {
                total: ItemCount(total),
            })
        }
        api::SourceKind::Inline => list(body.items.ok_or_else(|| missing("items"))?),
        api::SourceKind::File => {
            let text = body.upload.ok_or_else(|| missing("upload"))?;
            let upload = text
                .parse()
                .map_err(|why: String| ServiceError::invalid("/source/upload", why))?;
            Ok(SourceRequest::Upload { upload })
        }
        api::SourceKind::Url => {
            let format = row_format(&body)?;
            let url = body.url.ok_or_else(|| missing("url"))?;
            // Guarded until the caller is known not to be a business.
            Ok(SourceRequest::Url {
                url,
                format,
                is_guarded: true,
            })
        }
    }
}

fn row_format(body: &api::NewSource) -> Result<RowFormat, ServiceError> {
    let path = body.url.as_deref().unwrap_or_default();
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let is_packing = |ending: &str| ["gz", "zst", "bz2", "xz"].contains(&ending);
    let path = match path.rsplit_once('.') {
        Some((plain, ending)) if is_packing(ending) => plain,
        _ => path,
    };
    let told = match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("csv") => Some(api::FileFormat::Csv),
        Some("ndjson" | "jsonl") => Some(api::FileFormat::Ndjson),
        Some("txt") => Some(api::FileFormat::Lines),
        _ => None,
    };
    match body.format.or(told) {
        Some(api::FileFormat::Csv) => Ok(RowFormat::Csv {
            delimiter: body.delimiter.unwrap_or(','),
            header: body.header.unwrap_or(true),
            quote: Some('"'),
            lenient: false,
        }),
        Some(api::FileFormat::Ndjson) => Ok(RowFormat::Ndjson),
        Some(api::FileFormat::Lines) => Ok(RowFormat::Lines),
        Some(api::FileFormat::Nul) => Ok(RowFormat::Nul),
        None => Err(ServiceError::invalid(
            "/source/format",
            "set csv, ndjson or lines: the path doesn't tell",
        )),
    }
}

fn refuse_foreign(body: &api::NewSource) -> Result<(), ServiceError> {
    let named = [
        ("total", body.total.is_some(), api::SourceKind::Range),
        ("items", body.items.is_some(), api::SourceKind::Inline),
        ("upload", body.upload.is_some(), api::SourceKind::File),
        ("url", body.url.is_some(), api::SourceKind::Url),
        ("format", body.format.is_some(), api::SourceKind::Url),
        ("delimiter", body.delimiter.is_some(), api::SourceKind::Url),
        ("header", body.header.is_some(), api::SourceKind::Url),
    ];
    let foreign = named
        .into_iter()
        .filter(|(_, is_named, owner)| *is_named && *owner != body.kind);
    let faults: Vec<FieldFault> = foreign
        .map(|(member, _, _)| {
            FieldFault::new(format!("/source/{member}"), "belongs to another type of source")
        })
        .collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(ServiceError::Invalid(faults))
    }
}

/// Keeps a list of items as a single text, so that millions of items aren't created before the size is checked.
fn list(items: Box<RawValue>) -> Result<SourceRequest, ServiceError> {
    let (text, fault) = (items.get(), |what| {
        Err(ServiceError::invalid("/source/items", what))
    });
    if !text.starts_with('[') {
        return fault("must be a list");
    }
    if text.len() > INLINE_BYTES_MAX {
        let text = format!(
            "the list has {} bytes; an inline list may have {INLINE_BYTES_MAX}",
            text.len()
        );
        return Err(ServiceError::TooLarge(text));
    }
    Ok(SourceRequest::Inline { items })
}

impl Of<&str> for api::TaskSource {
    fn of(stored: &str) -> Self {
        let value: Value = serde_json::from_str(stored).unwrap_or_default();
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        api::TaskSource {
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
        read_source(serde_json::from_str(text).expect("it is JSON of this shape"))
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
        let shown = |stored| serde_json::to_string(&api::TaskSource::of(stored)).expect("it is JSON");
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
