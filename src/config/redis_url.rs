//! URLs of Redis, as written in the configuration.
//!
//! ```text
//! redis://[user@]host[:6379][/db]                       one server
//! redis+unix:///path/to/socket[?db=n]                   the same, on this machine
//! redis-sentinel://[user@]host[:26379],…/master[/db]    the master that Sentinels name
//! redis-cluster://[user@]host[:6379],…                  the server of the cluster that holds the keys
//! ```
//!
//! With `rediss` instead of `redis`, connections are encrypted. A password is never part of the URL.

use std::path::PathBuf;

use percent_encoding::percent_decode_str;

/// Default port of a server.
const PORT: u16 = 6379;
/// Default port of a Sentinel.
const SENTINEL_PORT: u16 = 26379;

/// Host and port of a Redis server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RedisHost {
    /// Host name, or an IP address without brackets.
    pub host: String,
    /// TCP port of the server.
    pub port: u16,
}

/// Ways to find the Redis server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisServers {
    /// A single server at this address.
    One(RedisHost),
    /// A server listening on this socket path.
    Unix(PathBuf),
    /// The current master, as named by Sentinels.
    Sentinel {
        /// Addresses of the Sentinels, any of which may be asked.
        sentinels: Vec<RedisHost>,
        /// Name of the monitored master.
        master: String,
    },
    /// The cluster server that holds the keys, found through any of these.
    Cluster(Vec<RedisHost>),
}

/// A checked `cluster.redis_url` or `datasets.redis_url`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisUrl {
    /// Way to find the server.
    pub servers: RedisServers,
    /// True if connections are encrypted.
    pub is_tls: bool,
    /// User name; `None` means Redis' default user.
    pub user: Option<String>,
    /// Database number; always 0 for a cluster.
    pub db: u32,
}

impl RedisUrl {
    /// Parses a Redis URL.
    ///
    /// # Errors
    /// Description of the fault, as the end of a sentence that begins with the key.
    pub fn parse(text: &str) -> Result<RedisUrl, String> {
        let (scheme, rest) = text.split_once("://").ok_or("needs a scheme such as redis://")?;
        let (is_tls, kind) = match scheme
            .strip_prefix("rediss")
            .or_else(|| scheme.strip_prefix("redis"))
        {
            Some(kind) => (scheme.starts_with("rediss"), kind),
            None if scheme == "unix" => (false, "+unix"),
            None => return Err(format!("begins with {scheme}://, which isn't Redis")),
        };
        let (user, rest) = user(rest)?;
        let (servers, db) = match kind {
            "" => one(rest)?,
            "+unix" if !is_tls => unix(rest)?,
            "-sentinel" => sentinel(rest)?,
            "-cluster" => cluster(rest)?,
            _ => return Err(format!("begins with {scheme}://, which isn't supported")),
        };
        Ok(RedisUrl {
            servers,
            is_tls,
            user,
            db,
        })
    }
}

fn user(rest: &str) -> Result<(Option<String>, &str), String> {
    let end = rest.find('/').unwrap_or(rest.len());
    let Some((user, _)) = rest[..end].rsplit_once('@') else {
        return Ok((None, rest));
    };
    let text = percent_decode_str(user)
        .decode_utf8()
        .map_err(|_| "the user is not valid UTF-8".to_owned())?;
    let user_end = user.len() + 1;
    Ok(((!text.is_empty()).then(|| text.into_owned()), &rest[user_end..]))
}

fn one(rest: &str) -> Result<(RedisServers, u32), String> {
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut all = self::hosts(hosts, PORT)?;
    match (all.pop(), all.is_empty()) {
        (Some(host), true) => Ok((RedisServers::One(host), db(path)?)),
        _ => Err(
            "several hosts need redis-sentinel:// for Sentinels or redis-cluster:// for a cluster".to_owned(),
        ),
    }
}

fn unix(rest: &str) -> Result<(RedisServers, u32), String> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !path.starts_with('/') {
        return Err("a socket's path must begin with /, as in redis+unix:///run/redis.sock".to_owned());
    }
    let db = match query.strip_prefix("db=") {
        Some(number) => self::db(number)?,
        None if query.is_empty() => 0,
        None => return Err(format!("ends in ?{query}; only ?db=1 is supported")),
    };
    Ok((RedisServers::Unix(PathBuf::from(path)), db))
}

fn sentinel(rest: &str) -> Result<(RedisServers, u32), String> {
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    let (master, db) = path.split_once('/').unwrap_or((path, ""));
    if master.is_empty() {
        return Err("needs a master name, as in redis-sentinel://s1,s2,s3/mymaster".to_owned());
    }
    let sentinels = self::hosts(hosts, SENTINEL_PORT)?;
    Ok((
        RedisServers::Sentinel {
            sentinels,
            master: master.to_owned(),
        },
        self::db(db)?,
    ))
}

fn cluster(rest: &str) -> Result<(RedisServers, u32), String> {
    let (hosts, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !matches!(path, "" | "0") {
        return Err("names a database, but a cluster has only one".to_owned());
    }
    Ok((RedisServers::Cluster(self::hosts(hosts, PORT)?), 0))
}

fn db(text: &str) -> Result<u32, String> {
    let number = if text.is_empty() { Ok(0) } else { text.parse() };
    number.map_err(|_| format!("{text:?} isn't a database number"))
}

fn hosts(text: &str, port: u16) -> Result<Vec<RedisHost>, String> {
    text.split(',').map(|host| self::host(host, port)).collect()
}

fn host(text: &str, default: u16) -> Result<RedisHost, String> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port.strip_prefix(':')),
        None => text
            .split_once(':')
            .map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    if host.is_empty() || !host.chars().all(is_plain) {
        return Err(format!("{text:?} isn't a host"));
    }
    let port = port.map_or(Ok(default), |port| {
        port.parse().map_err(|_| format!("{port:?} isn't a port"))
    })?;
    Ok(RedisHost {
        host: host.to_owned(),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(host: &str, port: u16) -> RedisHost {
        RedisHost {
            host: host.to_owned(),
            port,
        }
    }

    fn read(text: &str) -> RedisUrl {
        RedisUrl::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"))
    }

    #[test]
    fn every_way_to_a_server_can_be_written() {
        let plain = read("redis://cache");
        assert_eq!(
            (plain.servers, plain.is_tls, plain.db),
            (RedisServers::One(host("cache", 6379)), false, 0)
        );
        let full = read("rediss://win%20row@[::1]:7000/3");
        assert_eq!(
            (full.servers, full.is_tls, full.db),
            (RedisServers::One(host("::1", 7000)), true, 3)
        );
        assert_eq!(full.user.as_deref(), Some("win row"));
        let unix = read("unix:///run/redis.sock?db=2");
        assert_eq!(
            (unix.servers, unix.db),
            (RedisServers::Unix(PathBuf::from("/run/redis.sock")), 2)
        );
        assert_eq!(
            read("redis+unix:///r").servers,
            RedisServers::Unix(PathBuf::from("/r"))
        );
        let watched = read("rediss-sentinel://me@s1,s2:5/boss/1");
        let sentinels = vec![host("s1", 26379), host("s2", 5)];
        assert_eq!(
            watched.servers,
            RedisServers::Sentinel {
                sentinels,
                master: "boss".to_owned()
            }
        );
        assert_eq!(
            (watched.is_tls, watched.db, watched.user.as_deref()),
            (true, 1, Some("me"))
        );
        let cluster = read("redis-cluster://a,b:7001/");
        assert_eq!(
            cluster.servers,
            RedisServers::Cluster(vec![host("a", 6379), host("b", 7001)])
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_a_reason() {
        for (text, reason) in [
            ("cache:6379", "needs a scheme"),
            ("http://cache", "isn't Redis"),
            ("redis-ring://cache", "isn't supported"),
            ("rediss+unix:///r", "isn't supported"),
            ("redis://", "isn't a host"),
            ("redis://a,b", "several hosts"),
            ("redis://a:x", "isn't a port"),
            ("redis://a/x", "isn't a database number"),
            ("redis+unix://r", "must begin with /"),
            ("redis+unix:///r?x=1", "only ?db=1"),
            ("redis-sentinel://s1,s2", "needs a master name"),
            ("redis-cluster://a/1", "has only one"),
            ("redis://a b", "isn't a host"),
        ] {
            let fault = RedisUrl::parse(text).expect_err(text);
            assert!(fault.contains(reason), "{text}: {fault}");
        }
    }
}
