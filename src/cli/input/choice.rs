//! Selection of items by index: `3`, `0..5`, `1,2,17`.

/// Largest number of items for `windrow try`.
const ITEMS_MAX: usize = 1000;

/// Picked indexes in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice(pub Vec<u64>);

/// Parses a selection of indexes.
///
/// # Errors
/// The message shows the accepted forms.
pub fn parse(text: &str) -> Result<Choice, String> {
    let mut picked = Vec::new();
    for part in text.split(',').map(str::trim) {
        let bad = || format!("{part:?} is not an index or range; try 3, 0..5 or 1,2,17");
        let range = match part.split_once("..") {
            Some((first, end)) => {
                first.parse::<u64>().map_err(|_| bad())?..end.parse::<u64>().map_err(|_| bad())?
            }
            None => {
                let index = part.parse::<u64>().map_err(|_| bad())?;
                index..index.checked_add(1).ok_or_else(bad)?
            }
        };
        if range.start > range.end {
            let meant = format!("{}..{}", range.end, range.start.saturating_add(1));
            return Err(format!(
                "{part:?} is reversed: the first index comes before the end, which is excluded; try \
                    {meant}"
            ));
        }
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        if len == 0 || len.saturating_add(picked.len()) > ITEMS_MAX {
            return Err(format!(
                "{part:?} selects no items, or more than {ITEMS_MAX} in all"
            ));
        }
        picked.extend(range);
    }
    Ok(Choice(picked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_leave_out_their_end_and_lists_keep_their_order() {
        assert_eq!(parse("0..3"), Ok(Choice(vec![0, 1, 2])));
        assert_eq!(parse("17, 1,4..6"), Ok(Choice(vec![17, 1, 4, 5])));
        for bad in [
            "",
            "a",
            "3..3",
            "5..2",
            "-1",
            "0..100000",
            "1,,2",
            "18446744073709551615",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let reversed = parse("1,5..3").expect_err("it is reversed");
        assert!(
            reversed.contains("\"5..3\" is reversed") && reversed.contains("try 3..6"),
            "{reversed}"
        );
    }
}
