//! Proxies that the environment names, by the rules of `curl`: `http_proxy`, `https_proxy`, `all_proxy` and
//! `no_proxy`, lower case before upper case. (`HTTP_PROXY` is ignored in a CGI program, where a request's header sets
//! it.)

use std::fmt;

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;

use super::proxy::Proxy;

/// Placeholder for a proxy that can't be used, so that hosts which need none are still recognized.
const UNUSABLE: &str = "http://unusable.invalid";

/// Rule of the environment for which calls use which proxy.
#[derive(Clone)]
pub struct EnvironmentProxies {
    matcher: std::sync::Arc<Matcher>,
    http: Option<Named>,
    https: Option<Named>,
}

/// Proxy with the variable that names it.
#[derive(Clone, PartialEq, Eq)]
struct Named {
    variable: &'static str,
    proxy: Result<Proxy, String>,
}

impl Default for EnvironmentProxies {
    /// Returns the rule of an environment that names no proxies.
    fn default() -> EnvironmentProxies {
        EnvironmentProxies::read(|_| None)
    }
}

impl EnvironmentProxies {
    /// Reads the rule; `variable` returns the value of an environment variable.
    pub fn read<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> EnvironmentProxies {
        let first = |names: &[&'static str]| {
            let set = names.iter().filter_map(|name| Some((*name, variable(name)?)));
            set.into_iter().find(|(_, value)| !value.trim().is_empty())
        };
        let is_cgi = variable("REQUEST_METHOD").is_some();
        let of_http: &[&str] = if is_cgi {
            &["http_proxy"]
        } else {
            &["http_proxy", "HTTP_PROXY"]
        };
        let all = first(&["all_proxy", "ALL_PROXY"]);
        let http = first(of_http).or(all).map(Named::of);
        let https = first(&["https_proxy", "HTTPS_PROXY"]).or(all).map(Named::of);
        let none = first(&["no_proxy", "NO_PROXY"]).map_or("", |(_, hosts)| hosts);
        // Blanks separate hosts too.
        let none = none.split_whitespace().collect::<Vec<_>>().join(",");
        // The matcher applies it only to names, not to addresses.
        let is_off = none == "*";
        let place = |named: &Option<Named>| match named {
            Some(_) if !is_off => UNUSABLE.to_owned(),
            _ => String::new(),
        };
        let matcher = Matcher::builder()
            .http(place(&http))
            .https(place(&https))
            .no(none)
            .build();
        EnvironmentProxies {
            matcher: matcher.into(),
            http,
            https,
        }
    }

    /// Returns the proxy for a URL; `None` if it is called directly.
    ///
    /// # Errors
    /// A sentence that names the variable, if its proxy can't be used.
    pub fn of(&self, url: &Uri) -> Result<Option<&Proxy>, String> {
        if self.matcher.intercept(url).is_none() {
            return Ok(None);
        }
        let named = match url.scheme_str() {
            Some("https") => &self.https,
            _ => &self.http,
        };
        let Some(named) = named else { return Ok(None) };
        let because = |why: &String| {
            let variable = named.variable;
            format!("{variable} in the environment: {why}; list hosts that need no proxy in no_proxy")
        };
        named.proxy.as_ref().map(Some).map_err(because)
    }
}

impl Named {
    fn of((variable, text): (&'static str, &str)) -> Named {
        Named {
            variable,
            proxy: Proxy::named(text, variable),
        }
    }
}

impl fmt::Debug for EnvironmentProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let proxy = |named: &Option<Named>| {
            named
                .as_ref()
                .map(|named| (named.variable, named.proxy.clone().ok()))
        };
        f.debug_struct("EnvironmentProxies")
            .field("http", &proxy(&self.http))
            .field("https", &proxy(&self.https))
            .field("matcher", &self.matcher)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(variables: &[(&str, &str)], url: &'static str) -> Result<Option<u16>, String> {
        let variable = |wanted: &str| {
            let found = variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| *value)
        };
        let proxies = EnvironmentProxies::read(variable);
        let found = proxies.of(&Uri::from_static(url))?;
        Ok(found.map(|proxy| proxy.port))
    }

    #[test]
    fn the_rules_are_those_of_curl() {
        const CORP: &str = "http://api.corp.example/x";
        const HERE: &str = "http://127.0.0.1:8080/x";
        type Variables = &'static [(&'static str, &'static str)];
        let table: &[(Variables, &'static str, Option<u16>)] = &[
            (
                &[("http_proxy", "http://p:1"), ("HTTP_PROXY", "http://p:2")],
                HERE,
                Some(1),
            ),
            (&[("http_proxy", ""), ("HTTP_PROXY", "http://p:2")], HERE, Some(2)),
            (&[("http_proxy", "p:1")], HERE, Some(1)),
            (&[("http_proxy", "http://p:1")], "https://a/", None),
            (&[("https_proxy", "http://p:1")], "https://a/", Some(1)),
            (&[("all_proxy", "http://p:1")], "https://a/", Some(1)),
            (
                &[("ALL_PROXY", "http://p:1"), ("http_proxy", "http://p:2")],
                HERE,
                Some(2),
            ),
            (
                &[("HTTP_PROXY", "http://p:2"), ("REQUEST_METHOD", "GET")],
                HERE,
                None,
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", "127.0.0.1")],
                HERE,
                None,
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", "127.0.0.0/8")],
                HERE,
                None,
            ),
            (&[("http_proxy", "http://p:1"), ("NO_PROXY", "*")], HERE, None),
            (
                &[
                    ("http_proxy", "http://p:1"),
                    ("no_proxy", " 10.0.0.1 , 127.0.0.1 "),
                ],
                HERE,
                None,
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", "10.0.0.1 127.0.0.1")],
                HERE,
                None,
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", "127.0.0.1:8080")],
                HERE,
                Some(1),
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", "localhost")],
                CORP,
                Some(1),
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", ".corp.example")],
                CORP,
                None,
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", "corp.example")],
                CORP,
                None,
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", "Corp.Example")],
                CORP,
                None,
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", "*.corp.example")],
                CORP,
                Some(1),
            ),
            (
                &[("http_proxy", "http://p:1"), ("no_proxy", "orp.example")],
                CORP,
                Some(1),
            ),
            (&[], HERE, None),
        ];
        for (variables, url, port) in table {
            assert_eq!(told(variables, url), Ok(*port), "{variables:?} {url}");
        }
    }

    #[test]
    fn a_proxy_that_can_not_be_used_is_told_where_it_would_be() {
        for bad in ["socks5://p:1080", "https://p:1", "http://p:99999", "p:1/x", "::"] {
            let why = told(&[("all_proxy", bad)], "https://a/").expect_err(bad);
            assert!(why.starts_with("all_proxy in the environment: "), "{why}");
            assert_eq!(
                told(&[("all_proxy", bad), ("no_proxy", "a")], "https://a/"),
                Ok(None)
            );
        }
    }

    #[test]
    fn a_password_is_sent_and_never_shown() {
        let variable = |name: &str| (name == "http_proxy").then_some("http://ann:ge%40heim@p:1");
        let proxies = EnvironmentProxies::read(variable);
        let found = proxies.of(&Uri::from_static("http://a/"));
        let found = found.expect("usable").expect("a proxy");
        assert_eq!(
            found.authorization().expect("credentials"),
            "Basic YW5uOmdlQGhlaW0="
        );
        assert!(!format!("{proxies:?}").contains("heim"));
        let both = told(&[("http_proxy", "http://ann:geheim@p:0")], "http://a/").expect_err("port 0");
        assert!(!both.contains("geheim"), "{both}");
    }
}
