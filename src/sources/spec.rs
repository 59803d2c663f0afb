//! What a task's source is, as it is stored with the task and told by people.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use super::spec_json::RawSpec;
use windrow_core::ids::ItemCount;
use windrow_engine::ports::sources::resolver::RedriveSpec;
use windrow_engine::ports::sources::uploads::UploadId;

/// A source's description: `{"kind":"range","total":10}`, `{"kind":"inline","items":[…]}`,
/// `{"kind":"csv","path":"users.csv","format":{"delimiter":";"}}`, `{"kind":"ndjson","path":"-"}`,
/// `{"kind":"ndjson","upload":7}`, `{"kind":"redrive","origin":42,"groups":[{"code":"TIMEOUT","first":0,"count":17}]}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "RawSpec", into = "RawSpec")]
pub enum SourceSpec {
    /// Numbers only.
    Range {
        /// How many.
        total: ItemCount,
    },
    /// A list; kept as it was written.
    Inline {
        /// The items: a JSON array.
        items: Box<RawValue>,
    },
    /// Rows of a file.
    File {
        /// Where the bytes come from.
        input: Input,
        /// How bytes become rows.
        format: Format,
    },
    /// Failures of another task.
    Redrive(RedriveSpec),
    /// What is appended to the task itself.
    Appended,
}

/// Where the bytes of a file source come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Standard input, written `-`. Never stored: once spooled it is `Spooled`.
    Stdin,
    /// A local file.
    Path(String),
    /// The local files that match a pattern, listed as NDJSON. Never stored: once listed it is `Spooled`.
    Glob {
        /// As shells write it.
        pattern: String,
        /// Refuses what can't be listed instead of skipping it.
        strict: bool,
    },
    /// What once was piped in, or listed: a file's name in the spool directory, made of its content's checksum.
    Spooled(String),
    /// What was sent to the façade.
    Upload(UploadId),
}

/// How bytes become rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values and their relatives.
    Csv(CsvFormat),
    /// One JSON value per line.
    Ndjson,
    /// One text per line.
    Lines,
    /// Texts that a NUL ends, as `find -print0` writes them.
    Nul,
}

/// The options of a CSV.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CsvFormat {
    /// Between fields; one ASCII character.
    pub delimiter: char,
    /// Whether the first row names the columns; without they are `c1`, `c2` …
    pub header: bool,
    /// Around fields; none reads quotes as text.
    pub quote: Option<char>,
    /// Takes rows whose quotes RFC 4180 doesn't have, as the parser reads them: fields may change, rows may be swallowed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub lenient: bool,
}

impl Default for CsvFormat {
    /// As RFC 4180 has it, with a header.
    fn default() -> CsvFormat {
        CsvFormat {
            delimiter: ',',
            header: true,
            quote: Some('"'),
            lenient: false,
        }
    }
}

impl Format {
    /// `csv`, `ndjson`, `lines` or `nul`.
    pub fn kind(&self) -> &'static str {
        match self {
            Format::Csv(_) => "csv",
            Format::Ndjson => "ndjson",
            Format::Lines => "lines",
            Format::Nul => "nul",
        }
    }

    /// The options as JSON text, the same for the same options.
    pub fn to_text(&self) -> String {
        match self {
            Format::Csv(csv) => serde_json::to_string(csv).expect("characters and flags are JSON"),
            Format::Ndjson => r#"{"ndjson":true}"#.to_owned(),
            Format::Lines => r#"{"lines":true}"#.to_owned(),
            Format::Nul => r#"{"nul":true}"#.to_owned(),
        }
    }

    /// Whether the options can be used.
    ///
    /// # Errors
    /// Names the option that can't.
    pub fn check(&self) -> Result<(), String> {
        let Format::Csv(csv) = self else { return Ok(()) };
        let usable = |c: char| c.is_ascii() && !matches!(c, '\n' | '\r' | '\0');
        if !usable(csv.delimiter) {
            return Err(format!("{:?} can't be the delimiter", csv.delimiter));
        }
        match csv.quote {
            Some(quote) if !usable(quote) => Err(format!("{quote:?} can't be the quote")),
            Some(quote) if quote == csv.delimiter => {
                Err(format!("{quote:?} can't be both delimiter and quote"))
            }
            _ => Ok(()),
        }
    }
}

impl SourceSpec {
    /// The description as JSON text, as it is stored.
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("a source's description is JSON")
    }

    /// Reads a description.
    ///
    /// # Errors
    /// When it isn't one; says what is wrong.
    pub fn parse(text: &str) -> Result<SourceSpec, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    /// `range`, `inline`, `csv`, `ndjson`, `lines`, `redrive` or `appended`.
    pub fn kind(&self) -> &'static str {
        match self {
            SourceSpec::Range { .. } => "range",
            SourceSpec::Inline { .. } => "inline",
            SourceSpec::File { format, .. } => format.kind(),
            SourceSpec::Redrive(_) => "redrive",
            SourceSpec::Appended => "appended",
        }
    }

    /// What a task with this source means: the same for the same items, wherever they are read from.
    pub fn meaning(&self, checksum: u64, total: ItemCount) -> u64 {
        let format = match self {
            SourceSpec::File { format, .. } => format.to_text(),
            SourceSpec::Redrive(_) => self.to_text(),
            SourceSpec::Range { .. } | SourceSpec::Inline { .. } | SourceSpec::Appended => String::new(),
        };
        xxh3_64(format!("{}\n{format}\n{checksum:016x}\n{}", self.kind(), total.0).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_read_back_as_they_are_written() {
        for text in [
            r#"{"kind":"range","total":10}"#,
            r#"{"kind":"inline","items":[1,{"b":1,"a":123456789012345678901234567890}]}"#,
            r#"{"kind":"csv","path":"u.csv","format":{"delimiter":";","header":false,"quote":null}}"#,
            r#"{"kind":"csv","path":"u.csv","format":{"delimiter":",","header":true,"quote":"\"","lenient":true}}"#,
            r#"{"kind":"ndjson","path":"-"}"#,
            r#"{"kind":"ndjson","spooled":"stdin-00.ndjson"}"#,
            r#"{"kind":"ndjson","upload":7}"#,
            r#"{"kind":"lines","path":"urls.txt"}"#,
            r#"{"kind":"nul","path":"-"}"#,
            r#"{"kind":"redrive","origin":42,"keys_of":40,"groups":[{"code":"BUSY","first":0,"count":3}]}"#,
            r#"{"kind":"redrive","origin":42,"indexes":[[5,1],[9,12]]}"#,
            r#"{"kind":"appended"}"#,
        ] {
            assert_eq!(
                SourceSpec::parse(text).map(|spec| spec.to_text()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn descriptions_of_no_source_are_refused() {
        for text in [
            r#"{"kind":"range"}"#,
            r#"{"kind":"range","total":1,"path":"u"}"#,
            r#"{"kind":"csv"}"#,
            r#"{"kind":"csv","path":"a","spooled":"stdin-1"}"#,
            r#"{"kind":"ndjson","spooled":"../x"}"#,
            r#"{"kind":"ndjson","spooled":"stdin-/../x"}"#,
            r#"{"kind":"xlsx","path":"u"}"#,
            r#"{"kind":"csv","path":"u","sheet":1}"#,
            r#"{"kind":"ndjson","path":"u","format":{}}"#,
            r#"{"kind":"lines","path":"u","format":{}}"#,
            r#"{"kind":"ndjson","upload":7,"path":"u"}"#,
            r#"{"kind":"redrive","origin":42}"#,
            r#"{"kind":"redrive","groups":[]}"#,
            r#"{"kind":"redrive","origin":42,"indexes":[[5,0]]}"#,
            r#"{"kind":"range","total":1,"origin":42}"#,
            r#"{"kind":"appended","total":1}"#,
        ] {
            assert!(SourceSpec::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn meaning_changes_with_kind_format_checksum_and_total() {
        let spec = |text: &str| SourceSpec::parse(text).expect("it is a description");
        let csv = spec(r#"{"kind":"csv","path":"u"}"#);
        let base = csv.meaning(1, ItemCount(2));
        assert_eq!(
            base,
            spec(r#"{"kind":"csv","path":"elsewhere"}"#).meaning(1, ItemCount(2))
        );
        assert_ne!(base, csv.meaning(2, ItemCount(2)));
        assert_ne!(base, csv.meaning(1, ItemCount(3)));
        assert_ne!(
            base,
            spec(r#"{"kind":"csv","path":"u","format":{"header":false}}"#).meaning(1, ItemCount(2))
        );
        assert_ne!(
            base,
            spec(r#"{"kind":"ndjson","path":"u"}"#).meaning(1, ItemCount(2))
        );
        assert_ne!(
            spec(r#"{"kind":"lines","path":"u"}"#).meaning(1, ItemCount(2)),
            spec(r#"{"kind":"ndjson","path":"u"}"#).meaning(1, ItemCount(2))
        );
    }
}
