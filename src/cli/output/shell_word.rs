//! Quoting of values in printed commands, which people copy into a shell.

use std::borrow::Cow;

use super::table::clean;

/// Returns a value as one word of a command, quoted if a shell would split or expand it, and safe for a terminal.
pub(crate) fn shell_word(value: &str) -> String {
    let value = clean(value);
    // Only a NUL can't be quoted, and `clean` removes it.
    shlex::try_quote(&value).map_or_else(|_| String::new(), Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_one_word_whatever_a_handler_chose() {
        for value in [
            "TIMEOUT",
            "X;touch${IFS}/tmp/p;#",
            "it's `id`",
            "a b",
            "",
            "*",
            "~",
        ] {
            assert_eq!(shlex::split(&shell_word(value)), Some(vec![value.to_owned()]));
        }
        assert_eq!(shell_word("a\0\u{1b}[2J\n"), "'a\u{FFFD}\u{FFFD}[2J '");
    }
}
