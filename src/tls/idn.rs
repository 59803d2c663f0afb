//! Hosts that aren't written in ASCII.

use std::borrow::Cow;

/// Returns the URL with its host as requests name it: `https://bücher.example/x` has `xn--bcher-kva.example`. Any
/// other URL, and one without a valid host, stays as it is.
pub fn with_ascii_host(url: &str) -> Cow<'_, str> {
    let Some((scheme, rest)) = url.split_once("://").filter(|_| !url.is_ascii()) else {
        return Cow::Borrowed(url);
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, Some(port)),
        _ => (authority, None),
    };
    let Some(url::Host::Domain(ascii)) = url::Host::parse(host).ok().filter(|_| !host.is_ascii()) else {
        return Cow::Borrowed(url);
    };
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    Cow::Owned(format!("{scheme}://{ascii}{port}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::with_ascii_host;

    #[test]
    fn only_a_host_that_is_no_ascii_is_written_anew() {
        for (url, ascii) in [
            ("https://bücher.example/ü?ü", "https://xn--bcher-kva.example/ü?ü"),
            ("http://例え.テスト:8080", "http://xn--r8jz45g.xn--zckzah:8080"),
            ("http://BÜCHER.example./", "http://xn--bcher-kva.example./"),
            ("http://plain.example/ü", "http://plain.example/ü"),
            ("http://u@bücher.example/", "http://u@bücher.example/"),
            ("bücher.example", "bücher.example"),
            ("http://[::1]/ü", "http://[::1]/ü"),
        ] {
            assert_eq!(with_ascii_host(url), ascii);
        }
    }
}
