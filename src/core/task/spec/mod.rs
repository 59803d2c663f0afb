//! Attributes of a task, declared once: type, meaning, the requests that may name it, and the tasks that inherit it.
//!
//! From this table come [`TaskSpec`] and [`SpecPatch`], members of requests and answers of the API with their description,
//! the audit's difference, the hash of a request, the stored form, and lines of an archive.

mod form;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

pub use self::form::{Form, JsonText, Kind, Shards};
use self::form::{Shown, written};
use crate::ids::{ItemIndex, WallMs};
use crate::task::Canary;
use crate::task::meaning::fixed_for_good;

/// Request that names attributes of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A new task.
    Create,
    /// A copy of a task.
    Clone,
    /// A task over failures of another.
    Redrive,
    /// The tasks of a schedule.
    Schedule,
    /// A change of a task.
    Edit,
}

use Request as On;

/// Rules of an attribute.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// Requests that may name it.
    pub requests: &'static [Request],
    /// Requests whose task has it from the other task, unless they name it.
    pub inherited: &'static [Request],
    /// `null` in an edit takes it away; elsewhere `null` names nothing.
    pub clears: bool,
    /// It changes only while the task doesn't run.
    pub fixed: bool,
    /// It has a column of its own, because statements ask for it.
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
    /// Meaning, a sentence.
    pub about: &'static str,
    /// Requests, inheritance and changes.
    pub rule: Rule,
}

impl Attribute {
    /// Meaning in a request, without its point: what an edit must know is added.
    pub fn about_in(&self, request: Request) -> String {
        let about = self.about.trim().trim_end_matches('.');
        match self.rule {
            Rule { clears: true, .. } if request == Request::Edit => format!("{about}; null takes it away"),
            Rule { fixed: true, .. } if request == Request::Edit => {
                let until = match fixed_for_good(self.name) {
                    Some(_) => "before it has run",
                    None => "while the task doesn't run",
                };
                format!("{about}; only {until}")
            }
            _ => about.to_owned(),
        }
    }

    /// The attribute of this name that a request may name.
    pub fn find(name: &str, request: Request) -> Option<&'static Attribute> {
        Attribute::of(request).find(|attribute| attribute.name == name)
    }

    /// The attributes that a request may name.
    pub fn of(request: Request) -> impl Iterator<Item = &'static Attribute> {
        ATTRIBUTES
            .iter()
            .filter(move |attribute| attribute.rule.requests.contains(&request))
    }
}

macro_rules! attributes {
    ($($(#[doc = $about:literal])+ $name:ident: $type:ty, $rule:expr;)+) => {
        /// Every attribute, in the order in which requests have them.
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
            /// The attributes that are wanted, as they are written.
            pub fn members(&self, wanted: impl Fn(&Attribute) -> bool) -> BTreeMap<&'static str, Box<RawValue>> {
                // Each can be written: none has keys that are no texts.
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
            /// Takes in the value of one attribute.
            ///
            /// # Errors
            /// When the value can't be read, or the attribute was named before.
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
                    name => return Err(D::Error::custom(format!("there is no attribute {name}"))),
                }
                Ok(())
            }

            /// The attributes with those that are named here in place of what they are.
            #[must_use]
            pub fn apply(self, to: &TaskSpec) -> TaskSpec {
                TaskSpec { $($name: self.$name.unwrap_or_else(|| to.$name.clone()),)+ }
            }

            /// With the other task's attributes that a request's task inherits.
            #[must_use]
            pub fn inherit(self, origin: &TaskSpec, request: Request) -> SpecPatch {
                SpecPatch {
                    $($name: self.$name.or_else(|| {
                        let rule: Rule = $rule;
                        rule.inherited.contains(&request).then(|| origin.$name.clone())
                    }),)+
                }
            }

            /// Whether the attribute of this name is named.
            pub fn names(&self, name: &str) -> bool {
                match name {
                    $(stringify!($name) => self.$name.is_some(),)+
                    _ => false,
                }
            }

            /// The attributes that are named.
            pub fn named(&self) -> impl Iterator<Item = &'static Attribute> {
                ATTRIBUTES.iter().filter(|attribute| self.names(attribute.name))
            }
        }
    };
}

attributes! {
    /// Name, unique within the business.
    name: Option<String>, EVERYWHERE.clears().column();
    /// Labels, to find it by.
    labels: BTreeMap<String, String>, EVERYWHERE.inherited(BOTH).column();
    /// Items left out at the head.
    skip_first: ItemIndex, FIXED.inherited(&[On::Clone]).column();
    /// Parameters for the handler, any JSON.
    params: Option<JsonText>, FIXED.inherited(BOTH);
    /// Send the parameters with each call; by default as the node is configured.
    send_params: bool, MAKING.inherited(BOTH);
    /// Named limits that its items count against, beside those of its business; they stay as long as the task does.
    limits: Vec<String>, MAKING.inherited(BOTH).column();
    /// Parts that different nodes can own: a number, or auto.
    shards: Shards, FIXED.inherited(&[On::Clone]);
    /// Higher goes first.
    priority: i32, EVERYWHERE.inherited(BOTH).column();
    /// Not run before this time.
    start_at: Option<WallMs>, Rule::of(&[On::Create, On::Clone]).column();
    /// Stopped at this time.
    deadline: Option<WallMs>, Rule::of(&[On::Create, On::Clone, On::Edit]).clears().column();
    /// The first items, run before any other.
    canary: Option<Canary>, Rule::of(&[On::Create, On::Clone, On::Redrive, On::Schedule]).inherited(&[On::Clone]);
}

#[cfg(test)]
mod tests;
