//! Table of configuration keys, and everything generated from it: types, defaults, reading, bounds, reloading,
//! `config.toml`.

use super::layers::env_name;
use super::written::Value;
use windrow_core::settings::table::paragraphs;

/// A key of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Section and name, separated by a dot.
    pub name: String,
    /// Form of its value, for people.
    pub written: &'static str,
    /// Default value, in TOML.
    pub default: &'static str,
    /// Meaning of the key, in one line.
    pub about: String,
    /// True if SIGHUP applies a changed value.
    pub reloads: bool,
    /// Example of a multi-line value.
    pub example: Option<&'static str>,
}

impl Key {
    /// Builds a key from the text of its declaration.
    pub(super) fn new(
        row: &Row,
        name: String,
        written: &'static str,
        default: &'static str,
        about: &'static str,
    ) -> Key {
        let (about, example) = match about.split_once("```toml\n") {
            Some((about, example)) => (about, example.split("```").next()),
            None => (about, None),
        };
        let (about, reloads) = (in_a_line(about), row.reloads);
        Key {
            name,
            written,
            default,
            about,
            reloads,
            example,
        }
    }

    /// Returns the environment variable that overrides the file.
    pub fn env(&self) -> String {
        env_name(&self.name)
    }

    /// Returns the section and the name within it.
    pub fn place(&self) -> (&str, &str) {
        self.name.rsplit_once('.').unwrap_or(("", &self.name))
    }
}

/// Declaration of one field of a section.
pub(super) struct Row {
    /// Section and field name, separated by a dot.
    pub(super) key: &'static str,
    /// Form of its value, for people.
    pub(super) written: &'static str,
    /// Default value, in TOML.
    pub(super) default: &'static str,
    /// Text of the doc comment.
    pub(super) about: &'static str,
    /// True if a reload applies it.
    pub(super) reloads: bool,
    /// Returns the keys of the field: one, or those of its own table.
    pub(super) keys: fn(&Row) -> Vec<Key>,
}

/// Joins the paragraphs of a doc comment into one line.
fn in_a_line(about: &str) -> String {
    paragraphs(about).collect::<Vec<_>>().join(". ")
}

/// Parses a value given as TOML in the table.
pub(super) fn built_in<T: Value>(written: &str) -> T {
    let value = toml_of(written).ok_or_else(|| "no TOML".to_owned());
    value
        .and_then(|value| T::read(&value))
        .expect("the table's defaults and bounds are sound; a test builds all of them")
}

/// Parses a TOML value.
pub(super) fn toml_of(written: &str) -> Option<toml::Value> {
    format!("v = {written}").parse::<toml::Table>().ok()?.remove("v")
}

macro_rules! is_live {
    () => {
        false
    };
    (reload) => {
        true
    };
}
pub(super) use is_live;

/// Generates the option types of the sections, and everything derived from their keys.
macro_rules! sections {
    ($(
        $(#[doc = $about:literal])+
        [$section:literal] $field:ident: $name:ident {
            $($(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:tt $(above $floor:literal)? $(, $live:ident)?;)+
        }
    )+) => {
        /// Complete configuration of a node.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Config {
            $($(#[doc = $about])+ pub $field: $name,)+
        }

        $(
            $(#[doc = $about])+
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $name {
                $($(#[doc = $doc])+ pub $key: $type,)+
            }

            impl Default for $name {
                fn default() -> $name {
                    $name { $($key: built_in(stringify!($default)),)+ }
                }
            }
        )+

        /// Sections, each with its description.
        pub(super) const SECTIONS: &[(&str, &str)] = &[$(($section, concat!($($about, "\n"),+))),+];

        /// Declarations of all fields.
        pub(super) const ROWS: &[Row] = &[$($(Row {
            key: concat!($section, ".", stringify!($key)),
            written: <$type as Value>::WRITTEN,
            default: stringify!($default),
            about: concat!($($doc, "\n"),+),
            reloads: crate::table::is_live!($($live)?),
            keys: <$type as Value>::keys,
        },)+)+];

        impl Config {
            /// Reads the written values, with defaults for the rest.
            pub(super) fn read(from: &mut Reader) -> Config {
                Config { $($field: $name {
                    $($key: Value::take(from, concat!($section, ".", stringify!($key)), built_in(stringify!($default))),)+
                },)+ }
            }

            /// Reports the keys that are out of bounds.
            pub(super) fn check_bounds(&self, faults: &mut Faults) {
                $($($(
                    let holds = self.$field.$key > built_in::<$type>(stringify!($floor));
                    let what = concat!("must be more than ", $floor);
                    faults.unless(holds, concat!($section, ".", stringify!($key)), what, concat!("the default is ", stringify!($default)));
                )?)+)+
            }

            /// Takes from `new` the values that can change while the node runs.
            pub fn reloaded(&self, new: &Config) -> Reload {
                let mut reload = Reload { config: self.clone(), applied: Vec::new(), ignored: Vec::new() };
                $($(
                    let changes = self.$field.$key.changes(&new.$field.$key, concat!($section, ".", stringify!($key)));
                    if crate::table::is_live!($($live)?) {
                        reload.config.$field.$key = new.$field.$key.clone();
                        reload.applied.extend(changes);
                    } else {
                        reload.ignored.extend(changes);
                    }
                )+)+
                reload
            }
        }
    };
}
pub(super) use sections;
