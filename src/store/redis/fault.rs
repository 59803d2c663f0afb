//! Redis errors explained: a message for people, and a verdict on whether the connection is still usable.

use redis::{ErrorKind, RedisError};
use windrow_words::{Message, store as say};

use super::Section;
use windrow_engine::ports::StoreError;

/// Codes or texts by which Redis refuses. The first match counts: errors of scripts contain the code of the failed
/// command somewhere in their text.
const REFUSALS: [&str; 17] = [
    "READONLY",
    "NOAUTH",
    "WRONGPASS",
    "NOPERM",
    "LOADING",
    "OOM",
    "MISCONF",
    "NOREPLICAS",
    "CLUSTERDOWN",
    "MASTERDOWN",
    "TRYAGAIN",
    "ASK",
    "MOVED",
    "BUSY",
    "DENIED",
    OUT_OF_RANGE,
    NO_ROOM,
];
/// Redis's words for a database number that it doesn't have.
const OUT_OF_RANGE: &str = "DB index is out of range";
/// Redis's words for too many connections.
const NO_ROOM: &str = "max number of clients reached";

/// Returns the code of a refusal, if it is known.
fn refusal(error: &RedisError) -> Option<&'static str> {
    if matches!(error.kind(), ErrorKind::Io | ErrorKind::Parse) {
        return None;
    }
    let text = error.to_string();
    // Older servers report a wrong password as text, without a code.
    if error.kind() == ErrorKind::AuthenticationFailed || text.contains("invalid password") {
        return Some(match text.contains("NOAUTH") {
            true => "NOAUTH",
            false => "WRONGPASS",
        });
    }
    // Refusals inside a script are reported as text too.
    let is_right = text.contains("user executing the script");
    let of = |code: &str| error.code() == Some(code) || (is_right && code == "NOPERM");
    let exact = REFUSALS.into_iter().find(|code| of(code));
    exact.or_else(|| REFUSALS.into_iter().find(|code| text.contains(code)))
}

/// Returns the meaning of an error.
fn meaning(error: &RedisError, section: Section) -> Message {
    match refusal(error) {
        Some("READONLY") => say::redis_replica(),
        Some("NOAUTH") => say::redis_no_password(section.name),
        Some("WRONGPASS") => say::redis_wrong_password(section.name),
        Some("NOPERM") => {
            let why = error.detail().unwrap_or("NOPERM");
            say::redis_no_permission(section.name, (section.uses)(), why)
        }
        Some("LOADING") => say::redis_loading(),
        Some("OOM") => say::redis_out_of_memory(),
        Some("MISCONF") => say::redis_disk(),
        Some("NOREPLICAS") => say::redis_no_replicas(),
        Some("CLUSTERDOWN") => say::redis_cluster_down(),
        Some("MASTERDOWN") => say::redis_no_master(),
        Some("TRYAGAIN" | "ASK") => say::redis_moving(),
        Some("MOVED") => say::redis_moved(),
        Some("BUSY") => say::redis_busy(),
        Some("DENIED") => say::redis_protected(),
        Some(OUT_OF_RANGE) => say::redis_no_database(section.name),
        Some(NO_ROOM) => say::redis_no_room(),
        _ if error.is_timeout() => say::redis_late(),
        _ if error.is_connection_refusal() => say::redis_closed(),
        _ if error.is_io_error() => say::redis_unreachable(error.to_string()),
        _ => say::redis_refused(error.to_string()),
    }
}

/// Converts to a store error, always `Unavailable`: a password, a permission or a server can be fixed while the node
/// runs.
pub(super) fn explained(error: &RedisError, whom: &str, section: Section) -> StoreError {
    StoreError::Unavailable(say::redis(whom, meaning(error, section)).to_string())
}

/// Returns true if another connection, perhaps to another server, may help.
pub(super) fn ends_connection(error: &RedisError) -> bool {
    match refusal(error) {
        Some(code) => matches!(
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
