//! Documented parameter constraints, checked on every request: lengths, patterns and ranges of query parameters and
//! headers, required bodies, and the sizes inside bodies (`guard/bounds.rs`). A route states them once, in its
//! description, so no handler can forget them.
//!
//! The meaning of a parameter is left to the handler. So are paths: an impossible one is simply not found.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::HttpBody as _;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use percent_encoding::percent_decode;
use regex::Regex;
use serde_json::Value;

use crate::http::guard::bounds::Shape;
use crate::http::guard::dry_run;
use crate::http::problem::HttpResult;
use crate::service::{FieldFault, ServiceError};
use windrow_core::text::likeness::nearest;
use windrow_core::text::quoted;

/// Constraints of all operations, by method and path.
#[derive(Debug, Default)]
pub(crate) struct Rules(HashMap<(String, String), OperationRules>);

/// Constraints of one operation.
#[derive(Debug, Default)]
struct OperationRules {
    needs_body: bool,
    query: Vec<Rule>,
    headers: Vec<Rule>,
    body: Option<Shape>,
}

/// Constraints of one parameter.
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
    /// Reads the constraints from the OpenAPI document.
    ///
    /// # Panics
    /// If one of our own patterns is invalid; a test compiles them all.
    pub(crate) fn of(document: &Value) -> Rules {
        let mut rules = HashMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                rules.insert(
                    (method.to_ascii_uppercase(), path.clone()),
                    OperationRules::of(operation, document),
                );
            }
        }
        Rules(rules)
    }

    fn of_operation(&self, path: &str, method: &Method) -> Option<&OperationRules> {
        let method = match *method {
            Method::HEAD => "GET",
            _ => method.as_str(),
        };
        self.0.get(&(method.to_owned(), path.to_owned()))
    }

    fn faults(&self, path: &str, request: &Request) -> Vec<FieldFault> {
        let rules = self.of_operation(path, request.method());
        rules.map_or_else(Vec::new, |rules| rules.faults(request))
    }

    /// Returns the size limits of an operation's JSON body.
    pub(crate) fn body(&self, path: &str, method: &Method) -> Option<&Shape> {
        self.of_operation(path, method)?.body.as_ref()
    }
}

impl OperationRules {
    fn of(operation: &Value, document: &Value) -> OperationRules {
        let of_place = |place: &str| {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let here = parameters.filter(|parameter| parameter["in"] == place);
            here.map(|parameter| Rule::of(&parameter["name"], &parameter["schema"]))
                .collect()
        };
        OperationRules {
            needs_body: operation["requestBody"]["required"] == true,
            query: of_place("query"),
            headers: of_place("header"),
            body: Shape::of_body(operation, document),
        }
    }

    fn faults(&self, request: &Request) -> Vec<FieldFault> {
        let mut faults = Vec::new();
        if self.needs_body && request.body().is_end_stream() {
            faults.push(FieldFault::new("", "a body is required"));
        }
        let can_be_tried = self.query.iter().any(|rule| rule.name == dry_run::NAME);
        let is_write = !request.method().is_safe();
        for pair in request.uri().query().unwrap_or_default().split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (text(&name.replace('+', " ")), text(&value.replace('+', " ")))
            else {
                faults.push(FieldFault::new(
                    "query",
                    format!("{} must be UTF-8 without NUL", quoted(pair)),
                ));
                continue;
            };
            if let Some(rule) = self.query.iter().find(|rule| rule.name == name) {
                faults.extend(rule.fault(&value));
            } else if name == dry_run::NAME && is_write && !can_be_tried {
                let text = "this route doesn't support dry runs: its outcome can't be known in advance";
                faults.push(FieldFault::new(name, text));
            } else if !pair.is_empty() && !self.query.is_empty() {
                let known: Vec<&str> = self.query.iter().map(|rule| rule.name.as_str()).collect();
                let meant = nearest(&name, known.iter().map(|name| (*name).to_owned()));
                let meant = meant.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
                let fault = FieldFault::new(name, "unknown parameter");
                faults.push(fault.advise(format!("{meant}one of {}", known.join(", "))));
            }
        }
        faults.extend(
            self.headers
                .iter()
                .filter_map(|rule| rule.header_fault(request.headers())),
        );
        faults
    }
}

impl Rule {
    fn of(name: &Value, schema: &Value) -> Rule {
        let chars = |key: &str| schema[key].as_u64().and_then(|most| usize::try_from(most).ok());
        let bound = |key: &str| schema[key].as_number()?.as_i128();
        Rule {
            name: name.as_str().unwrap_or_default().to_owned(),
            least_chars: chars("minLength").unwrap_or(0),
            most_chars: chars("maxLength").unwrap_or(usize::MAX),
            pattern: schema["pattern"]
                .as_str()
                .map(|text| Regex::new(text).expect("a pattern of ours")),
            least: bound("minimum"),
            most: bound("maximum"),
        }
    }

    /// Returns the reason why a value is invalid, if it is.
    fn fault(&self, value: &str) -> Option<FieldFault> {
        let fault = |text: String| Some(FieldFault::new(self.name.clone(), text));
        let chars = value.chars().count();
        if chars < self.least_chars {
            return fault(format!("must have at least {} characters", self.least_chars));
        }
        if chars > self.most_chars {
            return fault(format!("must have at most {} characters", self.most_chars));
        }
        if let Some(pattern) = self.pattern.as_ref().filter(|pattern| !pattern.is_match(value)) {
            return fault(format!("{} doesn't match {pattern}", quoted(value)));
        }
        // Values that aren't numbers are left to the handler, which reports what it expects.
        let number: i128 = value.parse().ok()?;
        match (self.least, self.most) {
            (Some(least), _) if number < least => fault(format!("must be at least {least}")),
            (_, Some(most)) if number > most => fault(format!("must be at most {most}")),
            _ => None,
        }
    }

    fn header_fault(&self, headers: &HeaderMap) -> Option<FieldFault> {
        match headers.get(self.name.as_str())?.to_str() {
            Ok(value) => self.fault(value),
            Err(_) => Some(FieldFault::new(self.name.clone(), "must be visible ASCII")),
        }
    }
}

/// Decodes percent-encoded text; `None` if it isn't UTF-8 or contains NUL, which databases can't store.
fn text(encoded: &str) -> Option<String> {
    let decoded = percent_decode(encoded.as_bytes()).decode_utf8().ok()?;
    (!decoded.contains('\0')).then(|| decoded.into_owned())
}

/// Middleware that rejects requests which violate the documented constraints.
pub(crate) async fn hold(
    State(rules): State<Arc<Rules>>,
    path: MatchedPath,
    request: Request,
    next: Next,
) -> HttpResult {
    let mut faults = rules.faults(path.as_str(), &request);
    if text(request.uri().path()).is_none() {
        faults.push(FieldFault::new("path", "must be UTF-8 without NUL"));
    }
    if faults.is_empty() {
        return Ok(next.run(request).await);
    }
    Err(ServiceError::Invalid(faults).into())
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
    fn a_mistyped_parameter_is_named_with_the_one_that_is_meant() {
        let rules = Rules::of(&json!({"paths": {"/a": {"get": {"parameters": [
            {"name": "business", "in": "query", "schema": {"type": "string"}},
            {"name": "limit", "in": "query", "schema": {"type": "integer"}},
        ]}}}}));
        let request = Request::builder().uri("/a?limt=3").body(Body::empty());
        let faults = rules.faults("/a", &request.expect("a request"));
        assert_eq!(
            (faults[0].pointer.as_str(), faults[0].detail.as_str()),
            ("limt", "unknown parameter")
        );
        let advice = faults[0].advice.as_deref();
        assert_eq!(advice, Some("did you mean limit? one of business, limit"));
    }

    #[test]
    fn what_the_document_forbids_is_named() {
        let get = |uri| faults("GET", uri, Body::empty());
        for sound in [
            "/a",
            "/a?q=%C3%BCab&n=1",
            "/a?n=18446744073709551615",
            "/a?n=x",
            "/a?&",
        ] {
            assert!(get(sound).is_empty(), "{sound}");
        }
        for wrong in ["/a?q=", "/a?q", "/a?q=abcd", "/a?q=A", "/a?%71=A", "/a?q=a+b"] {
            assert_eq!(get(wrong), ["q"], "{wrong}");
        }
        assert_eq!(get("/a?other=%20"), ["other"], "the document doesn't know it");
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
        assert!(of("POST", "/a?dry=true").is_empty());
        assert_eq!(
            of("GET", "/a?dry_run=true"),
            ["dry_run"],
            "as any parameter that it doesn't know"
        );
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
