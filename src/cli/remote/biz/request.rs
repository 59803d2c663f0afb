//! Conversion of `--request` and related flags to members of a business. The content of a file is sent, never its
//! path.

use serde_json::{Map, Value, json};

use super::settings::named;
use crate::fault::Fault;
use crate::run::handler::request::{RequestArgs, add_body, headers, secrets};
use windrow_core::business::request::RequestSpec;

/// Members of a request body.
type Members = Map<String, Value>;

/// Returns the given members of `request` and of `request_secrets`.
///
/// # Errors
/// `Usage` for a flag that can't be used; `Rejected` for a file that can't be read.
pub(super) fn members(args: &RequestArgs, lines: &[String]) -> Result<(Members, Members), Fault> {
    let mut secrets = secrets(&args.secrets)?;
    let mut spec = RequestSpec {
        headers: headers(lines, &mut secrets)?,
        ..RequestSpec::default()
    };
    add_body(args, &mut spec)?;
    let text = |text: &Option<String>| text.as_ref().map(|text| json!(text));
    let codes = |codes: Option<String>| codes.map(Value::String);
    let statuses = named([
        ("ok", codes(args.ok.as_ref().map(ToString::to_string))),
        ("skip", codes(args.skip.as_ref().map(ToString::to_string))),
        ("retry", codes(args.retry.as_ref().map(ToString::to_string))),
    ]);
    let has_body = spec.json.is_some() || spec.form.is_some() || spec.text.is_some();
    // A new body replaces the present one, whatever its kind.
    let body = |text: &Option<String>| has_body.then(|| json!(text));
    let request = named([
        ("call", text(&args.request)),
        ("headers", (!spec.headers.is_empty()).then(|| json!(spec.headers))),
        ("json", body(&spec.json)),
        ("form", body(&spec.form)),
        ("text", body(&spec.text)),
        ("result", text(&args.result)),
        (
            "statuses",
            (!statuses.is_empty()).then_some(Value::Object(statuses)),
        ),
    ]);
    let secrets = secrets.0.into_iter().map(|(name, value)| (name, json!(value)));
    Ok((request, secrets.collect()))
}
