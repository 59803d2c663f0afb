//! A request to any API, as people describe it: a template for each part, and what its answers mean.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A templated request and how its answers are read. What templates are is said in `template`.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestSpec {
    /// Method and URL: `POST https://api.example/v1/orders/{order_id}`.
    pub call: String,
    /// Headers, names with templates.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body as JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json: Option<String>,
    /// The body as a form, `a={x}&b={y}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub form: Option<String>,
    /// The body as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where in an answer the output lies (RFC 6901); empty is the whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// What answers mean that would mean something else.
    #[serde(skip_serializing_if = "Meanings::is_empty")]
    pub statuses: Meanings,
}

/// A request as a business has it: who does the work, and how connections are made.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestHandlerSpec {
    /// The request.
    pub request: RequestSpec,
    /// The names of its secrets, whose values are kept sealed.
    pub secrets: Vec<String>,
    /// A forward proxy, `http://host:port`; none calls directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// Certificates (PEM text) that are trusted instead of the system's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca_pem: Option<String>,
    /// Trusts any certificate. For a test system only.
    pub insecure_skip_verify: bool,
}

/// What is written into a request may be secret.
impl fmt::Debug for RequestSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestSpec").finish_non_exhaustive()
    }
}

/// Statuses that mean what a person says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Meanings {
    /// The item succeeded.
    #[serde(skip_serializing_if = "Codes::is_empty")]
    pub ok: Codes,
    /// There was nothing to do.
    #[serde(skip_serializing_if = "Codes::is_empty")]
    pub skip: Codes,
    /// The item gets another attempt.
    #[serde(skip_serializing_if = "Codes::is_empty")]
    pub retry: Codes,
}

/// What a person says that a status means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// See [`Meanings::ok`].
    Ok,
    /// See [`Meanings::skip`].
    Skip,
    /// See [`Meanings::retry`].
    Retry,
}

impl Meanings {
    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == Meanings::default()
    }

    /// What a person said of a status.
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

    /// A status that is said to mean two things.
    pub fn contradiction(&self) -> Option<u16> {
        let lists = [&self.ok, &self.skip, &self.retry];
        (100..1000).find(|status| lists.iter().filter(|codes| codes.has(*status)).count() > 1)
    }
}

/// A list of HTTP statuses: `409,420-429`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Codes(Vec<(u16, u16)>);

impl Codes {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a status is one of them.
    pub fn has(&self, status: u16) -> bool {
        self.0
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&status))
    }
}

/// A text is no list of statuses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no list of statuses from 200 to 599; {advice}", advice = advice(.0))]
pub struct NoCodes(pub String);

/// What to write instead.
fn advice(text: &str) -> String {
    let meant: Option<Vec<String>> = text.split(',').map(|part| meant(part.trim())).collect();
    match meant {
        Some(parts) => format!("did you mean {}?", parts.join(",")),
        None => "one looks like 409 or 404,420-429".to_owned(),
    }
}

/// A part of a list as it can be read: `2xx` is 200-299, and the lower end of a range comes first.
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
