//! Flags and words of a handler, in the form in which they are typed.

use crate::link::word;
use std::ffi::OsStr;
use std::path::Path;

use crate::input::flags::HttpArgs;
use crate::run::args::ResultArgs;
use crate::run::args::RunArgs;
use crate::run::handler::request::RequestArgs;
use windrow_core::business::secrets::is_secret_header;

/// Placeholder for parts that aren't stored.
const LEFT_OUT: &str = "…";
const IN_COMMAND: &str = "part of its command";
/// Words before the secret in a header, which aren't secret themselves.
const SCHEMES: [&str; 6] = ["Bearer", "Basic", "Token", "ApiKey", "Api-Key", "GenieKey"];

/// Words of a handler, without possible secrets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    pub(super) words: Vec<String>,
    /// Parts for which … stands.
    pub(super) left_out: Vec<String>,
}

/// Returns the words of a command's handler, or `None` if they aren't text.
pub(super) fn of(args: &RunArgs) -> Option<Words> {
    let mut words = Words::default();
    words.path("--config", args.config.as_deref())?;
    words.address("--url", args.url.as_deref());
    if let Some(workers) = args.workers {
        words.flag("--workers", &workers.to_string());
    }
    words.http(&args.http)?;
    words.request(&args.request)?;
    words.results(&args.results)?;
    words.failures(args.failures_out.as_deref())?;
    let each = &args.each;
    words.switch("--shell", each.shell);
    words.switch(super::ALLOW_DASHES, each.allow_dashes);
    if !each.unavailable_exit.is_empty() {
        let codes: Vec<String> = each.unavailable_exit.iter().map(u8::to_string).collect();
        words.flag("--unavailable-exit", &codes.join(","));
    }
    let command: Option<Vec<&str>> = args.worker.iter().map(|word| word.to_str()).collect();
    let (text, command) = (each.each.as_deref(), command?);
    let is_shown = !text
        .into_iter()
        .chain(command.iter().copied())
        .any(is_secret_header);
    match text {
        Some("") => words.words.push("--each".to_owned()),
        Some(text) => words.flag("--each", if is_shown { text } else { LEFT_OUT }),
        None => {}
    }
    if !command.is_empty() {
        let shown = if is_shown { command } else { vec![LEFT_OUT] };
        words.words.push("--".to_owned());
        words.words.extend(shown.into_iter().map(str::to_owned));
    }
    if !is_shown {
        words.left_out.push(IN_COMMAND.to_owned());
    }
    Some(words)
}

impl Words {
    /// Adds a flag, with `=` if its value would be taken for a flag.
    fn flag(&mut self, flag: &str, value: &str) {
        if value.starts_with('-') {
            self.words.push(format!("{flag}={value}"));
        } else {
            self.words.extend([flag, value].map(str::to_owned));
        }
    }

    fn switch(&mut self, flag: &str, is_on: bool) {
        if is_on {
            self.words.push(flag.to_owned());
        }
    }

    fn path(&mut self, flag: &str, path: Option<&Path>) -> Option<()> {
        if let Some(path) = path {
            self.flag(flag, path.to_str()?);
        }
        Some(())
    }

    fn http(&mut self, http: &HttpArgs) -> Option<()> {
        for header in &http.headers {
            let (name, value) = header.split_once(':').unwrap_or((header, ""));
            let is_file = header.starts_with('@') || value.trim_start().starts_with('@');
            if is_file || !is_secret_header(name) || is_only_template(value) {
                self.flag("--header", header);
            } else {
                self.flag("--header", &format!("{name}: {LEFT_OUT}"));
                self.left_out.push(format!("the header {name}"));
            }
        }
        self.path("--secret-file", http.secret_file.as_deref())?;
        self.path("--handler-ca-file", http.handler_ca_file.as_deref())?;
        self.path("--client-cert", http.client_cert.as_deref())?;
        self.path("--client-key", http.client_key.as_deref())?;
        self.switch("--insecure-skip-verify", http.insecure_skip_verify);
        if let Some(from) = http.limits_from {
            self.flag("--limits-from", from.as_str());
        }
        Some(())
    }

    fn request(&mut self, request: &RequestArgs) -> Option<()> {
        self.address("--request", request.request.as_deref());
        self.text("--json", request.json.as_deref());
        for form in &request.form {
            self.text("--form", Some(form));
        }
        self.path("--body-file", request.body_file.as_deref())?;
        for secret in &request.secrets {
            self.flag("--secret", secret);
        }
        if let Some(pointer) = &request.result {
            self.flag("--result", pointer);
        }
        let codes = [
            ("--ok", &request.ok),
            ("--skip", &request.skip),
            ("--retry", &request.retry),
        ];
        for (flag, codes) in codes {
            if let Some(codes) = codes {
                self.flag(flag, &codes.to_string());
            }
        }
        Some(())
    }

    /// Adds the file of results as an absolute path. Standard output, or a start at a later index, applies to a
    /// single command and is left out.
    fn results(&mut self, results: &ResultArgs) -> Option<()> {
        let is_of_one = results.is_onto_stdout() || results.after.is_some();
        let Some(out) = results.out.as_ref().filter(|_| !is_of_one) else {
            return Some(());
        };
        let out = std::path::absolute(out).unwrap_or_else(|_| out.clone());
        self.path("--results-out", Some(&out))?;
        let flags = [
            ("--results-data", &results.data),
            ("--results-columns", &results.columns),
        ];
        for (flag, text) in flags {
            if let Some(text) = text {
                self.flag(flag, text);
            }
        }
        if let Some(guard) = &results.guard {
            self.flag("--csv-guard", &word(guard));
        }
        Some(())
    }

    fn failures(&mut self, out: Option<&Path>) -> Option<()> {
        let file = out.filter(|out| out.as_os_str() != "-");
        let file = file.map(|out| std::path::absolute(out).unwrap_or_else(|_| out.to_path_buf()));
        self.path("--failures-out", file.as_deref())
    }

    /// Adds a URL without possible secrets: credentials, and parameters with secret names.
    fn address(&mut self, flag: &str, text: Option<&str>) {
        let Some(text) = text else { return };
        let host = text.split_once("://").map(|(_, rest)| rest).unwrap_or_default();
        let host = host.split(['/', '?']).next().unwrap_or_default();
        let query = text.split_once('?').map(|(_, query)| query).unwrap_or_default();
        let is_shown = !host.contains('@') && !query.split('&').any(names_a_secret);
        if is_shown {
            self.flag(flag, text);
        } else {
            let shown = text.split(['?', '@']).next().unwrap_or_default();
            let shown = if host.contains('@') {
                LEFT_OUT.to_owned()
            } else {
                format!("{shown}?{LEFT_OUT}")
            };
            self.flag(flag, &shown);
            self.left_out.push(format!("part of {flag}"));
        }
    }

    /// Adds a body that is in a file or contains no word for a secret.
    fn text(&mut self, flag: &str, text: Option<&str>) {
        let Some(text) = text else { return };
        if text.starts_with('@') || !is_secret_header(&without_places(text)) {
            self.flag(flag, text);
        } else {
            self.flag(flag, LEFT_OUT);
            self.left_out.push(format!("part of {flag}"));
        }
    }
}

/// Returns the parts of a recorded handler that must be typed again, marked by ….
pub(super) fn lacking(args: &RunArgs) -> Vec<String> {
    let (request, each) = (&args.request, &args.each.each);
    let headers = args.http.headers.iter().filter_map(|header| {
        let (name, value) = header.split_once(':')?;
        (value.trim() == LEFT_OUT).then(|| format!("the header {name}"))
    });
    let texts = [
        ("--url", args.url.as_ref()),
        ("--request", request.request.as_ref()),
        ("--json", request.json.as_ref()),
    ];
    let forms = request.form.iter().map(|form| ("--form", form));
    let texts = texts.into_iter().filter_map(|(flag, text)| Some((flag, text?)));
    let texts = texts.chain(forms).filter(|(_, text)| text.contains(LEFT_OUT));
    let mut command = each
        .iter()
        .map(OsStr::new)
        .chain(args.worker.iter().map(|word| &**word));
    let command = command
        .any(|word| word == LEFT_OUT)
        .then(|| IN_COMMAND.to_owned());
    headers
        .chain(texts.map(|(flag, _)| format!("part of {flag}")))
        .chain(command)
        .collect()
}

/// Removes the placeholders of secrets from a text.
fn without_places(text: &str) -> String {
    let mut rest = text;
    let mut literal = String::new();
    while let Some((before, place)) = rest.split_once("{secret.") {
        literal.push_str(before);
        rest = place.split_once('}').map_or("", |(_, after)| after);
    }
    literal + rest
}

/// True if a header's value is a placeholder for a secret from a file, apart from the scheme before it.
fn is_only_template(value: &str) -> bool {
    let literal = without_places(value);
    let word = literal.trim();
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic());
    let is_scheme = word.is_empty() || SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
    literal.len() < value.len() && (is_scheme || word.strip_suffix('=').is_some_and(is_name))
}

/// True if a query parameter contains a secret. A placeholder doesn't count.
fn names_a_secret(pair: &str) -> bool {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    is_secret_header(name) && !value.starts_with('{')
}

/// True if the words of a handler name files or programs that may be relative to the directory in which they are
/// typed.
pub(super) fn has_paths(args: &RunArgs) -> bool {
    let is_here = |path: &Path| path.is_relative();
    let headers = args.http.headers.iter().any(|header| header.contains('@'));
    let files = args.request.files().any(is_here) || headers;
    let flags = args.config.iter().chain(args.http.files());
    let is_command = !args.worker.is_empty() || args.each.each.is_some();
    is_command || files || flags.map(|path| path.as_path()).any(is_here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> RunArgs {
        let own = ["run", "--total", "1"];
        RunArgs::read(own.iter().chain(words)).expect("a sound command line")
    }

    #[test]
    fn the_words_of_a_handler_are_read_back_as_they_were() {
        for words in [
            &["--", "python3", "-u", "handler.py", "a b"][..],
            &["--workers", "3", "--", "./worker", "-x"],
            &["--each", "convert {path} out/{name}", "--allow-dashes"],
            &["--each", "wc -c \"$ROW_path\"", "--shell"],
            &[
                "--results-out",
                "/d/out.csv",
                "--results-columns",
                "a,b",
                "--csv-guard",
                "off",
                "--",
                "true",
            ],
            &["--failures-out", "/d/bad.ndjson", "--", "true"],
            &["--each", "--", "gzip", "-k", "{file}"],
            &["--url", "https://a.example/x", "--header", "x-team: growth"],
            &[
                "--url",
                "https://a.example/x",
                "--secret-file",
                "s.txt",
                "--config",
                "c.toml",
            ],
            &[
                "--request",
                "POST https://a.example/v1/{id}?key={secret.k}",
                "--json",
                "{\"n\": {n:number}}",
                "--header",
                "authorization: @auth.txt",
                "--secret",
                "k=@k.txt",
                "--result",
                "/data/id",
                "--ok",
                "200-299,409",
                "--skip",
                "404",
                "--retry",
                "423",
            ],
            &[
                "--request",
                "PUT https://a.example/",
                "--form",
                "a={x}",
                "--form=-b={y}",
            ],
        ] {
            let typed = args(words);
            let kept = of(&typed).expect("text");
            assert_eq!(kept.left_out, Vec::<String>::new(), "{words:?}");
            let again: Vec<&str> = kept.words.iter().map(String::as_str).collect();
            assert_eq!(of(&args(&again)), Some(kept), "{words:?}");
        }
    }

    #[test]
    fn a_header_whose_secret_is_in_a_file_is_kept() {
        let url = [
            "--request",
            "GET https://a.example/x",
            "--secret",
            "t=@t.txt",
            "--header",
        ];
        for (header, is_kept) in [
            ("authorization: Bearer {secret.t}", true),
            ("x-api-key: {secret.t}", true),
            ("cookie: session={secret.t}", true),
            ("authorization: Bearer abc", false),
            ("authorization: abc{secret.t}", false),
            ("authorization: Bearer {secret.t}abc", false),
            ("x-api-key: ", false),
        ] {
            let found = of(&args(&[&url[..], &[header]].concat())).expect("text");
            assert_eq!(found.words.contains(&header.to_owned()), is_kept, "{found:?}");
            assert_eq!(found.left_out.is_empty(), is_kept, "{header}");
        }
    }

    #[test]
    fn a_number_of_tokens_is_no_secret() {
        let json = "{\"max_tokens\": 200}";
        let found = of(&args(&["--request", "PUT https://a.example/", "--json", json])).expect("text");
        assert!(
            found.words.contains(&json.to_owned()) && found.left_out.is_empty(),
            "{found:?}"
        );
    }

    #[test]
    fn what_may_be_a_secret_is_left_out_and_told() {
        for (words, kept, told) in [
            (
                &[
                    "--url",
                    "https://a.example/x",
                    "--header",
                    "Authorization: Bearer abc",
                ][..],
                "Authorization: …",
                "the header Authorization",
            ),
            (&["--url", "https://me:abc@a.example/x"], "…", "part of --url"),
            (
                &["--request", "GET https://a.example/x?api-key=abc"],
                "GET https://a.example/x?…",
                "part of --request",
            ),
            (
                &[
                    "--request",
                    "PUT https://a.example/",
                    "--json",
                    "{\"token\": \"abc\"}",
                ],
                "…",
                "part of --json",
            ),
            (&["--", "push", "--token", "abc"], "…", "part of its command"),
        ] {
            let found = of(&args(words)).expect("text");
            assert!(found.words.contains(&kept.to_owned()), "{found:?}");
            assert_eq!(found.left_out, [told]);
            assert!(!format!("{found:?}").contains("abc"), "{found:?}");
        }
    }
}
