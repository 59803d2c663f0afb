//! Meaning of a task (number of items, first index, source, number of shards), and the changes of it that are
//! allowed.
//!
//! An index that was dispatched keeps its item and its shard for ever: after the first run the skipped head, the
//! source and the shard boundaries are fixed, and the total only grows.

use std::fmt;
use std::num::NonZeroU32;
use windrow_words::{Message, task as say};

use crate::ids::{INDEX_MAX, ItemCount, ItemIndex};
use crate::settings::Auto;

/// Present meaning of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// Total number of items.
    pub total: ItemCount,
    /// First index of the task; items before it are excluded.
    pub skip_first: ItemIndex,
    /// Description of the source as JSON text.
    pub source: String,
    /// Number of shards into which it is cut when it starts.
    pub shards: Auto<NonZeroU32>,
    /// True if a run ever owned a shard of it, so that items may have been dispatched.
    pub has_run: bool,
    /// True if it was finished early, so that its end is decided.
    pub is_cut: bool,
}

/// Change of a task's meaning; members that are `None` stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeaningChange {
    /// New number of items.
    pub total: Option<ItemCount>,
    /// New first index; items before it are left out.
    pub skip_first: Option<ItemIndex>,
    /// Description of the new source.
    pub source: Option<String>,
    /// New number of shards.
    pub shards: Option<Auto<NonZeroU32>>,
}

impl MeaningChange {
    /// Returns true if the change names nothing.
    pub fn is_empty(&self) -> bool {
        *self == MeaningChange::default()
    }
}

/// Member of a change that is refused, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {why}")]
pub struct FieldRefusal {
    /// Name of the member.
    pub field: &'static str,
    /// Reason of the refusal.
    pub why: String,
}

impl FieldRefusal {
    /// Creates the refusal of a member.
    pub fn new(field: &'static str, why: impl fmt::Display) -> FieldRefusal {
        FieldRefusal {
            field,
            why: why.to_string(),
        }
    }
}

/// Returns the meaning after a change.
///
/// # Errors
/// Returns every member that is refused; nothing is changed then.
///
/// ```
/// use windrow_core::ids::{ItemCount, ItemIndex};
/// use windrow_core::task::meaning::{Meaning, MeaningChange, changed};
/// use windrow_core::settings::Auto;
///
/// let source = r#"{"kind":"range","total":10}"#.to_owned();
/// let (total, skip_first, shards) = (ItemCount(10), ItemIndex(0), Auto::Auto);
/// let now = Meaning { total, skip_first, source, shards, has_run: true, is_cut: false };
/// let grow = MeaningChange { total: Some(ItemCount(20)), ..MeaningChange::default() };
/// assert_eq!(changed(&now, &grow).expect("it grows").total, ItemCount(20));
/// let shrink = MeaningChange { total: Some(ItemCount(5)), ..MeaningChange::default() };
/// assert_eq!(changed(&now, &shrink).expect_err("items may have left")[0].field, "total");
/// ```
pub fn changed(now: &Meaning, change: &MeaningChange) -> Result<Meaning, Vec<FieldRefusal>> {
    let mut refusals = Vec::new();
    let mut next = now.clone();
    if let Some(source) = &change.source {
        next.source.clone_from(source);
        refusals.extend(head_refusal(now, "source"));
    }
    if let Some(shards) = change.shards {
        next.shards = shards;
        refusals.extend(head_refusal(now, "shards"));
    }
    if let Some(skip) = change.skip_first {
        next.skip_first = skip;
        let total = change.total.unwrap_or(now.total).0;
        let beyond = || {
            let why = || say::skip_beyond(skip.0, total);
            (skip.0 > total).then(|| FieldRefusal::new("skip_first", why()))
        };
        refusals.extend(head_refusal(now, "skip_first").or_else(beyond));
    }
    if let Some(total) = change.total {
        match total_refusal(now, change, total) {
            Some(why) => refusals.push(FieldRefusal::new("total", why)),
            None => next.total = total,
        }
    }
    if change.source.is_none() && next.total != now.total {
        next.source = resized(&now.source, next.total).unwrap_or(next.source);
    }
    if refusals.is_empty() {
        Ok(next)
    } else {
        Err(refusals)
    }
}

fn head_refusal(now: &Meaning, field: &'static str) -> Option<FieldRefusal> {
    let why = match (now.has_run, now.is_cut) {
        (true, _) => fixed_for_good(field)?,
        (false, true) => say::cut_head(),
        (false, false) => return None,
    };
    Some(FieldRefusal::new(field, why))
}

/// Returns the reason why a member can't be changed once the task has run, or `None` for one that can be changed
/// while the task doesn't run.
pub fn fixed_for_good(field: &str) -> Option<Message> {
    match field {
        "source" | "skip_first" => Some(say::fixed()),
        "shards" => Some(say::fixed_shards()),
        _ => None,
    }
}

fn total_refusal(now: &Meaning, change: &MeaningChange, total: ItemCount) -> Option<Message> {
    if total.0 > INDEX_MAX {
        return Some(say::too_many_items(INDEX_MAX));
    }
    if total == now.total {
        return None;
    }
    if now.is_cut {
        return Some(say::cut_end());
    }
    if now.has_run && total < now.total {
        return Some(say::total_shrinks(now.total.0));
    }
    // The number of items in a file is its number of rows.
    (change.source.is_none() && resized(&now.source, total).is_none()).then(say::total_of_source)
}

/// Returns the description of a range with another total; `None` for any other source.
fn resized(source: &str, total: ItemCount) -> Option<String> {
    let mut value: serde_json::Value = serde_json::from_str(source).ok()?;
    let members = value.as_object_mut()?;
    if members.get("kind")?.as_str()? != "range" {
        return None;
    }
    members.insert("total".to_owned(), total.0.into());
    Some(value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(has_run: bool) -> Meaning {
        let source = r#"{"kind":"range","total":10}"#.to_owned();
        let (total, skip_first, shards) = (ItemCount(10), ItemIndex(2), Auto::Auto);
        Meaning {
            total,
            skip_first,
            source,
            shards,
            has_run,
            is_cut: false,
        }
    }

    fn total(number: u64) -> MeaningChange {
        MeaningChange {
            total: Some(ItemCount(number)),
            ..MeaningChange::default()
        }
    }

    #[test]
    fn before_the_first_run_everything_may_change() {
        let four = NonZeroU32::new(4).map(Auto::Fixed);
        let change = MeaningChange {
            skip_first: Some(ItemIndex(0)),
            shards: four,
            ..total(3)
        };
        let next = changed(&range(false), &change).expect("nothing has left");
        assert_eq!((next.total, next.skip_first), (ItemCount(3), ItemIndex(0)));
        assert_eq!(Some(next.shards), four);
        assert_eq!(next.source, r#"{"kind":"range","total":3}"#);
        let source = r#"{"kind":"inline","items":[1]}"#.to_owned();
        let change = MeaningChange {
            source: Some(source.clone()),
            ..total(1)
        };
        assert_eq!(
            changed(&range(false), &change).expect("nothing has left").source,
            source
        );
    }

    #[test]
    fn no_more_items_are_skipped_than_there_are() {
        let skip = |first, change: MeaningChange| {
            changed(
                &range(false),
                &MeaningChange {
                    skip_first: Some(ItemIndex(first)),
                    ..change
                },
            )
        };
        assert_eq!(
            skip(10, MeaningChange::default())
                .expect("all of them")
                .skip_first,
            ItemIndex(10)
        );
        assert_eq!(
            skip(11, total(11)).expect("of the new total").skip_first,
            ItemIndex(11)
        );
        for refused in [
            skip(11, MeaningChange::default()),
            skip(10, total(9)),
            skip(u64::MAX, total(10)),
        ] {
            assert_eq!(refused.expect_err("there are fewer")[0].field, "skip_first");
        }
    }

    #[test]
    fn after_it_only_the_total_of_a_range_grows() {
        assert_eq!(
            changed(&range(true), &total(10)).expect("the same").total,
            ItemCount(10)
        );
        assert_eq!(
            changed(&range(true), &total(11)).expect("it grows").total,
            ItemCount(11)
        );
        let all = MeaningChange {
            skip_first: Some(ItemIndex(0)),
            source: Some(r#"{"kind":"range","total":9}"#.to_owned()),
            shards: Some(Auto::Auto),
            ..total(9)
        };
        let fields: Vec<_> = changed(&range(true), &all)
            .expect_err("fixed")
            .into_iter()
            .map(|refusal| refusal.field)
            .collect();
        assert_eq!(
            fields,
            ["source", "shards", "skip_first", "total"],
            "each is named"
        );
        let list = Meaning {
            source: r#"{"kind":"inline","items":[1,2]}"#.to_owned(),
            ..range(true)
        };
        assert!(
            changed(&list, &total(11)).is_err(),
            "a list has as many items as it has"
        );
        let cut = Meaning {
            is_cut: true,
            ..range(false)
        };
        let head = MeaningChange {
            skip_first: Some(ItemIndex(7)),
            ..MeaningChange::default()
        };
        assert_eq!(
            changed(&cut, &head).expect_err("its end would come back")[0].field,
            "skip_first"
        );
        let cut = Meaning {
            is_cut: true,
            ..range(true)
        };
        assert!(changed(&cut, &total(11)).is_err(), "its end is decided");
        assert!(changed(&range(false), &total(INDEX_MAX + 1)).is_err());
    }
}
