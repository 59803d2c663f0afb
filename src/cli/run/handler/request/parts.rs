//! Parsing of the parts of a request: headers, secrets, and the body with its file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::RequestArgs;
use crate::exit::Exit;
use crate::fault::{Fault, of_file};
use crate::run::handler::header;
use windrow_core::business::request::RequestSpec;
use windrow_core::business::secrets::{is_secret_header, unmarked};
use windrow_core::template::Secrets;
use windrow_core::template::request::BODY_BYTES_MAX;

/// Maximum size of a secret's file. Unit: bytes.
const SECRET_BYTES_MAX: usize = 64 * 1024;
/// Minimum length of a header value that counts as secret because of its header's name. Unit: bytes.
const SECRET_BYTES_MIN: usize = 4;

/// Parses the headers. Those with a secret name, or from a file, become secrets of the request.
///
/// # Errors
/// `Usage` for a header that can't be used, `Rejected` for a file that can't be read.
pub(crate) fn headers(texts: &[String], secrets: &mut Secrets) -> Result<BTreeMap<String, String>, Fault> {
    let mut headers = BTreeMap::new();
    let mut add = |name: String, value: String, is_secret: bool| {
        let lower = name.to_ascii_lowercase();
        let value = if is_secret {
            let secret = format!("header.{lower}");
            secrets.0.insert(secret.clone(), value);
            format!("{{secret.{secret}}}")
        } else {
            value
        };
        if headers.insert(lower, value).is_some() {
            let because = format!("the header {name} is set twice");
            return Err(Fault::new(Exit::Usage, "invalid --header", because).hint("remove one"));
        }
        Ok(())
    };
    for text in texts {
        if let Some(path) = text.strip_prefix('@') {
            for line in file(Path::new(path), "--header", SECRET_BYTES_MAX)?
                .lines()
                .filter(|line| !line.trim().is_empty())
            {
                let (name, value) = header(line)?;
                add(name, value, true)?;
            }
            continue;
        }
        let (name, value) = header(text)?;
        match value.strip_prefix('@') {
            Some(path) => {
                let value = file(Path::new(path), "--header", SECRET_BYTES_MAX)?;
                add(name, value.trim_end_matches(['\r', '\n']).to_owned(), true)?;
            }
            None => {
                let is_secret =
                    is_secret_header(&name) && value.len() >= SECRET_BYTES_MIN && !value.contains(['{', '}']);
                add(name, value, is_secret)?;
            }
        }
    }
    Ok(headers)
}

/// Adds the body given by flags, including files that they name.
///
/// # Errors
/// `Usage` for a body that can't be used, `Rejected` for a file that can't be read.
pub(crate) fn add_body(args: &RequestArgs, spec: &mut RequestSpec) -> Result<(), Fault> {
    spec.form = (!args.form.is_empty()).then(|| args.form.join("&"));
    if let Some(json) = &args.json {
        spec.json = Some(match json.strip_prefix('@') {
            Some(path) => file(Path::new(path), "--json", BODY_BYTES_MAX)?,
            None => json.clone(),
        });
    }
    let Some(path) = &args.body_file else {
        return Ok(());
    };
    let text = file(path, "--body-file", BODY_BYTES_MAX)?;
    let says_json = spec
        .headers
        .get("content-type")
        .is_some_and(|kind| kind.contains("json"));
    let is_named = |kind: &str| {
        let ending = path.extension();
        ending.is_some_and(|ending| ending.eq_ignore_ascii_case(kind))
    };
    let has_type = spec.headers.contains_key("content-type");
    if says_json || is_named("json") {
        spec.json = Some(text);
    } else {
        if !has_type && is_named("xml") {
            let kind = "application/xml; charset=utf-8".to_owned();
            spec.headers.insert("content-type".to_owned(), kind);
        }
        spec.text = Some(text);
    }
    Ok(())
}

/// Parses the secrets given by flags.
///
/// # Errors
/// `Usage` for a secret that can't be used, `Rejected` for a file that can't be read.
pub(crate) fn secrets(texts: &[String]) -> Result<Secrets, Fault> {
    let mut secrets = Secrets::default();
    for text in texts {
        let (name, value) = secret(text)?;
        if secrets.0.insert(name.clone(), value).is_some() {
            let because = format!("{name:?} is given twice");
            return Err(Fault::new(Exit::Usage, "invalid --secret", because).hint("omit one of them"));
        }
    }
    Ok(secrets)
}

/// Parses `NAME=@FILE` and reads the file.
fn secret(text: &str) -> Result<(String, String), Fault> {
    // Don't print the text: it may contain the secret itself.
    let refuse = |because: &str| {
        Fault::new(Exit::Usage, "invalid --secret", because)
            .hint("use --secret vendor=@vendor.token and the placeholder {secret.vendor}")
    };
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| refuse("there is no = after its name"))?;
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || !name.chars().all(fits) {
        return Err(refuse("its name may only contain letters, digits, _ - and ."));
    }
    let path = value.strip_prefix('@').ok_or_else(|| {
        refuse(
            "its value is not @FILE: on the command line, other users and the shell's history would \
            see it",
        )
    })?;
    let value = file(Path::new(path), "--secret", SECRET_BYTES_MAX)?;
    Ok((name.to_owned(), value.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Reads the text of a file named by a flag, without a byte order mark.
fn file(path: &Path, flag: &str, bytes_max: usize) -> Result<String, Fault> {
    let refuse = |because: String| {
        let what = format!("can't use {} for {flag}", path.display());
        Fault::new(Exit::Rejected, what, because)
    };
    let opened = File::open(path)
        .map_err(|error| refuse(of_file(&error)).meant(crate::run::items::source::beside(path).as_deref()))
        .map_err(|fault| fault.or_hint(&format!("name a readable file after {flag}")))?;
    let mut bytes = Vec::new();
    let read = opened.take(bytes_max as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| refuse(of_file(&error)))?;
    if bytes.len() > bytes_max {
        return Err(refuse(format!("it is larger than {bytes_max} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8 text".to_owned()))?;
    match unmarked(&text) {
        text if text.trim().is_empty() => Err(refuse("it is empty".to_owned())),
        text => Ok(text.to_owned()),
    }
}
