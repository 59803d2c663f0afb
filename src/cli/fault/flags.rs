//! Mapping from request members to flags: users who typed flags get messages about flags.

use std::sync::OnceLock;

use clap::Command;

/// Request members whose flag has a different name, or an empty one if they have no flag.
const FLAGS: [(&str, &str); 26] = [
    ("business", ""),
    ("data", "--key-column"),
    ("defaults/batch", "--batch"),
    ("defaults/concurrency", "--concurrency"),
    ("defaults/rate", "--rate"),
    ("defaults/timeout", "--call-timeout"),
    ("defaults", "--default"),
    ("filter/codes", "--code"),
    ("filter/indexes", "--indexes"),
    ("filter/unconfirmed", "--unconfirmed"),
    ("headers", "--header"),
    ("hooks", "--hook"),
    ("indexes", "--items"),
    ("labels", "--label"),
    ("limits/concurrency", "--limit-concurrency"),
    ("limits/named", "--limit"),
    ("limits/rate", "--limit-rate"),
    ("limits", "--limit"),
    ("metering/cost", "--cost"),
    ("metering/cost_from", "--cost-from"),
    ("metering/limits", "--limit"),
    ("metering/price", "--price"),
    ("metering", "--limit"),
    ("source/items", "--items"),
    ("source/total", "--total"),
    ("timeout", "--call-timeout"),
];

/// Builder of the command line, set at startup. This module can't import it, since commands depend on faults.
static COMMAND_LINE: OnceLock<fn() -> Command> = OnceLock::new();

/// Returns the flag of a request member, with the key if the flag takes several. `None` if there is no such flag.
pub(super) fn flag(pointer: &str) -> Option<String> {
    let pointer = pointer.trim_start_matches('/').replace("retry/", "");
    // A schedule's task has the flags of a task.
    let pointer = pointer.strip_prefix("task/").unwrap_or(&pointer);
    let rest = |member: &str| {
        let rest = pointer.strip_prefix(member)?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_start_matches('/').replace('/', "."))
    };
    let of_member = |(member, flag): &(&str, &str)| Some(((*flag).to_owned(), rest(member)?));
    let known = FLAGS.iter().find_map(of_member);
    let same = || {
        let name = pointer.split('/').next()?;
        let long = name.replace('_', "-");
        let is_known = COMMAND_LINE
            .get()
            .is_some_and(|command| is_flag(&command(), &long));
        is_known.then_some((format!("--{long}"), rest(name)?))
    };
    let (flag, key) = known.or_else(same).filter(|(flag, _)| !flag.is_empty())?;
    let is_number = key.bytes().all(|byte| byte.is_ascii_digit());
    Some(if is_number { flag } else { format!("{flag} {key}") })
}

/// Sets the builder of the command line, so that faults name the flag of a refused request member.
pub(crate) fn know_command_line(command: fn() -> Command) {
    COMMAND_LINE.get_or_init(|| command);
}

/// True if any command has this long flag.
fn is_flag(command: &Command, long: &str) -> bool {
    command.get_arguments().any(|one| one.get_long() == Some(long))
        || command.get_subcommands().any(|verb| is_flag(verb, long))
}

/// Replaces member names in a text with their flags.
pub(crate) fn as_flags(text: &str) -> String {
    text.replace("`again`", "--again").replace("`cost`", "--cost")
}
