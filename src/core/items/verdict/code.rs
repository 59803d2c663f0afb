//! Failure codes in one normalized form, so that they can be grouped, shown and typed.

use std::borrow::Cow;

use super::CODE_BYTES_MAX;

/// Normalizes a code to the form that is stored, shown and typed into commands: upper case, with each sequence of
/// characters other than letters, digits and `_` replaced by one `_`. Returns `UNNAMED` if nothing remains.
pub(super) fn code_of(code: Cow<'static, str>) -> Cow<'static, str> {
    let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if (1..=CODE_BYTES_MAX).contains(&code.len()) && code.chars().all(fits) {
        return code;
    }
    let mut clean = String::new();
    for c in code.chars().map(|c| c.to_ascii_uppercase()) {
        match fits(c) {
            true => clean.push(c),
            false if clean.ends_with('_') || clean.is_empty() => {}
            false => clean.push('_'),
        }
    }
    clean.truncate(CODE_BYTES_MAX);
    let clean = clean.trim_end_matches('_');
    if clean.is_empty() {
        return Cow::Borrowed("UNNAMED");
    }
    Cow::Owned(clean.to_owned())
}

/// Returns true if normalizing changes only the case and the separators of a code.
pub(super) fn is_near_code(code: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-./: ".contains(c);
    (1..=CODE_BYTES_MAX).contains(&code.len()) && code.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::super::Failure;
    use super::*;

    #[test]
    fn a_code_has_one_form_and_nothing_of_another_is_lost() {
        let table = [
            ("TIMEOUT", "TIMEOUT", "m"),
            ("rate-limited", "RATE_LIMITED", "m"),
            ("e 42.7", "E_42_7", "m"),
            (
                "X;touch${IFS}/tmp/p;#",
                "X_TOUCH_IFS_TMP_P",
                r#"(code "X;touch${IFS}/tmp/p;#") m"#,
            ),
            ("错误", "UNNAMED", "(code \"错误\") m"),
            ("_", "_", "m"),
        ];
        for (given, code, message) in table {
            let failure = Failure::new(given.to_owned(), "m");
            assert_eq!((&*failure.code, &*failure.message), (code, message));
        }
        let long = Failure::new("A".repeat(100), "m");
        assert_eq!(long.code, "A".repeat(CODE_BYTES_MAX));
        assert!(long.message.starts_with("(code \"AAA"), "{}", long.message);
    }
}
