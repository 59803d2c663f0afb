//! Help topics and shell completion.

pub(crate) mod completion;

use std::path::Path;

use console::Term;

use super::args::{self, WIDTH_UNSIZED};
use super::exit::Exit;
use super::fault::{Fault, of_file};
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

/// Writes a man page for each command, for packages.
///
/// # Errors
/// Fails if a page can't be written.
pub(super) fn man_pages(folder: &Path) -> Result<Exit, Fault> {
    let command = args::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).map_err(|error| {
        let what = format!("can't write man pages into {}", folder.display());
        Fault::new(Exit::Failed, what, of_file(&error)).hint("name a writable folder that exists")
    })?;
    Ok(Exit::Ok)
}

/// Help topic on exit codes.
pub(super) const EXIT_CODES: &str = "exit-codes";

/// Help topic on request templates.
pub(super) const TEMPLATES: &str = "templates";

/// Text of the topic on `--request` and the flags that go with it.
const TEMPLATES_TEXT: &str = r#"Templates: build a request from an item's data

  windrow run --csv orders.csv \
    --request 'POST https://api.example/v1/orders/{order_id}/ship' \
    --header 'authorization: Bearer {secret.vendor}' \
    --secret vendor=@vendor.token \
    --json '{"qty": {qty:number}, "note": {note}}'

Placeholders:
  {order_id}         a CSV column or JSON member
  {/a/b}             a nested member (JSON pointer)
  {index} {key}      item number; item key, the same for every attempt
  {attempt}          1, 2 …
  {param.x}          a task parameter
  {secret.x}         a secret: --secret x=@FILE
  {/key}             a column with one of these names
Conversions, because CSV values are text:
  {qty:number} {on:boolean} {tags:json} {n:text}

Encoding by position:
  path, query, form  percent-encoded
  header             unchanged; line breaks are rejected, in quotes also a quote
  cookie             unchanged; ; and other invalid characters are rejected
  JSON               a JSON value; inside quotes, part of the string
  XML                escaped (--body-file x.xml, or content-type names XML)
  plain text         unchanged (--body-file)
Not allowed in scheme, user, host or port, nor in a tag, comment or CDATA.
Bodies of other content types (CSV, HTML, multipart) can't hold placeholders.

Write literal braces as {{ and }}. In JSON outside quotes, a { before a blank,
a quote or } and every } are plain JSON.

An item that can't fill the template (a missing member, not a number, an empty
path segment or .., half of a surrogate pair) fails as TEMPLATE_VALUE without
a call; the other items continue."#;

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
