//! JSON form of a source's description. Each kind accepts only its own members.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::spec::{CsvFormat, Format, Input, SourceSpec};
use windrow_core::ids::{INDEX_MAX, ItemCount, TaskId};
use windrow_engine::ports::sources::resolver::{RedrivePart, RedriveSpec};
use windrow_engine::ports::sources::uploads::UploadId;

/// All members of all kinds.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSpec {
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    items: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    glob: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    spooled: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    upload: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    format: Option<CsvFormat>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys_of: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    groups: Option<Vec<RawGroup>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    indexes: Option<Vec<(u64, u64)>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replay: Option<bool>,
}

/// Range of places in a failure group.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawGroup {
    code: String,
    first: u64,
    count: u64,
}

impl RawSpec {
    /// Returns the names of the members that are present, in struct order.
    fn members(&self) -> Vec<&'static str> {
        let present = [
            ("total", self.total.is_some()),
            ("items", self.items.is_some()),
            ("path", self.path.is_some()),
            ("spooled", self.spooled.is_some()),
            ("upload", self.upload.is_some()),
            ("format", self.format.is_some()),
            ("origin", self.origin.is_some()),
            ("keys_of", self.keys_of.is_some()),
            ("groups", self.groups.is_some()),
            ("indexes", self.indexes.is_some()),
            ("replay", self.replay.is_some()),
        ];
        present
            .into_iter()
            .filter_map(|(name, is_there)| is_there.then_some(name))
            .collect()
    }
}

impl TryFrom<RawSpec> for SourceSpec {
    type Error = String;

    fn try_from(raw: RawSpec) -> Result<SourceSpec, String> {
        let allowed: &[&str] = match raw.kind.as_str() {
            "range" => &["total"],
            "inline" => &["items"],
            "redrive" => &["origin", "keys_of", "groups", "indexes", "replay"],
            "appended" => &[],
            _ => &["path", "spooled", "upload", "format"],
        };
        if let Some(member) = raw.members().into_iter().find(|member| !allowed.contains(member)) {
            return Err(format!(
                "the source's member {member:?} is not allowed for the type {:?}",
                raw.kind
            ));
        }
        match raw.kind.as_str() {
            "range" => raw.total.map(|total| SourceSpec::Range {
                total: ItemCount(total),
            }),
            "inline" => raw
                .items
                .filter(|items| is_list(items))
                .map(|items| SourceSpec::Inline { items }),
            "redrive" => return redrive(raw).map(SourceSpec::Redrive),
            "appended" => return Ok(SourceSpec::Appended),
            kind => {
                let format = file_format(kind, raw.format)?;
                return Ok(SourceSpec::File {
                    input: input(raw.path, raw.spooled, raw.upload)?,
                    format,
                });
            }
        }
        .ok_or_else(|| format!("the source of type {:?} requires {:?}", raw.kind, allowed[0]))
    }
}

/// True if a JSON value is an array.
pub(super) fn is_list(value: &RawValue) -> bool {
    value.get().starts_with('[')
}

fn redrive(raw: RawSpec) -> Result<RedriveSpec, String> {
    let origin = raw.origin.ok_or_else(|| "the redrive has no origin".to_owned())?;
    let groups = raw.groups.unwrap_or_default().into_iter();
    let groups = groups.map(|RawGroup { code, first, count }| RedrivePart::Places { code, first, count });
    let indexes = raw.indexes.unwrap_or_default().into_iter();
    let indexes = indexes.map(|(first, count)| RedrivePart::Indexes { first, count });
    let parts: Vec<RedrivePart> = groups.chain(indexes).collect();
    let mut sum = 0_u64;
    for part in &parts {
        let (RedrivePart::Places { first, count, .. } | RedrivePart::Indexes { first, count }) = part;
        sum = sum.saturating_add(*count);
        if *count == 0 || first.saturating_add(*count) > INDEX_MAX {
            return Err(format!("{count} failures from {first} on is not a valid range"));
        }
    }
    if parts.is_empty() || sum > INDEX_MAX {
        return Err("the redrive has no failures, or too many".to_owned());
    }
    Ok(RedriveSpec {
        origin: TaskId(origin),
        keys_of: raw.keys_of.map(TaskId),
        parts,
        is_replay: raw.replay.unwrap_or(false),
    })
}

fn input(path: Option<String>, spooled: Option<String>, upload: Option<i64>) -> Result<Input, String> {
    match (path, spooled, upload) {
        (Some(path), None, None) if path == "-" => Ok(Input::Stdin),
        (Some(path), None, None) => Ok(Input::Path(path)),
        (None, None, Some(number)) => Ok(Input::Upload(UploadId(number))),
        (None, Some(name), None)
            if !name.contains(['/', '\0']) && (name.starts_with("stdin-") || name.starts_with("glob-")) =>
        {
            Ok(Input::Spooled(name))
        }
        (None, Some(name), None) => Err(format!("{name:?} is not the name of a spooled file")),
        (None, None, None) => Err("the source has neither path nor spooled nor upload".to_owned()),
        _ => Err("the source has more than one of path, spooled and upload".to_owned()),
    }
}

fn file_format(kind: &str, format: Option<CsvFormat>) -> Result<Format, String> {
    match (kind, format) {
        ("csv", format) => Ok(Format::Csv(format.unwrap_or_default())),
        ("ndjson", None) => Ok(Format::Ndjson),
        ("lines", None) => Ok(Format::Lines),
        ("nul", None) => Ok(Format::Nul),
        ("ndjson" | "lines" | "nul", Some(_)) => Err(format!("{kind} has no format options")),
        _ => Err(format!(
            "{kind:?} is not a type of source; use range, inline, csv, ndjson, lines, nul or redrive"
        )),
    }
}

impl From<SourceSpec> for RawSpec {
    fn from(spec: SourceSpec) -> RawSpec {
        let raw = RawSpec {
            kind: spec.kind().to_owned(),
            ..RawSpec::default()
        };
        match spec {
            SourceSpec::Range { total } => RawSpec {
                total: Some(total.0),
                ..raw
            },
            SourceSpec::Inline { items } => RawSpec {
                items: Some(items),
                ..raw
            },
            SourceSpec::Redrive(spec) => raw_redrive(spec, raw),
            SourceSpec::Appended => raw,
            SourceSpec::File { input, format } => {
                let format = match format {
                    Format::Csv(csv) => Some(csv),
                    Format::Ndjson | Format::Lines | Format::Nul => None,
                };
                let raw = RawSpec { format, ..raw };
                match input {
                    Input::Stdin => RawSpec {
                        path: Some("-".to_owned()),
                        ..raw
                    },
                    Input::Path(path) => RawSpec {
                        path: Some(path),
                        ..raw
                    },
                    Input::Glob { pattern, .. } => RawSpec {
                        glob: Some(pattern),
                        ..raw
                    },
                    Input::Spooled(name) => RawSpec {
                        spooled: Some(name),
                        ..raw
                    },
                    Input::Upload(id) => RawSpec {
                        upload: Some(id.0),
                        ..raw
                    },
                }
            }
        }
    }
}

fn raw_redrive(spec: RedriveSpec, raw: RawSpec) -> RawSpec {
    let (mut groups, mut indexes) = (Vec::new(), Vec::new());
    for part in spec.parts {
        match part {
            RedrivePart::Places { code, first, count } => groups.push(RawGroup { code, first, count }),
            RedrivePart::Indexes { first, count } => indexes.push((first, count)),
        }
    }
    RawSpec {
        origin: Some(spec.origin.0),
        keys_of: spec.keys_of.map(|id| id.0),
        groups: (!groups.is_empty()).then_some(groups),
        indexes: (!indexes.is_empty()).then_some(indexes),
        replay: spec.is_replay.then_some(true),
        ..raw
    }
}
