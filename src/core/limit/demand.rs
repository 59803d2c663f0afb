//! Demand of a session's runs for a limit, compact enough for a database row.

use serde::{Deserialize, Serialize};

/// Parts of a slot in which demand for slots is counted.
pub const SLOT_PARTS: u64 = 100;
/// Maximum number of groups in a row; excess groups are merged upwards.
const GROUPS_MAX: usize = 24;

/// Amount that each weight of the group asks for, and the sum of the weights of its runs: a run of weight 10 counts as
/// ten of a tenth of its demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Group(pub u64, pub u32);

/// Demand of runs: groups of equal demand, the lowest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Wishes(Vec<Group>);

impl Wishes {
    /// Groups the demands of runs; a run without demand isn't counted. If there are too many different values,
    /// neighbours are merged into the greater of the two.
    pub fn of(wishes: impl IntoIterator<Item = u64>) -> Wishes {
        let mut each: Vec<u64> = wishes.into_iter().filter(|wish| *wish > 0).collect();
        each.sort_unstable();
        let mut groups: Vec<Group> = Vec::new();
        for wish in each {
            match groups.last_mut() {
                Some(last) if last.0 == wish => last.1 += 1,
                _ => groups.push(Group(wish, 1)),
            }
        }
        while groups.len() > GROUPS_MAX {
            join_nearest(&mut groups);
        }
        Wishes(groups)
    }

    /// Groups the demands of runs by their weights.
    pub fn weighted(wishes: impl IntoIterator<Item = (u64, u32)>) -> Wishes {
        Wishes::of(wishes.into_iter().flat_map(|(wish, weight)| {
            let each = wish.div_ceil(u64::from(weight.max(1)));
            std::iter::repeat_n(each, weight.max(1) as usize)
        }))
    }

    /// Returns the groups, the lowest first.
    pub fn groups(&self) -> &[Group] {
        &self.0
    }

    /// Returns true if no run asks for anything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the sum of the weights of the runs with demand.
    pub fn weight(&self) -> u64 {
        self.0.iter().map(|group| u64::from(group.1)).sum()
    }

    /// Returns the total demand if no weight gets more than `level`.
    pub fn up_to(&self, level: u64) -> u64 {
        let each = self
            .0
            .iter()
            .map(|group| group.0.min(level).saturating_mul(u64::from(group.1)));
        each.fold(0, u64::saturating_add)
    }

    /// Returns the weight that asks for more than `level`.
    pub fn above(&self, level: u64) -> u64 {
        self.0
            .iter()
            .filter(|group| group.0 > level)
            .map(|group| u64::from(group.1))
            .sum()
    }
}

/// Merges the two groups that are nearest by their ratio.
fn join_nearest(groups: &mut Vec<Group>) {
    let ratio = |at: &usize| u128::from(groups[at + 1].0) * 1024 / u128::from(groups[*at].0);
    let Some(at) = (0..groups.len().saturating_sub(1)).min_by_key(ratio) else {
        return;
    };
    let joined = groups.remove(at);
    groups[at].1 += joined.1;
}

/// Demand of a session's runs for a limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Demand {
    /// Demanded rates, in the unit of [`super::Part::rate`].
    pub rates: Wishes,
    /// Demanded number of items in flight, in hundredths: so a run of weight 100 can ask for one.
    pub slots: Wishes,
    /// Number of items in the largest batch.
    pub batch: u32,
    /// Number of runs that want something.
    #[serde(default)]
    pub runs: u32,
}

impl Demand {
    /// Returns true if no run wants anything now.
    pub fn is_idle(&self) -> bool {
        self.rates.is_empty() && self.slots.is_empty()
    }
}

/// Rounds up to three significant bits, so that small changes don't change the demand.
pub fn rounded(wish: u64) -> u64 {
    let bits = u64::BITS - wish.leading_zeros();
    if bits <= 3 {
        return wish;
    }
    let step = 1_u64 << (bits - 3);
    wish.div_ceil(step).saturating_mul(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_wishes_are_one_group_and_none_is_not_counted() {
        let wishes = Wishes::of([5, 0, 7, 5]);
        assert_eq!(wishes.groups(), [Group(5, 2), Group(7, 1)]);
        assert_eq!((wishes.weight(), wishes.up_to(6), wishes.above(5)), (3, 16, 1));
        assert!(Wishes::of([0, 0]).is_empty());
    }

    #[test]
    fn a_run_of_weight_10_is_ten_of_a_tenth() {
        let wishes = Wishes::weighted([(50, 10), (3, 1)]);
        assert_eq!(wishes.groups(), [Group(3, 1), Group(5, 10)]);
    }

    #[test]
    fn many_wishes_are_joined_upwards_and_no_run_is_lost() {
        let wishes = Wishes::of((1..=1000).map(|n| n * n));
        assert_eq!((wishes.groups().len(), wishes.weight()), (GROUPS_MAX, 1000));
        assert!(wishes.up_to(u64::MAX) >= (1..=1000_u64).map(|n| n * n).sum());
    }

    #[test]
    fn a_wish_is_rounded_up_by_less_than_a_quarter() {
        for wish in [0, 1, 7, 9, 100, 1_000_003, u64::MAX / 2] {
            let rounded = rounded(wish);
            assert!(
                rounded >= wish && u128::from(rounded) * 4 <= u128::from(wish) * 5 + 4,
                "{wish} {rounded}"
            );
        }
    }
}
