//! What answers on the node's port until its façade does, where that takes long. Who asks a node that is about to serve is
//! answered by the façade a moment later: many wait for any answer, and go on as if it served.

use std::os::fd::AsFd;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{Server, TlsAcceptor, limits};
use crate::Runtimes;
use windrow_config::Config;
use windrow_server::http::server::{Limits, Listener};
use windrow_server::http::starting;

/// A start that takes no longer needs nobody to answer. (Probes wait for a second at least.)
const QUIET: Duration = Duration::from_millis(800);
/// How long a request of this time may keep the façade from its port.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// Answers as long as it is kept, once that is long.
pub(super) struct Starting {
    stop: oneshot::Sender<()>,
    server: JoinHandle<bool>,
}

impl Starting {
    /// Answers on another handle of the listener.
    ///
    /// # Errors
    /// When there can be none.
    pub(super) fn begin(
        listener: &TcpListener,
        tls: Option<TlsAcceptor>,
        (config, runtimes): (&Config, &Runtimes),
    ) -> std::io::Result<Starting> {
        let listener = std::net::TcpListener::from(listener.as_fd().try_clone_to_owned()?);
        let server = Server {
            listener: Listener::Tcp(TcpListener::from_std(listener)?, tls),
            router: starting::facade(config.http.public_url.clone().unwrap_or_default()),
            limits: Limits {
                end_patience: END_PATIENCE,
                ..limits(config)
            },
        };
        let (stop, mut stopped) = oneshot::channel();
        let server = runtimes.front().spawn(async move {
            // The sender going away is the end as well.
            match tokio::time::timeout(QUIET, &mut stopped).await {
                Ok(_) => true,
                Err(_) => server.serve(async move { drop(stopped.await) }).await,
            }
        });
        Ok(Starting { stop, server })
    }

    /// Leaves the port to the façade.
    pub(super) async fn end(self) {
        drop(self.stop);
        if let Err(error) = self.server.await {
            tracing::warn!(%error, "what answers during a start ended by a panic");
        }
    }
}
