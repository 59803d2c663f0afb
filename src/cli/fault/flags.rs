//! Flags from which the members of a request are made: whoever typed flags is told of flags.

use std::sync::OnceLock;

use clap::Command;

/// Members of requests whose flag has another name than they, or that have none.
const FLAGS: [(&str, &str); 21] = [
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
    ("source/items", "--items"),
    ("source/total", "--total"),
    ("timeout", "--call-timeout"),
];

/// Makes the command line. It is set at the start, since all commands stand above their faults.
static COMMAND_LINE: OnceLock<fn() -> Command> = OnceLock::new();

/// The flag for a member of a request, with the key that is meant of several; none where there is none.
pub(super) fn flag(pointer: &str) -> Option<String> {
    let pointer = pointer.trim_start_matches('/').replace("retry/", "");
    // The task of a schedule is said with the flags of a task.
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

/// Says how the command line is made, so that a member of a request that was refused is named as its flag.
pub(crate) fn know_command_line(command: fn() -> Command) {
    COMMAND_LINE.get_or_init(|| command);
}

/// Whether some command has it.
fn is_flag(command: &Command, long: &str) -> bool {
    command.get_arguments().any(|one| one.get_long() == Some(long))
        || command.get_subcommands().any(|verb| is_flag(verb, long))
}

/// Members in a text as their flags.
pub(crate) fn as_flags(text: &str) -> String {
    text.replace("`again`", "--again")
}
