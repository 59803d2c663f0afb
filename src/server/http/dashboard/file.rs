//! File of the dashboard with its response headers, sent plain or compressed, or as 304 if the browser already has
//! it.

use std::io::{self, Read, Write};

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::http::guard::headers::text;

/// Content security policy of the dashboard: load from this node and connect to this node only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// Length of the hashes in ETags and URLs, in bytes.
const SHOWN: usize = 8;

/// Browser caching of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// Cache forever: changed content gets another URL.
    ForGood,
    /// Revalidate on each use.
    AskAgain,
}

/// Uncompressed content of a file.
#[derive(Debug)]
enum Plain {
    Kept(Bytes),
    /// Unpacked for the few clients that accept no compression.
    Gzip(&'static [u8]),
}

impl Plain {
    fn bytes(&self) -> Bytes {
        match self {
            Plain::Kept(bytes) => bytes.clone(),
            Plain::Gzip(packed) => unpacked(packed).into(),
        }
    }
}

/// File ready to be sent, with its hash and compressed forms.
#[derive(Debug)]
pub(super) struct File {
    kind: &'static str,
    hash: String,
    plain: Plain,
    /// Compressed forms with the name of their encoding, in order of preference.
    packed: Vec<(&'static str, Bytes)>,
}

impl File {
    /// Creates a file that is always sent uncompressed.
    pub(super) fn plain(name: &str, bytes: Bytes) -> File {
        File {
            kind: kind_of(name),
            hash: hash(&bytes),
            plain: Plain::Kept(bytes),
            packed: Vec::new(),
        }
    }

    /// Creates a file that is sent compressed to clients that accept gzip.
    pub(super) fn packed(name: &str, bytes: Bytes) -> File {
        let gzip = packed(&bytes).ok().map(|gzip| ("gzip", gzip.into()));
        File {
            packed: gzip.into_iter().collect(),
            ..File::plain(name, bytes)
        }
    }

    /// Creates a file of which the program has the compressed forms only.
    pub(super) fn embedded(name: &str, gzip: &'static [u8], brotli: &'static [u8]) -> File {
        File {
            kind: kind_of(name),
            hash: hash(gzip),
            plain: Plain::Gzip(gzip),
            packed: [("br", brotli), ("gzip", gzip)]
                .map(|(coding, form)| (coding, Bytes::from_static(form)))
                .into(),
        }
    }

    /// Returns the first part of the content's SHA-256, in hexadecimal.
    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// Builds the response to a GET or HEAD.
    pub(super) fn answer(&self, method: &Method, asked: &HeaderMap, keep: Keep) -> Response {
        let packed = self.packed.iter().find(|(coding, _)| takes(asked, coding));
        // Each encoding needs its own ETag (RFC 9110, §8.8.3.3).
        let tag = match packed {
            Some((coding, _)) => format!("\"{}-{coding}\"", self.hash),
            None => format!("\"{}\"", self.hash),
        };
        let is_known = has(asked, &tag);
        let mut response = Response::new(Body::empty());
        let headers = response.headers_mut();
        self.tell(headers, keep);
        headers.extend(value(&tag).map(|tag| (header::ETAG, tag)));
        if is_known {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            return response;
        }
        if let Some((coding, _)) = packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
        }
        let body = packed.map_or_else(|| self.plain.bytes(), |(_, form)| form.clone());
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        if *method != Method::HEAD {
            *response.body_mut() = Body::from(body);
        }
        response
    }

    /// Adds the headers that don't depend on the encoding.
    fn tell(&self, headers: &mut HeaderMap, keep: Keep) {
        let keep = match keep {
            Keep::ForGood => "public, max-age=31536000, immutable",
            Keep::AskAgain => "no-cache",
        };
        let said: [(HeaderName, &'static str); 6] = [
            (header::CONTENT_TYPE, self.kind),
            (header::CACHE_CONTROL, keep),
            (header::VARY, "accept-encoding"),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                "same-origin",
            ),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "same-origin",
            ),
        ];
        headers.extend(said.map(|(name, text)| (name, HeaderValue::from_static(text))));
    }
}

fn value(text: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(text).ok()
}

/// Returns the content type for a file name. It must be exact, because `nosniff` forbids browsers to guess.
fn kind_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, kind)| kind) {
        "html" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/vnd.microsoft.icon",
        "woff2" => "font/woff2",
        "txt" => "text/plain; charset=utf-8",
        "md" => "text/markdown; charset=utf-8",
        _ => "application/octet-stream",
    }
}

/// Returns the first part of a content's SHA-256, in hexadecimal.
pub(super) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest[..SHOWN].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn packed(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes)?;
    packer.finish()
}

/// Unpacks a file that the build packed.
pub(super) fn unpacked(gzip: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let unpacked = GzDecoder::new(gzip).read_to_end(&mut bytes);
    unpacked.expect("the build script packed it");
    bytes
}

/// Returns true if the client accepts an encoding: named, and not excluded with `q=0`.
fn takes(asked: &HeaderMap, coding: &str) -> bool {
    let codings = text(asked, header::ACCEPT_ENCODING).split(',');
    let mut codings = codings.map(|one| {
        let (name, weight) = one.split_once(';').unwrap_or((one, ""));
        let weight = weight.trim().trim_start_matches("q=");
        (name.trim(), weight.parse().unwrap_or(1.0_f32) > 0.0)
    });
    codings.any(|(name, is_wanted)| name.eq_ignore_ascii_case(coding) && is_wanted)
}

/// Returns true if the client already has the content with this ETag.
fn has(asked: &HeaderMap, tag: &str) -> bool {
    let mut known = text(asked, header::IF_NONE_MATCH).split(',').map(str::trim);
    known.any(|known| known == "*" || known.trim_start_matches("W/") == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(headers: &[(HeaderName, &str)]) -> HeaderMap {
        let each = headers.iter();
        each.map(|(name, text)| (name.clone(), text.parse().expect("a value")))
            .collect()
    }

    fn answer(file: &File, method: Method, headers: &[(HeaderName, &str)]) -> Response {
        file.answer(&method, &asked(headers), Keep::AskAgain)
    }

    #[test]
    fn a_file_is_packed_for_who_takes_it_under_a_tag_of_its_own() {
        let gzip = packed("a { } ".repeat(100).as_bytes()).expect("packed");
        let file = File::embedded("x.css", gzip.leak(), b"shortest");
        let plain = answer(&file, Method::GET, &[]);
        assert_eq!(plain.headers()[header::CONTENT_LENGTH], "600");
        assert!(!plain.headers().contains_key(header::CONTENT_ENCODING));
        let mut tags = vec![plain.headers()[header::ETAG].clone()];
        for (taken, coding) in [("gzip, br", "br"), ("br;q=0, GZIP;q=0.5", "gzip")] {
            let packed = answer(&file, Method::GET, &[(header::ACCEPT_ENCODING, taken)]);
            assert_eq!(packed.headers()[header::CONTENT_ENCODING], coding, "{taken}");
            let tag = packed.headers()[header::ETAG].clone();
            assert!(!tags.contains(&tag), "{taken}: {tag:?}");
            tags.push(tag);
        }
        for unwanted in ["gzip;q=0", "identity", "xgzip"] {
            let plain = answer(&file, Method::GET, &[(header::ACCEPT_ENCODING, unwanted)]);
            assert!(
                !plain.headers().contains_key(header::CONTENT_ENCODING),
                "{unwanted}"
            );
        }
    }

    #[test]
    fn what_the_browser_has_is_not_sent_again() {
        let file = File::plain("x.js", Bytes::from_static(b"1"));
        let tag = answer(&file, Method::GET, &[]).headers()[header::ETAG].clone();
        let tag = tag.to_str().expect("text").to_owned();
        for known in [tag.clone(), format!("\"other\", W/{tag}"), "*".to_owned()] {
            let again = answer(&file, Method::GET, &[(header::IF_NONE_MATCH, &known)]);
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{known}");
            assert!(again.headers().contains_key(header::CONTENT_SECURITY_POLICY));
        }
        let other = answer(&file, Method::GET, &[(header::IF_NONE_MATCH, "\"other\"")]);
        assert_eq!(other.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_head_says_the_length_and_sends_nothing() {
        let file = File::plain("x.js", Bytes::from_static(b"12345"));
        let response = answer(&file, Method::HEAD, &[]);
        assert_eq!(response.headers()[header::CONTENT_LENGTH], "5");
        let body = axum::body::to_bytes(response.into_body(), 100)
            .await
            .expect("read");
        assert!(body.is_empty());
    }
}
