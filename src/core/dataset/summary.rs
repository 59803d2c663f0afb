//! Summaries: reduce responses, validated and minified for storage.

use serde::de::IgnoredAny;
use windrow_words::business as say;

use super::SUMMARY_BYTES_MAX;
use crate::handler::text::minified;

/// Reason why a response is not a summary.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SummaryFault {
    /// The response is empty or white space.
    #[error("{}", say::summary_empty())]
    Empty,
    /// The response is not JSON.
    #[error("{}", say::summary_not_json(.0))]
    NoJson(String),
    /// The response exceeds the size limit.
    #[error("{}", say::summary_too_large(SUMMARY_BYTES_MAX))]
    TooLarge,
}

/// Returns the summary in a response, whose reader has limited it to one byte more than a summary may have.
///
/// # Errors
/// Any [`SummaryFault`] of the response.
pub fn summary(answer: &[u8]) -> Result<Box<str>, SummaryFault> {
    if answer.len() > SUMMARY_BYTES_MAX {
        return Err(SummaryFault::TooLarge);
    }
    let text = std::str::from_utf8(answer).map_err(|fault| SummaryFault::NoJson(fault.to_string()))?;
    if text.trim().is_empty() {
        return Err(SummaryFault::Empty);
    }
    serde_json::from_str::<IgnoredAny>(text).map_err(|fault| SummaryFault::NoJson(fault.to_string()))?;
    Ok(minified(text).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_json_of_a_bounded_size_kept_without_white_space() {
        assert_eq!(
            summary(b" {\"teams\": [1.50, 12345678901234567890123]}\n").as_deref(),
            Ok("{\"teams\":[1.50,12345678901234567890123]}")
        );
        assert_eq!(summary(b" \n"), Err(SummaryFault::Empty));
        assert!(matches!(summary(b"{} {}"), Err(SummaryFault::NoJson(_))));
        assert!(matches!(summary(b"\"\xff\""), Err(SummaryFault::NoJson(_))));
        let most = format!("\"{}\"", "x".repeat(SUMMARY_BYTES_MAX - 2));
        assert_eq!(summary(most.as_bytes()).as_deref(), Ok(most.as_str()));
        assert_eq!(
            summary(format!("{most} ").as_bytes()),
            Err(SummaryFault::TooLarge)
        );
    }
}
