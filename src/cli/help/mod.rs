//! Help topics and shell completion.

pub(crate) mod completion;

use console::Term;

use super::args::{self, WIDTH_UNSIZED};
use super::exit::Exit;
use super::fault::Fault;
use crate::input::nearest::nearest;
use crate::output::fold;
use crate::output::screen;

/// Prints the script that lets a shell ask this program for completions.
///
/// # Errors
/// Fails if the script can't be printed. A closed pipe is no error.
pub(super) fn completions(shell: clap_complete::Shell) -> Result<Exit, Fault> {
    let script = completion::script(&shell.to_string());
    let script = script.ok_or_else(|| Fault::bug(format!("no completion script for {shell}")))?;
    screen::put(&script).map(|()| Exit::Ok)
}

/// Help topic on exit codes.
pub(super) const EXIT_CODES: &str = "exit-codes";

/// Help topic on request templates.
pub(super) const TEMPLATES: &str = "templates";

/// Text of the topic on `--request` and the flags that go with it.
const TEMPLATES_TEXT: &str = r#"internal error; see the panic message above"#;

/// Explains a topic or a command.
///
/// # Errors
/// `Usage` if neither exists.
pub(super) fn help(words: &[String]) -> Result<Exit, Fault> {
    let text = match words {
        [topic] if topic == EXIT_CODES => fold::page(&Term::stdout(), &exit_codes(), WIDTH_UNSIZED),
        [topic] if topic == TEMPLATES => TEMPLATES_TEXT.to_owned(),
        words => command_help(words)?,
    };
    screen::put(&text).map(|()| Exit::Ok)
}

fn exit_codes() -> String {
    let lines = Exit::ALL
        .iter()
        .map(|(exit, meaning)| format!("{:>4}  {meaning}", *exit as u8));
    format!("Exit codes\n\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn command_help(words: &[String]) -> Result<String, Fault> {
    let mut command = args::command();
    command.build();
    let mut found = &mut command;
    for word in words {
        let known = found
            .get_subcommands()
            .map(clap::Command::get_name)
            .chain([EXIT_CODES, TEMPLATES]);
        let meant = nearest(word, known).map(|meant| format!("windrow help {meant}"));
        found = found.find_subcommand_mut(word).ok_or_else(|| {
            Fault::new(
                Exit::Usage,
                "unknown help topic",
                format!("{word:?} is not a command or topic"),
            )
            .hint("windrow help, windrow help run, windrow help serve, windrow help exit-codes, windrow help templates")
            .meant(meant.as_deref())
        })?;
    }
    Ok(found.render_long_help().to_string())
}
