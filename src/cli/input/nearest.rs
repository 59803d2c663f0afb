//! Suggestion of the known word closest to a mistyped one.

use std::collections::BTreeSet;

/// Returns the word with the fewest typing errors: at most one in words of up to 4 letters, two in longer ones. A
/// short word of the same length must have the same letters, otherwise it counts as another word.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_short = word.chars().count() <= 4;
    let slips_max = if is_short { 1 } else { 2 };
    let letters = |word: &str| word.chars().collect::<BTreeSet<char>>();
    let may = |known: &str| !is_short || word.len() != known.len() || letters(word) == letters(known);
    let near = known
        .filter(|known| may(known))
        .map(|known| (strsim::osa_distance(word, known), known));
    near.filter(|(slips, _)| *slips <= slips_max)
        .min()
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_short_word_is_no_slip() {
        assert_eq!(nearest("nope", ["node", "task"].into_iter()), None);
        assert_eq!(nearest("ndoe", ["node", "task"].into_iter()), Some("node"));
        assert_eq!(nearest("tas", ["node", "task"].into_iter()), Some("task"));
    }
}
