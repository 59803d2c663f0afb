//! Shell completion: the shell asks this program for the candidates of a word. Flags and verbs come from the command
//! line's definition, tasks, businesses and nodes from the node that the line refers to, contexts and jobs from this
//! machine.
//!
//! Tab never blocks: candidates that don't arrive within the budget are silently left out.

mod cache;
mod files;
mod suggestions;

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Arg, Command, CommandFactory, Parser};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::Shells;

use self::suggestions::Suggestion;
use crate::args::Cli;
use crate::link::Remote;
use crate::shell::Shell;
use crate::task::steer;

/// Environment variable that a shell's script sets to request candidates.
const VARIABLE: &str = "WINDROW_COMPLETE";
/// Flags that select the node or the job directory of a line.
const REACH_FLAGS: [&str; 5] = ["--context", "--server", "--token-file", "--ca-file", "--state"];

/// Kind of object that a word can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Task in one of these statuses, or in any status if empty.
    Task(&'static str),
    Business {
        archived: bool,
    },
    Limit,
    Alert,
    Dataset,
    Schedule,
    /// Node in a state that begins with this text.
    Node(&'static str),
    Context,
    /// Job that is running on this machine.
    Running,
    /// Job that `windrow run` ever started on this machine.
    Begun,
    /// Command or topic of `windrow help`.
    Topic,
}

/// Answers a completion request of a shell and returns true if this was one. `words` is the full command line of this
/// process.
pub(crate) fn answer(words: Vec<OsString>, shell: fn() -> Shell) -> bool {
    let line = words.clone();
    let factory = move || {
        with_completers(
            Cli::command(),
            &[],
            &Asker {
                line: line.clone(),
                shell,
            },
        )
    };
    let place = std::env::current_dir().ok();
    let answered = CompleteEnv::with_factory(factory)
        .var(VARIABLE)
        .try_complete(words, place.as_deref());
    // A request that can't be parsed gets no answer: the shell would print any message.
    answered.unwrap_or(true)
}

/// Returns the completion script of a shell, or `None` if the shell isn't supported.
pub(crate) fn script(shell: &str) -> Option<String> {
    let shells = Shells::builtins();
    let mut text = Vec::new();
    let written = shells
        .completer(shell)?
        .write_registration(VARIABLE, "windrow", "windrow", "windrow", &mut text);
    written.ok().map(|()| String::from_utf8_lossy(&text).into_owned())
}

/// Adds a completer to every argument that names an object. `path` holds the verbs above the command.
fn with_completers(command: Command, path: &[String], asker: &Asker) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|verb| verb.get_name().to_owned())
        .collect();
    let own = command.get_name().to_owned();
    let path: Vec<String> = path.iter().cloned().chain([own]).collect();
    let command = command.mut_args(|arg| {
        let asker = asker.clone();
        match kind(&path, &arg) {
            Some(kind) => arg.add(ArgValueCompleter::new(move |word: &OsStr| {
                asker.candidates(kind, word)
            })),
            None if takes_at_file(&arg) => arg.add(ArgValueCompleter::new(files::at_file)),
            None if begins_command(&path, &arg) => {
                arg.add(ArgValueCompleter::new(move |word: &OsStr| asker.programs(word)))
            }
            None => arg,
        }
    });
    names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |verb| with_completers(verb, &path, asker))
    })
}

/// Returns the kind of object an argument names, limited to objects that the verb applies to.
fn kind(path: &[String], arg: &Arg) -> Option<Kind> {
    let [noun, verb] = [1, 2].map(|at| path.get(at).map(String::as_str));
    let verb = verb.unwrap_or_default();
    match (noun, arg.get_id().as_str()) {
        (Some("task"), "task" | "tasks") => Some(Kind::Task(steer::usual(verb))),
        (Some("task"), "parent") => Some(Kind::Task("")),
        (Some("schedule"), "schedule") if verb != "create" => Some(Kind::Schedule),
        (Some("task" | "biz" | "schedule" | "stats"), "business") | (Some("biz"), "name" | "businesses") => {
            Some(Kind::Business {
                archived: verb == "unarchive",
            })
        }
        (Some("task" | "biz" | "schedule"), "limits") | (Some("limit"), "name") => Some(Kind::Limit),
        (Some("alert"), "name") if verb != "create" => Some(Kind::Alert),
        (Some("alert"), "business") => Some(Kind::Business { archived: false }),
        (Some("task" | "schedule"), "publish") | (Some("dataset"), "name") => Some(Kind::Dataset),
        (Some("task" | "node"), "node") | (Some("node"), "name") => Some(Kind::Node(match verb {
            "drain" => "serving",
            "undrain" => "drain",
            _ => "",
        })),
        (Some("ctx"), "name") | (_, "context") => Some(Kind::Context),
        (Some("job"), "name") if ["rm", "show"].contains(&verb) => Some(Kind::Begun),
        (Some("job"), "task" | "tasks") => Some(Kind::Begun),
        (Some("job"), "name") => Some(Kind::Running),
        (Some("run"), "resume") => Some(Kind::Begun),
        (Some("help"), "words") => Some(Kind::Topic),
        _ => None,
    }
}

fn takes_at_file(arg: &Arg) -> bool {
    arg.get_value_names()
        .is_some_and(|names| names.iter().any(|name| name.contains("@FILE")))
}

/// True if clap assigns the first word after `--` to this argument: in `windrow try` the URL is the first positional
/// argument.
fn begins_command(path: &[String], arg: &Arg) -> bool {
    path.get(1).is_some_and(|verb| verb == "try") && arg.get_id() == "url"
}

/// Finder of candidates for one command line.
#[derive(Clone)]
struct Asker {
    line: Vec<OsString>,
    shell: fn() -> Shell,
}

/// Flags that select the node or the job directory of a line.
#[derive(Parser)]
struct Line {
    #[command(flatten)]
    remote: Remote,
    /// State directory of a job of `windrow run`.
    #[arg(long)]
    state: Option<PathBuf>,
}

impl Asker {
    /// Returns candidates for the first word of a handler's command, if the cursor is there.
    fn programs(&self, word: &OsStr) -> Vec<CompletionCandidate> {
        // The first `--` belongs to the completion request.
        if self.line.iter().filter(|word| *word == "--").count() < 2 {
            return Vec::new();
        }
        files::program(word, (self.shell)().var("PATH"))
    }

    fn candidates(&self, kind: Kind, word: &OsStr) -> Vec<CompletionCandidate> {
        let (Some(word), Ok(line)) = (word.to_str(), Line::try_parse_from(reach_flags(&self.line))) else {
            return Vec::new();
        };
        let found = suggestions::find(kind, word, &line, &(self.shell)());
        let fitting = found.into_iter().filter(|found| found.value.starts_with(word));
        fitting
            .map(|Suggestion { value, help }| CompletionCandidate::new(value).help(Some(help.into())))
            .collect()
    }
}

/// Returns the program's name and the line's `REACH_FLAGS` with their values.
fn reach_flags(line: &[OsString]) -> Vec<OsString> {
    let mut flags = vec![OsString::from("windrow")];
    let mut words = line.iter().skip_while(|word| *word != "--").skip(1).peekable();
    while let Some(word) = words.next() {
        let text = word.to_str().unwrap_or_default();
        let is_whole = REACH_FLAGS
            .iter()
            .any(|flag| text.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=')));
        if is_whole {
            flags.push(word.clone());
        } else if REACH_FLAGS.contains(&text)
            && let Some(value) = words.next_if(|value| !value.is_empty())
        {
            flags.extend([word.clone(), value.clone()]);
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_a_file_is_completed_with_files() {
        fn all(command: &Command) -> Vec<Arg> {
            let below = command.get_subcommands().flat_map(all);
            command.get_arguments().cloned().chain(below).collect()
        }
        let is_file = |arg: &Arg| {
            arg.get_value_names()
                .is_some_and(|names| names.iter().any(|name| matches!(name.as_str(), "FILE" | "DIR")))
        };
        let mut command = Cli::command();
        command.build();
        let files: Vec<Arg> = all(&command).into_iter().filter(is_file).collect();
        assert!(files.len() > 10, "{}", files.len());
        for arg in files {
            assert_ne!(arg.get_value_hint(), clap::ValueHint::Unknown, "{}", arg.get_id());
        }
    }

    #[test]
    fn the_node_is_the_one_that_the_line_is_about() {
        let line = [
            "windrow",
            "--",
            "windrow",
            "task",
            "show",
            "--server",
            "http://n1",
            "--time=utc",
            "--context=a",
            "t",
        ];
        let line: Vec<OsString> = line.iter().map(OsString::from).collect();
        assert_eq!(
            reach_flags(&line),
            ["windrow", "--server", "http://n1", "--context=a"]
        );
        let unfinished: Vec<OsString> = ["x", "--", "windrow", "--context", ""]
            .iter()
            .map(OsString::from)
            .collect();
        assert_eq!(reach_flags(&unfinished), ["windrow"]);
    }

    #[test]
    fn every_shell_has_its_script() {
        for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
            assert!(
                script(shell).is_some_and(|script| script.contains(VARIABLE)),
                "{shell}"
            );
        }
        assert_eq!(script("dos"), None);
    }

    #[test]
    fn arguments_are_known_by_noun_and_name() {
        let of = |path: &[&str], id: &'static str| {
            let path: Vec<String> = path.iter().map(|word| (*word).to_owned()).collect();
            kind(&path, &Arg::new(id))
        };
        let business = |archived| Some(Kind::Business { archived });
        assert_eq!(of(&["windrow", "task", "show"], "task"), Some(Kind::Task("")));
        assert_eq!(
            of(&["windrow", "task", "start"], "tasks"),
            Some(Kind::Task("created,stopped"))
        );
        assert_eq!(of(&["windrow", "task", "list"], "business"), business(false));
        assert_eq!(of(&["windrow", "biz", "unarchive"], "name"), business(true));
        assert_eq!(
            of(&["windrow", "schedule", "pause"], "schedule"),
            Some(Kind::Schedule)
        );
        assert_eq!(
            of(&["windrow", "schedule", "create"], "schedule"),
            None,
            "it is a new name"
        );
        assert_eq!(
            of(&["windrow", "schedule", "create"], "business"),
            business(false)
        );
        assert_eq!(of(&["windrow", "ctx", "use"], "name"), Some(Kind::Context));
        assert_eq!(
            of(&["windrow", "node", "drain"], "node"),
            Some(Kind::Node("serving"))
        );
        assert_eq!(of(&["windrow", "api"], "context"), Some(Kind::Context));
        assert_eq!(of(&["windrow", "job", "stop"], "name"), Some(Kind::Running));
        assert_eq!(of(&["windrow", "job", "rm"], "name"), Some(Kind::Begun));
        assert_eq!(of(&["windrow", "run"], "resume"), Some(Kind::Begun));
        assert_eq!(of(&["windrow", "run"], "name"), None);
    }
}
