//! Named node addresses and tokens, stored in `$XDG_CONFIG_HOME/windrow/contexts.toml`, readable only by the owner.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use toml::{Table, Value};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::shell_word;
use crate::shell::Shell;

/// Keys of the file. `CONTEXT_KEYS` has those of one context.
const FILE_KEYS: [&str; 2] = ["current", "context"];
const CONTEXT_KEYS: [&str; 4] = ["server", "token_file", "token", "ca_file"];
/// Minimum similarity for a "did you mean" suggestion. (Jaro–Winkler, same as clap.)
const LIKENESS_MIN: f64 = 0.7;

/// Address of a node, with the token to use there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Context {
    /// URL of the node.
    pub server: String,
    /// File that holds the token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// Token, stored in the contexts file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// File of authorities to trust instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

impl Context {
    /// True if the context has a token, either inline or in a file.
    pub fn has_token(&self) -> bool {
        self.token.is_some() || self.token_file.is_some()
    }
}

/// All contexts of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Contexts {
    /// Context that is used if none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// Contexts, keyed by name.
    #[serde(rename = "context")]
    pub all: BTreeMap<String, Context>,
}

impl Contexts {
    /// Loads the user's contexts, none if there is no file.
    ///
    /// # Errors
    /// `Config` if the file can't be read or has an unknown key.
    pub fn load(shell: &Shell) -> Result<Contexts, Fault> {
        let Some(path) = path(shell) else {
            return Ok(Contexts::default());
        };
        match fs::read_to_string(&path) {
            Ok(text) => Contexts::parse(&text, &path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Contexts::default()),
            Err(error) => Err(unusable(&path, vec![error.to_string()])),
        }
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// `Config` with every error in it.
    pub(super) fn parse(text: &str, path: &Path) -> Result<Contexts, Fault> {
        let table: Table = text
            .parse()
            .map_err(|error: toml::de::Error| unusable(path, vec![error.message().to_owned()]))?;
        let mut faults = unknown("", &table, &FILE_KEYS);
        let mut contexts = Contexts::default();
        match table.get("current") {
            None => {}
            Some(Value::String(name)) => contexts.current = Some(name.clone()),
            Some(_) => faults.push("current: must be text".to_owned()),
        }
        match table.get("context") {
            None => {}
            Some(Value::Table(all)) => {
                for (name, value) in all {
                    contexts.all.insert(name.clone(), read(name, value, &mut faults));
                }
            }
            Some(_) => faults.push("context: must be a table; write [context.NAME]".to_owned()),
        }
        if let Some(current) = contexts
            .current
            .as_ref()
            .filter(|name| !contexts.all.contains_key(*name))
        {
            faults.push(format!("current: no context {current:?}"));
        }
        if faults.is_empty() {
            Ok(contexts)
        } else {
            Err(unusable(path, faults))
        }
    }

    /// Returns the context with this name.
    ///
    /// # Errors
    /// `NotFound` if there is none.
    pub fn get(&self, name: &str) -> Result<&Context, Fault> {
        self.all.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.all.keys().map(String::as_str).collect();
            let because = match known.as_slice() {
                [] => "no contexts yet".to_owned(),
                known => format!("{name:?} is not one of {}", known.join(", ")),
            };
            Fault::new(Exit::NotFound, "no such context", because).hint(like(name, &known).map_or_else(
                || match known.is_empty() {
                    true => format!("windrow ctx add {} --server URL", shell_word(name)),
                    false => "`windrow ctx list` lists them, `windrow ctx add` adds one".to_owned(),
                },
                |other| format!("did you mean {other:?}?"),
            ))
        })
    }

    /// Replaces the file, readable only by its owner.
    ///
    /// # Errors
    /// Fails if it can't be written.
    pub fn save(&self, shell: &Shell) -> Result<PathBuf, Fault> {
        let path = path(shell).ok_or_else(|| {
            Fault::new(
                Exit::Config,
                "can't locate the contexts file",
                "HOME and XDG_CONFIG_HOME are unset",
            )
            .hint("set HOME")
        })?;
        let text = toml::to_string(self).map_err(|error| Fault::bug(error.to_string()))?;
        write(&path, &text).map_err(|error| {
            Fault::new(
                Exit::Failed,
                "can't save the contexts",
                format!("{}: {error}", path.display()),
            )
            .hint("make its directory writable, or set XDG_CONFIG_HOME")
        })?;
        Ok(path)
    }
}

/// Writes a new file and renames it over the old one, so that a crash leaves one or the other complete.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder)?;
    let new = folder.join(format!(".contexts.toml.{}", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    // A file left behind by a crash keeps its old mode.
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all())?;
    fs::rename(&new, path)
}

/// Returns the path of the file, or `None` without a home directory.
fn path(shell: &Shell) -> Option<PathBuf> {
    let absolute = |text: &str| Path::new(text).is_absolute().then(|| PathBuf::from(text));
    let named = shell.var("XDG_CONFIG_HOME").and_then(absolute);
    let base = named.or_else(|| shell.var("HOME").map(|home| Path::new(home).join(".config")))?;
    Some(base.join("windrow/contexts.toml"))
}

fn read(name: &str, value: &Value, faults: &mut Vec<String>) -> Context {
    let Value::Table(table) = value else {
        faults.push(format!("context.{name}: must be a table"));
        return Context::default();
    };
    faults.extend(unknown(&format!("context.{name}."), table, &CONTEXT_KEYS));
    let mut text = |key: &str| match table.get(key) {
        None => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            faults.push(format!("context.{name}.{key}: must be text"));
            None
        }
    };
    let (server, token_file) = (text("server"), text("token_file").map(PathBuf::from));
    let (token, ca_file) = (text("token"), text("ca_file").map(PathBuf::from));
    if table.get("server").is_none() {
        faults.push(format!("context.{name}.server: missing"));
    }
    if token.is_some() && token_file.is_some() {
        faults.push(format!(
            "context.{name}: token and token_file are mutually exclusive"
        ));
    }
    Context {
        server: server.unwrap_or_default(),
        token_file,
        token,
        ca_file,
    }
}

fn unknown(place: &str, table: &Table, known: &[&str]) -> Vec<String> {
    let strange = table.keys().filter(|key| !known.contains(&key.as_str()));
    let fault = |key: &String| match like(key, known) {
        Some(other) => format!("{place}{key}: unknown key; did you mean {other:?}?"),
        None => format!("{place}{key}: unknown key; the keys are {}", known.join(", ")),
    };
    strange.map(fault).collect()
}

/// Returns the known word most similar to `word`, if any is similar enough. Words that differ only in case come
/// first, as that is the most common slip.
pub fn like<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let same = known.iter().find(|other| other.eq_ignore_ascii_case(word));
    if let Some(same) = same {
        return Some(same);
    }
    let scored = known
        .iter()
        // At least half must match: a common beginning or end isn't enough.
        .filter(|other| strsim::normalized_damerau_levenshtein(word, other) >= 0.5)
        .map(|other| (strsim::jaro_winkler(word, other), *other));
    let best = scored.max_by(|(one, _), (two, _)| one.total_cmp(two));
    best.filter(|(score, _)| *score > LIKENESS_MIN)
        .map(|(_, other)| other)
}

fn unusable(path: &Path, faults: Vec<String>) -> Fault {
    let because = faults
        .into_iter()
        .map(|fault| format!("{}: {fault}", path.display()))
        .collect();
    let hint = Some("correct the file, or remove it and run `windrow ctx add`".to_owned());
    Fault {
        exit: Exit::Config,
        what: "can't use the contexts".to_owned(),
        because,
        hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Contexts, Fault> {
        Contexts::parse(text, Path::new("c.toml"))
    }

    #[test]
    fn what_is_written_is_read_again_and_is_its_owners_only() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("windrow/contexts.toml");
        let context = Context {
            server: "https://n1".to_owned(),
            token: Some("wrk_\"x\\\n".to_owned()),
            ca_file: Some("/ca.pem".into()),
            ..Context::default()
        };
        let all = BTreeMap::from([("a b".to_owned(), context)]);
        let contexts = Contexts {
            current: Some("a b".to_owned()),
            all,
        };
        for _ in 0..2 {
            write(&path, &toml::to_string(&contexts).expect("text")).expect("written");
        }
        assert_eq!(parse(&fs::read_to_string(&path).expect("a file")), Ok(contexts));
        assert_eq!(
            fs::metadata(&path).expect("a file").permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(
            fs::read_dir(place.path().join("windrow"))
                .expect("a folder")
                .count(),
            1
        );
    }

    #[test]
    fn every_fault_of_the_file_is_told_with_what_was_meant() {
        let text = "curent = \"a\"\n[context.a]\nsever = \"x\"\ntoken = 3\n[context.b]\nserver = \"x\"\n\
                    token = \"t\"\ntoken_file = \"f\"\n";
        let fault = parse(text).expect_err("faults");
        assert_eq!((fault.exit, fault.because.len()), (Exit::Config, 5), "{fault}");
        for part in [
            "curent: unknown key; did you mean \"current\"?",
            "context.a.sever: unknown key; did you mean \"server\"?",
            "context.a.server: missing",
            "context.a.token: must be text",
            "context.b: token and token_file are mutually exclusive",
        ] {
            assert!(fault.to_string().contains(part), "{part} is not in\n{fault}");
        }
        assert!(parse("current = \"x\"").is_err());
        assert!(parse("not toml").is_err());
    }

    #[test]
    fn names_that_only_end_alike_are_not_taken_for_one_another() {
        assert_eq!(like("nofile.csv", &["headonly.csv", "user.csv"]), None);
        assert_eq!(like("prd", &["prod", "test"]), Some("prod"));
        assert_eq!(
            like("usres.csv", &["headonly.csv", "users.csv"]),
            Some("users.csv")
        );
    }

    #[test]
    fn whoever_removes_a_context_that_is_not_there_is_told_which_there_are() {
        let contexts = parse("[context.prod]\nserver = \"https://n1\"\n").expect("sound");
        let hint = contexts.get("nope").expect_err("none").hint.expect("a hint");
        assert!(hint.contains("windrow ctx list"), "{hint}");
    }
}
