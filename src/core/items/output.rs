//! Item output: the JSON that the handler returned with a success, bounded for storage.

use crate::handler::text::minified;

/// Maximum size of an output that is kept. Unit: bytes of minified JSON. A longer one still settles its item.
pub const OUTPUT_KEPT_MAX: usize = 64 << 10;
/// Code in the data log for an output that is too long to be kept.
pub const OUTPUT_TOO_LARGE: &str = "OUTPUT_TOO_LARGE";

/// Output of a success: JSON in one line, or its size if it is too large.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Minified JSON of at most [`OUTPUT_KEPT_MAX`] bytes.
    Json(Box<str>),
    /// Size of the output in bytes, more than are kept.
    TooLarge(usize),
}

impl Output {
    /// Creates the output from JSON text as the handler wrote it.
    pub fn of_json(json: &str) -> Output {
        Output::bounded(minified(json))
    }

    /// Creates the output from plain text, as a JSON string.
    pub fn of_text(text: &str) -> Output {
        Output::bounded(serde_json::Value::from(text).to_string())
    }

    fn bounded(json: String) -> Output {
        if json.len() > OUTPUT_KEPT_MAX {
            return Output::TooLarge(json.len());
        }
        Output::Json(json.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_and_nothing_else_changes() {
        let written = "{ \"a b\" : [ 1.50 ,\n\"x \\\" y\\\\\" , 1e400 ],\t\"e\":\"é\" }";
        let kept = r#"{"a b":[1.50,"x \" y\\",1e400],"e":"é"}"#;
        assert_eq!(Output::of_json(written), Output::Json(kept.into()));
    }

    #[test]
    fn a_text_is_a_json_string() {
        let said = Output::of_text("a\n\"b\"");
        assert_eq!(said, Output::Json(r#""a\n\"b\"""#.into()));
    }

    #[test]
    fn more_than_is_kept_is_measured_and_left_out() {
        let most = format!("\"{}\"", "x".repeat(OUTPUT_KEPT_MAX - 2));
        assert_eq!(Output::of_json(&most), Output::Json(most.as_str().into()));
        let more = format!(" {} ", format_args!("\"{}\"", "x".repeat(OUTPUT_KEPT_MAX - 1)));
        assert_eq!(Output::of_json(&more), Output::TooLarge(OUTPUT_KEPT_MAX + 1));
    }
}
