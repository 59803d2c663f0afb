//! Problem details of a refused request (RFC 9457). Read leniently: missing members are empty.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::businesses::Check;

/// Problem details (RFC 9457).
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// URL that identifies the kind of problem and documents it.
    #[serde(default, rename = "type")]
    #[schema(required)]
    pub kind: String,
    /// Short title of this kind of problem.
    #[serde(default)]
    #[schema(required)]
    pub title: String,
    /// HTTP status of the response.
    #[serde(default)]
    #[schema(required)]
    pub status: u16,
    /// Explanation of this occurrence.
    #[serde(default)]
    #[schema(required)]
    pub detail: String,
    /// Path of the request.
    #[serde(default)]
    #[schema(required)]
    pub instance: String,
    /// Suggested fixes, in order.
    #[serde(default, rename = "try")]
    #[schema(required)]
    pub advice: Vec<String>,
    /// Id of the request.
    #[serde(default)]
    #[schema(required)]
    pub request_id: String,
    /// All faults found in the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ProblemField>,
    /// Additional members, by kind of problem: `allowed`, `max_rate`, `check_report`, `reason`, `missing` (path of a
    /// referenced object that doesn't exist).
    #[serde(flatten)]
    #[schema(value_type = serde_json::Map<String, serde_json::Value>)]
    pub more: ProblemMore,
}

/// Members that only some kinds of problems have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemMore {
    /// Actions allowed in the task's present state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed: Option<Vec<String>>,
    /// Checks of a handler that breaks the contract.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_report: Option<Vec<Check>>,
    /// Free rate of each node that lacks capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_rate: Option<BTreeMap<String, String>>,
    /// Path of a referenced object that doesn't exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// Reason why compressed data can't be unpacked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// One fault of a request.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct ProblemField {
    /// Location: a JSON pointer into the body, or the name of a parameter.
    #[serde(default)]
    #[schema(required)]
    pub pointer: String,
    /// Explanation of the fault.
    #[serde(default)]
    #[schema(required)]
    pub detail: String,
    /// Suggested fix, if any.
    #[serde(rename = "try", skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Problem {
    /// Returns the last segment of its type, such as `no-capacity`.
    pub fn slug(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the path of the missing object: the requested one, or one that the body references.
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
