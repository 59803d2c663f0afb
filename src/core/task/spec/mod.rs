//! Attributes of a task, declared once: type, meaning, the requests that may name it, and the tasks that inherit it.
//!
//! This table generates [`TaskSpec`] and [`SpecPatch`], members of requests and answers of the API with their
//! description, the audit's difference, the hash of a request, the stored form, and lines of an archive.

mod form;

use std::collections::BTreeMap;
use windrow_words::task as say;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

pub use self::form::{Form, JsonText, Kind, Shards};
use self::form::{Shown, written};
use crate::ids::{ItemIndex, WallMs};
use crate::meter::metering::Metering;
use crate::task::Canary;
use crate::task::meaning::fixed_for_good;

/// Request that names attributes of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Creation of a new task.
    Create,
    /// Copy of another task.
    Clone,
    /// Task over failures of another.
    Redrive,
    /// Template for the tasks of a schedule.
    Schedule,
    /// Change of an existing task.
    Edit,
}

use Request as On;

/// Rules of an attribute.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Requests that may name it.
    pub requests: &'static [Request],
    /// Requests whose task takes it from the other task, unless they name it.
    pub inherited: &'static [Request],
    /// True if `null` in an edit removes it; elsewhere `null` names nothing.
    pub clears: bool,
    /// True if it can change only while the task doesn't run.
    pub fixed: bool,
    /// True if it has a column of its own, because statements ask for it.
    pub has_column: bool,
}

impl Rule {
    const fn of(requests: &'static [Request]) -> Rule {
        Rule {
            requests,
            inherited: &[],
            clears: false,
            fixed: false,
            has_column: false,
        }
    }

    const fn inherited(self, inherited: &'static [Request]) -> Rule {
        Rule { inherited, ..self }
    }

    const fn clears(self) -> Rule {
        Rule { clears: true, ..self }
    }

    const fn fixed(self) -> Rule {
        Rule { fixed: true, ..self }
    }

    const fn column(self) -> Rule {
        Rule {
            has_column: true,
            ..self
        }
    }
}

const EVERYWHERE: Rule = Rule::of(&[On::Create, On::Clone, On::Redrive, On::Schedule, On::Edit]);
const FIXED: Rule = Rule::of(&[On::Create, On::Clone, On::Schedule, On::Edit]).fixed();
const MAKING: Rule = Rule::of(&[On::Create, On::Clone, On::Schedule]);
const BOTH: &[Request] = &[On::Clone, On::Redrive];

/// An attribute as the table declares it.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Name in JSON and, with dashes, as a flag.
    pub name: &'static str,
    /// Kind of its values.
    pub kind: Kind,
    /// Meaning, in one sentence.
    pub about: &'static str,
    /// Rules for requests, inheritance and changes.
    pub rule: Rule,
}

impl Attribute {
    /// Returns the meaning in a request, without its full stop. In an edit, the restrictions are added.
    pub fn about_in(&self, request: Request) -> String {
        let about = self.about.trim().trim_end_matches('.');
        match self.rule {
            Rule { clears: true, .. } if request == Request::Edit => say::null_clears(about).to_string(),
            Rule { fixed: true, .. } if request == Request::Edit => match fixed_for_good(self.name) {
                Some(_) => say::only_before_run(about).to_string(),
                None => say::only_at_rest(about).to_string(),
            },
            _ => about.to_owned(),
        }
    }

    /// Returns the attribute of this name if the request may name it.
    pub fn find(name: &str, request: Request) -> Option<&'static Attribute> {
        Attribute::of(request).find(|attribute| attribute.name == name)
    }

    /// Iterates over the attributes that a request may name.
    pub fn of(request: Request) -> impl Iterator<Item = &'static Attribute> {
        ATTRIBUTES
            .iter()
            .filter(move |attribute| attribute.rule.requests.contains(&request))
    }
}

macro_rules! attributes {
    ($($(#[doc = $about:literal])+ $name:ident: $type:ty, $rule:expr;)+) => {
        /// All attributes, in the order of the requests.
        pub const ATTRIBUTES: &[Attribute] = &[$(Attribute {
            name: stringify!($name),
            kind: <$type as Form>::KIND,
            about: concat!($($about),+),
            rule: $rule,
        }),+];

        /// Attributes of a task.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(default)]
        pub struct TaskSpec {
            $($(#[doc = $about])+ #[serde(with = "written")] pub $name: $type,)+
        }

        impl TaskSpec {
            /// Returns the wanted attributes in their JSON form.
            pub fn members(&self, wanted: impl Fn(&Attribute) -> bool) -> BTreeMap<&'static str, Box<RawValue>> {
                // Writing can't fail: no attribute has keys that aren't texts.
                let all = [$(to_raw_value(&Shown(&self.$name)).unwrap_or_default()),+];
                let wanted = ATTRIBUTES.iter().zip(all).filter(|(attribute, _)| wanted(attribute));
                wanted.map(|(attribute, value)| (attribute.name, value)).collect()
            }
        }

        /// Some attributes of a task, as a request names them.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct SpecPatch {
            $($(#[doc = $about])+ pub $name: Option<$type>,)+
        }

        impl SpecPatch {
            /// Reads the value of one attribute.
            ///
            /// # Errors
            /// Fails if the value can't be read, or the attribute was named before.
            pub fn read<'de, D: Deserializer<'de>>(
                &mut self,
                attribute: &Attribute,
                from: D,
            ) -> Result<(), D::Error> {
                use serde::de::Error;
                match attribute.name {
                    $(stringify!($name) if self.$name.is_some() => {
                        return Err(D::Error::duplicate_field(stringify!($name)));
                    }
                    stringify!($name) => {
                        let value = <$type as Form>::read(from)?;
                        self.$name = value.or_else(|| attribute.rule.clears.then(Default::default));
                    })+
                    name => return Err(D::Error::custom(say::no_attribute(name))),
                }
                Ok(())
            }

            /// Returns `to` with the attributes named here replaced.
            #[must_use]
            pub fn apply(self, to: &TaskSpec) -> TaskSpec {
                TaskSpec { $($name: self.$name.unwrap_or_else(|| to.$name.clone()),)+ }
            }

            /// Adds the other task's attributes that the task of a request inherits.
            #[must_use]
            pub fn inherit(self, origin: &TaskSpec, request: Request) -> SpecPatch {
                SpecPatch {
                    $($name: self.$name.or_else(|| {
                        let rule: Rule = $rule;
                        rule.inherited.contains(&request).then(|| origin.$name.clone())
                    }),)+
                }
            }

            /// Returns true if the attribute of this name is named.
            pub fn names(&self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name.is_some(),)+
                    _ => false,
                }
            }

            /// Iterates over the attributes that are named.
            pub fn named(&self) -> impl Iterator<Item = &'static Attribute> {
                ATTRIBUTES.iter().filter(|attribute| self.names(attribute.name))
            }
        }
    };
}

attributes! {
    /// Name, unique within the business.
    name: Option<String>, EVERYWHERE.clears().column();
    /// Labels to find the task by.
    labels: BTreeMap<String, String>, EVERYWHERE.inherited(BOTH).column();
    /// Number of items left out at the head.
    skip_first: ItemIndex, FIXED.inherited(&[On::Clone]).column();
    /// Parameters for the handler, any JSON.
    params: Option<JsonText>, FIXED.inherited(BOTH);
    /// Send the parameters with each call; the default is set by the node's configuration.
    send_params: bool, MAKING.inherited(BOTH);
    /// Named limits that its items count against, in addition to those of its business; fixed for the life of the
    /// task.
    limits: Vec<String>, MAKING.inherited(BOTH).column();
    /// Limits in units, such as tokens or money, and what calls cost in them.
    metering: Box<Metering>, Rule::of(&[On::Create, On::Clone, On::Redrive, On::Schedule, On::Edit]).fixed().inherited(BOTH);
    /// Number of shards that different nodes can own: a number, or auto.
    shards: Shards, FIXED.inherited(&[On::Clone]);
    /// Priority; tasks with a higher number go first.
    priority: i32, EVERYWHERE.inherited(BOTH).column();
    /// Earliest start; the task doesn't run before this time.
    start_at: Option<WallMs>, Rule::of(&[On::Create, On::Clone]).column();
    /// Deadline; the task is stopped at this time.
    deadline: Option<WallMs>, Rule::of(&[On::Create, On::Clone, On::Edit]).clears().column();
    /// First items, which run before any other.
    canary: Option<Canary>, Rule::of(&[On::Create, On::Clone, On::Redrive, On::Schedule]).inherited(&[On::Clone]);
}

#[cfg(test)]
mod tests;
