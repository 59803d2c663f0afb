//! Closed choices of the configuration, in their written form.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use windrow_core::settings::text::TextError;

/// Defines a closed choice by its variants and their texts.
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
                    _ => Err(TextError::new(
                        text,
                        $expected,
                        concat!($("\"", $text, "\" "),+).trim_ascii_end(),
                    )),
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
    /// Authentication of API callers.
    AuthMode, "an authentication mode", {
    /// By a token that the caller sends.
    Token => "token",
    /// By a proxy in front, which passes the user's name.
    Proxy => "proxy",
    /// No authentication; only on loopback.
    Off => "off",
});

choice!(
    /// Severity of a line in the data log.
    DataLogLevel, "a level", {
    /// Details of interest to developers.
    Debug => "debug",
    /// Normal events of a task or item.
    Info => "info",
    /// Unusual events that deserve a look.
    Warn => "warn",
    /// Errors that need someone to act.
    Error => "error",
});

choice!(
    /// Format of the node's log lines.
    LogFormat, "a log format", {
    /// Pretty on a terminal, otherwise JSON.
    Auto => "auto",
    /// Readable layout for people.
    Pretty => "pretty",
    /// One JSON object per line.
    Json => "json",
    /// Pairs of `key=value` on each line.
    Logfmt => "logfmt",
});

/// Kind and location of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// SQLite, in `windrow.db` in the data directory.
    Auto,
    /// SQLite at a given path.
    Sqlite(PathBuf),
    /// PostgreSQL server; the URL contains no password.
    Postgres(String),
    /// MariaDB or MySQL server; the URL contains no password.
    MySql(String),
}

impl StoreUrl {
    /// True for a file, which belongs to a single node.
    pub fn is_file(&self) -> bool {
        matches!(self, StoreUrl::Auto | StoreUrl::Sqlite(_))
    }

    /// Returns the kind of database, as shown to people.
    pub fn engine(&self) -> &'static str {
        match self {
            StoreUrl::Auto | StoreUrl::Sqlite(_) => "sqlite",
            StoreUrl::Postgres(_) => "postgres",
            StoreUrl::MySql(_) => "mysql",
        }
    }

    /// True if several nodes can share it.
    pub fn is_server(&self) -> bool {
        matches!(self, StoreUrl::Postgres(_) | StoreUrl::MySql(_))
    }
}

impl FromStr for StoreUrl {
    type Err = TextError;

    fn from_str(text: &str) -> Result<StoreUrl, TextError> {
        let error = |expected, examples| Err(TextError::new(without_password(text), expected, examples));
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
                "free of a password, which belongs in the file that store.password_file names",
                "\"postgres://windrow@db/windrow\"",
            );
        }
        match scheme {
            "sqlite" => Ok(StoreUrl::Sqlite(PathBuf::from(rest))),
            "postgres" | "postgresql" => Ok(StoreUrl::Postgres(text.to_owned())),
            "mysql" | "mariadb" => Ok(StoreUrl::MySql(text.to_owned())),
            _ => error(
                "a supported store (sqlite, postgres, mysql)",
                "\"mysql://windrow@db/windrow\"",
            ),
        }
    }
}

/// Returns the URL with any password masked; passwords never reach a message.
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

/// Events at which the actor tree is printed to the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActorTree {
    /// After the node has started.
    pub start: bool,
    /// After an actor was restarted: its part of the tree.
    pub restart: bool,
    /// At shutdown: the actors still alive.
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
                    return Err(TextError::new(
                        text,
                        "a list of \"start\", \"restart\" and \"stop\"",
                        "\"start,restart,stop\", \"restart\", \"\"",
                    ));
                }
            }
        }
        Ok(tree)
    }
}
