//! What the sections say of their keys, and what is made of it: types, defaults, reading, bounds, reloading, `config.toml`.

use super::layers::env_name;
use super::written::Value;
use windrow_core::settings::table::paragraphs;

/// A key of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its section and name, with a dot.
    pub name: String,
    /// What people write as its value.
    pub written: &'static str,
    /// Its default, as TOML.
    pub default: &'static str,
    /// What it means, in one line.
    pub about: String,
    /// Whether SIGHUP takes a changed value.
    pub reloads: bool,
    /// An example of a value that takes several lines.
    pub example: Option<&'static str>,
}

impl Key {
    /// A key with the text that its declaration has.
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

    /// The environment variable that wins over a file.
    pub fn env(&self) -> String {
        env_name(&self.name)
    }

    /// Its section, and its name there.
    pub fn place(&self) -> (&str, &str) {
        self.name.rsplit_once('.').unwrap_or(("", &self.name))
    }
}

/// What the declaration of a section says of one of its fields.
pub(super) struct Row {
    /// Section and field.
    pub(super) key: &'static str,
    /// What the field is written as.
    pub(super) written: &'static str,
    /// The default, as TOML.
    pub(super) default: &'static str,
    /// The documentation.
    pub(super) about: &'static str,
    /// Whether a reload takes it.
    pub(super) reloads: bool,
    /// The keys of the field: one, or those of a table of its own.
    pub(super) keys: fn(&Row) -> Vec<Key>,
}

/// The paragraphs of a documentation comment as one line.
fn in_a_line(about: &str) -> String {
    paragraphs(about).collect::<Vec<_>>().join(". ")
}

/// A value that the table gives as TOML.
pub(super) fn built_in<T: Value>(written: &str) -> T {
    let value = toml_of(written).ok_or_else(|| "no TOML".to_owned());
    value
        .and_then(|value| T::read(&value))
        .expect("the table's defaults and bounds are sound; a test builds all of them")
}

/// A value as TOML writes it.
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

/// Makes the options of the sections, and all that follows from their keys.
macro_rules! sections {
    ($(
        $(#[doc = $about:literal])+
        [$section:literal] $field:ident: $name:ident {
            $($(#[doc = $doc:literal])+ $key:ident: $type:ty = $default:tt $(above $floor:literal)? $(, $live:ident)?;)+
        }
    )+) => {
        /// Everything.
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

        /// The sections, with what each is about.
        pub(super) const SECTIONS: &[(&str, &str)] = &[$(($section, concat!($($about, "\n"),+))),+];

        /// What the declarations say.
        pub(super) const ROWS: &[Row] = &[$($(Row {
            key: concat!($section, ".", stringify!($key)),
            written: <$type as Value>::WRITTEN,
            default: stringify!($default),
            about: concat!($($doc, "\n"),+),
            reloads: crate::table::is_live!($($live)?),
            keys: <$type as Value>::keys,
        },)+)+];

        impl Config {
            /// What was written, with defaults for the rest.
            pub(super) fn read(from: &mut Reader) -> Config {
                Config { $($field: $name {
                    $($key: Value::take(from, concat!($section, ".", stringify!($key)), built_in(stringify!($default))),)+
                },)+ }
            }

            /// The keys that are out of their bounds.
            pub(super) fn check_bounds(&self, faults: &mut Faults) {
                $($($(
                    let holds = self.$field.$key > built_in::<$type>(stringify!($floor));
                    let what = concat!("it must be more than ", $floor);
                    faults.unless(holds, concat!($section, ".", stringify!($key)), what, concat!("the default is ", stringify!($default)));
                )?)+)+
            }

            /// Takes over from `new` what can be changed while the node runs.
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
