//! Topics and completions.

pub(crate) mod completion;

use console::Term;

use super::args;
use super::exit::Exit;
use super::fault::Fault;
use crate::input::misread::nearest;
use crate::output::fold;
use crate::output::screen;

/// Prints the script that lets a shell ask this program for completions.
///
/// # Errors
/// When they can't be printed; a closed pipe is no error.
pub(super) fn completions(shell: clap_complete::Shell) -> Result<Exit, Fault> {
    let script = completion::script(&shell.to_string());
    let script = script.ok_or_else(|| Fault::bug(format!("{shell} has no script")))?;
    screen::put(&script).map(|()| Exit::Ok)
}

/// The topic beside the commands.
pub(super) const EXIT_CODES: &str = "exit-codes";

/// Explains a topic or a command.
///
/// # Errors
/// `Usage` when there is neither.
pub(super) fn help(words: &[String]) -> Result<Exit, Fault> {
    let text = match words {
        [topic] if topic == EXIT_CODES => fold::to(&Term::stdout(), &exit_codes()),
        words => command_help(words)?,
    };
    screen::print(&text).map(|()| Exit::Ok)
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
            .chain([EXIT_CODES]);
        let meant = nearest(word, known).map(|meant| format!("windrow help {meant}"));
        found = found.find_subcommand_mut(word).ok_or_else(|| {
            Fault::new(
                Exit::Usage,
                "unknown help topic",
                format!("{word:?} is neither a command nor a topic"),
            )
            .hint("windrow help, windrow help run, windrow help serve, windrow help exit-codes")
            .meant(meant.as_deref())
        })?;
    }
    Ok(found.render_long_help().to_string())
}
