//! Use of meters as a checkpoint saves it.

use serde::{Deserialize, Serialize};

use crate::meter::allowance::StoredPeriod;
use crate::meter::amount::Amount;
use crate::meter::total::Stored;
use crate::meter::unit::Unit;

/// Use of all meters of a shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Saved(pub Vec<MeterSaved>);

/// Use of a meter, in 10⁻⁹ of its unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeterSaved {
    /// Unit of the amounts.
    pub unit: String,
    /// Use that is certain.
    pub spent: Amount,
    /// Use that calls may have had.
    pub unsure: Amount,
    /// Amount that may have been spent since, if the run died.
    pub may_spend: Amount,
    /// Amount that a pace owed.
    pub owed: Amount,
    /// Use of an allowance in the period in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowance: Option<AllowanceSaved>,
}

/// Use of an allowance in a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AllowanceSaved {
    /// Period in force, and those before it.
    #[serde(flatten)]
    pub period: StoredPeriod,
    /// Use that is certain.
    pub spent: Amount,
    /// Use that calls may have had.
    pub unsure: Amount,
    /// Amount that may have been spent since, if the run died.
    pub may_spend: Amount,
}

impl Saved {
    /// Returns true if there is no meter.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn of(&self, unit: &Unit) -> Option<&MeterSaved> {
        self.0.iter().find(|saved| saved.unit == unit.as_str())
    }
}

impl AllowanceSaved {
    pub(super) fn stored(&self) -> Stored {
        Stored {
            spent: self.spent,
            unsure: self.unsure,
            may_spend: self.may_spend,
        }
    }
}

impl MeterSaved {
    pub(super) fn stored(&self) -> Stored {
        Stored {
            spent: self.spent,
            unsure: self.unsure,
            may_spend: self.may_spend,
        }
    }
}
