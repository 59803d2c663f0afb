//! Why a request was refused (RFC 9457). It is read with patience: what is missing is empty.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::businesses::Check;

/// A problem (RFC 9457).
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// Its kind: a page about it.
    #[serde(default, rename = "type")]
    #[schema(required)]
    pub kind: String,
    /// Its kind in a few words.
    #[serde(default)]
    #[schema(required)]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    #[schema(required)]
    pub status: u16,
    /// What happened here.
    #[serde(default)]
    #[schema(required)]
    pub detail: String,
    /// The path that was asked for.
    #[serde(default)]
    #[schema(required)]
    pub instance: String,
    /// What to try.
    #[serde(default, rename = "try")]
    #[schema(required)]
    pub advice: Vec<String>,
    /// The request's number.
    #[serde(default)]
    #[schema(required)]
    pub request_id: String,
    /// Each fault of the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemField>,
    /// More, by kind of problem: `allowed`, `max_rate`, `check_report`, `reason`, `missing` (the path of what was named and
    /// isn't there).
    #[serde(flatten)]
    #[schema(value_type = serde_json::Map<String, serde_json::Value>)]
    pub more: ProblemMore,
}

/// Members that only some kinds of problems have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemMore {
    /// Actions that a task in its present state takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Checks of a handler that breaks the contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_report: Option<Vec<Check>>,
    /// Free rate of each node that lacks capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<BTreeMap<String, String>>,
    /// Path of what was named and isn't there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Why compressed data can't be unpacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One thing that is wrong with a request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ProblemField {
    /// Where, as a JSON pointer into the body, or the name of a parameter.
    #[serde(default)]
    #[schema(required)]
    pub pointer: String,
    /// What is wrong.
    #[serde(default)]
    #[schema(required)]
    pub detail: String,
    /// What would do.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Problem {
    /// The last part of its type, such as `no-capacity`.
    pub fn slug(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }

    /// The path of what isn't there: what was asked for, or what the body named.
    pub fn missing(&self) -> Option<&str> {
        let asked = Some(&self.instance).filter(|path| self.slug() == "not-found" && !path.is_empty());
        self.more.missing.as_ref().or(asked).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_is_read_with_all_that_is_beside_it() {
        let body = r#"{"type":"http://n1/problems/no-capacity","title":"T","status":409,"detail":"D","instance":"/v1",
            "request_id":"r","try":["a","b"],"errors":[{"pointer":"/rate","detail":"too high"}],"max_rate":{"n1":"8/s"}}"#;
        let problem: Problem = serde_json::from_str(body).expect("a problem");
        assert_eq!((problem.slug(), problem.advice.len()), ("no-capacity", 2));
        assert_eq!(
            (problem.errors[0].pointer.as_str(), &problem.errors[0].advice),
            ("/rate", &None)
        );
        assert_eq!(problem.more.max_rate.expect("rates")["n1"], "8/s");
        let bare: Problem = serde_json::from_str("{}").expect("patience");
        assert!(bare.slug().is_empty() && bare.missing().is_none());
    }
}
