//! Files of objects: TOML, YAML and JSON, within bounds, each object with its place.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::ApplyArgs;
use super::kinds::{KINDS, Kind, Members, is_exact};
use crate::exit::Exit;
use crate::fault::{Fault, of_file};
use crate::link::document::{self, FileForm};
use crate::output::body::joined;
use crate::shell::Shell;

/// Maximum size of a file. Unit: bytes.
const BYTES_MAX: u64 = 4 << 20;
/// Maximum number of files.
const FILES_MAX: usize = 1_000;
/// Maximum number of objects in all files together.
const OBJECTS_MAX: usize = 10_000;
/// Maximum size of a file with the value of a secret. Unit: bytes.
const SECRET_BYTES_MAX: u64 = 64 << 10;

/// Object of a file.
pub(super) struct Wanted {
    /// Kind of the object.
    pub(super) kind: &'static Kind,
    /// Address such as `schedule/push/nightly`.
    pub(super) address: String,
    /// Place such as `push.toml: business 2`.
    pub(super) place: String,
    /// Members as the file has them, with the values of secrets.
    pub(super) members: Members,
}

/// Reads all objects of the files, in the order of their kinds.
///
/// # Errors
/// `Rejected` with every error of the files.
pub(super) fn wanted(args: &ApplyArgs, shell: &Shell) -> Result<Vec<Wanted>, Fault> {
    let mut files = Vec::new();
    for path in &args.files {
        find(path, &mut files).map_err(|why| fault(vec![why]))?;
    }
    if files.is_empty() {
        return Err(fault(vec![
            "no file ends in .toml, .yaml, .yml or .json".to_owned(),
        ]));
    }
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    for path in &files {
        match objects(path, args.format) {
            Ok(found) => all.extend(found.into_iter().map(|one| settled(one, path, shell))),
            Err(why) => faults.push(format!("{}: {why}", path.display())),
        }
        if all.len() > OBJECTS_MAX {
            faults.push(format!("the files have more than {OBJECTS_MAX} objects"));
            break;
        }
    }
    let mut wanted: Vec<Wanted> = Vec::new();
    for one in all {
        match one {
            Ok(one) => wanted.push(one),
            Err(why) => faults.push(why),
        }
    }
    // Stable: objects of a kind keep the order of the files.
    wanted.sort_by_key(|one| KINDS.iter().position(|kind| std::ptr::eq(kind, one.kind)));
    let mut seen = std::collections::BTreeMap::new();
    for one in &wanted {
        if let Some(before) = seen.insert(&one.address, &one.place) {
            faults.push(format!("{}: {} is also {before}", one.place, one.address));
        }
    }
    match faults.is_empty() {
        true => Ok(wanted),
        false => Err(fault(faults)),
    }
}

fn fault(because: Vec<String>) -> Fault {
    Fault {
        exit: Exit::Rejected,
        what: "can't apply the files; nothing has changed".to_owned(),
        because,
        hint: Some("`windrow export` prints an example; `windrow openapi` lists every member".to_owned()),
    }
}

/// Finds the files below a path, in the order of their names. Names that begin with a dot are left out, as are linked
/// directories: a mounted volume has each file twice otherwise.
fn find(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let wrong = |error: &std::io::Error| format!("{}: {}", path.display(), of_file(error));
    if path == Path::new("-") || !path.is_dir() {
        files.push(path.to_owned());
    } else {
        let entries = fs::read_dir(path).map_err(|error| wrong(&error))?;
        let entries = entries
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| wrong(&error))?;
        let mut inner: Vec<PathBuf> = entries.iter().map(fs::DirEntry::path).collect();
        inner.retain(|path| {
            let is_hidden = path
                .file_name()
                .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            !is_hidden
                && if path.is_dir() {
                    !path.is_symlink()
                } else {
                    form(path).is_some()
                }
        });
        inner.sort();
        inner.iter().try_for_each(|path| find(path, files))?;
    }
    match files.len() > FILES_MAX {
        true => Err(format!(
            "{}: there are more than {FILES_MAX} files",
            path.display()
        )),
        false => Ok(()),
    }
}

/// Returns the format that the name of a file tells.
fn form(path: &Path) -> Option<FileForm> {
    match path.extension()?.to_str()? {
        "toml" => Some(FileForm::Toml),
        "yaml" | "yml" => Some(FileForm::Yaml),
        "json" => Some(FileForm::Json),
        _ => None,
    }
}

/// Reads a file, or standard input, without a byte order mark.
fn text(path: &Path, most: u64) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = match path == Path::new("-") {
        true => std::io::stdin().lock().take(most + 1).read_to_end(&mut bytes),
        false => fs::File::open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)),
    };
    read.map_err(|error| of_file(&error))?;
    if bytes.len() as u64 > most {
        return Err(format!("it has more than {most} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(text.trim_start_matches('\u{feff}').to_owned())
}

/// Object of a file, with its place in it.
type Placed = (&'static Kind, String, Value);

/// Reads the objects of a file.
fn objects(path: &Path, asked: Option<FileForm>) -> Result<Vec<Placed>, String> {
    let text = text(path, BYTES_MAX)?;
    let is_stdin = path == Path::new("-");
    let form = match form(path) {
        Some(form) if !is_stdin => form,
        _ if is_stdin => asked.unwrap_or_else(|| guessed(&text)),
        _ => return Err("its name ends neither in .toml, .yaml, .yml nor .json".to_owned()),
    };
    let place = if is_stdin {
        "standard input".into()
    } else {
        path.to_string_lossy()
    };
    let mut found = Vec::new();
    for document in document::documents(&text, form)? {
        let Value::Object(lists) = document else {
            return Err(format!("it has no lists of objects, such as {}", example(form)));
        };
        for (name, list) in lists {
            let kind = KINDS.iter().find(|kind| kind.name == name);
            let kind = kind.ok_or_else(|| format!("unknown kind {name:?}; kinds are {}", names()))?;
            let Value::Array(list) = list else {
                return Err(format!("`{name}` is not a list, such as {}", example(form)));
            };
            let before = found
                .iter()
                .filter(|(of, ..): &&Placed| std::ptr::eq(*of, kind))
                .count();
            let placed = list.into_iter().enumerate();
            let placed = placed.map(|(at, one)| (kind, format!("{place}: {name} {}", before + at + 1), one));
            found.extend(placed);
        }
    }
    Ok(found)
}

fn guessed(text: &str) -> FileForm {
    let lines = text.lines().map(str::trim_start);
    let first = lines
        .into_iter()
        .find(|line| !line.is_empty() && !line.starts_with('#'));
    match first.and_then(|line| line.chars().next()) {
        Some('{') => FileForm::Json,
        Some('[') => FileForm::Toml,
        _ => FileForm::Yaml,
    }
}

fn example(form: FileForm) -> &'static str {
    match form {
        FileForm::Toml => "[[business]]",
        FileForm::Yaml => "`business:` with a `- name: …` for each",
        FileForm::Json => r#"{"business": [{"name": …}]}"#,
    }
}

fn names() -> String {
    joined(&KINDS.each_ref().map(|kind| kind.name), ", ").unwrap_or_default()
}

/// Checks one object and reads the values of its secrets.
fn settled((kind, place, value): Placed, path: &Path, shell: &Shell) -> Result<Wanted, String> {
    let is_exact = is_exact(&value);
    let Value::Object(mut members) = value else {
        return Err(format!("{place} is not a table"));
    };
    for member in kind.identity {
        let is_given = members.get(*member).is_some_and(Value::is_string);
        if !is_given && (*member != "business" || kind.name != "token") {
            return Err(format!("{place}: `{member}` is missing, or not text"));
        }
    }
    let address = kind.address(&members).unwrap_or_default();
    let place = format!("{place} ({address})");
    if !is_exact {
        return Err(format!("{place} has a number beyond 64 bits; write it as text"));
    }
    for member in kind.secrets {
        for (name, value) in members
            .get_mut(*member)
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            if let Value::String(text) = value {
                let read = secret(text, path, shell);
                *text = read.map_err(|why| format!("{place}: {member}.{name}: {why}"))?;
            }
        }
    }
    Ok(Wanted {
        kind,
        address,
        place,
        members,
    })
}

/// Returns the value of a secret: that of a variable for `env:NAME`, the content of a file for `@FILE`, relative to
/// the file that names it.
fn secret(given: &str, beside: &Path, shell: &Shell) -> Result<String, String> {
    if let Some(name) = given.strip_prefix("env:") {
        let value = shell.var(name).map(str::to_owned);
        return value.ok_or_else(|| format!("the environment has no {name}"));
    }
    let Some(file) = given.strip_prefix('@') else {
        return Ok(given.to_owned());
    };
    let path = beside
        .parent()
        .map_or_else(|| file.into(), |folder| folder.join(file));
    let read = text(&path, SECRET_BYTES_MAX).map_err(|why| format!("{}: {why}", path.display()))?;
    Ok(read.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_of_standard_input_is_told_by_its_first_character() {
        assert_eq!(guessed("# ours\n\n[[limit]]\n"), FileForm::Toml);
        assert_eq!(guessed(" {\"limit\": []}"), FileForm::Json);
        assert_eq!(guessed("limit:\n- name: a\n"), FileForm::Yaml);
        assert_eq!(guessed(""), FileForm::Yaml);
    }

    #[test]
    fn a_directory_is_read_in_the_order_of_its_names() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("b/..data")).expect("made");
        for name in [
            "b/z.yml",
            "b/a.json",
            "a.toml",
            "c.yaml",
            "notes.md",
            ".hidden.toml",
            "b/..data/x.toml",
        ] {
            fs::write(at(name), "").expect("written");
        }
        let mut files = Vec::new();
        find(place.path(), &mut files).expect("found");
        assert_eq!(files, ["a.toml", "b/a.json", "b/z.yml", "c.yaml"].map(at));
    }
}
