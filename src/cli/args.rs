//! The command line, as clap reads it: the commands. The flags of one command are in its own folder. Nothing here does
//! anything.

use clap::{CommandFactory, Parser, Subcommand};
use console::Term;

use super::local::{db, doctor, serve, trial, version};
use super::remote::{
    api, audit, biz, cluster, ctx, dataset, limit, node, openapi, schedule, statistics, token,
};
use super::run::args::RunArgs;
use super::task::log;
use super::{job, run, task};
use crate::input::flags::Colors;
use crate::local::serve::args::ServeArgs;
use crate::local::settings::args::ConfigArgs;
use crate::local::trial::args::TryArgs;
use windrow_config::process_env;

/// The width of help where nobody says how wide lines may be. Unit: terminal cells.
pub(crate) const WIDTH_UNSIZED: usize = 80;

/// Drives the numbered items of a task through a handler at exactly the rate it was told.
#[derive(Debug, Parser)]
#[command(
    name = "windrow",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Colours.
    #[command(flatten)]
    pub colors: Colors,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run one job in this process: items from a file, a pipe or a count, through a command or a URL
    #[command(after_help = run::args::EXAMPLES, override_usage = run::args::USAGE)]
    Run(Box<RunArgs>),
    /// Jobs of `windrow run` on this machine: look at them and steer them; without a verb it lists them
    #[command(after_help = job::args::EXAMPLES)]
    Job(Box<job::args::JobArgs>),
    /// Call a handler with chosen items and show its verdicts; nothing is stored
    #[command(after_help = trial::args::EXAMPLES, override_usage = trial::args::USAGE)]
    Try(Box<TryArgs>),
    /// Run a node: tasks of registered businesses, steered over HTTP
    #[command(after_help = serve::args::EXAMPLES)]
    Serve(ServeArgs),
    /// List and steer tasks; without a verb it lists them
    Task(Box<task::args::TaskArgs>),
    /// Businesses: who does the work; without a verb it lists them
    Biz(Box<biz::BizArgs>),
    /// Schedules: work that recurs; without a verb it lists them
    Schedule(Box<schedule::args::ScheduleArgs>),
    /// Limits that businesses and tasks share; without a verb it lists them
    Limit(Box<limit::LimitArgs>),
    /// Datasets: what finished tasks published, a generation after another; without a verb it lists them
    #[command(after_help = dataset::args::EXAMPLES)]
    Dataset(Box<dataset::args::DatasetArgs>),
    /// Nodes; without a verb it lists them
    Node(Box<node::NodeArgs>),
    /// All nodes together; without a verb their status is shown
    Cluster(Box<cluster::ClusterArgs>),
    /// Tokens: who may call; without a verb it lists them
    Token(Box<token::TokenArgs>),
    /// Search the data log of all tasks, or follow it
    #[command(after_help = log::EXAMPLES)]
    Log(Box<log::LogArgs>),
    /// List changes: the object, the person and the reason of each, newest first
    #[command(after_help = audit::EXAMPLES)]
    Audit(Box<audit::AuditArgs>),
    /// What was done in each day: items and tasks, by day, business or task
    #[command(after_help = statistics::EXAMPLES)]
    Stats(Box<statistics::StatsArgs>),
    /// Look at everything between here and the handlers, and say what is wrong
    #[command(after_help = doctor::EXAMPLES)]
    Doctor(Box<doctor::DoctorArgs>),
    /// Look after the database of a state directory on this machine: status, migrate, backup, restore, check
    #[command(after_help = db::args::EXAMPLES)]
    Db(db::args::DbArgs),
    /// Contexts: which server is asked, and with which token; without a verb it lists them
    Ctx(ctx::CtxArgs),
    /// Call the API as it is, with the context's server and token
    #[command(after_help = api::EXAMPLES)]
    Api(Box<api::ApiArgs>),
    /// Print the API's description (OpenAPI 3.1) of a node
    Openapi(openapi::OpenapiArgs),
    /// Run everything in one process, with a sample business and a task of it: for a first look, and to develop handlers
    #[command(after_help = crate::local::dev::EXAMPLES)]
    Dev(crate::local::dev::DevArgs),
    /// Write a small handler in a language of your choice
    #[command(after_help = crate::local::init::EXAMPLES)]
    Init(crate::local::init::InitArgs),
    /// Check or print a configuration
    Config(ConfigArgs),
    /// Print the completions of a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the version; with --server or --context also the node's
    Version(version::VersionArgs),
    /// Explain a command, or a topic: exit-codes, templates
    Help {
        /// A command or a topic
        words: Vec<String>,
    },
}

/// The command line with help that is wrapped once: by the terminal that shows it.
pub fn command() -> clap::Command {
    let command = flowing(Cli::command());
    match is_sized() {
        true => command,
        false => command.term_width(WIDTH_UNSIZED),
    }
}

/// Whether a terminal or the environment says how wide lines may be.
fn is_sized() -> bool {
    let terminals = [Term::stdout(), Term::stderr()];
    let is_named = |(name, _): (String, String)| name == "COLUMNS";
    terminals.iter().any(|terminal| terminal.size_checked().is_some()) || process_env().any(is_named)
}

/// Verbs of every noun and what other programs call them.
const ALIASES: [(&str, &[&str]); 5] = [
    ("list", &["ls", "ps"]),
    ("show", &["get", "describe"]),
    ("delete", &["rm"]),
    ("remove", &["rm", "delete"]),
    ("revoke", &["rm", "delete"]),
];

/// The same noun with the aliases of its verbs, but for those that are verbs of their own.
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

/// Flags and verbs up to which `-h` shows every flag of a command.
const SHORT_MAX: usize = 30;
/// The longest help text of a flag or a verb that `-h` shows whole. Unit: bytes.
const CLAUSE_MAX: usize = 52;
/// Lines of examples in `-h`.
const EXAMPLE_LINES_MAX: usize = 5;
/// Flags that `-h` shows of commands with more.
const USUAL: &str = "csv ndjson lines glob total items url each request json header workers name resume restart \
    only-failed rate concurrency batch call-timeout max-attempts error-budget results-out failures-out output \
    state server context dry-run start follow business status label all code unconfirmed indexes cron \
    every at limit cmd";

/// The same command whose `-h` fits two screens: a flag has the first clause of its help there, and of many flags the usual
/// ones are shown; `--help` has all.
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

/// The first clause of a help text, and less of one that is longer than a line.
fn beginning(text: &str) -> &str {
    let cut = |text: &str, ends: [&str; 2]| ends.iter().filter_map(|end| text.find(end)).min();
    let first = cut(text, ["; ", ". "]).map_or(text, |end| &text[..end]);
    let end = cut(first, [": ", ", "]).filter(|_| first.len() > CLAUSE_MAX);
    end.map_or(first, |end| &first[..end])
}

/// The first paragraph, as many whole examples of it as `-h` has room for.
fn first_examples(text: &str) -> String {
    let examples = text.lines().take_while(|line| !line.is_empty());
    let mut lines: Vec<&str> = examples.take(EXAMPLE_LINES_MAX).collect();
    while lines.last().is_some_and(|line| line.ends_with('\\')) {
        lines.pop();
    }
    lines.join("\n")
}

/// Lines of a paragraph become one. What is indented, a heading or an empty line stays as it is.
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
                    "{}: {word} is no key",
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
        assert!(help.contains("is called over HTTP as any other"), "{help}");
    }
}
