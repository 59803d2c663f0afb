//! Implementation of `windrow api`: a raw API request with the context's server and token.

use std::io::{IsTerminal, Read};

use clap::Args;

use crate::exit::Exit;
use crate::fault::{Fault, Names};
use crate::link::{Form, Link, Remote};
use crate::output::table::clean;
use crate::shell::Shell;
use windrow_client::Request;

/// Examples of `windrow api`, for the help.
pub(crate) const EXAMPLES: &str = "Examples:
  windrow api GET /v1/tasks?limit=3
  windrow api POST /v1/tasks/t42/stop -d '{\"reason\":\"complaints\"}'
  windrow api POST /v1/businesses?check=skip -d @business.json
  windrow api PATCH /v1/tasks/t42 -H 'If-Match: \"7\"' -d '{\"rate\":\"100/s\"}'

The response body is printed unchanged (on a terminal without control characters), also that of an error; the exit code
tells which it is (windrow help exit-codes).";

/// Arguments of `windrow api`.
#[derive(Debug, Args)]
pub struct ApiArgs {
    /// HTTP method: GET, POST, PATCH, PUT or DELETE
    pub method: String,
    /// Path with its query, such as /v1/tasks?limit=3
    pub path: String,
    /// Request body: JSON, @FILE, or - for standard input
    #[arg(short, long, value_name = "JSON|@FILE|-")]
    pub data: Option<String>,
    /// Header to send, as 'name: value'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "HEADER")]
    pub headers: Vec<String>,
    /// Flags for the connection and the output.
    #[command(flatten)]
    pub remote: Remote,
}

/// Sends the request and prints the body of the answer.
///
/// # Errors
/// The node's refusal, after its body is printed; or the reason why it didn't answer.
pub(crate) async fn api(args: &ApiArgs, shell: &Shell) -> Result<Exit, Fault> {
    if matches!(args.remote.view.output, Form::Name | Form::Csv) {
        let hint = "omit -o; `windrow task list -o csv` and other lists print tables";
        return Err(Fault::no_form("responses are printed unchanged", hint));
    }
    let request = request(args)?;
    let link = Link::open(&args.remote, shell)?;
    let answer = link.client.send_raw(request).await?;
    match std::io::stdout().is_terminal() {
        true => link.put(harmless(&answer.body).as_bytes())?,
        false => link.put(&answer.body)?,
    };
    if !answer.body.is_empty() && !answer.body.ends_with(b"\n") {
        link.put(b"\n")?;
    }
    match answer.status {
        200..=299 => Ok(Exit::Ok),
        _ => Err(Fault::of_client(link.client.refusal(&answer), Names::Members)),
    }
}

/// Cleans a body for a terminal, so that untrusted text in it can't move the cursor or change colours. A pipe gets
/// the original.
fn harmless(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let lines: Vec<String> = text.split('\n').map(clean).collect();
    lines.join("\n")
}

fn request(args: &ApiArgs) -> Result<Request, Fault> {
    let wrong = |because: String| Fault::new(Exit::Usage, "can't send the request", because);
    let method = args.method.to_ascii_uppercase();
    let known = ["GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"];
    let known_method = known
        .contains(&method.as_str())
        .then(|| method.parse().ok())
        .flatten();
    let Some(method) = known_method else {
        let because = format!("{:?} is not a method", args.method);
        return Err(wrong(because).hint(known.join(", ")));
    };
    let request = Request::new(method, &args.path);
    let mut request = match &args.data {
        Some(data) => request.body("application/json", body(data)?),
        None => request,
    };
    for header in &args.headers {
        let Some((name, value)) = header.split_once(':') else {
            return Err(wrong(format!("{header:?} is not a header")).hint("-H 'name: value'"));
        };
        request = request.header(name.trim(), value.trim());
    }
    Ok(request)
}

/// Returns the bytes that `-d` stands for.
fn body(data: &str) -> Result<Vec<u8>, Fault> {
    let unread = |name: &str, error: std::io::Error| {
        let because = format!("{name}: {error}");
        Fault::new(Exit::Rejected, "can't read the body", because)
            .hint("-d '{…}', -d @FILE, or -d - for standard input")
    };
    match (data, data.strip_prefix('@')) {
        ("-", _) => {
            let mut bytes = Vec::new();
            let read = std::io::stdin().lock().read_to_end(&mut bytes);
            read.map(|_| bytes)
                .map_err(|error| unread("standard input", error))
        }
        (_, Some(file)) => std::fs::read(file).map_err(|error| unread(file, error)),
        (text, None) => Ok(text.as_bytes().to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_shown_no_control_characters() {
        let shown = harmless(b"{\"a\":\"\x1b[2J\xc2\x9b\x07\xe2\x80\xae\"}\r\n\tend\xff\n");
        assert_eq!(
            shown,
            "{\"a\":\"\u{FFFD}[2J\u{FFFD}\u{FFFD}\u{FFFD}\"}\u{FFFD}\n end\u{FFFD}\n"
        );
    }
}
