//! Topics and completions.

use clap::CommandFactory;

use super::args::Cli;
use super::exit::Exit;
use super::fault::Fault;
use super::screen;

/// Prints the completions of a shell.
///
/// # Errors
/// When standard output is closed.
pub(super) fn completions(shell: clap_complete::Shell) -> Result<Exit, Fault> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "windrow", &mut text);
    screen::print(&String::from_utf8_lossy(&text)).map(|()| Exit::Ok)
}

/// Explains a topic or a command.
///
/// # Errors
/// `Usage` when there is neither.
pub(super) fn help(words: &[String]) -> Result<Exit, Fault> {
    let text = match words {
        [topic] if topic == "exit-codes" => exit_codes(),
        words => command_help(words)?,
    };
    screen::print(&text).map(|()| Exit::Ok)
}

fn exit_codes() -> String {
    let lines = Exit::ALL.iter().map(|(exit, meaning)| format!("{:>4}  {meaning}", *exit as u8));
    format!("Exit codes\n\n{}", lines.collect::<Vec<_>>().join("\n"))
}

fn command_help(words: &[String]) -> Result<String, Fault> {
    let mut command = Cli::command();
    command.build();
    let mut found = &mut command;
    for word in words {
        found = found.find_subcommand_mut(word).ok_or_else(|| {
            Fault::new(
                Exit::Usage,
                "there is no such help",
                format!("{word:?} is neither a command nor a topic"),
            )
            .hint("windrow help, windrow help run, windrow help serve, windrow help exit-codes")
        })?;
    }
    Ok(found.render_long_help().to_string())
}
