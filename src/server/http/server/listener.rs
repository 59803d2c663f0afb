//! Sources of connections: a port, a socket in the file system, this process.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use rustix::process::geteuid;
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// The address of whoever comes from this machine without one.
const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// See the module.
pub enum Listener {
    /// A port, over TLS where there is an acceptor.
    Tcp(TcpListener, Option<TlsAcceptor>),
    /// A socket in the file system. Connections of other users are closed.
    Unix(UnixListener),
    /// This process: each message is the server's end of a connection.
    Memory(mpsc::Receiver<DuplexStream>),
}

/// A connection.
pub(super) enum Accepted {
    Tcp(TcpStream, SocketAddr, Option<TlsAcceptor>),
    Unix(UnixStream),
    Memory(DuplexStream),
}

impl Accepted {
    pub(super) fn peer(&self) -> SocketAddr {
        match self {
            Accepted::Tcp(_, peer, _) => *peer,
            Accepted::Unix(_) | Accepted::Memory(_) => HERE,
        }
    }
}

impl Listener {
    /// The next connection. Cancel safe.
    ///
    /// # Errors
    /// As the kernel has it.
    pub(super) async fn accept(&mut self) -> io::Result<Accepted> {
        match self {
            Listener::Tcp(listener, tls) => {
                let (stream, peer) = listener.accept().await?;
                Ok(Accepted::Tcp(stream, peer, tls.clone()))
            }
            Listener::Unix(listener) => loop {
                let (stream, _) = listener.accept().await?;
                let user = stream.peer_cred()?.uid();
                if user == geteuid().as_raw() {
                    return Ok(Accepted::Unix(stream));
                }
                tracing::warn!(user, "a connection of another user was closed");
            },
            Listener::Memory(connections) => match connections.recv().await {
                Some(stream) => Ok(Accepted::Memory(stream)),
                // Nobody can come any more; the server still waits for its end.
                None => std::future::pending().await,
            },
        }
    }
}
