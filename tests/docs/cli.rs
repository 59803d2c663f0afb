//! `docs/cli.md` is made from what the program itself knows of its command line.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use clap::{Arg, Command, CommandFactory};
use windrow_cli::args::Cli;
use windrow_cli::exit::Exit;

use super::generated::{cell, check};

const HEAD: &str = "\
# Command line

<!-- Made from the code by tests/docs/cli.rs; write it anew with UPDATE_DOCS=1. -->

What each command takes is told by `windrow help COMMAND`, and by `--help` behind it. Standard output carries the
outcome only; progress, hints and questions go to standard error. Nobody is asked anything where there is no terminal.

A task is named `t42`, or `business/name`. Which node is asked: `--server`, else WINDROW_SERVER, else the current context
(`windrow ctx`), else http://127.0.0.1:7700. Completions:
`windrow completions bash > ~/.local/share/bash-completion/completions/windrow`, or for zsh, fish, elvish, powershell; they
know flags, and the tasks, businesses and nodes of the node.

Three flags limit time: `--call-timeout` one call of a handler, `--request-timeout` one request to the node, and `--timeout`
how long a command waits (`windrow task wait`).

Verbs have the names of other programs too: `ls` and `ps` list, `get` and `describe` show, `rm` deletes, removes or revokes.
`--json` is `-o json`, and flags of the server (`--server`, `--context` …) may stand before the command.
";

/// The heading of the flags that each command of a client takes, as `remote` names it.
const SHARED: [&str; 3] = ["Server", "Output", "Change"];

/// The command line as the program has it, complete with what clap adds.
pub(crate) fn program() -> Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// Its commands without those that clap adds of itself: of those called help, ours takes words.
fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    let is_ours = |inner: &&Command| {
        inner.get_name() != "help" || inner.get_arguments().any(|arg| arg.get_id() == "words")
    };
    command
        .get_subcommands()
        .filter(|inner| !inner.is_hide_set())
        .filter(is_ours)
}

fn about(command: &Command) -> String {
    let text = command.get_about().map(ToString::to_string).unwrap_or_default();
    assert!(!text.is_empty(), "{} says nothing of itself", command.get_name());
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Every long flag that some command takes.
pub(crate) fn flags_of_all(command: &Command) -> BTreeSet<String> {
    let own = command
        .get_arguments()
        .filter_map(Arg::get_long)
        .map(str::to_owned);
    own.chain(command.get_subcommands().flat_map(flags_of_all))
        .collect()
}

/// Its positional arguments, as they are typed.
fn operands(command: &Command) -> String {
    let one = |arg: &Arg| {
        let names = arg
            .get_value_names()
            .map(|names| names.iter().map(|name| name.to_string()).collect());
        let name = names
            .unwrap_or_else(|| vec![arg.get_id().to_string().to_uppercase()])
            .join(" ");
        let name = if arg.is_last_set() {
            format!("-- {name}")
        } else {
            name
        };
        if arg.is_required_set() {
            format!(" {name}")
        } else {
            format!(" [{name}]")
        }
    };
    command.get_positionals().map(one).collect()
}

fn tree(page: &mut String) {
    page.push_str("\n## Commands\n");
    let program = program();
    let mut alone = String::new();
    for command in shown(&program) {
        let name = command.get_name();
        if shown(command).next().is_none() {
            writeln!(
                alone,
                "| `windrow {name}{}` | {} |",
                cell(&operands(command)),
                cell(&about(command))
            )
            .unwrap();
            continue;
        }
        write!(
            page,
            "\n### windrow {name}\n\n{}.\n\n| verb | does |\n|---|---|\n",
            about(command)
        )
        .unwrap();
        for verb in shown(command) {
            writeln!(
                page,
                "| `windrow {name} {}{}` | {} |",
                verb.get_name(),
                cell(&operands(verb)),
                cell(&about(verb))
            )
            .unwrap();
        }
    }
    write!(page, "\n### The others\n\n| command | does |\n|---|---|\n{alone}").unwrap();
}

/// The flags that most of the verbs take which have any flag under that heading.
fn flags(page: &mut String) {
    let program = program();
    let verbs: Vec<&Command> = shown(&program).flat_map(shown).collect();
    let mut text = String::new();
    for heading in SHARED {
        let of = |verb: &&Command| under(verb, heading).next().is_some();
        let takers: Vec<&Command> = verbs.iter().copied().filter(of).collect();
        let Some(first) = takers.iter().max_by_key(|verb| under(verb, heading).count()) else {
            continue;
        };
        write!(text, "\n{heading}:\n\n| flag | means |\n|---|---|\n").unwrap();
        for arg in under(first, heading) {
            let takes =
                |verb: &&&Command| under(verb, heading).any(|other| other.get_long() == arg.get_long());
            if takers.iter().filter(takes).count() * 2 > takers.len() {
                text.push_str(&row(arg));
            }
        }
    }
    if !text.is_empty() {
        write!(page, "\n## Flags of every command that talks to a node\n{text}").unwrap();
    }
}

/// The flags of a command under a heading of its help.
fn under<'a>(command: &'a Command, heading: &'a str) -> impl Iterator<Item = &'a Arg> {
    let shown = |arg: &&Arg| !arg.is_hide_set() && arg.get_long().is_some();
    command
        .get_arguments()
        .filter(shown)
        .filter(move |arg| arg.get_help_heading() == Some(heading))
}

fn row(arg: &Arg) -> String {
    let short = arg
        .get_short()
        .map(|short| format!("-{short}, "))
        .unwrap_or_default();
    let long = arg.get_long().unwrap_or_default();
    let values = arg.get_possible_values();
    let value = match arg.get_value_names() {
        _ if !arg.get_action().takes_values() => String::new(),
        _ if !values.is_empty() => {
            format!(
                " {}",
                values
                    .iter()
                    .map(|value| value.get_name())
                    .collect::<Vec<_>>()
                    .join("/")
            )
        }
        names => format!(
            " {}",
            names
                .and_then(|names| names.first())
                .map_or("VALUE", |name| name.as_str())
        ),
    };
    let default = arg
        .get_default_values()
        .first()
        .map(|value| format!(" ({})", value.to_string_lossy()));
    let default = default
        .filter(|_| arg.get_action().takes_values())
        .unwrap_or_default();
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    assert!(!help.is_empty(), "--{long} says nothing of itself");
    format!("| `{short}--{long}{value}` | {}{default} |\n", cell(&help))
}

fn exit_codes(page: &mut String) {
    page.push_str("\n## Exit codes\n\nA contract with scripts, also told by `windrow help exit-codes`.\n");
    page.push_str("\n| code | means |\n|---|---|\n");
    for (exit, meaning) in Exit::ALL {
        writeln!(page, "| {} | {} |", exit as u8, cell(meaning)).unwrap();
    }
}

#[test]
fn generated_the_reference_of_the_command_line_is_what_the_program_takes() {
    let mut page = HEAD.to_owned();
    tree(&mut page);
    flags(&mut page);
    exit_codes(&mut page);
    check("docs/cli.md", &page);
}
