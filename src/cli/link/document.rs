//! Files that describe a desired state, in TOML, YAML or JSON.

use std::io::Read;
use std::path::Path;

use clap::ValueEnum;
use serde_json::Value;

/// Syntax of a file with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileForm {
    /// TOML, with a table for each object
    Toml,
    /// YAML, with a list for each kind
    Yaml,
    /// JSON, with a list for each kind
    Json,
}

/// Reads a file as JSON and keeps its numbers as written. Converts TOML (`.toml`); `-` is standard input.
///
/// # Errors
/// Returns why the file can't be read. The caller checks that the text is valid JSON.
pub(crate) fn json(path: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().read_to_string(&mut text).map(|_| text),
        false => std::fs::read_to_string(path),
    };
    let text = read.map_err(|error| error.to_string())?;
    if path.extension().is_none_or(|ending| ending != "toml") {
        return Ok(text);
    }
    let table: Result<toml::Table, _> = text.parse();
    let table = table.map_err(|error| error.to_string().trim().replace('\n', " "))?;
    Ok(plain(toml::Value::Table(table)).to_string())
}

/// Reads the documents of a text; only YAML can have several. Errors don't repeat the text, which may have secrets.
///
/// # Errors
/// Returns why the text can't be read, with the line.
pub(crate) fn documents(text: &str, form: FileForm) -> Result<Vec<Value>, String> {
    match form {
        FileForm::Json => {
            let parsed = serde_json::from_str(text);
            parsed.map(|one| vec![one]).map_err(|error| error.to_string())
        }
        FileForm::Toml => {
            let parsed: Result<toml::Table, toml::de::Error> = text.parse();
            let parsed = parsed.map_err(|error| {
                let before = error
                    .span()
                    .and_then(|span| text.get(..span.start))
                    .unwrap_or_default();
                format!("line {}: {}", before.lines().count().max(1), error.message())
            })?;
            Ok(vec![plain(toml::Value::Table(parsed))])
        }
        FileForm::Yaml => {
            let parsed: Result<Vec<Value>, _> = serde_saphyr::from_multiple(text);
            // The lines below the first quote the text.
            parsed.map_err(|error| {
                let error = error.to_string();
                let first = error.lines().next().unwrap_or_default();
                first.trim_start_matches("error: ").to_owned()
            })
        }
    }
}

/// Writes a document.
///
/// # Errors
/// Returns why the format can't hold it.
pub(crate) fn written(document: &Value, form: FileForm) -> Result<String, String> {
    match form {
        FileForm::Json => serde_json::to_string_pretty(document).map_err(|error| error.to_string()),
        FileForm::Toml if has_null(document) => Err("TOML can't hold a null".to_owned()),
        FileForm::Toml => toml::to_string_pretty(document).map_err(|error| error.to_string()),
        FileForm::Yaml => serde_saphyr::to_string(document).map_err(|error| error.to_string()),
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

/// Converts TOML to JSON; TOML times become strings.
fn plain(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => Value::String(text),
        toml::Value::Integer(number) => Value::from(number),
        toml::Value::Float(number) => Value::from(number),
        toml::Value::Boolean(is) => Value::Bool(is),
        toml::Value::Datetime(at) => Value::String(at.to_string()),
        toml::Value::Array(values) => values.into_iter().map(plain).collect(),
        toml::Value::Table(members) => members
            .into_iter()
            .map(|(name, value)| (name, plain(value)))
            .collect(),
    }
}
