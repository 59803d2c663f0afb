//! Introduction of `/docs`: first calls that can be copied as they are, with the address from the request and, if the
//! reader may know it, the path of this node's token file.
//!
//! The page is public. Local paths are shown only to a client on this machine that used one of the node's own names;
//! otherwise a foreign page could read them by binding its own name to the node's address (DNS rebinding).

use std::path::Path;

use axum::extract::Request;
use axum::http::uri::Authority;
use axum::http::{Uri, header};

use crate::http::answer::html::escaped;
use crate::http::front::App;
use crate::http::guard::access::is_local;
use crate::http::guard::visitor::Names;
use windrow_config::{AuthMode, Config};

/// Authentication shown in the first calls.
#[derive(Debug, PartialEq, Eq)]
enum Proof {
    /// No authentication: `auth.mode = "off"`.
    None,
    /// Token stored in this file.
    File(String),
    /// Token that the reader already has.
    Token,
}

/// Builds the introduction for readers who have nothing set up yet.
pub(super) fn begin(app: &App, request: &Request) -> String {
    let config = app.service.config();
    let names = Names::of(&config.http);
    let is_named = names
        .judge(request.method(), request.uri(), request.headers())
        .is_ok();
    let asked = authority(request).filter(|_| is_named);
    let advertised = app.service.cluster.parts.address.as_deref();
    let base = base(&config, asked.as_ref(), advertised);
    let is_here = is_named && is_local(request) && !config.auth.always_token;
    let file = app.front.token_file().filter(|_| is_here);
    text(&base, &proof(&config, file))
}

/// Returns the host and port named in the request, `None` if they are missing or contain user information.
fn authority(request: &Request) -> Option<Authority> {
    let host = request.headers().get(header::HOST);
    let host = host.and_then(|host| host.to_str().ok()?.parse().ok());
    let asked: Option<Authority> = host.or_else(|| request.uri().authority().cloned());
    asked.filter(|asked| !asked.as_str().contains('@'))
}

/// Returns the node's base URL as the client reaches it, without a trailing slash.
fn base(config: &Config, asked: Option<&Authority>, advertised: Option<&str>) -> String {
    let public = config
        .http
        .public_url
        .as_deref()
        .map(|url| url.trim_end_matches('/'));
    let is_public = |url: &&str| {
        let url: Option<Uri> = url.parse().ok();
        url.as_ref().and_then(Uri::host) == asked.map(Authority::host)
    };
    // A proxy in front may use TLS where the node doesn't.
    if let Some(public) = public.filter(is_public) {
        return public.to_owned();
    }
    let scheme = config.http.tls_cert_file.as_ref().map_or("http", |_| "https");
    let known = asked.map(|asked| format!("{scheme}://{asked}"));
    let known = known.or_else(|| public.or(advertised).map(str::to_owned));
    known.unwrap_or_else(|| format!("{scheme}://{}", config.http.listen))
}

fn proof(config: &Config, file: Option<&Path>) -> Proof {
    match (config.auth.mode, file.and_then(Path::to_str)) {
        (AuthMode::Off, _) => Proof::None,
        (_, Some(file)) => Proof::File(quoted(file)),
        (_, None) => Proof::Token,
    }
}

/// Quotes a path as one shell word.
fn quoted(path: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+".contains(letter);
    if path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', r"'\''"))
    }
}

fn text(base: &str, proof: &Proof) -> String {
    let told = match proof {
        Proof::None => "<p>This node requires no tokens (<code>auth.mode = \"off\"</code>).</p>",
        Proof::File(_) | Proof::Token => {
            "<p>Every call except the public ones needs a token. On its first start a node writes an \
             administrator's token to a file and prints its path (<code>auth.bootstrap_token_file</code>). \
             Use that token to create others: <code>windrow token create --name me --role \
             operator</code>.</p>"
        }
    };
    let (first, curl) = match proof {
        Proof::None => (String::new(), "curl"),
        Proof::File(file) => (
            format!("TOKEN=$(cat {file})\n"),
            r#"curl -H "Authorization: Bearer $TOKEN""#,
        ),
        Proof::Token => (
            "TOKEN=wrk_…\n".to_owned(),
            r#"curl -H "Authorization: Bearer $TOKEN""#,
        ),
    };
    let calls = format!(
        r#"{first}{curl} {base}/v1/tasks
{curl} --json '{{"name":"example","url":"http://127.0.0.1:9000/"}}' '{base}/v1/businesses?check=skip'
{curl} --json '{{"business":"example","source":{{"type":"range","total":100}},"rate":"5/s","start":true}}' {base}/v1/tasks
{curl} '{base}/v1/tasks?business=example'"#
    );
    format!(
        r#"<h2 id="begin">First calls</h2>
{told}
<pre>{}</pre>
<p>A task belongs to a business, which must exist first: the second call registers one whose handler answers
at that URL (yours; <code>windrow init</code> writes one). Until the handler answers, the task waits.</p>
<p>The same as a document: <a href="/openapi.json">/openapi.json</a>. Times are RFC 3339. Lists come in
pages: pass <code>next_cursor</code> as <code>cursor</code> to get the next one. Errors are problem documents
with a <code>type</code>; see <a href="/problems">all of them</a>.</p>
"#,
        escaped(&calls)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_the_one_that_was_asked() {
        let mut config = Config::default();
        let asked: Authority = "n1.lan:7741".parse().expect("one");
        assert_eq!(base(&config, Some(&asked), None), "http://n1.lan:7741");
        assert_eq!(
            base(&config, None, Some("http://10.0.0.5:7700")),
            "http://10.0.0.5:7700"
        );
        assert_eq!(base(&config, None, None), "http://127.0.0.1:7700");
        config.http.tls_cert_file = Some("cert.pem".into());
        assert_eq!(base(&config, Some(&asked), None), "https://n1.lan:7741");
        config.http.public_url = Some("https://windrow.example.org/".to_owned());
        let public: Authority = "windrow.example.org".parse().expect("one");
        assert_eq!(base(&config, Some(&public), None), "https://windrow.example.org");
        assert_eq!(base(&config, Some(&asked), None), "https://n1.lan:7741");
        assert_eq!(base(&config, None, None), "https://windrow.example.org");
    }

    #[test]
    fn a_token_is_asked_for_only_where_one_is_needed_and_its_file_is_one_word() {
        let mut config = Config::default();
        assert_eq!(proof(&config, None), Proof::Token);
        let file = Path::new("/tmp/my node's/admin.token");
        let told = proof(&config, Some(file));
        assert_eq!(told, Proof::File(r"'/tmp/my node'\''s/admin.token'".to_owned()));
        config.auth.mode = AuthMode::Off;
        assert_eq!(proof(&config, Some(file)), Proof::None);
        assert!(!text("http://n1", &Proof::None).contains("TOKEN"));
    }
}
