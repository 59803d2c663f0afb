//! Top-level command line as clap parses it. The flags of each command are in the command's own folder. This module
//! executes nothing.

use clap::{CommandFactory, Parser, Subcommand};
use console::Term;

use super::local::{db, doctor, serve, trial, version};
use super::remote::{
    alert, api, audit, biz, cluster, ctx, dataset, files, limit, node, openapi, schedule, statistics, token,
};
use super::run::args::RunArgs;
use super::task::log;
use super::{job, run, task};
use crate::input::flags::Colors;
use crate::local::serve::args::ServeArgs;
use crate::local::settings::args::ConfigArgs;
use crate::local::trial::args::TryArgs;
use windrow_config::process_env;

/// Width of help texts if neither a terminal nor the environment sets one. Unit: terminal cells.
pub(crate) const WIDTH_UNSIZED: usize = 80;

/// Call any API or program once per row at exactly the rate you set. Stop it, crash it, resume it: nothing is lost
#[derive(Debug, Parser)]
#[command(
    name = "windrow",
    version = version::FULL,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// Subcommand to execute, with its flags.
    #[command(subcommand)]
    pub command: Command,
    /// Flags that switch colours on or off.
    #[command(flatten)]
    pub colors: Colors,
}

/// Commands of the program, one variant each.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job: call a command or URL for each row; in this process, over a file, a pipe or a count
    #[command(after_help = run::args::EXAMPLES, override_usage = run::args::USAGE)]
    Run(Box<RunArgs>),
    /// Inspect and control jobs of `windrow run` on this machine; lists them by default
    #[command(after_help = job::args::EXAMPLES)]
    Job(Box<job::args::JobArgs>),
    /// Call a handler with a few items and show the outcomes; stores nothing
    #[command(after_help = trial::args::EXAMPLES, override_usage = trial::args::USAGE)]
    Try(Box<TryArgs>),
    /// Run a node that executes tasks of businesses; controlled over HTTP
    #[command(after_help = serve::args::EXAMPLES)]
    Serve(ServeArgs),
    /// Create, inspect and control tasks; lists them by default
    Task(Box<task::args::TaskArgs>),
    /// Manage businesses, the handlers that do the work; lists them by default
    Biz(Box<biz::BizArgs>),
    /// Manage schedules for recurring tasks; lists them by default
    Schedule(Box<schedule::args::ScheduleArgs>),
    /// Manage limits shared by businesses and tasks; lists them by default
    Limit(Box<limit::LimitArgs>),
    /// Manage alerts, which tell people of events; lists them by default
    Alert(Box<alert::AlertArgs>),
    /// Manage datasets published by finished tasks, in generations; lists them by default
    #[command(after_help = dataset::args::EXAMPLES)]
    Dataset(Box<dataset::args::DatasetArgs>),
    /// Inspect, drain and configure nodes; lists them by default
    Node(Box<node::NodeArgs>),
    /// Show the status of the cluster and its nodes
    Cluster(Box<cluster::ClusterArgs>),
    /// Manage API tokens, which grant access to a node; lists them by default
    Token(Box<token::TokenArgs>),
    /// Bring a node to the state that files describe: create, change and, with --prune, remove objects
    #[command(after_help = files::APPLY_EXAMPLES)]
    Apply(Box<files::ApplyArgs>),
    /// Write the objects of a node as a file for `windrow apply`
    #[command(after_help = files::EXPORT_EXAMPLES)]
    Export(Box<files::ExportArgs>),
    /// Search or follow the data log of all tasks
    #[command(after_help = log::EXAMPLES)]
    Log(Box<log::LogArgs>),
    /// List changes with their authors and reasons; newest first, each with its object
    #[command(after_help = audit::EXAMPLES)]
    Audit(Box<audit::AuditArgs>),
    /// Show daily totals of items and tasks, by day, business or task
    #[command(after_help = statistics::EXAMPLES)]
    Stats(Box<statistics::StatsArgs>),
    /// Diagnose the connection to the node and its handlers
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(Box<doctor::DoctorArgs>),
    /// Manage the database of a state directory on this machine: status, migrate, backup, restore, check
    #[command(after_help = db::args::EXAMPLES)]
    Db(db::args::DbArgs),
    /// Manage contexts, each a server address with a token; lists them by default
    Ctx(ctx::CtxArgs),
    /// Send an API request with the context's server and token
    #[command(after_help = api::EXAMPLES)]
    Api(Box<api::ApiArgs>),
    /// Print the OpenAPI 3.1 description of the API; with --server or --context, that of a node
    Openapi(openapi::OpenapiArgs),
    /// Run everything in one process with a sample business and task; to explore Windrow and to develop handlers
    #[command(after_help = crate::local::dev::EXAMPLES)]
    Dev(crate::local::dev::DevArgs),
    /// Write a small handler in a language of your choice
    #[command(after_help = crate::local::init::EXAMPLES)]
    Init(crate::local::init::InitArgs),
    /// Check or print a configuration
    Config(ConfigArgs),
    /// Print the completion script of a shell
    Completions {
        /// Shell to print the script for
        shell: clap_complete::Shell,
    },
    /// Write the man pages of all commands into a folder
    #[command(hide = true)]
    Man {
        /// Folder for the pages, which exists
        folder: std::path::PathBuf,
    },
    /// Print the version; with --server or --context, the node's version too
    Version(version::VersionArgs),
    /// Explain a command, or a topic: exit-codes, templates
    Help {
        /// Command or topic to explain
        words: Vec<String>,
    },
}

/// Returns the command line with help that only the terminal wraps, not the source.
pub fn command() -> clap::Command {
    let command = flowing(Cli::command());
    match is_sized() {
        true => command,
        false => command.term_width(WIDTH_UNSIZED),
    }
}

/// True if a terminal or the environment sets the line width.
fn is_sized() -> bool {
    let terminals = [Term::stdout(), Term::stderr()];
    let is_named = |(name, _): (String, String)| name == "COLUMNS";
    terminals.iter().any(|terminal| terminal.size_checked().is_some()) || process_env().any(is_named)
}

/// Verbs shared by the nouns, with the names that other programs give them.
const ALIASES: [(&str, &[&str]); 5] = [
    ("list", &["ls", "ps"]),
    ("show", &["get", "describe"]),
    ("delete", &["rm"]),
    ("remove", &["rm", "delete"]),
    ("revoke", &["rm", "delete"]),
];

/// Adds the aliases of its verbs to a noun, except names that are verbs of that noun already.
fn aliased(noun: clap::Command) -> clap::Command {
    ALIASES.iter().fold(noun, |noun, (verb, names)| {
        if !noun.get_subcommands().any(|known| known.get_name() == *verb) {
            return noun;
        }
        let free = names.iter().filter(|name| noun.find_subcommand(name).is_none());
        let free: Vec<&'static str> = free.copied().collect();
        noun.mut_subcommand(verb, |verb| verb.visible_aliases(free))
    })
}

fn flowing(command: clap::Command) -> clap::Command {
    let after = command.get_after_help().map(|text| unwrapped(&text.to_string()));
    let command = match after {
        Some(text) => command.after_help(first_examples(&text)).after_long_help(text),
        None => command,
    };
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let command = match beginning(&about) {
        first if first != about => command.about(first.to_owned()).long_about(about),
        _ => command,
    };
    shortened(aliased(command)).mut_subcommands(flowing)
}

/// Largest number of flags and verbs for which `-h` still shows every flag of a command.
const SHORT_MAX: usize = 30;
/// Longest help text of a flag or verb that `-h` shows in full. Unit: bytes.
const CLAUSE_MAX: usize = 52;
/// Largest number of example lines in `-h`.
const EXAMPLE_LINES_MAX: usize = 5;
/// Flags that `-h` shows for commands with more than `SHORT_MAX` of them.
const USUAL: &str = "csv ndjson lines glob total items url each request json header workers name resume restart \
    only-failed rate concurrency batch call-timeout max-attempts error-budget results-out failures-out output \
    state server context dry-run start follow business status label all code unconfirmed indexes cron \
    every at limit cmd";

/// Shortens a command's `-h` to two screens: each flag has only the first clause of its help, and a command with many
/// flags shows only the usual ones. `--help` shows everything.
fn shortened(command: clap::Command) -> clap::Command {
    let is_long = command.get_arguments().count() + command.get_subcommands().count() > SHORT_MAX;
    command.mut_args(|arg| {
        let is_usual = arg
            .get_long()
            .is_none_or(|long| USUAL.split_whitespace().any(|usual| usual == long));
        let arg = if is_long && !is_usual {
            arg.hide_short_help(true)
        } else {
            arg
        };
        let whole = arg.get_help().map(ToString::to_string).unwrap_or_default();
        match beginning(&whole) {
            first if first != whole => arg.help(first.to_owned()).long_help(whole),
            _ => arg,
        }
    })
}

/// Returns the first clause of a help text, cut further if it is longer than a line.
fn beginning(text: &str) -> &str {
    let cut = |text: &str, ends: [&str; 2]| ends.iter().filter_map(|end| text.find(end)).min();
    let first = cut(text, ["; ", ". "]).map_or(text, |end| &text[..end]);
    let end = cut(first, [": ", ", "]).filter(|_| first.len() > CLAUSE_MAX);
    end.map_or(first, |end| &first[..end])
}

/// Returns as many complete examples of the first paragraph as `-h` has room for.
fn first_examples(text: &str) -> String {
    let examples = text.lines().take_while(|line| !line.is_empty());
    let mut lines: Vec<&str> = examples.take(EXAMPLE_LINES_MAX).collect();
    while lines.last().is_some_and(|line| line.ends_with('\\')) {
        lines.pop();
    }
    lines.join("\n")
}

/// Joins the lines of each paragraph. Indented lines, headings and empty lines stay as they are.
fn unwrapped(text: &str) -> String {
    let mut flowed = String::with_capacity(text.len());
    let mut is_open = false;
    for line in text.lines() {
        let is_prose = !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
        if !flowed.is_empty() {
            flowed.push(if is_open && is_prose { ' ' } else { '\n' });
        }
        flowed.push_str(line);
        is_open = is_prose;
    }
    flowed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn verbs_of_other_programs_are_understood_on_every_noun() {
        let root = command();
        for (noun, verb) in [
            ("task", "delete"),
            ("schedule", "delete"),
            ("limit", "delete"),
            ("dataset", "delete"),
            ("token", "revoke"),
            ("ctx", "remove"),
            ("job", "rm"),
        ] {
            let noun = root.find_subcommand(noun).expect("a noun");
            let named = |word: &str| noun.find_subcommand(word).map(clap::Command::get_name);
            assert_eq!(
                (named("ls"), named("ps"), named("rm")),
                (Some("list"), Some("list"), Some(verb))
            );
        }
        for noun in ["task", "biz", "schedule", "limit", "node", "ctx", "job"] {
            let noun = root.find_subcommand(noun).expect("a noun");
            let named = |word: &str| noun.find_subcommand(word).map(clap::Command::get_name);
            assert_eq!((named("get"), named("describe")), (Some("show"), Some("show")));
        }
    }

    #[test]
    fn the_short_help_of_any_command_fits_60_lines() {
        let mut root = command().term_width(WIDTH_UNSIZED);
        root.build();
        let mut open = vec![(String::new(), &mut root)];
        let mut long = Vec::new();
        while let Some((path, command)) = open.pop() {
            let path = format!("{path} {}", command.get_name());
            let lines = command.render_help().to_string().lines().count();
            if lines > 60 {
                long.push(format!("{lines}{path}"));
            }
            open.extend(command.get_subcommands_mut().map(|verb| (path.clone(), verb)));
        }
        assert!(long.is_empty(), "{long:#?}");
    }

    #[test]
    fn keys_of_the_configuration_that_help_names_exist() {
        let known: Vec<String> = windrow_config::keys().into_iter().map(|key| key.name).collect();
        let is_section = |word: &str| known.iter().any(|key| key.split('.').next() == Some(word));
        let mut command = command();
        command.build();
        let mut open = vec![&mut command];
        while let Some(command) = open.pop() {
            let help = command.render_long_help().to_string();
            let words = help.split(|c: char| !c.is_ascii_alphanumeric() && !"_.-/".contains(c));
            let is_file = |word: &&str| [".txt", ".toml", ".py"].iter().any(|end| word.ends_with(end));
            for word in words
                .map(|word| word.trim_end_matches('.'))
                .filter(|word| !is_file(word))
            {
                let Some((section, _)) = word.split_once('.') else {
                    continue;
                };
                let exists = known.iter().any(|key| key == word);
                assert!(
                    exists || !is_section(section),
                    "{}: {word} is not a key",
                    command.get_name()
                );
            }
            open.extend(command.get_subcommands_mut());
        }
    }

    #[test]
    fn a_paragraph_is_one_line_and_examples_are_as_they_were() {
        let text = "Examples:\n  windrow dev\n  windrow run\n\nOne process: a node\nof its own.\nNo more.\n\nKeys:\n  a  b";
        let flowed = "Examples:\n  windrow dev\n  windrow run\n\nOne process: a node of its own. No more.\n\nKeys:\n  a  b";
        assert_eq!(unwrapped(text), flowed);
        let help = command()
            .find_subcommand_mut("dev")
            .expect("there")
            .render_long_help()
            .to_string();
        assert!(help.contains("called over HTTP like any other"), "{help}");
    }
}
