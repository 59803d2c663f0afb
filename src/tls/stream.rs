//! TCP connection of an HTTP client, which notices if plain HTTP is answered with TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBuf, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::SpokeTls;

/// Number of bytes examined of a response. (The rest is read as it comes.)
const LOOK_BYTES: usize = 64;

/// Connection; a proxied one wants whole URLs in the first line of requests.
#[derive(Debug)]
pub struct Stream {
    io: TokioIo<TcpStream>,
    is_proxied: bool,
    /// True while plain HTTP is spoken and nothing has come back yet.
    awaits_http: bool,
}

impl Stream {
    /// Creates a connection on which TLS or plain HTTP is spoken.
    pub fn new(io: TokioIo<TcpStream>, is_https: bool) -> Stream {
        Stream {
            io,
            is_proxied: false,
            awaits_http: !is_https,
        }
    }

    /// Marks it as a connection to a proxy, which gets the whole URL.
    pub fn proxied(self, is_proxied: bool) -> Stream {
        Stream { is_proxied, ..self }
    }

    /// Makes closing discard what hasn't been sent yet.
    pub fn cut_off(&self) {
        // A socket that refuses the option is broken, and sends nothing more either.
        self.io.inner().set_zero_linger().ok();
    }

    /// Reads the beginning of the first response, and fails if it is a TLS record.
    fn poll_first(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut room = [0; LOOK_BYTES];
        let len = buffer.remaining().min(LOOK_BYTES);
        let mut first = ReadBuf::new(&mut room[..len]);
        ready!(Pin::new(&mut self.io).poll_read(context, first.unfilled()))?;
        if is_tls(first.filled()) {
            return Poll::Ready(Err(io::Error::other(SpokeTls)));
        }
        self.awaits_http = false;
        buffer.put_slice(first.filled());
        Poll::Ready(Ok(()))
    }
}

/// Returns true if a response begins like an alert or a handshake, of any TLS version.
fn is_tls(answer: &[u8]) -> bool {
    matches!(answer, [0x15 | 0x16, 3, ..])
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.is_proxied)
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.awaits_http && buffer.remaining() > 0 {
            return self.poll_first(context, &mut buffer);
        }
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(context, parts)
    }
}
