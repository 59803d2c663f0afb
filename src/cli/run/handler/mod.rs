//! Conversion of the command line's handler flags to the input of `node::handlers`.

pub(crate) mod each;
pub(in crate::run) mod identity;
pub(in crate::run) mod of_run;
pub(crate) mod request;
mod shell_syntax;

use std::ffi::OsString;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::flags::HttpArgs;
use windrow_core::business::secrets::unmarked;
use windrow_core::template::unfilled;
use windrow_node::handlers::HandlerChoice;

/// Label in which a job records the handler it was started with.
pub(in crate::run) const HANDLER: &str = "handler";

/// Returns the handler for a URL or a command. Clap ensures that one of them is given.
///
/// # Errors
/// Fails if a header or the file of secrets can't be used.
pub(crate) fn wanted<'a>(
    url: Option<&'a str>,
    http: &HttpArgs,
    batch: NonZeroU32,
    worker: (Vec<OsString>, NonZeroU32),
) -> Result<HandlerChoice<'a>, Fault> {
    let Some(url) = url else {
        check_unused(http)?;
        let (argv, workers) = worker;
        check_program(&argv)?;
        return Ok(HandlerChoice::Worker { argv, workers });
    };
    if let Some(name) = unfilled(url) {
        let because = format!(
            "{name} in --url would be sent literally: --url calls one address, with the items in the \
                body"
        );
        let hint = format!(
            "use one request per item: --request 'POST {url}'; write literal braces as %7B and \
                %7D"
        );
        return Err(Fault::new(Exit::Usage, "can't use the handler", because).hint(hint));
    }
    check_secure(http, url)?;
    let headers = http
        .headers
        .iter()
        .map(|text| header(text))
        .collect::<Result<_, _>>()?;
    let secrets = match &http.secret_file {
        Some(path) => secrets(path)?,
        None => Vec::new(),
    };
    Ok(HandlerChoice::Url {
        url,
        headers,
        secrets,
        batch,
        limits_from: http.limits_from,
    })
}

/// Checks that the first word after `--` is a program: one of our flags there would be looked up in `PATH`.
pub(in crate::run) fn check_program(words: &[OsString]) -> Result<(), Fault> {
    let flag = words
        .first()
        .and_then(|word| word.to_str())
        .filter(|word| word.starts_with('-'));
    let Some(flag) = flag else { return Ok(()) };
    let because = format!("{flag} is in the program's place, directly after --");
    let hint = "put windrow's flags before --; for a shell text use: --shell --each 'wc -c \"$ROW_path\"'";
    Err(Fault::new(Exit::Usage, "can't use the handler", because).hint(hint))
}

/// Refuses HTTP flags without a URL: a user who gives a secret would believe that calls are signed.
pub(in crate::run) fn check_unused(http: &HttpArgs) -> Result<(), Fault> {
    let is_bare = http.headers.is_empty() && !http.insecure_skip_verify && http.limits_from.is_none();
    if is_bare && http.files().next().is_none() {
        return Ok(());
    }
    let because = "--header, --secret-file, --handler-ca-file, --client-cert, --insecure-skip-verify and \
                   --limits-from apply to URLs";
    Err(Fault::new(Exit::Usage, "no URL", because).hint("use --url URL, or omit them"))
}

/// Refuses a client certificate for a URL without TLS: a user who gives one would believe that it is presented.
pub(in crate::run) fn check_secure(http: &HttpArgs, url: &str) -> Result<(), Fault> {
    if http.client_cert.is_none() || !url.starts_with("http:") {
        return Ok(());
    }
    let because = "--client-cert needs TLS, and the URL begins with http://";
    Err(Fault::new(Exit::Usage, "can't present the certificate", because)
        .hint("https://…, or omit --client-cert"))
}

pub(in crate::run) fn header(text: &str) -> Result<(String, String), Fault> {
    let parts = text
        .split_once(':')
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    parts.ok_or_else(|| {
        // Don't print the header: it may be a secret.
        Fault::new(Exit::Usage, "invalid --header", "it has no colon")
            .hint("--header 'authorization: Bearer …'")
    })
}

fn secrets(path: &Path) -> Result<Vec<String>, Fault> {
    let what = format!("can't use {} as --secret-file", path.display());
    let text = fs::read_to_string(path).map_err(|error| {
        Fault::new(Exit::Rejected, what.clone(), error.to_string()).hint("check the path")
    })?;
    let secrets: Vec<String> = unmarked(&text)
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect();
    if secrets.is_empty() {
        return Err(Fault::new(Exit::Rejected, what, "it is empty").hint("write one secret whsec_… per line"));
    }
    Ok(secrets)
}
