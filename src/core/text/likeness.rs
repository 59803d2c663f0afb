//! Suggestions for a misspelled name.

/// Maximum length of a name that is suggested: the cost grows with the product of the lengths. Unit: bytes.
const NAME_BYTES_MAX: usize = 256;
/// Maximum length of a text that is compared. Unit: characters.
pub const COMPARED_CHARS_MAX: usize = 64;
const LIKE_ENOUGH: f64 = 0.8;

/// Returns the existing name that is most similar to a wrong one, if any is similar enough. A text of more than
/// [`COMPARED_CHARS_MAX`] characters has none.
pub fn nearest(wrong: &str, names: impl Iterator<Item = String>) -> Option<String> {
    if !is_comparable(wrong) {
        return None;
    }
    let near = names
        .filter(|name| name.len() <= NAME_BYTES_MAX)
        .map(|name| (strsim::jaro_winkler(wrong, &name), name));
    let near = near
        .filter(|(likeness, _)| *likeness > LIKE_ENOUGH)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    near.map(|(_, name)| name)
}

/// Returns true if the text is short enough to be compared with many others.
pub fn is_comparable(text: &str) -> bool {
    text.chars().nth(COMPARED_CHARS_MAX).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_too_long_is_compared_with_nothing() {
        let names = || ["Europe/Berlin".to_owned(), "UTC".to_owned()].into_iter();
        assert_eq!(nearest("Europe/Berln", names()).as_deref(), Some("Europe/Berlin"));
        assert_eq!(nearest("x", names()), None);
        let never = std::iter::from_fn(|| -> Option<String> { panic!("it is compared") });
        assert_eq!(nearest(&"E".repeat(COMPARED_CHARS_MAX + 1), never), None);
    }
}
