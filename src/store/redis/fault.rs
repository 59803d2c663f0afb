//! Redis errors explained: a message for people, and a verdict on whether the connection is still usable.

use redis::{ErrorKind, RedisError};

use super::Section;
use windrow_engine::ports::StoreError;

/// Redis error codes and their meaning; `SECTION` and `USES` stand for those of the caller. The first match counts:
/// errors of scripts contain the code of the failed command somewhere in their text.
const REFUSALS: [(&str, &str); 17] = [
    (
        "READONLY",
        "is a replica and takes no writes; its master is looked for",
    ),
    ("NOAUTH", "wants a password; check SECTION.redis_password_file"),
    (
        "WRONGPASS",
        "refused the password; check SECTION.redis_password_file and the user in SECTION.redis_url",
    ),
    (
        "NOPERM",
        "doesn't let the user of SECTION.redis_url do what USES need (docs/operations.md)",
    ),
    ("LOADING", "is loading its data"),
    ("OOM", "is out of memory (maxmemory)"),
    ("MISCONF", "refuses writes since it can't save to its disk"),
    (
        "NOREPLICAS",
        "refuses writes since it has too few replicas (min-replicas-to-write)",
    ),
    ("CLUSTERDOWN", "is part of a cluster that is down"),
    ("MASTERDOWN", "is a replica without a master"),
    ("TRYAGAIN", "is moving our keys to another server of its cluster"),
    ("ASK", "is moving our keys to another server of its cluster"),
    (
        "MOVED",
        "sent us to another server of its cluster, which sent us on",
    ),
    ("BUSY", "is busy with a script of somebody else"),
    (
        "DENIED",
        "is in protected mode and takes only connections of its own machine",
    ),
    (
        "DB index is out of range",
        "doesn't have the database that SECTION.redis_url names",
    ),
    (
        "max number of clients reached",
        "has no room for another connection (maxclients)",
    ),
];

/// Returns the code and meaning of a refusal, if the code is known.
fn refusal(error: &RedisError) -> Option<(&'static str, &'static str)> {
    if matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse) {
        return None;
    }
    let text = error.to_string();
    // Older servers report a wrong password as text, without a code.
    if error.kind() == ErrorKind::AuthenticationFailed || text.contains("invalid password") {
        let of = if text.contains("NOAUTH") {
            "NOAUTH"
        } else {
            "WRONGPASS"
        };
        return REFUSALS.into_iter().find(|(code, _)| *code == of);
    }
    // Refusals inside a script are reported as text too.
    let is_right = text.contains("user executing the script");
    let of = |code: &str| error.code() == Some(code) || (is_right && code == "NOPERM");
    let exact = REFUSALS.into_iter().find(|(code, _)| of(code));
    exact.or_else(|| REFUSALS.into_iter().find(|(code, _)| text.contains(code)))
}

/// Converts to a store error, always `Unavailable`: a password, a permission or a server can be fixed while the node
/// runs.
pub(super) fn explained(error: &RedisError, whom: &str, section: Section) -> StoreError {
    let meant = |meaning: &str| {
        let meaning = meaning.replace("SECTION", section.name);
        meaning.replace("USES", section.uses)
    };
    let refusal = refusal(error).map(|(code, meaning)| (code, meant(meaning)));
    let what = match refusal {
        Some(("NOPERM", meaning)) => format!("{meaning}: {}", error.detail().unwrap_or("NOPERM")),
        Some((_, meaning)) => meaning,
        None if error.is_timeout() => "did not answer in time".to_owned(),
        None if error.is_connection_refusal() => "takes no connections".to_owned(),
        None if error.is_io_error() => format!("can't be reached: {error}"),
        None => format!("refused: {error}"),
    };
    StoreError::Unavailable(format!("Redis at {whom} {what}"))
}

/// Returns true if another connection, perhaps to another server, may help.
pub(super) fn ends_connection(error: &RedisError) -> bool {
    match refusal(error) {
        Some((code, _)) => matches!(
            code,
            "READONLY" | "NOAUTH" | "WRONGPASS" | "LOADING" | "CLUSTERDOWN" | "MASTERDOWN" | "MOVED" | "ASK"
        ),
        None => matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse | ErrorKind::Client),
    }
}

/// Returns true if the server doesn't know the script, so it must be sent in full.
pub(super) fn lacks_script(error: &RedisError) -> bool {
    error.code() == Some("NOSCRIPT")
}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::{ServerError, Value};

    use super::*;

    fn said(line: &str) -> RedisError {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).expect("an error");
        let Value::ServerError(error) = value else {
            panic!("{line}: {value:?}")
        };
        let error: ServerError = error;
        error.into()
    }

    #[test]
    fn refusals_are_told_in_words_and_name_the_key_to_check() {
        for (line, words) in [
            (
                "READONLY You can't write against a read only replica.",
                "is a replica",
            ),
            ("NOAUTH Authentication required.", "cluster.redis_password_file"),
            (
                "WRONGPASS invalid username-password pair or user is disabled.",
                "cluster.redis_password_file",
            ),
            ("ERR invalid password", "cluster.redis_password_file"),
            (
                "NOPERM this user has no permissions to run the 'eval' command",
                "'eval'",
            ),
            (
                "ERR The user executing the script can't run this command or subcommand",
                "doesn't let the user",
            ),
            ("LOADING Redis is loading the dataset in memory", "loading"),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                "out of memory",
            ),
            ("MISCONF Redis is configured to save RDB snapshots", "disk"),
            ("CLUSTERDOWN Hash slot not served", "cluster that is down"),
            (
                "ERR Error running script (call to f_1): @user_script:3: -OOM command not allowed",
                "out of memory",
            ),
            ("ERR max number of clients reached", "maxclients"),
            ("ERR something new", "something new"),
        ] {
            let StoreError::Unavailable(text) = explained(&said(line), "cache:6379", Section::CLUSTER) else {
                panic!("{line}")
            };
            assert!(
                text.starts_with("Redis at cache:6379 ") && text.contains(words),
                "{line}: {text}"
            );
        }
    }

    #[test]
    fn each_redis_names_its_own_keys() {
        let fault = explained(&said("NOAUTH x"), "cache", Section::READERS);
        assert!(fault.text().contains("datasets.redis_password_file"), "{fault:?}");
    }

    #[test]
    fn a_connection_is_left_where_another_can_help() {
        for line in ["READONLY x", "MOVED 1 a:1", "LOADING x", "NOAUTH x"] {
            assert!(ends_connection(&said(line)), "{line}");
        }
        for line in ["OOM x", "NOPERM x", "NOSCRIPT x", "TRYAGAIN x"] {
            assert!(!ends_connection(&said(line)), "{line}");
        }
        assert!(ends_connection(&io::Error::from(io::ErrorKind::TimedOut).into()));
        assert!(lacks_script(&said("NOSCRIPT No matching script.")));
    }
}
