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
    let script = script.ok_or_else(|| Fault::bug(format!("{shell} has no script")))?;
    screen::put(&script).map(|()| Exit::Ok)
}

/// Help topic on exit codes.
pub(super) const EXIT_CODES: &str = "exit-codes";

/// Help topic on request templates.
pub(super) const TEMPLATES: &str = "templates";

/// Text of the topic on `--request` and the flags that go with it.
const TEMPLATES_TEXT: &str = r#"Templates: a request is made of an item's data

  windrow run --csv orders.csv \
    --request 'POST https://api.example/v1/orders/{order_id}/ship' \
    --header 'authorization: Bearer {secret.vendor}' \
    --secret vendor=@vendor.token \
    --json '{"qty": {qty:number}, "note": {note}}'

Placeholders:
  {order_id}         a column of the CSV, a member of the JSON
  {/a/b}             a member of a member (JSON pointer)
  {index} {key}      the item's number; its key, the same for each attempt
  {attempt}          1, 2 …
  {param.x}          a parameter of the task
  {secret.x}         a secret: --secret x=@FILE
  {/key}             a column that has the name of one of these
Conversions, for values of a CSV are texts:
  {qty:number} {on:boolean} {tags:json} {n:text}

Where they stand:
  path, query, form  percent-encoded
  header             as it is; line ends are refused, in quotes a quote too
  cookie             as it is; ; and what else no cookie may have are refused
  JSON               a JSON value; inside of quotes, a part of the string
  XML                escaped (--body-file x.xml, or content-type names XML)
  plain text         as it is (--body-file)
None may stand in scheme, user, host or port, nor in a tag, comment or CDATA.
A body of another content type (CSV, HTML, multipart) holds no values.

A brace is written twice, {{ and }}, but for JSON outside of quotes: there a {
that is followed by a blank, a quote or } is JSON's own, as is every }.

An item that can't fill them (a member is missing, no number, a path segment
that is empty or .., half of a surrogate pair) is failed unsent as
TEMPLATE_VALUE; the others go on."#;

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
                format!("{word:?} is neither a command nor a topic"),
            )
            .hint("windrow help, windrow help run, windrow help serve, windrow help exit-codes, windrow help templates")
            .meant(meant.as_deref())
        })?;
    }
    Ok(found.render_long_help().to_string())
}
