//! The known word that a mistyped one is most like.

use std::collections::BTreeSet;

/// The word with the fewest slips of the finger between: one in short words, two in others. A short word with another
/// letter in it is another word.
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
