//! Sources of connections: TCP port, Unix socket, in-process channel.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use rustix::process::geteuid;
use tokio::io::DuplexStream;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;

/// Peer address reported for local connections that have none.
const HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Source of incoming connections.
pub enum Listener {
    /// TCP port, with TLS if there is an acceptor.
    Tcp(TcpListener, Option<TlsAcceptor>),
    /// Unix socket. Connections of other users are closed.
    Unix(UnixListener),
    /// In-process connections: each message is the server's end of one.
    Memory(mpsc::Receiver<DuplexStream>),
}

/// Accepted connection with its peer.
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
    /// Accepts the next connection. Cancel safe.
    ///
    /// # Errors
    /// If the operating system reports one.
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
                tracing::warn!(user, "connection of another user closed");
            },
            Listener::Memory(connections) => match connections.recv().await {
                Some(stream) => Ok(Accepted::Memory(stream)),
                // No more connections can arrive, but the server still waits for its shutdown.
                None => std::future::pending().await,
            },
        }
    }
}
