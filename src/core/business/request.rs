//! Requests to any API: a template for each part, and the meaning of the responses.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use super::LimitsFrom;
use super::secrets::origin;
use windrow_words::{Message, business as say};

use serde::{Deserialize, Serialize};

/// Templated request, and how its responses are read. Module `template` defines the template syntax.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestSpec {
    /// Method and URL: `POST https://api.example/v1/orders/{order_id}`.
    pub call: String,
    /// Headers by name; the values are templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Template of a JSON body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// Template of a form body, `a={x}&b={y}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// Template of a text body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// JSON Pointer (RFC 6901) to the output within a response; empty for the whole response.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// Statuses whose default meaning is overridden.
    #[serde(skip_serializing_if = "Meanings::is_empty")]
    pub statuses: Meanings,
}

impl RequestSpec {
    /// Returns the origin of the URL called, as computed by [`origin`].
    pub fn origin(&self) -> Option<String> {
        let call = self.call.trim();
        origin(call.split_once(' ').map_or(call, |(_, url)| url.trim_start()))
    }
}

/// Request handler of a business: the request, and how connections are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestHandlerSpec {
    /// Request sent for each item.
    pub request: RequestSpec,
    /// Names of the request's secrets, whose values are kept sealed.
    pub secrets: Vec<String>,
    /// Forward proxy, `http://host:port`; `None` connects directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Certificates (PEM text) trusted instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_pem: Option<String>,
    /// Certificate (PEM text) presented to a server that demands one; its key is kept sealed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cert_pem: Option<String>,
    /// Accepts any certificate. For test systems only.
    pub insecure_skip_verify: bool,
    /// Source of the limits that the API describes; `None` is [`LimitsFrom::Auto`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_from: Option<LimitsFrom>,
}

/// Shows no fields, because a request may contain secrets.
impl fmt::Debug for RequestSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSpec").finish_non_exhaustive()
    }
}

/// Statuses whose meaning the configuration overrides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Meanings {
    /// Statuses that mean the item succeeded.
    #[serde(skip_serializing_if = "Codes::is_empty")]
    pub ok: Codes,
    /// Statuses that mean there was nothing to do.
    #[serde(skip_serializing_if = "Codes::is_empty")]
    pub skip: Codes,
    /// Statuses after which the item is retried.
    #[serde(skip_serializing_if = "Codes::is_empty")]
    pub retry: Codes,
}

/// Configured meaning of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Success, configured in [`Meanings::ok`].
    Ok,
    /// Nothing to do, configured in [`Meanings::skip`].
    Skip,
    /// Another attempt, configured in [`Meanings::retry`].
    Retry,
}

impl Meanings {
    /// True if no status is overridden.
    pub fn is_empty(&self) -> bool {
        *self == Meanings::default()
    }

    /// Returns the configured meaning of a status, or `None` if it is not overridden.
    pub fn of(&self, status: u16) -> Option<Meaning> {
        let said = [
            (&self.ok, Meaning::Ok),
            (&self.skip, Meaning::Skip),
            (&self.retry, Meaning::Retry),
        ];
        said.into_iter()
            .find(|(codes, _)| codes.has(status))
            .map(|(_, meaning)| meaning)
    }

    /// Returns a status that is listed under two meanings, if any.
    pub fn contradiction(&self) -> Option<u16> {
        let lists = [&self.ok, &self.skip, &self.retry];
        (100..1000).find(|status| lists.iter().filter(|codes| codes.has(*status)).count() > 1)
    }
}

/// List of HTTP statuses and ranges: `409,420-429`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Codes(Vec<(u16, u16)>);

impl Codes {
    /// True if the list is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the list contains the status.
    pub fn has(&self, status: u16) -> bool {
        self.0
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&status))
    }
}

/// Error for a text that is not a list of statuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::no_statuses(format!("{:?}", .0), advice(.0)))]
pub struct NoCodes(pub String);

/// Returns a corrected list for the error message, or an example.
fn advice(text: &str) -> Message {
    let meant: Option<Vec<String>> = text.split(',').map(|part| meant(part.trim())).collect();
    match meant {
        Some(parts) => say::did_you_mean(parts.join(",")),
        None => say::statuses_example("409", "404,420-429"),
    }
}

/// Corrects one part of a list: `2xx` becomes 200-299, and a reversed range is swapped.
fn meant(part: &str) -> Option<String> {
    if let Some(class @ '2'..='5') = part.chars().next()
        && part[1..].eq_ignore_ascii_case("xx")
    {
        return Some(format!("{class}00-{class}99"));
    }
    let reversed = part
        .split_once('-')
        .map(|(last, first)| format!("{first}-{last}"));
    [Some(part.to_owned()), reversed]
        .into_iter()
        .flatten()
        .find(|text| text.parse::<Codes>().is_ok())
}

impl FromStr for Codes {
    type Err = NoCodes;

    fn from_str(text: &str) -> Result<Codes, NoCodes> {
        let code = |text: &str| {
            let code = text.trim().parse::<u16>().ok();
            code.filter(|code| (200..600).contains(code) && text.trim().len() == 3)
        };
        let range = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (code(first)?, code(last)?);
            (first <= last).then_some((first, last))
        };
        let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
        ranges.map(Codes).ok_or_else(|| NoCodes(text.to_owned()))
    }
}

impl TryFrom<String> for Codes {
    type Error = NoCodes;

    fn try_from(text: String) -> Result<Codes, NoCodes> {
        if text.is_empty() {
            Ok(Codes::default())
        } else {
            text.parse()
        }
    }
}

impl fmt::Display for Codes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.0.iter().enumerate() {
            f.write_str(if at > 0 { "," } else { "" })?;
            match first == last {
                true => write!(f, "{first}")?,
                false => write!(f, "{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl From<Codes> for String {
    fn from(codes: Codes) -> String {
        codes.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_read_back_as_they_were_written() {
        for text in ["409", "404,410", "420-429,451"] {
            assert_eq!(text.parse::<Codes>().expect(text).to_string(), text);
        }
        let codes: Codes = "404, 420-429".parse().expect("fine");
        assert!(codes.has(404) && codes.has(420) && codes.has(429) && !codes.has(430));
        for wrong in ["", "4xx", "404,", "429-420", "99", "600", "0404", "-404"] {
            assert!(wrong.parse::<Codes>().is_err(), "{wrong}");
        }
        for (wrong, meant) in [
            ("2xx", "200-299"),
            ("409, 5XX", "409,500-599"),
            ("299-200", "200-299"),
        ] {
            let said = wrong.parse::<Codes>().expect_err(wrong).to_string();
            assert!(said.ends_with(&format!("did you mean {meant}?")), "{said}");
        }
    }

    #[test]
    fn a_status_means_one_thing() {
        let said = Meanings {
            ok: "409".parse().expect("fine"),
            retry: "400-410".parse().expect("fine"),
            ..Meanings::default()
        };
        assert_eq!(
            (said.of(409), said.of(400), said.of(411)),
            (Some(Meaning::Ok), Some(Meaning::Retry), None)
        );
        assert_eq!(said.contradiction(), Some(409));
    }
}
