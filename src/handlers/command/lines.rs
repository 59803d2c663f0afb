//! Line splitter for the output of a process, which never holds more than one line's limit of it.
//!
//! Never interprets a line and never decides what an overlong one means.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum bytes per read: the size of a pipe on Linux.
const READ_BYTES: usize = 64 * 1024;

/// Line of output, or the beginning of an overlong one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Everything up to a newline, without it (or a carriage return before it).
    Whole(Vec<u8>),
    /// First bytes of a line that exceeds the limit; the rest follows as lines of its own.
    Overlong(Vec<u8>),
}

/// Reader of lines of at most `bytes_max` bytes.
pub(super) struct LineReader<R> {
    inner: R,
    buffer: Vec<u8>,
    /// Start of the next line in `buffer`.
    start: usize,
    /// End of the part of `buffer` that is known to hold no newline.
    scanned: usize,
    bytes_max: usize,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Creates a reader over `inner`; a line holds at most `bytes_max` bytes.
    pub(super) fn new(inner: R, bytes_max: usize) -> LineReader<R> {
        LineReader {
            inner,
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            bytes_max: bytes_max.max(1),
        }
    }

    /// Returns the underlying reader.
    pub(super) fn inner(&self) -> &R {
        &self.inner
    }

    /// Returns true if everything that was read has been taken.
    pub(super) fn is_drained(&self) -> bool {
        self.start == self.buffer.len()
    }

    /// Reads once; returns 0 at the end. Cancel safe: nothing is lost if the future is dropped.
    pub(super) async fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        let room = (self.bytes_max + 1)
            .saturating_sub(self.buffer.len())
            .clamp(1, READ_BYTES);
        self.buffer.reserve(room);
        (&mut self.inner)
            .take(room as u64)
            .read_buf(&mut self.buffer)
            .await
    }

    /// Returns the next line that has been read completely.
    pub(super) fn take_line(&mut self) -> Option<Line> {
        match memchr(b'\n', &self.buffer[self.scanned..]) {
            Some(at) if self.scanned + at - self.start <= self.bytes_max => {
                let end = self.scanned + at;
                let line = self.take(end, end + 1);
                Some(Line::Whole(
                    line.strip_suffix(b"\r").map(<[u8]>::to_vec).unwrap_or(line),
                ))
            }
            None if self.buffer.len() - self.start <= self.bytes_max => {
                self.scanned = self.buffer.len();
                None
            }
            _ => {
                let end = self.start + self.bytes_max;
                Some(Line::Overlong(self.take(end, end)))
            }
        }
    }

    /// Returns what followed the last newline, once the end was reached.
    pub(super) fn take_rest(&mut self) -> Option<Vec<u8>> {
        let end = self.buffer.len();
        (self.start < end).then(|| self.take(end, end))
    }

    fn take(&mut self, end: usize, next: usize) -> Vec<u8> {
        let line = self.buffer[self.start..end].to_vec();
        self.start = next;
        self.scanned = next;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(input: &'static [u8], bytes_max: usize) -> (Vec<Line>, Option<Vec<u8>>) {
        let mut reader = LineReader::new(input, bytes_max);
        let mut lines = Vec::new();
        while reader.fill().await.expect("reading memory cannot fail") > 0 {
            while let Some(line) = reader.take_line() {
                lines.push(line);
            }
            assert!(reader.buffer.capacity() < 4 * READ_BYTES, "memory is bounded");
        }
        (lines, reader.take_rest())
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[tokio::test]
    async fn lines_end_at_newlines_and_lose_their_carriage_return() {
        let (lines, rest) = all(b"ok\r\n\nlonger line\nrest", 64).await;
        assert_eq!(lines, [whole("ok"), whole(""), whole("longer line")]);
        assert_eq!(rest.as_deref(), Some(&b"rest"[..]));
    }

    #[tokio::test]
    async fn a_line_may_be_as_long_as_the_limit_and_no_longer() {
        let (lines, _) = all(b"12345\n123456\nok\n", 5).await;
        assert_eq!(
            lines,
            [
                whole("12345"),
                Line::Overlong(b"12345".to_vec()),
                whole("6"),
                whole("ok")
            ]
        );
    }

    #[tokio::test]
    async fn bytes_that_come_one_by_one_make_the_same_lines() {
        let mut reader = LineReader::new(Slow(b"ab\ncd\n"), 16);
        let mut lines = Vec::new();
        while reader.fill().await.expect("reading memory cannot fail") > 0 {
            lines.extend(std::iter::from_fn(|| reader.take_line()));
        }
        assert_eq!(lines, [whole("ab"), whole("cd")]);
        assert!(reader.is_drained());
    }

    struct Slow(&'static [u8]);

    impl AsyncRead for Slow {
        fn poll_read(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
            into: &mut tokio::io::ReadBuf<'_>,
        ) -> std::task::Poll<io::Result<()>> {
            let (head, tail) = self.0.split_at(self.0.len().min(1));
            into.put_slice(head);
            self.0 = tail;
            std::task::Poll::Ready(Ok(()))
        }
    }
}
