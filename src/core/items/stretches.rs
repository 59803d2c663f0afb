//! Sets of indexes in the form that people type: `5-9,12`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{INDEX_MAX, ItemIndex};

/// Maximum number of stretches in a set. Each run reads them with the settings of its task.
pub const STRETCHES_MAX: usize = 1_000;

/// Contiguous indexes from `first` up to, but excluding, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Lowest index of the stretch.
    pub first: ItemIndex,
    /// One past the highest index; greater than `first`.
    pub end: ItemIndex,
    /// Number of indexes in the stretches before this one.
    before: u64,
}

impl Stretch {
    fn len(self) -> u64 {
        self.end.0 - self.first.0
    }
}

/// Set of indexes: ordered stretches, none of which touches another. Stored in its text form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Stretches(Vec<Stretch>);

/// Reason why a text is not a valid set of indexes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StretchFault {
    /// A part of the text is neither an index nor a range.
    #[error("{0:?} is neither an index nor a range such as 9-20")]
    Part(String),
    /// The set would have this many stretches, more than [`STRETCHES_MAX`].
    #[error("these are {0} separate ranges of indexes; at most {STRETCHES_MAX} are kept")]
    TooMany(usize),
}

impl Stretches {
    /// Parses a set; its parts may overlap and come in any order.
    ///
    /// # Errors
    /// Fails if a part is neither an index nor a range, or if there are too many stretches; see [`StretchFault`].
    ///
    /// ```
    /// use windrow_core::ids::ItemIndex;
    /// use windrow_core::items::stretches::Stretches;
    ///
    /// let set = Stretches::parse("12,5-9,8-10").unwrap();
    /// assert_eq!(set.to_string(), "5-10,12");
    /// assert_eq!(set.items(), 7);
    /// assert!(set.contains(ItemIndex(10)) && !set.contains(ItemIndex(11)));
    /// ```
    pub fn parse(text: &str) -> Result<Stretches, StretchFault> {
        let parts = text.split(',').map(|part| bounds(part.trim()));
        Stretches::of(parts.collect::<Result<_, _>>()?)
    }

    /// Creates the set from pairs of first index and one past the last, in any order.
    fn of(mut bounds: Vec<(u64, u64)>) -> Result<Stretches, StretchFault> {
        bounds.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (first, end) in bounds {
            match joined.last_mut().filter(|last| first <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => joined.push((first, end)),
            }
        }
        if joined.len() > STRETCHES_MAX {
            return Err(StretchFault::TooMany(joined.len()));
        }
        let mut before = 0;
        let stretch = |(first, end): (u64, u64)| {
            let stretch = Stretch {
                first: ItemIndex(first),
                end: ItemIndex(end),
                before,
            };
            before += stretch.len();
            stretch
        };
        Ok(Stretches(joined.into_iter().map(stretch).collect()))
    }

    /// Returns the union of both sets.
    ///
    /// # Errors
    /// Fails with `TooMany` if the union has too many stretches.
    pub fn with(&self, more: &Stretches) -> Result<Stretches, StretchFault> {
        let both = self.0.iter().chain(&more.0);
        Stretches::of(both.map(|one| (one.first.0, one.end.0)).collect())
    }

    /// Returns true if the set has no indexes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of indexes in the set.
    pub fn items(&self) -> u64 {
        self.0.last().map_or(0, |last| last.before + last.len())
    }

    /// Iterates over the stretches in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Stretch> {
        self.0.iter().copied()
    }

    /// Returns one past the highest index, or 0 for an empty set.
    pub fn end(&self) -> ItemIndex {
        self.0.last().map_or(ItemIndex(0), |last| last.end)
    }

    /// Returns true if the set contains `index`.
    #[inline]
    pub fn contains(&self, index: ItemIndex) -> bool {
        self.end_at(index).is_some()
    }

    /// Returns the end of the stretch that contains `index`.
    #[inline]
    pub fn end_at(&self, index: ItemIndex) -> Option<ItemIndex> {
        self.from(index)
            .filter(|next| next.first <= index)
            .map(|next| next.end)
    }

    /// Returns the first index of the stretch that contains `index`.
    pub fn first_at(&self, index: ItemIndex) -> Option<ItemIndex> {
        self.from(index)
            .map(|next| next.first)
            .filter(|first| *first <= index)
    }

    /// Returns the lowest index of the set at or above `from`.
    #[inline]
    pub fn next(&self, from: ItemIndex) -> Option<ItemIndex> {
        self.from(from).map(|next| next.first.max(from))
    }

    /// Counts the indexes of the set in `[from, to)`.
    pub fn count(&self, from: ItemIndex, to: ItemIndex) -> u64 {
        self.below(to).saturating_sub(self.below(from))
    }

    fn below(&self, index: ItemIndex) -> u64 {
        match self.from(index) {
            Some(next) => next.before + index.0.saturating_sub(next.first.0),
            None => self.items(),
        }
    }

    /// Returns the first stretch that ends above `index`.
    fn from(&self, index: ItemIndex) -> Option<Stretch> {
        let at = self.0.partition_point(|one| one.end <= index);
        self.0.get(at).copied()
    }
}

/// Parses one part of a text into its first index and one past its last.
fn bounds(part: &str) -> Result<(u64, u64), StretchFault> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let number = |digits: &str| {
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| digits.parse::<u64>().ok()).flatten();
        number.filter(|number| *number < INDEX_MAX)
    };
    let both = number(first)
        .zip(number(last))
        .filter(|(first, last)| first <= last);
    let fault = || StretchFault::Part(part.chars().take(PART_SHOWN).collect());
    both.map(|(first, last)| (first, last + 1)).ok_or_else(fault)
}

/// Number of characters of an invalid part shown in the error.
const PART_SHOWN: usize = 40;

impl fmt::Display for Stretches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, stretch) in self.0.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match stretch.len() {
                1 => write!(f, "{comma}{}", stretch.first.0)?,
                _ => write!(f, "{comma}{}-{}", stretch.first.0, stretch.end.0 - 1)?,
            }
        }
        Ok(())
    }
}

impl From<Stretches> for String {
    fn from(set: Stretches) -> String {
        set.to_string()
    }
}

impl TryFrom<String> for Stretches {
    type Error = StretchFault;

    fn try_from(text: String) -> Result<Stretches, StretchFault> {
        match text.is_empty() {
            true => Ok(Stretches::default()),
            false => Stretches::parse(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> Stretches {
        Stretches::parse(text).expect("a set")
    }

    #[test]
    fn parts_are_ordered_and_joined_where_they_touch_and_the_text_is_read_back() {
        for (text, written) in [
            ("7", "7"),
            ("12,5-9", "5-9,12"),
            ("5-9,10,3-4", "3-10"),
            ("1-5, 2-3", "1-5"),
        ] {
            assert_eq!(set(text).to_string(), written);
            let json = serde_json::to_string(&set(text)).expect("JSON");
            assert_eq!(json, format!("{written:?}"));
            assert_eq!(serde_json::from_str::<Stretches>(&json).expect("JSON"), set(text));
        }
        let none: Stretches = serde_json::from_str("\"\"").expect("JSON");
        assert!(none.is_empty() && none.items() == 0);
    }

    #[test]
    fn what_names_no_index_is_refused() {
        for wrong in [
            "",
            "5,",
            "-3",
            "3-",
            "9-5",
            "a",
            "+1",
            "5..9",
            "9223372036854775807",
        ] {
            assert!(
                matches!(Stretches::parse(wrong), Err(StretchFault::Part(_))),
                "{wrong:?}"
            );
        }
    }

    #[test]
    fn a_set_says_what_is_in_it_and_how_many_of_a_range() {
        let set = set("5-9,12");
        for index in 0..20 {
            let is_in = (5..=9).contains(&index) || index == 12;
            assert_eq!(set.contains(ItemIndex(index)), is_in, "{index}");
            for from in 0..=index {
                let naive = (from..index)
                    .filter(|index| set.contains(ItemIndex(*index)))
                    .count();
                assert_eq!(set.count(ItemIndex(from), ItemIndex(index)), naive as u64);
            }
        }
        assert_eq!(set.end_at(ItemIndex(6)), Some(ItemIndex(10)));
        assert_eq!(set.first_at(ItemIndex(9)), Some(ItemIndex(5)));
        assert_eq!(set.next(ItemIndex(0)), Some(ItemIndex(5)));
        assert_eq!(set.next(ItemIndex(7)), Some(ItemIndex(7)));
        assert_eq!(set.next(ItemIndex(10)), Some(ItemIndex(12)));
        assert_eq!(set.next(ItemIndex(13)), None);
        assert_eq!(set.end(), ItemIndex(13));
    }

    #[test]
    fn so_many_stretches_are_kept_and_no_more() {
        let every_other = |from: u64, count: u64| {
            let parts: Vec<String> = (0..count).map(|at| (from + 2 * at).to_string()).collect();
            parts.join(",")
        };
        let all = set(&every_other(0, STRETCHES_MAX as u64));
        assert!(matches!(
            Stretches::parse(&every_other(0, STRETCHES_MAX as u64 + 1)),
            Err(StretchFault::TooMany(_))
        ));
        assert_eq!(
            all.with(&set("999999")),
            Err(StretchFault::TooMany(STRETCHES_MAX + 1))
        );
        assert_eq!(
            all.with(&set("0-1998")).map(|set| set.to_string()),
            Ok("0-1998".to_owned())
        );
    }
}
