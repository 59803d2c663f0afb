//! Implementation of `windrow init`: writes a small handler into a directory and prints the next commands. The files
//! come from `examples/handlers`, which the tests run, so the shipped code is the tested code.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::exit::Exit;
use crate::fault::{Fault, of_file};
use crate::output::screen;

/// Arguments of `windrow init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Language of the handler; http writes nothing and explains the contract for any server
    #[arg(value_enum)]
    pub language: Language,
    /// Target directory instead of the current one; created if missing
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

pub(crate) const EXAMPLES: &str = "Examples:
  windrow init python
  windrow init bash --dir push

python, node and go create an HTTP handler on 127.0.0.1:9000 (PORT=9001 in its environment changes the port), bash and
rust a worker that reads items as lines. Each has at most 15 lines and no dependencies.";

/// Language of the handler, or `http` for an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// HTTP server for python3
    Python,
    /// HTTP server for Node.js
    Node,
    /// HTTP server for Go 1.22 or later
    Go,
    /// Worker that reads items as lines
    Bash,
    /// Worker that reads items as lines
    Rust,
    /// Any other language: explains the contract of an HTTP server
    Http,
}

/// Handler file as shipped.
struct Sample {
    file: &'static str,
    text: &'static str,
    /// Command that builds the worker or starts the server; empty if neither is needed.
    prepare: &'static str,
    /// Command of the worker; `None` for a server on port 9000.
    worker: Option<&'static str>,
}

/// Returns the sample of a language, or `None` for [`Language::Http`], which has no file.
fn sample(language: Language) -> Option<Sample> {
    let (file, text, prepare, worker) = match language {
        Language::Python => {
            let text = include_str!("../../../examples/handlers/http_handler.py");
            ("handler.py", text, "python3 handler.py", None)
        }
        Language::Node => {
            let text = include_str!("../../../examples/handlers/http_handler.mjs");
            ("handler.mjs", text, "node handler.mjs", None)
        }
        Language::Go => {
            let text = include_str!("../../../examples/handlers/http_handler.go");
            ("handler.go", text, "go run handler.go", None)
        }
        Language::Bash => {
            let text = include_str!("../../../examples/handlers/worker.sh");
            ("handler.sh", text, "", Some("./handler.sh"))
        }
        Language::Rust => {
            let text = include_str!("../../../examples/handlers/worker.rs");
            ("handler.rs", text, "rustc handler.rs", Some("./handler"))
        }
        Language::Http => return None,
    };
    Some(Sample {
        file,
        text,
        prepare,
        worker,
    })
}

const ANY_SERVER: &str = r#"a handler is any HTTP server; no file was written
  request      POST {"type":"item.process","task":{…},"item":{"index":0,"attempt":1,"key":"…","data":{…}}}
  with --batch POST {"type":"items.process","task":{…},"items":[{"index":0,…},{"index":1,…}]}
  response     any 2xx without a body: done. 429 or 503: slow down. Other 5xx: retry later
  or           {"result":"skip"}, {"result":"retry","retry_after":"5s"}, {"result":"fail","code":"NO_USER"}
  unknown type answer 204; the key is the same at every attempt of an item
next:
  windrow try http://127.0.0.1:9000          # calls it for three items and checks the contract
  windrow init python                        # or node, go: such a server in 15 lines"#;

/// Writes the handler and prints the next commands.
///
/// # Errors
/// `Conflict` if the file exists; `Failed` if it can't be written.
pub(crate) fn init(args: &InitArgs) -> Result<Exit, Fault> {
    let text = match sample(args.language) {
        None => ANY_SERVER.to_owned(),
        Some(sample) => {
            let path = args.dir.iter().collect::<PathBuf>().join(sample.file);
            if let Some(dir) = &args.dir {
                std::fs::create_dir_all(dir).map_err(|error| refused(&path, &error))?;
            }
            write(&path, &sample, args.force).map_err(|error| refused(&path, &error))?;
            told(&sample, &path, args.dir.as_deref())
        }
    };
    screen::put(&text).map(|()| Exit::Ok)
}

fn refused(path: &Path, error: &io::Error) -> Fault {
    let what = format!("can't write {}", path.display());
    match error.kind() {
        // Not if a file is in the place of its directory.
        ErrorKind::AlreadyExists if path.symlink_metadata().is_ok() => {
            Fault::new(Exit::Conflict, what, "the file exists")
                .hint("--dir DIR for another directory, or --force to replace it")
        }
        _ => Fault::new(Exit::Failed, what, of_file(error)).hint("--dir DIR for a writable directory"),
    }
}

/// Writes the handler. Leaves an existing file alone, or with `force` replaces it as a whole.
fn write(path: &Path, sample: &Sample, force: bool) -> io::Result<()> {
    if !force {
        return write_new(path, sample);
    }
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    write_new(&draft, sample)?;
    std::fs::rename(&draft, path).inspect_err(|_| remove_half(&draft))
}

fn write_new(path: &Path, sample: &Sample) -> io::Result<()> {
    let mode = if sample.text.starts_with("#!") {
        0o777
    } else {
        0o666
    };
    let mut file: File = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)?;
    file.write_all(sample.text.as_bytes())
        .inspect_err(|_| remove_half(path))
}

/// Deletes an incomplete handler: the next attempt would refuse to overwrite it.
fn remove_half(path: &Path) {
    if let Err(error) = std::fs::remove_file(path) {
        tracing::warn!(%error, path = %path.display(), "an incomplete file was left behind");
    }
}

/// Returns the name of the file, and commands ready to paste.
fn told(sample: &Sample, path: &Path, dir: Option<&Path>) -> String {
    let lines = sample.text.lines().count();
    let how = match sample.worker {
        None => "an HTTP handler on 127.0.0.1:9000 (PORT=9001 in its environment changes the port)",
        Some(_) => "a worker that reads items as lines and answers each with a line",
    };
    let mut text = format!("{}: {lines} lines, {how}\nnext:", path.display());
    let mut next = |command: &str, about: &str| {
        if !command.is_empty() {
            text += &format!("\n  {command:<64} # {about}");
        }
    };
    let dir = dir.map(|dir| format!("cd {}", quoted(dir)));
    next(dir.as_deref().unwrap_or_default(), "to its directory");
    let tried = "three items; nothing is stored";
    if let Some(command) = sample.worker {
        next(sample.prepare, "to build it");
        next(&format!("windrow try -- {command}"), tried);
        let run = format!("windrow run --total 100 --rate 20/s -- {command}");
        next(&run, "one job without a node");
        return text;
    }
    next(sample.prepare, "in another terminal");
    next("windrow try http://127.0.0.1:9000", tried);
    let register = "windrow biz register hello-push --url http://127.0.0.1:9000";
    next(register, "for tasks of a node, such as windrow dev");
    let run = "windrow run --total 100 --rate 20/s --url http://127.0.0.1:9000";
    next(run, "or one job without a node");
    text
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%".contains(c);
    if text.chars().all(is_plain) && !text.starts_with('-') {
        return text;
    }
    format!("-- '{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_a_shell() {
        for (path, text) in [
            ("push", "push"),
            ("a b", "-- 'a b'"),
            ("it's", r"-- 'it'\''s'"),
            ("-x", "-- '-x'"),
        ] {
            assert_eq!(quoted(Path::new(path)), text);
        }
    }

    #[test]
    fn every_language_but_http_has_a_handler_of_its_own() {
        let samples: Vec<Sample> = Language::value_variants()
            .iter()
            .filter_map(|one| sample(*one))
            .collect();
        let files: std::collections::BTreeSet<&str> = samples.iter().map(|sample| sample.file).collect();
        assert_eq!((samples.len(), files.len()), (5, 5));
        assert!(sample(Language::Http).is_none());
    }
}
