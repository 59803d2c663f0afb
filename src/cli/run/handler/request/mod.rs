//! Implementation of `--request`: a templated request for each item, read from flags and files, and checked before
//! anything is sent.
//!
//! Files are read once. Secrets from files are held only here and in the handler, and never written anywhere.

mod parts;

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};

use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::flags::HttpArgs;
use crate::run::items::first_row;
use windrow_core::business::LimitsFrom;
use windrow_core::business::request::{Codes, Meanings, RequestSpec};
use windrow_core::template::request::{RequestFault, RequestTemplate};
use windrow_core::template::{Constants, Conversion, Secrets};
use windrow_node::handlers::HandlerChoice;
use windrow_node::sources::OpenedSource;
use windrow_server::service::failures::item_data::Members;

pub(crate) use self::parts::{add_body, headers, secrets};

/// Flags for a request per item, to an API that doesn't know Windrow.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Request")]
pub struct RequestArgs {
    /// Request for each item: method and URL, with {column} for the item's value; see `windrow help templates`
    #[arg(long, value_name = "REQUEST")]
    pub request: Option<String>,
    /// JSON body of the request: {"qty": {qty:number}, "note": {note}}; @FILE reads it from a file
    #[arg(long, value_name = "TEMPLATE", conflicts_with_all = ["form", "body_file"])]
    pub json: Option<String>,
    /// Form body of the request: 'a={x}&b={y}'; may be repeated
    #[arg(long, value_name = "FIELDS", conflicts_with = "body_file")]
    pub form: Vec<String>,
    /// File with the body as text with placeholders; sent as JSON if its name ends in .json or content-type says so
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub body_file: Option<PathBuf>,
    /// Secret for {secret.NAME}, read from a file; may be repeated
    #[arg(long = "secret", value_name = "NAME=@FILE")]
    pub secrets: Vec<String>,
    /// JSON pointer to the item's output in an answer, such as /data/id; by default the whole answer
    #[arg(long, value_name = "POINTER")]
    pub result: Option<String>,
    /// Statuses that mean success, such as 409 or 200-299,409
    #[arg(long, value_name = "CODES")]
    pub ok: Option<Codes>,
    /// Statuses that mean there was nothing to do
    #[arg(long, value_name = "CODES")]
    pub skip: Option<Codes>,
    /// Statuses after which the item is retried
    #[arg(long, value_name = "CODES")]
    pub retry: Option<Codes>,
}

impl RequestArgs {
    /// Returns the files that the flags name.
    pub(in crate::run) fn files(&self) -> impl Iterator<Item = &Path> {
        let secrets = self.secrets.iter().filter_map(|text| text.split_once("=@"));
        let json = self.json.as_deref().and_then(|text| text.strip_prefix('@'));
        let named = secrets.map(|(_, path)| path).chain(json).map(Path::new);
        named.chain(self.body_file.as_deref())
    }

    /// Returns the first given flag that only applies to a request.
    pub(crate) fn said(&self) -> Option<&'static str> {
        let said = [
            (self.json.is_some(), "--json"),
            (!self.form.is_empty(), "--form"),
            (self.body_file.is_some(), "--body-file"),
            (!self.secrets.is_empty(), "--secret"),
            (self.result.is_some(), "--result"),
            (self.ok.is_some(), "--ok"),
            (self.skip.is_some(), "--skip"),
            (self.retry.is_some(), "--retry"),
        ];
        said.into_iter()
            .find(|(is_said, _)| *is_said)
            .map(|(_, flag)| flag)
    }
}

/// Returns the possible conversions after the colon, if the text before it is a column.
fn conversions(columns: &[String], keys: &[String]) -> Option<String> {
    let known = |name: &String| {
        let (column, _) = name.rsplit_once(':')?;
        keys.iter().any(|key| key == column).then(|| column.to_owned())
    };
    let column = columns
        .iter()
        .filter(|name| !keys.contains(name))
        .find_map(known)?;
    let words = Conversion::ALL.map(|(word, _)| format!("{{{column}:{word}}}"));
    Some(format!("columns can be converted: {}", words.join(", ")))
}

/// Request described by the flags, with all files read.
pub(crate) struct RequestWanted {
    /// Definition of the request, including its placeholders.
    pub(crate) spec: RequestSpec,
    /// Secrets for the placeholders of the request.
    pub(crate) secrets: Secrets,
    limits_from: Option<LimitsFrom>,
    template: RequestTemplate,
}

/// Returns the request that the flags describe, or `None` without `--request`.
///
/// # Errors
/// `Usage` for flags that can't be used, `Rejected` for a file that can't be read.
pub(crate) fn wanted(args: &RequestArgs, http: &HttpArgs) -> Result<Option<RequestWanted>, Fault> {
    let Some(request) = &args.request else {
        return match args.said() {
            None => Ok(None),
            Some(flag) => {
                let because = format!("{flag} applies to --request");
                Err(Fault::new(Exit::Usage, "no request", because)
                    .hint("--request 'POST https://api.example/v1/orders/{order_id}'"))
            }
        };
    };
    if http.secret_file.is_some() {
        let because = "--secret-file holds the keys that sign calls to --url; a --request isn't signed";
        return Err(Fault::new(Exit::Usage, "can't use --secret-file", because)
            .hint("use --secret NAME=@FILE and the placeholder {secret.NAME}"));
    }
    let mut secrets = secrets(&args.secrets)?;
    let headers = headers(&http.headers, &mut secrets)?;
    let mut spec = RequestSpec {
        call: request.clone(),
        headers,
        result: args.result.clone().unwrap_or_default(),
        statuses: Meanings {
            ok: args.ok.clone().unwrap_or_default(),
            skip: args.skip.clone().unwrap_or_default(),
            retry: args.retry.clone().unwrap_or_default(),
        },
        ..RequestSpec::default()
    };
    add_body(args, &mut spec)?;
    let template = RequestTemplate::compile(&spec).map_err(|faults| refused(&faults))?;
    super::check_secure(http, template.url.origin())?;
    template.check_secrets(&secrets).map_err(|why| {
        Fault::new(Exit::Usage, "can't use the secrets", why)
            .hint("use --secret NAME=@FILE and the placeholder {secret.NAME}")
    })?;
    if let Some(name) = template.params().next() {
        let because = format!("{{param.{name}}} is a task parameter, and `windrow run` has none");
        return Err(Fault::new(Exit::Usage, "invalid request", because).hint("write the value itself"));
    }
    Ok(Some(RequestWanted {
        spec,
        secrets,
        limits_from: http.limits_from,
        template,
    }))
}

impl RequestWanted {
    /// Returns the handler to create.
    ///
    /// # Errors
    /// `Usage` for more than one item per call.
    pub(crate) fn choice(&self, batch: NonZeroU32) -> Result<HandlerChoice<'_>, Fault> {
        if batch != NonZeroU32::MIN {
            let because = format!("a request covers one item, but --batch is {batch}");
            return Err(Fault::new(Exit::Usage, "can't use the request", because).hint("--batch 1"));
        }
        let (spec, secrets) = (&self.spec, &self.secrets);
        Ok(HandlerChoice::Request {
            spec,
            secrets,
            batch,
            limits_from: self.limits_from,
        })
    }

    /// Checks that the items have the columns in the request. For lines of JSON only the first is examined.
    ///
    /// # Errors
    /// `Usage` with the missing column and the existing ones.
    pub(crate) async fn check_columns(&self, opened: &OpenedSource) -> Result<(), Fault> {
        let keys = match opened.source.columns() {
            [] => first_row::keys(opened).await,
            columns => columns.to_vec(),
        };
        self.check_names(opened.source.has_data(), &keys)
    }

    /// Checks the columns against known names. Without names, items with data aren't checked.
    ///
    /// # Errors
    /// Same as [`RequestWanted::check_columns`].
    pub(crate) fn check_names(&self, has_data: bool, keys: &[String]) -> Result<(), Fault> {
        let columns = self.template.columns();
        let Some(first) = columns.first() else {
            return Ok(());
        };
        let what = "can't fill the request";
        if !has_data {
            let because = format!("{{{first}}} is a column, but the items have no data");
            return Err(Fault::new(Exit::Usage, what, because)
                .hint("--csv FILE or --ndjson FILE; items of --total only have {index} and {key}"));
        }
        match Members::These(columns.to_vec()).unknown(has_data, keys) {
            None => Ok(()),
            Some((why, there_are)) => {
                let hint = first_row::doubt("", keys).or_else(|| conversions(columns, keys));
                Err(Fault::new(Exit::Usage, what, why).hint(hint.unwrap_or(there_are)))
            }
        }
    }

    /// Formats the request of an item for people, with masked secrets.
    pub(crate) fn shown(&self, data: Option<&str>, index: u64, key: &str, attempt: u32) -> String {
        let constants = Constants {
            params: None,
            secrets: &self.secrets,
            is_masked: true,
        };
        let bound = self.template.bind(constants);
        let rendered = bound.and_then(|bound| bound.render(&bound.item(data, index, key, attempt)));
        let rendered = match rendered {
            Ok(rendered) => rendered,
            Err(why) => return format!("no request: {why}"),
        };
        let mut text = format!("{} {}", self.template.method, rendered.url);
        let names: Vec<&str> = self
            .template
            .headers
            .iter()
            .map(|(name, _)| name.as_str())
            .collect();
        for (name, value) in names.iter().zip(&rendered.headers) {
            text.push_str(&format!("\n  {name}: {value}"));
        }
        if let Some((kind, _)) = self
            .template
            .body
            .as_ref()
            .filter(|_| !names.contains(&"content-type"))
        {
            text.push_str(&format!("\n  content-type: {}", kind.content_type()));
        }
        if !names.contains(&"idempotency-key") {
            text.push_str(&format!("\n  idempotency-key: {key}"));
        }
        for line in rendered.body.lines() {
            text.push_str(&format!("\n  {line}"));
        }
        text
    }
}

fn refused(faults: &[RequestFault]) -> Fault {
    let flag = |fault: &RequestFault| match fault.pointer.split('/').nth(1) {
        Some("call") => "--request".to_owned(),
        Some("headers") => format!("--header {}", fault.pointer.trim_start_matches("/headers/")),
        Some("json") => "--json".to_owned(),
        Some("form") => "--form".to_owned(),
        Some("text") => "--body-file".to_owned(),
        Some("statuses") => "--ok, --skip, --retry".to_owned(),
        _ => fault.pointer.clone(),
    };
    Fault {
        exit: Exit::Usage,
        what: "invalid request".to_owned(),
        because: faults
            .iter()
            .map(|fault| format!("{}: {}", flag(fault), fault.what))
            .collect(),
        hint: Some("windrow help templates".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn http(headers: &[&str]) -> HttpArgs {
        HttpArgs {
            headers: headers.iter().map(|text| (*text).to_owned()).collect(),
            secret_file: None,
            handler_ca_file: None,
            client_cert: None,
            client_key: None,
            insecure_skip_verify: false,
            limits_from: None,
        }
    }

    fn args(request: &str) -> RequestArgs {
        RequestArgs {
            request: Some(request.to_owned()),
            ..RequestArgs::default()
        }
    }

    #[test]
    fn what_is_secret_is_shown_as_a_mask() {
        let place = tempfile::tempdir().expect("a directory");
        let token = place.path().join("token");
        std::fs::write(&token, "geheim\n").expect("written");
        let mut args = args("POST http://h/{id}?k={secret.t}");
        args.secrets = vec![format!("t=@{}", token.display())];
        args.json = Some(r#"{"t": {secret.t}}"#.to_owned());
        let from_file = format!("x-plain: @{}", token.display());
        let http = http(&["Authorization: Bearer geheim2", "accept: text/{id}", &from_file]);
        let wanted = wanted(&args, &http).expect("fine").expect("a request");
        let shown = wanted.shown(Some(r#"{"id":"7"}"#), 0, "k-t0-0", 1);
        assert_eq!(
            shown,
            "POST http://h/7?k=••••\n  accept: text/7\n  authorization: ••••\n  x-plain: ••••\n  content-type: \
             application/json\n  idempotency-key: k-t0-0\n  {\"t\": \"••••\"}"
        );
        assert!(!format!("{:?}", wanted.spec).contains("geheim"));
        assert_eq!(wanted.secrets.0.len(), 3);
    }

    #[test]
    fn a_secret_on_the_command_line_is_refused_and_not_repeated() {
        let mut args = args("GET http://h/{secret.t}");
        args.secrets = vec!["t=geheim".to_owned()];
        let fault = wanted(&args, &http(&[])).err().expect("refused");
        assert!(!fault.to_string().contains("geheim"), "{fault}");
        assert!(fault.to_string().contains("@FILE"), "{fault}");
    }

    #[test]
    fn flags_of_a_request_need_one() {
        let args = RequestArgs {
            ok: Some("409".parse().expect("codes")),
            ..RequestArgs::default()
        };
        let fault = wanted(&args, &http(&[])).err().expect("refused");
        assert!(fault.to_string().contains("--ok"), "{fault}");
    }

    #[test]
    fn a_file_that_is_json_by_name_or_type_is_a_template_of_json() {
        let place = tempfile::tempdir().expect("a directory");
        let written = |name: &str| {
            let path = place.path().join(name);
            std::fs::write(&path, r#"{"a": {id}}"#).expect("written");
            let mut args = args("POST http://h/");
            args.body_file = Some(path);
            args
        };
        let spec = |args: &RequestArgs, headers: &[&str]| {
            wanted(args, &http(headers)).map(|found| found.expect("one").spec)
        };
        assert!(spec(&written("b.json"), &[]).is_ok_and(|spec| spec.json.is_some()));
        assert!(
            spec(&written("b.txt"), &["content-type: application/x+json"])
                .is_ok_and(|spec| spec.json.is_some())
        );
        assert!(
            spec(&written("b.txt"), &[]).is_err(),
            "braces of text must be doubled"
        );
    }
}
