//! Usual places of tokens in the responses of models.

use std::sync::OnceLock;

use windrow_core::meter::amount::Amount;
use windrow_core::meter::expr::{Expr, Kind, Values};
use windrow_core::meter::unit::Unit;

/// Expressions of the usual places, in the order in which they are tried.
const PLACES: [&str; 4] = [
    "{answer./usage/total_tokens}",
    "{answer./usage/input_tokens} + {answer./usage/output_tokens}",
    "{answer./usage/prompt_tokens} + {answer./usage/completion_tokens}",
    "{answer./usageMetadata/totalTokenCount}",
];

/// Place from which the tokens of a run's calls are read: the first that had a number.
pub(super) struct UsualPlace {
    unit: Unit,
    places: Vec<Expr>,
    taken: OnceLock<usize>,
}

impl UsualPlace {
    pub(super) fn of(unit: Unit) -> UsualPlace {
        let places = PLACES.iter();
        UsualPlace {
            unit,
            places: places
                .filter_map(|place| Expr::parse(place, Kind::Actual).ok())
                .collect(),
            taken: OnceLock::new(),
        }
    }

    /// Reads the amount, and returns the place if this call is the first that has one.
    pub(super) fn read(&self, values: &impl Values) -> (Option<Amount>, Option<(Unit, String)>) {
        if let Some(place) = self.taken.get() {
            return (self.places[*place].cost(values).ok(), None);
        }
        let mut costs = self.places.iter().map(|place| place.cost(values).ok());
        let Some((at, amount)) = costs
            .by_ref()
            .enumerate()
            .find_map(|(at, cost)| Some((at, cost?)))
        else {
            return (None, None);
        };
        if self.taken.set(at).is_err() {
            // Another call was first, maybe with another place.
            return self.read(values);
        }
        let place = self.places[at].text().to_owned();
        (Some(amount), Some((self.unit.clone(), place)))
    }
}
