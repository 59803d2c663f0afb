//! Pure core: no I/O, clock, async, randomness or logging. It decides; the crates above act.
//!
//! Vocabulary: `alert`, `ids`, `invariants`, `settings`, `task`, `business`, `shards`, `dataset`, `zone`, and from `items` the runs,
//! verdicts and counts. Mechanisms, each standalone and property-tested against a naive implementation: `items`
//! (window, waits, retries, error budget), `pace`, `pilot`, `capacity`, `limit`, `meter`, `checkpoint`,
//! `template`. `execution` composes them into a run, `life` covers a task over all of its runs. For observers: `stats`,
//! `handler`, `explain`.

#![warn(missing_docs)]

pub mod alert;
pub mod business;
pub mod capacity;
pub mod checkpoint;
pub mod dataset;
pub mod execution;
pub mod explain;
pub mod handler;
pub mod ids;
pub mod invariants;
pub mod items;
pub mod life;
pub mod limit;
pub mod meter;
pub mod pace;
pub mod pilot;
pub mod schedule;
pub mod settings;
pub mod shards;
pub mod stats;
pub mod task;
pub mod template;
pub mod text;
pub mod zone;

/// Declares a closed enum with the slug of each value: `ALL` in declaration order, `as_str`, `parse` and `Display`.
/// Slugs never change once released.
#[macro_export]
macro_rules! slugs {
    ($(#[$about:meta])* pub enum $name:ident { $($(#[$of:meta])* $variant:ident = $slug:literal,)+ }) => {
        $(#[$about])*
        pub enum $name {
            $($(#[$of])* $variant,)+
        }

        impl $name {
            /// All values, in the order of the documentation.
            pub const ALL: [$name; [$($slug),+].len()] = [$($name::$variant),+];

            /// Returns the slug under which the value is stored and shown.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $slug),+
                }
            }

            /// Returns the value of a slug, or `None` if the slug is unknown.
            pub fn parse(slug: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|value| value.as_str() == slug)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
