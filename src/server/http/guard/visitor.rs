//! Host and Origin checks against requests that foreign web pages make a browser send. They apply in every
//! `auth.mode`, because a browser attaches credentials (a trusted address, a proxy's sign-in) to requests of any
//! page.
//!
//! A page that bound its own name to this node's address (DNS rebinding) is recognized by `Host`, which must be a
//! name of this node. Any other page is recognized by `Origin` or `Sec-Fetch-Site`, which no page can change and only
//! browsers send.

use std::net::IpAddr;

use axum::http::{HeaderMap, HeaderName, Method, Uri, header};

use crate::http::problem::Slug;
use windrow_config::Http;
use windrow_core::settings::Auto;
use windrow_core::text::quoted;

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
/// Longest part of a foreign name that is repeated in a message, in characters.
const SHOWN_MAX: usize = 100;

/// Names under which the node may be addressed.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// Host names in lower case, without ports.
    names: Vec<String>,
    /// True if any IP address is accepted: the node listens on all, and addresses can't be rebound.
    any_address: bool,
    /// Origin of `http.public_url`, which browsers send behind a proxy that changes `Host`.
    public_origin: Option<String>,
}

impl Names {
    /// Collects the names from the configuration. Loopback names are always accepted.
    pub(crate) fn of(http: &Http) -> Names {
        let public: Option<Uri> = http.public_url.as_deref().and_then(|url| url.parse().ok());
        let advertised = match &http.advertise {
            Auto::Fixed(address) => address.parse::<Uri>().ok(),
            Auto::Auto => None,
        };
        let urls = [&public, &advertised]
            .into_iter()
            .flatten()
            .filter_map(Uri::host)
            .map(name_of);
        let named = http.allowed_hosts.iter().map(|host| name_of(host));
        let listen = http.listen.ip();
        let origin = |url: &Uri| Some(format!("{}://{}", url.scheme_str()?, url.authority()?));
        Names {
            names: urls.chain(named).chain([listen.to_string()]).collect(),
            any_address: listen.is_unspecified(),
            public_origin: public.as_ref().and_then(origin),
        }
    }

    /// Rejects requests that a foreign page may have made a browser send.
    ///
    /// # Errors
    /// The problem's slug and the reason.
    pub(crate) fn judge(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), (Slug, String)> {
        let told = uri.authority().map(|authority| authority.as_str());
        let hosts: Vec<&str> = all(headers, &header::HOST).chain(told).collect();
        if hosts.is_empty() {
            return Err((Slug::ForeignHost, "the request has no Host header".to_owned()));
        }
        if let Some(host) = hosts.iter().find(|host| !self.has(host)) {
            let shown: String = host.chars().take(SHOWN_MAX).collect();
            return Err((
                Slug::ForeignHost,
                format!("{} is not a name of this node", quoted(&shown)),
            ));
        }
        if let Some(origin) = all(headers, &header::ORIGIN).find(|origin| !self.is_own(origin, &hosts)) {
            let shown: String = origin.chars().take(SHOWN_MAX).collect();
            return Err((
                Slug::ForeignPage,
                format!("the request comes from a page of {}", quoted(&shown)),
            ));
        }
        // Following a link from another site is safe: the result is shown to the user and not to the linking page.
        let is_followed = method.is_safe() && all(headers, &FETCH_MODE).eq(["navigate"]);
        let site = all(headers, &FETCH_SITE).find(|site| !matches!(*site, "same-origin" | "none"));
        match site.filter(|_| !is_followed) {
            Some(_) => Err((
                Slug::ForeignPage,
                "the browser reports a request from another site".to_owned(),
            )),
            None => Ok(()),
        }
    }

    /// Returns true if a host, with or without a port, is this node.
    fn has(&self, host: &str) -> bool {
        let name = name_of(host);
        let address = name.parse::<IpAddr>().ok();
        name == "localhost"
            || address.is_some_and(|address| self.any_address || address.is_loopback())
            || self.names.contains(&name)
    }

    fn is_own(&self, origin: &str, hosts: &[&str]) -> bool {
        let of_host = origin.split_once("://").map(|(_, host)| host);
        let is = |other: &str, one: &str| one.eq_ignore_ascii_case(other);
        self.public_origin.as_deref().is_some_and(|own| is(own, origin))
            || of_host.is_some_and(|of_host| hosts.iter().any(|host| is(host, of_host)))
    }
}

/// Returns true if the browser states that one of this node's pages sent the request. Call only after
/// [judging](Names::judge) it: by then any stated origin is this node.
pub(crate) fn is_own_page(headers: &HeaderMap) -> bool {
    headers.contains_key(header::ORIGIN) || all(headers, &FETCH_SITE).eq(["same-origin"])
}

/// Returns the values of a header; a value that isn't text becomes `?`, which matches nothing.
fn all<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .map(|value| value.to_str().unwrap_or("?"))
}

/// Normalizes a host: lower case, without port, brackets or trailing dot.
fn name_of(host: &str) -> String {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        // An IPv6 address without brackets has more than one colon.
        None => host
            .rsplit_once(':')
            .filter(|(name, _)| !name.contains(':'))
            .map_or(host, |(name, _)| name),
    };
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(listen: &str) -> Names {
        Names::of(&Http {
            listen: listen.parse().expect(listen),
            advertise: Auto::Fixed("http://n1.lan:7700".to_owned()),
            public_url: Some("https://windrow.example.org/x".to_owned()),
            allowed_hosts: vec!["Node.Example".to_owned(), "fd00::7".to_owned()],
            ..Http::default()
        })
    }

    /// The problem that a request meets.
    fn judged(names: &Names, method: &str, headers: &[(&'static str, &str)]) -> Option<String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a value"));
        }
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let found = names.judge(&method, &Uri::from_static("/v1/tasks"), &map);
        found.err().map(|(slug, _)| slug.facts().0.to_owned())
    }

    #[test]
    fn a_node_is_called_by_its_own_names_only() {
        let one = names("10.0.0.5:7700");
        for host in [
            "localhost",
            "LOCALHOST.:7700",
            "127.8.9.1",
            "[::1]:7700",
            "10.0.0.5:7700",
            "n1.lan:7700",
            "windrow.example.org",
            "node.example:81",
            "[fd00::7]:7700",
        ] {
            assert_eq!(judged(&one, "GET", &[("host", host)]), None, "{host}");
        }
        for host in [
            "example.org",
            "localhost.example.org:7700",
            "10.0.0.6:7700",
            "",
            "[::2]:7700",
            "127.0.0.1.nip.io",
            "example.org#localhost",
        ] {
            assert_eq!(
                judged(&one, "GET", &[("host", host)]).as_deref(),
                Some("foreign-host"),
                "{host}"
            );
        }
        assert_eq!(judged(&one, "GET", &[]).as_deref(), Some("foreign-host"));
        let both = [("host", "localhost"), ("host", "evil.example")];
        assert_eq!(judged(&one, "GET", &both).as_deref(), Some("foreign-host"));
        let every = names("0.0.0.0:7700");
        assert_eq!(judged(&every, "GET", &[("host", "192.0.2.7:7700")]), None);
        assert_eq!(
            judged(&every, "GET", &[("host", "evil.example")]).as_deref(),
            Some("foreign-host")
        );
    }

    #[test]
    fn only_a_browser_says_that_an_own_page_asks() {
        let is_own = |headers: &[(&'static str, &'static str)]| {
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(*name, value.parse().expect("a value"));
            }
            is_own_page(&map)
        };
        assert!(
            is_own(&[("origin", "http://localhost:7700")]) && is_own(&[("sec-fetch-site", "same-origin")])
        );
        assert!(!is_own(&[]) && !is_own(&[("sec-fetch-site", "none")]));
    }

    #[test]
    fn pages_of_others_are_found_by_origin_and_by_what_the_browser_says() {
        let names = names("127.0.0.1:7700");
        let with = |method: &str, more: &[(&'static str, &'static str)]| {
            let mut headers = vec![("host", "localhost:7700")];
            headers.extend_from_slice(more);
            judged(&names, method, &headers)
        };
        for own in [
            "http://localhost:7700",
            "https://LOCALHOST:7700",
            "https://windrow.example.org",
        ] {
            assert_eq!(
                with("POST", &[("origin", own), ("sec-fetch-site", "same-origin")]),
                None,
                "{own}"
            );
        }
        for other in [
            "null",
            "http://localhost:3000",
            "http://evil.example",
            "http://windrow.example.org",
        ] {
            assert_eq!(
                with("POST", &[("origin", other)]).as_deref(),
                Some("foreign-page"),
                "{other}"
            );
        }
        for site in ["cross-site", "same-site", "new-word"] {
            for method in ["GET", "POST"] {
                let found = with(method, &[("sec-fetch-site", site)]);
                assert_eq!(found.as_deref(), Some("foreign-page"), "{method} {site}");
            }
        }
        let followed = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(with("GET", &followed), None, "a link");
        assert_eq!(with("POST", &followed).as_deref(), Some("foreign-page"), "a form");
        assert_eq!(with("POST", &[]), None, "no browser");
        assert_eq!(
            with("POST", &[("sec-fetch-site", "none")]),
            None,
            "typed by a person"
        );
    }
}
