//! Flags for the settings of a business. Only those given become members of the API's body.

use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Map, Value, json};

use super::request;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::flags::limits_from;
use crate::remote::limit::Bound;
use crate::run::handler::request::RequestArgs;
use windrow_core::business::LimitsFrom;
use windrow_core::business::secrets::{is_secret_header, unmarked};
use windrow_core::settings::text::{parse_span, span_text};
use windrow_core::settings::{Auto, Rate, RateLimit};

/// Settings of a business, as flags.
#[derive(Clone, Debug, Default, Args)]
pub struct Settings {
    /// URL of the handler that does the work
    #[arg(long, conflicts_with_all = ["command", "request"], help_heading = "Handler")]
    pub url: Option<String>,
    /// Command that does the work, by its name in the node's [handler.command.commands]
    #[arg(
        long,
        value_name = "NAME",
        conflicts_with = "request",
        help_heading = "Handler"
    )]
    pub command: Option<String>,
    /// Header to send, as 'name: value'; may be repeated; authorization and the like are stored encrypted
    #[arg(long = "header", value_name = "HEADER", help_heading = "Handler")]
    pub headers: Vec<String>,
    /// File with headers to store encrypted, one 'name: value' per line
    #[arg(long, value_name = "FILE", help_heading = "Handler")]
    pub secret_header_file: Option<PathBuf>,
    /// Flags for the request made for each item.
    #[command(flatten)]
    pub request: RequestArgs,
    /// JSON pointer to the result in a reply (RFC 6901)
    #[arg(long, value_name = "POINTER", help_heading = "Handler")]
    pub response_pointer: Option<String>,
    /// Make the check require that the handler refuses bad signatures
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Handler")]
    pub require_signature: Option<bool>,
    /// Forward proxy for calls, http://host:port
    #[arg(long, value_name = "URL", help_heading = "Handler")]
    pub proxy: Option<String>,
    /// PEM file of authorities to trust for this URL, instead of the system's
    #[arg(long, value_name = "FILE", help_heading = "Handler")]
    pub handler_ca_file: Option<PathBuf>,
    /// PEM file of the certificate to present to a handler that demands one
    #[arg(long, value_name = "FILE", help_heading = "Handler")]
    pub client_cert: Option<PathBuf>,
    /// PEM file of the certificate's private key, to store encrypted
    #[arg(long, value_name = "FILE", help_heading = "Handler")]
    pub client_key: Option<PathBuf>,
    /// Accept any certificate; for test systems only
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", help_heading = "Handler")]
    pub insecure_skip_verify: Option<bool>,
    /// Read the service's limits from its headers: auto or off [default: auto for --request, off for --url]
    #[arg(long, value_name = "SOURCE", hide_short_help = true, value_parser = limits_from, help_heading = "Handler")]
    pub limits_from: Option<LimitsFrom>,
    /// Event to send to the handler: validate, prepare, stopped or finished; prepare=URL sends it elsewhere
    #[arg(long = "hook", value_name = "HOOK", help_heading = "Handler")]
    pub hooks: Vec<String>,
    /// Display name for people
    #[arg(long, value_name = "TEXT", help_heading = "Business")]
    pub display_name: Option<String>,
    /// Pool of nodes that run the tasks
    #[arg(long, help_heading = "Business")]
    pub pool: Option<String>,
    /// Rate of tasks that set none: 500/s, 30/m, unlimited
    #[arg(long, help_heading = "Task defaults")]
    pub rate: Option<RateLimit>,
    /// Maximum items in flight: a number or auto
    #[arg(long, help_heading = "Task defaults")]
    pub concurrency: Option<Auto<NonZeroU32>>,
    /// Number of items per call
    #[arg(long, value_name = "N", help_heading = "Task defaults")]
    pub batch: Option<NonZeroU32>,
    /// Timeout of one handler call
    #[arg(long, value_name = "SPAN", value_parser = parse_span, help_heading = "Task defaults")]
    pub call_timeout: Option<Duration>,
    /// Any other setting, such as window=1500 or backoff='1s..60s x2'; may be repeated
    #[arg(long = "default", value_name = "KEY=VALUE", help_heading = "Task defaults")]
    pub defaults: Vec<String>,
    /// Rate of all running tasks together: 500/s, 30/m, or none
    #[arg(long, value_name = "RATE", help_heading = "Limits")]
    pub limit_rate: Option<Bound<Rate>>,
    /// Maximum items in flight of all tasks together, or none
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub limit_concurrency: Option<Bound<NonZeroU32>>,
    /// Limit to share with others (`windrow limit list`); may be repeated; replaces the present ones, '' clears
    #[arg(long = "limit", value_name = "NAME", help_heading = "Limits")]
    pub limits: Vec<String>,
}

impl Settings {
    /// Returns the members that were given.
    ///
    /// # Errors
    /// `Usage` for an invalid header, hook or setting; `Rejected` for a file that can't be read.
    pub(super) fn body(&self) -> Result<Map<String, Value>, Fault> {
        let mut body = named([
            ("url", self.url.as_ref().map(|url| json!(url))),
            ("command", self.command.as_ref().map(|command| json!(command))),
            (
                "response_pointer",
                self.response_pointer.as_ref().map(|pointer| json!(pointer)),
            ),
            ("proxy", self.proxy.as_ref().map(|proxy| json!(proxy))),
            ("display_name", self.display_name.as_ref().map(|name| json!(name))),
            ("pool", self.pool.as_ref().map(|pool| json!(pool))),
            ("require_signature", self.require_signature.map(|is| json!(is))),
            (
                "insecure_skip_verify",
                self.insecure_skip_verify.map(|is| json!(is)),
            ),
            ("limits_from", self.limits_from.map(|from| json!(from))),
        ]);
        self.add_files(&mut body)?;
        let secret = self.secret_header_file.as_deref().map(secret_headers);
        let mut secret = secret.transpose()?.unwrap_or_default();
        let has_request = self.request.request.is_some() || self.request.said().is_some();
        let ((request, request_secrets), headers) = if has_request {
            (request::members(&self.request, &self.headers)?, Map::new())
        } else {
            let headers = headers(self.headers.iter().map(String::as_str))?;
            let (secrets, open): (Map<_, _>, Map<_, _>) =
                headers.into_iter().partition(|(name, _)| is_secret_header(name));
            secret.extend(secrets);
            (Default::default(), open)
        };
        let tables = [
            ("request", request),
            ("request_secrets", request_secrets),
            ("headers", headers),
            ("secret_headers", secret),
            ("hooks", self.hooks()?),
            ("defaults", self.defaults()?),
            ("limits", self.limits_table()),
        ];
        let tables = tables.into_iter().filter(|(_, table)| !table.is_empty());
        body.extend(tables.map(|(name, table)| (name.to_owned(), Value::Object(table))));
        Ok(body)
    }

    /// Adds the members whose values are in files.
    fn add_files(&self, body: &mut Map<String, Value>) -> Result<(), Fault> {
        for (member, file) in [
            ("ca_pem", &self.handler_ca_file),
            ("client_cert_pem", &self.client_cert),
            ("client_key_pem", &self.client_key),
        ] {
            if let Some(file) = file {
                body.insert(member.to_owned(), json!(read(file)?));
            }
        }
        Ok(())
    }

    fn hooks(&self) -> Result<Map<String, Value>, Fault> {
        let mut hooks = Map::new();
        for hook in &self.hooks {
            let (name, value) = match hook.split_once('=') {
                Some((name, url)) => (name, json!({ "url": url })),
                None => (hook.as_str(), json!({})),
            };
            if !["validate", "prepare", "stopped", "finished"].contains(&name) {
                let fault = Fault::new(Exit::Usage, "unknown hook", format!("--hook {hook:?}"));
                return Err(fault.hint("use validate, prepare, stopped or finished"));
            }
            hooks.insert(name.to_owned(), value);
        }
        Ok(hooks)
    }

    fn defaults(&self) -> Result<Map<String, Value>, Fault> {
        let mut defaults = Map::new();
        for default in &self.defaults {
            let Some((key, value)) = default.split_once('=').filter(|(key, _)| !key.is_empty()) else {
                let because = format!("--default {default:?} is not KEY=VALUE");
                let fault = Fault::new(Exit::Usage, "invalid setting", because);
                return Err(fault.hint("--default window=1500"));
            };
            let value = serde_json::from_str(value).unwrap_or_else(|_| json!(value));
            defaults.insert(key.to_owned(), value);
        }
        defaults.extend(named([
            ("rate", self.rate.map(|rate| json!(rate.to_string()))),
            (
                "concurrency",
                self.concurrency.map(|many| json!(many.to_string())),
            ),
            ("batch", self.batch.map(|many| json!(many))),
            ("timeout", self.call_timeout.map(|span| json!(span_text(span)))),
        ]));
        Ok(defaults)
    }

    /// Returns the names of the wanted limits without empty ones, which stand for no limit.
    fn named_limits(&self) -> Vec<&str> {
        let names = self.limits.iter().map(|name| name.trim());
        names.filter(|name| !name.is_empty()).collect()
    }

    fn limits_table(&self) -> Map<String, Value> {
        named([
            (
                "rate",
                self.limit_rate
                    .map(|rate| json!(rate.0.map(|rate| rate.to_string()))),
            ),
            ("concurrency", self.limit_concurrency.map(|many| json!(many.0))),
            (
                "named",
                (!self.limits.is_empty()).then(|| json!(self.named_limits())),
            ),
        ])
    }
}

/// Collects the members that have a value.
pub(super) fn named<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    let members = members.into_iter();
    members
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}

/// Parses header lines. Error messages never repeat a line, since it may be secret.
fn headers<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Map<String, Value>, Fault> {
    let mut all = Map::new();
    for (at, line) in lines.enumerate() {
        let Some((name, value)) = line.split_once(':') else {
            let because = format!("line {} has no colon", at + 1);
            return Err(Fault::new(Exit::Usage, "invalid header", because).hint("'name: value'"));
        };
        all.insert(name.trim().to_owned(), json!(value.trim()));
    }
    Ok(all)
}

fn secret_headers(file: &Path) -> Result<Map<String, Value>, Fault> {
    let text = read(file)?;
    headers(
        unmarked(&text)
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#')),
    )
}

/// Reads the text of a file.
fn read(file: &Path) -> Result<String, Fault> {
    fs::read_to_string(file).map_err(|error| {
        let because = format!("{}: {error}", file.display());
        Fault::new(Exit::Rejected, "can't read the file", because).hint("check its path and permissions")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        settings: Settings,
    }

    fn body(flags: &[&str]) -> Result<Value, Fault> {
        let line = Line::try_parse_from([&["x"], flags].concat()).expect("flags");
        line.settings.body().map(Value::Object)
    }

    #[test]
    fn headers_that_are_secrets_by_their_names_are_sent_as_such() {
        let flags = ["--header", "Authorization: Bearer x", "--header", "x-team: a"];
        assert_eq!(
            body(&flags),
            Ok(json!({"headers": {"x-team": "a"}, "secret_headers": {"Authorization": "Bearer x"}}))
        );
    }

    #[test]
    fn only_what_is_named_is_sent() {
        assert_eq!(body(&[]), Ok(json!({})));
        let flags = [
            "--url",
            "http://h/",
            "--header",
            "a: b:c",
            "--rate",
            "500/s",
            "--batch",
            "16",
        ];
        let more = [
            "--call-timeout",
            "3s",
            "--default",
            "window=1500",
            "--default",
            "backoff=1s..60s x2",
        ];
        let rest = [
            "--hook",
            "prepare",
            "--hook",
            "finished=http://h/f",
            "--limit-rate",
            "2000/s",
        ];
        let expected = json!({
            "url": "http://h/", "headers": {"a": "b:c"},
            "defaults": {"rate": "500/s", "batch": 16, "timeout": "3s", "window": 1500, "backoff": "1s..60s x2"},
            "hooks": {"prepare": {}, "finished": {"url": "http://h/f"}}, "limits": {"rate": "2000/s"},
        });
        assert_eq!(body(&[&flags[..], &more, &rest].concat()), Ok(expected));
        assert_eq!(
            body(&["--limit", ""]),
            Ok(json!({"limits": {"named": []}})),
            "an empty name takes them away"
        );
        assert_eq!(
            body(&["--limit-rate", "none", "--limit-concurrency", "none"]),
            Ok(json!({"limits": {"rate": null, "concurrency": null}}))
        );
        assert_eq!(
            body(&["--require-signature"]),
            Ok(json!({"require_signature": true}))
        );
        assert_eq!(body(&["--limits-from", "off"]), Ok(json!({"limits_from": "off"})));
        assert_eq!(
            body(&["--require-signature", "false"]),
            Ok(json!({"require_signature": false}))
        );
    }

    #[test]
    fn a_slip_is_wrong_usage_and_a_secret_stays_one() {
        for flags in [["--hook", "start"], ["--default", "window"], ["--header", "hush"]] {
            assert_eq!(body(&flags).expect_err("a slip").exit, Exit::Usage, "{flags:?}");
        }
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("h");
        let text = file.to_str().expect("a path");
        std::fs::write(&file, "hush-hush\n").expect("written");
        let (secret, header) = (format!("t=@{text}"), format!("cookie: @{text}"));
        let flags = [
            "--request",
            "PUT http://h/{id}",
            "--form",
            "a={b}",
            "--ok",
            "409",
            "--secret",
            &secret,
            "--header",
            &header,
        ];
        assert_eq!(
            body(&flags),
            Ok(json!({
                "request": {
                    "call": "PUT http://h/{id}", "headers": {"cookie": "{secret.header.cookie}"}, "json": null,
                    "form": "a={b}", "text": null, "statuses": {"ok": "409"},
                },
                "request_secrets": {"t": "hush-hush", "header.cookie": "hush-hush"},
            }))
        );
        assert_eq!(
            body(&["--retry", "423"]),
            Ok(json!({"request": {"statuses": {"retry": "423"}}}))
        );
        std::fs::write(&file, "# ours\n\nauthorization: Bearer x:y\n").expect("written");
        let flags = ["--secret-header-file", file.to_str().expect("a path")];
        assert_eq!(
            body(&flags),
            Ok(json!({"secret_headers": {"authorization": "Bearer x:y"}}))
        );
        std::fs::write(&file, "hush\n").expect("written");
        assert!(!body(&flags).expect_err("no header").to_string().contains("hush"));
    }
}
