//! Comparison of a command's handler with the one that its job was started with. A job is identified by its items, so
//! a user who fixes the handler resumes with another one, and is told so.

use xxhash_rust::xxh3::Xxh3Default;

use super::HANDLER;
use crate::run::args::RunArgs;
use crate::run::kept::only_failed::Net;
use windrow_engine::ports::tasks::store::TaskView;

/// Returns the flag that names the handler and a hash of its definition: `--url 9a0364b9e99bb480`.
pub(in crate::run) fn of(args: &RunArgs) -> String {
    let mut hash = Xxh3Default::new();
    let mut add = |text: &[u8]| {
        hash.update(&text.len().to_le_bytes());
        hash.update(text);
    };
    let request = &args.request;
    let named = [
        ("--url", &args.url),
        ("--request", &request.request),
        ("--each", &args.each.each),
    ];
    let flag = named.iter().find(|(_, text)| text.is_some());
    let texts = named.iter().filter_map(|(_, text)| text.as_ref());
    let body = request.json.iter().chain(&request.form);
    texts.chain(body).for_each(|text| add(text.as_bytes()));
    for word in &args.worker {
        add(word.as_encoded_bytes());
    }
    format!("{} {:016x}", flag.map_or("--", |(flag, _)| flag), hash.digest())
}

/// Returns the note for a job that is resumed with another handler.
pub(in crate::run) fn note(task: &TaskView, args: &RunArgs) -> Option<String> {
    let before = before(task, None, args)?;
    let id = task.id;
    Some(format!(
        "{id} was started with another handler ({before}); this one processes the rest"
    ))
}

/// True if a job was started with another handler than this command's, which hasn't redone any of it either.
pub(in crate::run) fn is_another(task: &TaskView, net: Option<&Net>, args: &RunArgs) -> bool {
    before(task, net, args).is_some()
}

/// Returns the clause that a finished job had another handler, or an empty text.
pub(in crate::run) fn aside(task: &TaskView, net: Option<&Net>, args: &RunArgs) -> String {
    before(task, net, args).map_or_else(String::new, |before| {
        format!(", with another handler than this command's ({before})")
    })
}

/// Returns the flag of the job's first handler if this command has another, `None` for jobs that didn't record it.
/// Failures are usually fixed with another handler: one that redid them counts as the job's own from then on.
fn before<'a>(task: &'a TaskView, net: Option<&Net>, args: &RunArgs) -> Option<&'a str> {
    let kept = task.spec.labels.get(HANDLER).filter(|_| has_handler(args))?;
    let named = kept.split(' ').next().unwrap_or_default();
    let mended = net.map_or(&[][..], |net| net.handlers.as_slice());
    let own = of(args);
    (*kept != own && !mended.contains(&own)).then_some(match named {
        "--" => "a command after --",
        flag => flag,
    })
}

/// True if a command names a handler.
pub(in crate::run) fn has_handler(args: &RunArgs) -> bool {
    let handler = [&args.url, &args.each.each, &args.request.request];
    !args.worker.is_empty() || handler.iter().any(|handler| handler.is_some())
}
