//! Meterings of a run: that of its task, and those of the named limits that it shares with other runs.

use windrow_words::{Message, meter as say};

use super::limit::Limit;
use super::metering::{Metering, MeteringError};
use super::unit::Unit;

/// Metering of a task, and those of the named limits that its calls count against.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meterings {
    own: Metering,
    named: Vec<Metering>,
}

impl Meterings {
    /// Creates the meterings of a run; `named` are in the order of the keys of their limits.
    pub fn new(own: Metering, named: Vec<Metering>) -> Meterings {
        Meterings { own, named }
    }

    /// Returns the metering of the task.
    pub fn own(&self) -> &Metering {
        &self.own
    }

    /// Returns the meterings of named limits.
    pub fn named(&self) -> &[Metering] {
        &self.named
    }

    /// Returns all meters in the order in which their use is told: those of the task, then those of each limit. Each
    /// comes with the metering that it belongs to, and with true if that is the one of a limit.
    pub fn meters(&self) -> impl Iterator<Item = (&Metering, bool, Unit)> {
        let named = self.named.iter().map(|metering| (metering, true));
        let all = std::iter::once((&self.own, false)).chain(named);
        all.flat_map(|(metering, is_named)| {
            let meters = metering.meters().into_iter();
            meters.map(move |unit| (metering, is_named, unit))
        })
    }
}

impl From<Metering> for Meterings {
    fn from(own: Metering) -> Meterings {
        Meterings::new(own, Vec::new())
    }
}

impl Metering {
    /// Checks that sessions can share the limits, as those of a named limit.
    ///
    /// # Errors
    /// Quotes the limit that they can't share.
    pub fn check_shared(&self) -> Result<(), MeteringError> {
        self.limits.iter().try_for_each(|limit| match limit {
            Limit::AtOnce { .. } => Err(MeteringError(say::no_at_once(limit.to_string()))),
            Limit::Pace { .. } | Limit::Total { .. } | Limit::Allowance { .. } | Limit::Named(_) => Ok(()),
        })
    }

    /// Returns true if the store's clock decides on one of the limits.
    pub fn has_allowance(&self) -> bool {
        self.limits.iter().any(|limit| limit.calendar().is_some())
    }

    /// Returns a unit whose cost only responses say, where a handler has none.
    pub fn unmeasured(&self, has_answers: bool) -> Option<&Unit> {
        let (unit, _) = self.cost_from.first().filter(|_| !has_answers)?;
        Some(unit)
    }

    /// Returns the reason why calls of a handler can't be measured in the units of the limit with this name.
    pub fn unmeasured_in(&self, limit: &str, has_answers: bool) -> Option<Message> {
        let unit = self.unmeasured(has_answers)?;
        Some(say::unmeasured(limit, unit.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metering(json: &str) -> Metering {
        serde_json::from_str(json).expect("a metering")
    }

    #[test]
    fn meters_of_the_task_come_first_and_those_of_limits_in_their_order() {
        let own = metering(r#"{"limits":["5 eur"],"price":["eur = 0.5*{tokens}"]}"#);
        let named = [r#"{"limits":["9 tokens"]}"#, r#"{"limits":["300/min"]}"#].map(metering);
        let meterings = Meterings::new(own, named.to_vec());
        let meters = meterings.meters();
        let meters: Vec<(String, bool)> = meters.map(|(_, named, unit)| (unit.to_string(), named)).collect();
        let of = |unit: &str, named| (unit.to_owned(), named);
        assert_eq!(
            meters,
            [
                of("tokens", false),
                of("eur", false),
                of("tokens", true),
                of("calls", true)
            ]
        );
    }

    #[test]
    fn amounts_at_once_are_not_shared_and_a_program_answers_nothing() {
        assert!(metering(r#"{"limits":["20 at once"]}"#).check_shared().is_err());
        assert!(
            metering(r#"{"limits":["300/min","5 calls","2000/day"]}"#)
                .check_shared()
                .is_ok()
        );
        let from = metering(r#"{"cost_from":["tokens = {answer./n}"]}"#);
        assert_eq!(from.unmeasured(false).map(Unit::as_str), Some("tokens"));
        assert_eq!(from.unmeasured(true), None);
    }
}
