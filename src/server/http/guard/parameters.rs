//! What the document says of parameters, held against every request: lengths, patterns and bounds of queries and headers,
//! bodies that must be there. A route states them once, in its description; none can be forgotten in a handler.
//!
//! What a parameter means is for the handler. So is the path: what can't be there is not found.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::HttpBody as _;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode;
use regex::Regex;
use serde_json::Value;

use crate::http::guard::dry_run;
use crate::http::problem::Problem;
use crate::service::{FieldFault, ServiceError};

/// What each operation wants.
#[derive(Debug, Default)]
pub(crate) struct Rules(HashMap<(String, String), Wanted>);

/// What one operation wants.
#[derive(Debug, Default)]
struct Wanted {
    has_body: bool,
    query: Vec<Rule>,
    headers: Vec<Rule>,
}

/// What a parameter fulfils.
#[derive(Debug)]
struct Rule {
    name: String,
    least_chars: usize,
    most_chars: usize,
    pattern: Option<Regex>,
    least: Option<i128>,
    most: Option<i128>,
}

impl Rules {
    /// Reads them from the document.
    ///
    /// # Panics
    /// When a pattern of ours can't be read: a test reads them all.
    pub(crate) fn of(document: &Value) -> Rules {
        let mut rules = HashMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                rules.insert((method.to_ascii_uppercase(), path.clone()), Wanted::of(operation));
            }
        }
        Rules(rules)
    }

    fn faults(&self, path: &str, request: &Request) -> Vec<FieldFault> {
        let method = if request.method() == Method::HEAD {
            "GET"
        } else {
            request.method().as_str()
        };
        match self.0.get(&(method.to_owned(), path.to_owned())) {
            Some(wanted) => wanted.faults(request),
            None => Vec::new(),
        }
    }
}

impl Wanted {
    fn of(operation: &Value) -> Wanted {
        let has_body = operation["requestBody"]["required"].as_bool() == Some(true);
        let mut wanted = Wanted {
            has_body,
            ..Wanted::default()
        };
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let Some(name) = parameter["name"].as_str() else {
                continue;
            };
            match parameter["in"].as_str() {
                Some("query") => wanted.query.push(Rule::of(name, &parameter["schema"])),
                Some("header") => wanted.headers.push(Rule::of(name, &parameter["schema"])),
                _ => {}
            }
        }
        wanted
    }

    fn faults(&self, request: &Request) -> Vec<FieldFault> {
        let mut faults = Vec::new();
        if self.has_body && request.body().is_end_stream() {
            faults.push(FieldFault::new("", "this takes a body, and there is none"));
        }
        faults.extend(query_faults(&self.query, request.uri()));
        let can_be_tried = self.query.iter().any(|rule| rule.name == dry_run::NAME);
        if !request.method().is_safe()
            && !can_be_tried
            && names(request.uri()).any(|name| name == dry_run::NAME)
        {
            faults.push(FieldFault::new(
                dry_run::NAME,
                "this has no dry run: it can't be known before it is done",
            ));
        }
        faults.extend(header_faults(&self.headers, request.headers()));
        faults
    }
}

impl Rule {
    fn of(name: &str, schema: &Value) -> Rule {
        let chars = |key: &str| schema[key].as_u64().and_then(|most| usize::try_from(most).ok());
        let bound = |key: &str| {
            schema[key]
                .as_i64()
                .map(i128::from)
                .or_else(|| schema[key].as_u64().map(i128::from))
        };
        Rule {
            name: name.to_owned(),
            least_chars: chars("minLength").unwrap_or(0),
            most_chars: chars("maxLength").unwrap_or(usize::MAX),
            pattern: schema["pattern"]
                .as_str()
                .map(|text| Regex::new(text).expect("a pattern of ours")),
            least: bound("minimum"),
            most: bound("maximum"),
        }
    }

    /// Why the value won't do, if so.
    fn fault(&self, value: &str) -> Option<FieldFault> {
        let fault = |text: String| Some(FieldFault::new(self.name.clone(), text));
        let chars = value.chars().count();
        if chars < self.least_chars {
            return fault(format!("it has at least {} characters", self.least_chars));
        }
        if chars > self.most_chars {
            return fault(format!("it has at most {} characters", self.most_chars));
        }
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(value)) {
            return fault(format!("{value:?} is not of the form {pattern}"));
        }
        // What is no number is for the handler, which says what it expects.
        let number: i128 = value.parse().ok()?;
        match (self.least, self.most) {
            (Some(least), _) if number < least => fault(format!("it is at least {least}")),
            (_, Some(most)) if number > most => fault(format!("it is at most {most}")),
            _ => None,
        }
    }
}

/// The names of a query's members.
fn names(uri: &Uri) -> impl Iterator<Item = String> {
    let pairs = uri.query().unwrap_or_default().split('&');
    pairs.filter_map(|pair| {
        text(
            &pair
                .split_once('=')
                .map_or(pair, |(name, _)| name)
                .replace('+', " "),
        )
    })
}

fn query_faults(rules: &[Rule], uri: &Uri) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    for pair in uri
        .query()
        .unwrap_or_default()
        .split('&')
        .filter(|pair| !pair.is_empty())
    {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (text(&name.replace('+', " ")), text(&value.replace('+', " "))) {
            (Some(name), Some(value)) => {
                faults.extend(
                    rules
                        .iter()
                        .find(|rule| rule.name == name)
                        .and_then(|rule| rule.fault(&value)),
                );
            }
            _ => faults.push(FieldFault::new(
                "query",
                format!("{pair:?} must be UTF-8 without NUL"),
            )),
        }
    }
    faults
}

fn header_faults(rules: &[Rule], headers: &HeaderMap) -> Vec<FieldFault> {
    let fault = |rule: &Rule| {
        let value = headers.get(rule.name.as_str())?;
        match value.to_str() {
            Ok(value) => rule.fault(value),
            Err(_) => Some(FieldFault::new(rule.name.clone(), "it is not visible ASCII")),
        }
    };
    rules.iter().filter_map(fault).collect()
}

/// What percent-encoded text says; none when it is no UTF-8, or has a NUL, which databases don't store.
fn text(encoded: &str) -> Option<String> {
    let decoded = percent_decode(encoded.as_bytes()).decode_utf8().ok()?;
    (!decoded.contains('\0')).then(|| decoded.into_owned())
}

/// Refuses what the document forbids.
pub(crate) async fn hold(
    State(rules): State<Arc<Rules>>,
    path: MatchedPath,
    request: Request,
    next: Next,
) -> Response {
    let mut faults = rules.faults(path.as_str(), &request);
    if text(request.uri().path()).is_none() {
        faults.push(FieldFault::new("path", "it must be UTF-8 without NUL"));
    }
    if faults.is_empty() {
        return next.run(request).await;
    }
    Problem::from(ServiceError::Invalid(faults)).into_response()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use serde_json::json;

    use super::*;

    fn faults(method: &str, uri: &str, body: Body) -> Vec<String> {
        let text = |schema: Value| json!({"name": "q", "in": "query", "schema": schema});
        let rules = Rules::of(&json!({"paths": {"/a": {
            "get": {"parameters": [
                text(json!({"type": "string", "minLength": 1, "maxLength": 3, "pattern": "^[a-zü]*$"})),
                {"name": "n", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": u64::MAX}},
                {"name": "X-Key", "in": "header", "schema": {"type": "string", "pattern": "^[!-~]+$"}},
            ]},
            "post": {"requestBody": {"required": true}},
        }}}));
        let request = Request::builder()
            .method(method)
            .uri(uri)
            .header("x-key", "k")
            .body(body);
        let found = rules.faults("/a", &request.expect("a request"));
        found.into_iter().map(|fault| fault.pointer).collect()
    }

    #[test]
    fn what_the_document_forbids_is_named() {
        let get = |uri| faults("GET", uri, Body::empty());
        for sound in [
            "/a",
            "/a?q=%C3%BCab&n=1",
            "/a?n=18446744073709551615",
            "/a?other=%20",
            "/a?n=x",
            "/a?&",
        ] {
            assert!(get(sound).is_empty(), "{sound}");
        }
        for wrong in ["/a?q=", "/a?q", "/a?q=abcd", "/a?q=A", "/a?%71=A", "/a?q=a+b"] {
            assert_eq!(get(wrong), ["q"], "{wrong}");
        }
        assert_eq!(get("/a?n=0&n=18446744073709551616"), ["n", "n"]);
        assert_eq!(faults("HEAD", "/a?n=0", Body::empty()), ["n"]);
        for no_text in ["/a?q=%ff", "/a?%00=a", "/a?other=%C3", "/a?other=a%00b"] {
            assert_eq!(get(no_text), ["query"], "{no_text}");
        }
    }

    #[test]
    fn nothing_is_done_that_was_to_be_tried() {
        let of = |method, uri| faults(method, uri, Body::from("{}"));
        for uri in [
            "/a?dry_run=true",
            "/a?dry_run=false",
            "/a?q=a&dry%5Frun=1",
            "/a?dry_run",
        ] {
            assert_eq!(of("POST", uri), ["dry_run"], "{uri}");
        }
        assert!(of("POST", "/a?dry=true").is_empty() && of("GET", "/a?dry_run=true").is_empty());
    }

    #[test]
    fn a_body_that_is_wanted_must_be_there() {
        assert_eq!(faults("POST", "/a", Body::empty()), [""]);
        assert!(faults("POST", "/a", Body::from("{}")).is_empty());
        assert!(
            faults("PUT", "/a", Body::empty()).is_empty(),
            "the document knows no PUT"
        );
    }
}
