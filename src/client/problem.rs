//! Problems as a node tells them (RFC 9457). Everything in one is read with patience: what is missing is empty.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Why a node refused a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// Its kind, the address of a page about it; see [`Problem::slug`].
    #[serde(rename = "type")]
    pub kind: String,
    /// Its kind in a few words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened here.
    pub detail: String,
    /// What to try.
    #[serde(rename = "try")]
    pub advice: Vec<String>,
    /// The request's number, also in the node's log.
    pub request_id: String,
    /// Each fault of the request.
    pub errors: Vec<ProblemField>,
    /// More, by kind of problem: `allowed`, `max_rate`, `check_report`.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

/// One thing that is wrong with a request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ProblemField {
    /// Where, as a JSON pointer into the body, or the name of a parameter.
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
    /// What would do.
    #[serde(rename = "try")]
    pub advice: Option<String>,
}

impl Problem {
    /// The path of what isn't there: what was asked for, or what the body named.
    pub fn missing(&self) -> Option<&str> {
        let asked = self.more.get("instance").filter(|_| self.slug() == "not-found");
        self.more.get("missing").or(asked)?.as_str()
    }

    /// The last part of its type, e.g. `no-capacity`.
    pub fn slug(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }

    /// The problem of an answer, if its body is one.
    pub(super) fn read(status: u16, content_type: &str, body: &[u8]) -> Option<Problem> {
        if !content_type.starts_with("application/problem+json") {
            return None;
        }
        let problem: Problem = serde_json::from_slice(body).ok()?;
        Some(Problem { status, ..problem })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_read_with_all_that_is_beside_it() {
        let body = br#"{"type":"http://n1/problems/no-capacity","title":"T","status":409,"detail":"D","instance":"/v1",
            "request_id":"r","try":["a","b"],"errors":[{"pointer":"/rate","detail":"too high"}],"max_rate":{"n1":"8/s"}}"#;
        let problem = Problem::read(409, "application/problem+json", body).expect("a problem");
        assert_eq!((problem.slug(), problem.advice.len()), ("no-capacity", 2));
        assert_eq!(
            (problem.errors[0].pointer.as_str(), &problem.errors[0].advice),
            ("/rate", &None)
        );
        assert_eq!(problem.more["max_rate"]["n1"], "8/s");
        assert!(Problem::read(409, "text/html", b"<h1>").is_none());
        assert!(
            Problem::read(500, "application/problem+json", b"{}")
                .expect("patience")
                .slug()
                .is_empty()
        );
    }
}
