//! The small closed choices of the configuration, each as people write it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use windrow_core::settings::text::TextError;

/// A closed choice: its variants and their texts.
macro_rules! choice {
    ($(#[$doc:meta])* $name:ident, $expected:literal, { $($(#[$variant_doc:meta])* $variant:ident => $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl FromStr for $name {
            type Err = TextError;

            fn from_str(text: &str) -> Result<$name, TextError> {
                match text {
                    $($text => Ok($name::$variant),)+
                    _ => Err(TextError {
                        text: text.to_owned(),
                        expected: $expected,
                        examples: concat!($("\"", $text, "\" "),+).trim_ascii_end(),
                    }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($name::$variant => $text),+ })
            }
        }
    };
}

choice!(
    /// How callers of the API prove who they are.
    AuthMode, "a way to sign in", {
    /// By a token.
    Token => "token",
    /// A proxy in front says who it is.
    Proxy => "proxy",
    /// Not at all; only on loopback.
    Off => "off",
});

choice!(
    /// The severity of a line of the data log.
    DataLogLevel, "a level", {
    /// For developers.
    Debug => "debug",
    /// What happened.
    Info => "info",
    /// Worth a look.
    Warn => "warn",
    /// Somebody must act.
    Error => "error",
});

choice!(
    /// How the node's log lines look.
    LogFormat, "a log format", {
    /// Pretty on a terminal, else JSON.
    Auto => "auto",
    /// For people.
    Pretty => "pretty",
    /// One object a line.
    Json => "json",
    /// `key=value`.
    Logfmt => "logfmt",
});

/// Which store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// SQLite, `windrow.db` in the data directory.
    Auto,
    /// SQLite at a path.
    Sqlite(PathBuf),
    /// A PostgreSQL server; the URL holds no password.
    Postgres(String),
    /// A MariaDB or MySQL server; the URL holds no password.
    MySql(String),
}

impl StoreUrl {
    /// Whether it is a file, which one node has for itself.
    pub fn is_file(&self) -> bool {
        matches!(self, StoreUrl::Auto | StoreUrl::Sqlite(_))
    }

    /// The kind of database, as people see it.
    pub fn engine(&self) -> &'static str {
        match self {
            StoreUrl::Auto | StoreUrl::Sqlite(_) => "sqlite",
            StoreUrl::Postgres(_) => "postgres",
            StoreUrl::MySql(_) => "mysql",
        }
    }

    /// Whether several nodes can share it.
    pub fn is_server(&self) -> bool {
        matches!(self, StoreUrl::Postgres(_) | StoreUrl::MySql(_))
    }
}

impl FromStr for StoreUrl {
    type Err = TextError;

    fn from_str(text: &str) -> Result<StoreUrl, TextError> {
        let error = |expected, examples| {
            Err(TextError {
                text: without_password(text),
                expected,
                examples,
            })
        };
        let Some((scheme, rest)) = text.split_once("://").filter(|(_, rest)| !rest.is_empty()) else {
            return match text {
                "auto" => Ok(StoreUrl::Auto),
                _ => error(
                    "a store",
                    "\"auto\", \"sqlite:///var/lib/windrow/windrow.db\", \"postgres://windrow@db/windrow\"",
                ),
            };
        };
        if without_password(text) != text {
            return error(
                "free of a password, which belongs into the file that store.password_file names",
                "\"postgres://windrow@db/windrow\"",
            );
        }
        match scheme {
            "sqlite" => Ok(StoreUrl::Sqlite(PathBuf::from(rest))),
            "postgres" | "postgresql" => Ok(StoreUrl::Postgres(text.to_owned())),
            "mysql" | "mariadb" => Ok(StoreUrl::MySql(text.to_owned())),
            _ => error(
                "a store of a kind that is known (sqlite, postgres, mysql)",
                "\"mysql://windrow@db/windrow\"",
            ),
        }
    }
}

/// The URL with its password, if it has one, replaced: passwords never reach a message.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let authority_end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(authority_end);
    match authority
        .rsplit_once('@')
        .and_then(|(user, host)| Some((user.split_once(':')?.0, host)))
    {
        Some((user, host)) => format!("{scheme}://{user}:***@{host}{path}"),
        None => url.to_owned(),
    }
}

/// When the tree of actors is printed to the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActorTree {
    /// When the node has started.
    pub start: bool,
    /// When an actor was restarted (its part of the tree).
    pub restart: bool,
    /// At shutdown, what is still alive.
    pub stop: bool,
}

impl FromStr for ActorTree {
    type Err = TextError;

    fn from_str(text: &str) -> Result<ActorTree, TextError> {
        let mut tree = ActorTree::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word {
                "start" => tree.start = true,
                "restart" => tree.restart = true,
                "stop" => tree.stop = true,
                _ => {
                    return Err(TextError {
                        text: text.to_owned(),
                        expected: "a list of \"start\", \"restart\" and \"stop\"",
                        examples: "\"start,restart,stop\", \"restart\", \"\"",
                    });
                }
            }
        }
        Ok(tree)
    }
}
