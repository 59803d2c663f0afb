//! Skip requests: items that people want skipped, recorded in the task for the runs of its shards to apply.

use serde_json::json;

use windrow_words::life as say;

use super::obey::Change;
use super::{CommandRefusal, Life};
use crate::items::stretches::Stretches;
use crate::task::lifecycle::{Verb, decide};
use crate::task::meaning::FieldRefusal;

impl Life {
    /// Records that items are to be skipped; owners read it within a second. Items settled by then stay as they are.
    pub(super) fn skip(&mut self, items: &Stretches) -> Result<Change, CommandRefusal> {
        decide(Verb::Skip, self.standing())?;
        if items.end().0 > self.total.0 {
            let (last, total) = (items.end().0 - 1, self.total.0);
            let why = say::no_item(last.to_string(), total).to_string();
            return Err(CommandRefusal::Fields(vec![FieldRefusal::new("indexes", why)]));
        }
        let before = json!({ "items": self.skips.items() });
        let skips = self.skips.with(items)?;
        if skips != self.skips {
            self.skips = skips;
            self.bump_control();
        }
        let after = json!({ "items": self.skips.items(), "skipped": items, "code": SKIPPED_BY_OPERATOR });
        Ok((before.to_string(), after.to_string()))
    }
}

/// Code of items skipped at the request of people.
pub const SKIPPED_BY_OPERATOR: &str = "skipped_by_operator";
