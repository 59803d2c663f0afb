//! Validation of settings, parameters, names and labels, shared by create, clone and change.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::service::tasks::Tasks;
use crate::service::{FieldFault, ServiceError};
use windrow_core::business::{BusinessLimits, HandlerSpec};
use windrow_core::capacity::Load;
use windrow_core::ids::WallMs;
use windrow_core::life::is_start_over;
use windrow_core::settings::check;
use windrow_core::settings::table::TuningPatch;
use windrow_core::settings::{Auto, RateLimit};
use windrow_core::shards::SHARDS_MAX;
use windrow_core::task::spec::{Shards, SpecPatch};
use windrow_core::task::{NAME_CHARS_MAX, Tuning};
use windrow_core::text::likeness::nearest;
use windrow_core::text::names;
use windrow_engine::ports::access::business_store::Business;

/// Deepest nesting of JSON that is kept as raw text. serde_json reads up to 128 levels, and the text is stored inside
/// other JSON.
pub const DEPTH_MAX: usize = 100;
/// Most names searched for a similar one when a name is unknown.
pub(crate) const LOOKED_THROUGH_MAX: u32 = 1000;
/// Most labels per task.
pub const LABELS_MAX: usize = 32;
/// Longest label key, in bytes.
pub const LABEL_KEY_BYTES_MAX: usize = 63;
/// Longest label value, in characters.
pub const LABEL_VALUE_CHARS_MAX: usize = 255;

impl Tasks {
    /// Returns the settings of a task: the node's defaults, overridden by the business's, overridden by the
    /// request's.
    pub(crate) fn settings(&self, business: &Business, named: &TuningPatch) -> Result<Tuning, ServiceError> {
        let node = self.node.config().task_defaults.tuning.clone();
        let mut base = business.spec.defaults.apply(&node);
        if named.ordered == Some(true) {
            // Reset defaults that an ordered task can't have.
            base.batch = NonZeroU32::MIN;
            base.concurrency = Auto::Auto;
        }
        self.checked_settings(named.apply(&base), business)
    }

    /// Checks that settings are valid, permitted on this node, and within the limits of the business. Returns them,
    /// with the rate of the business as the ceiling of `auto`.
    pub(crate) fn checked_settings(
        &self,
        mut tuning: Tuning,
        business: &Business,
    ) -> Result<Tuning, ServiceError> {
        let limits = &business.spec.limits;
        if tuning.rate == RateLimit::Auto(None) {
            tuning.rate = RateLimit::Auto(limits.rate);
        }
        let mut faults: Vec<FieldFault> = check::faults(&tuning)
            .into_iter()
            .map(|fault| FieldFault::new(format!("/{}", fault.key), fault.what).advise(fault.advice))
            .collect();
        faults.extend(self.rate_fault(&tuning, limits));
        if is_request(business) && tuning.batch != NonZeroU32::MIN {
            let text = format!("must be 1: {} sends one item per request", business.slug);
            faults.push(FieldFault::new("/batch", text).advise("1"));
        }
        if let (Auto::Fixed(asked), Some(most)) = (tuning.concurrency, limits.concurrency)
            && asked > most
        {
            let text = format!("{asked} exceeds {most}, the limit for all tasks of the business");
            faults.push(FieldFault::new("/concurrency", text).advise(format!("{most}, or \"auto\"")));
        }
        ServiceError::refuse(faults).map(|()| tuning)
    }

    fn rate_fault(&self, tuning: &Tuning, limits: &BusinessLimits) -> Option<FieldFault> {
        let node = &self.node.config().node;
        if tuning.rate == RateLimit::Unlimited && !node.allow_unlimited {
            let text = "\"unlimited\" is not allowed on this node (node.allow_unlimited)";
            return Some(FieldFault::new("/rate", text).advise("a rate such as \"500/s\", or \"auto\""));
        }
        let load = Load::needed_by(tuning.rate.most().unwrap_or(node.unlimited_reserves));
        let most = limits.rate?;
        (load > Load::needed_by(most)).then(|| {
            let text = format!(
                "{} exceeds {most}, the limit for all tasks of the business",
                tuning.rate
            );
            let bounded = match tuning.rate {
                RateLimit::Auto(_) => format!("\"{}\"", RateLimit::Auto(Some(most))),
                _ => format!("at most \"{most}\""),
            };
            FieldFault::new("/rate", text).advise(bounded)
        })
    }

    /// Rejects attributes that no task may have.
    pub(crate) fn check_spec(&self, spec: &SpecPatch) -> Result<(), ServiceError> {
        if let Some(Some(name)) = &spec.name {
            check_name(name)?;
        }
        if let Some(labels) = &spec.labels {
            check_labels(labels)?;
        }
        if let Some(Some(params)) = &spec.params {
            self.check_params(params)?;
        }
        spec.shards.map_or(Ok(()), check_shards)
    }

    /// Checks that parameters are small enough to be sent with each call.
    pub(crate) fn check_params(&self, params: &str) -> Result<(), ServiceError> {
        let most = self.node.config().task_defaults.max_params;
        if params.len() as u64 > most.0 {
            let text = format!("{} bytes exceed task_defaults.max_params ({most})", params.len());
            return Err(ServiceError::unprocessable("/params", text));
        }
        check_depth("/params", params)
    }

    /// Checks that a start time isn't in the past.
    pub(crate) fn check_start(&self, at: Option<WallMs>) -> Result<(), ServiceError> {
        match at {
            Some(at) if is_start_over(at, self.node.now()) => Err(ServiceError::unprocessable(
                "/start_at",
                format!(
                    "{} is in the past: use a future time, or none to start now",
                    at.to_rfc3339()
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Checks that a deadline is in the future.
    pub(crate) fn check_deadline(&self, deadline: Option<WallMs>) -> Result<(), ServiceError> {
        match deadline {
            Some(at) if at <= self.node.now() => Err(ServiceError::unprocessable(
                "/deadline",
                format!("{} is in the past", at.to_rfc3339()),
            )),
            _ => Ok(()),
        }
    }
}

/// Rejects more shards than a task may have.
fn check_shards(shards: Shards) -> Result<(), ServiceError> {
    match shards.0 {
        Auto::Fixed(shards) if shards.get() > SHARDS_MAX => {
            let text = format!("{shards} exceeds the maximum of {SHARDS_MAX} shards per task");
            Err(ServiceError::unprocessable("/shards", text))
        }
        _ => Ok(()),
    }
}

/// Returns true if the handler is an API that doesn't know Windrow.
fn is_request(business: &Business) -> bool {
    matches!(business.spec.handler, HandlerSpec::Request(_))
}

/// Returns advice for an unknown name: a similar one, and the existing ones.
pub(crate) fn one_of(wrong: &str, names: &[String]) -> String {
    let like = nearest(wrong, names.iter().cloned());
    let guess = like
        .map(|like| format!("did you mean {like}? "))
        .unwrap_or_default();
    format!("{guess}one of the existing ones: {}", names.join(", "))
}

/// Checks that raw JSON can be parsed again later, because parsers reject deep nesting.
pub(crate) fn check_depth(pointer: &str, json: &str) -> Result<(), ServiceError> {
    if depth(json) > DEPTH_MAX {
        let text = format!("must not be nested more than {DEPTH_MAX} levels deep");
        return Err(ServiceError::unprocessable(pointer, text));
    }
    Ok(())
}

/// Returns the nesting depth of valid JSON.
fn depth(json: &str) -> usize {
    let (mut depth, mut most, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            _ if in_text => {}
            b'[' | b'{' => {
                depth += 1;
                most = most.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// Checks that a text is usable as a task name, which appears in URLs and shells.
pub(crate) fn check_name(name: &str) -> Result<(), ServiceError> {
    let is_fit = |c: char| !c.is_control() && !c.is_whitespace() && c != '/';
    let count = name.chars().count();
    if count == 0 || count > NAME_CHARS_MAX || !name.chars().all(is_fit) {
        let text = format!("must be 1 to {NAME_CHARS_MAX} characters without spaces and slashes");
        return Err(ServiceError::unprocessable("/name", text));
    }
    names::fault(name).map_or(Ok(()), |why| {
        Err(ServiceError::unprocessable("/name", format!("it {why}")))
    })
}

/// Checks that labels can be stored, and searched as `key:value`.
pub(crate) fn check_labels(labels: &BTreeMap<String, String>) -> Result<(), ServiceError> {
    let is_key = |key: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        (1..=LABEL_KEY_BYTES_MAX).contains(&key.len()) && key.chars().all(fits)
    };
    let is_value =
        |value: &str| value.chars().count() <= LABEL_VALUE_CHARS_MAX && !value.chars().any(char::is_control);
    let mut faults = Vec::new();
    if labels.len() > LABELS_MAX {
        faults.push(FieldFault::new(
            "/labels",
            format!("a task may have at most {LABELS_MAX} labels"),
        ));
    }
    for (key, value) in labels {
        if !is_key(key) {
            let text =
                format!("a key must be 1 to {LABEL_KEY_BYTES_MAX} of the characters a-z A-Z 0-9 . _ -");
            faults.push(FieldFault::new("/labels", text));
        } else if !is_value(value) {
            let text = format!(
                "a value must be at most {LABEL_VALUE_CHARS_MAX} characters without control characters"
            );
            faults.push(FieldFault::new(format!("/labels/{key}"), text));
        } else if let Some(why) = names::fault(value) {
            faults.push(FieldFault::new(format!("/labels/{key}"), format!("it {why}")));
        }
    }
    ServiceError::refuse(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_nested_as_deeply_as_it_can_be_read_again() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        assert!(check_depth("/params", &nested(DEPTH_MAX)).is_ok());
        assert!(check_depth("/params", &nested(DEPTH_MAX + 1)).is_err());
        assert_eq!(depth(r#"{"a":["\"[[[\\",{"b":{}}],"[":[]}"#), 4);
        assert_eq!(depth("1"), 0);
    }

    #[test]
    fn names_and_labels_are_what_can_be_said_in_a_url() {
        assert!(check_name("black-friday_2026.中").is_ok());
        for wrong in [
            "",
            "a b",
            "a/b",
            "a\u{7}",
            "p\u{430}ypal",
            "a\u{202E}b",
            "a\u{200B}b",
            "＝a",
            &"x".repeat(NAME_CHARS_MAX + 1),
        ] {
            assert!(check_name(wrong).is_err(), "{wrong:?}");
        }
        let of = |key: &str, value: &str| BTreeMap::from([(key.to_owned(), value.to_owned())]);
        assert!(check_labels(&of("team", "growth & more")).is_ok());
        for (key, value) in [
            ("", "x"),
            ("a:b", "x"),
            ("ä", "x"),
            ("a", "x\n"),
            ("a", "\u{202E}x"),
        ] {
            assert!(check_labels(&of(key, value)).is_err(), "{key:?} {value:?}");
        }
    }
}
