//! Files for `apply` that describe a desired state, in TOML or JSON.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

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
