//! Bodies that are compressed although `identity` was asked for, as some servers send them regardless.

use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use hyper::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use hyper::http::response::Parts;

use super::fault::Fault;

/// Decompresses the whole body of a response if it is gzip; other encodings are left to the reader.
///
/// # Errors
/// If it can't be decompressed, or is larger than `bytes_max` then.
pub(super) fn unpacked(parts: &mut Parts, body: Bytes, bytes_max: usize) -> Result<Bytes, Fault> {
    if !is_gzip(parts) || body.is_empty() {
        return Ok(body);
    }
    let (plain, read) = unpack(&body, bytes_max.saturating_add(1));
    read.map_err(|why| Fault::Garbled(format!("it claims to be gzip but can't be unpacked ({why})")))?;
    if plain.len() > bytes_max {
        return Err(Fault::TooBig(bytes_max));
    }
    say_plain(parts);
    Ok(plain.into())
}

/// Decompresses as much as possible of the beginning of a body that is only quoted.
pub(super) fn beginning(parts: &mut Parts, body: Bytes, bytes_max: usize) -> Bytes {
    if !is_gzip(parts) || body.is_empty() {
        return body;
    }
    say_plain(parts);
    unpack(&body, bytes_max).0.into()
}

fn unpack(body: &[u8], bytes_max: usize) -> (Vec<u8>, std::io::Result<usize>) {
    let mut plain = Vec::new();
    let read = MultiGzDecoder::new(body)
        .take(bytes_max as u64)
        .read_to_end(&mut plain);
    (plain, read)
}

fn is_gzip(parts: &Parts) -> bool {
    let encoding = parts.headers.get(CONTENT_ENCODING);
    encoding.is_some_and(|value| {
        let value = value.as_bytes().trim_ascii();
        value.eq_ignore_ascii_case(b"gzip") || value.eq_ignore_ascii_case(b"x-gzip")
    })
}

/// Changes the headers to those of the plain body.
fn say_plain(parts: &mut Parts) {
    parts.headers.remove(CONTENT_ENCODING);
    parts.headers.remove(CONTENT_LENGTH);
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use hyper::Response;

    use super::*;

    fn packed(text: &[u8]) -> Bytes {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text).expect("in memory");
        encoder.finish().expect("in memory").into()
    }

    fn parts(encoding: &str) -> Parts {
        let response = Response::builder().header(CONTENT_ENCODING, encoding).body(());
        response.expect("a response").into_parts().0
    }

    #[test]
    fn a_body_is_unpacked_within_its_bound() {
        let zeros = vec![b'0'; 1 << 20];
        let read = |body, most| unpacked(&mut parts("GZIP"), body, most);
        assert_eq!(read(packed(b"{}"), 2).expect("fits"), "{}");
        assert!(matches!(read(packed(b"{} "), 2), Err(Fault::TooBig(2))));
        assert!(matches!(read(packed(&zeros), 1000), Err(Fault::TooBig(1000))));
        assert!(matches!(
            read(packed(b"{}").slice(..12), 2),
            Err(Fault::Garbled(_))
        ));
        assert!(matches!(
            read(Bytes::from_static(b"{}"), 2),
            Err(Fault::Garbled(_))
        ));
        assert_eq!(beginning(&mut parts("gzip"), packed(&zeros), 10), "0000000000");
    }

    #[test]
    fn what_is_not_gzip_stays_as_it_is_and_says_so() {
        let mut other = parts("br");
        assert_eq!(
            unpacked(&mut other, Bytes::from_static(b"x"), 9).expect("left"),
            "x"
        );
        assert_eq!(other.headers[CONTENT_ENCODING], "br");
    }
}
