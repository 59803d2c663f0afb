//! Server that responds on the node's port during a slow start. During a quick one, requests simply wait for the API
//! server: many clients take any response as a sign that the node serves.

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

/// Length of a start during which nobody needs to respond. Probes wait for at least a second.
const QUIET: Duration = Duration::from_millis(800);
/// Time for which a request to this server may delay the API server.
const END_PATIENCE: Duration = Duration::from_secs(1);

/// Server that responds during a slow start, until it is ended.
pub(super) struct Starting {
    stop: oneshot::Sender<()>,
    server: JoinHandle<bool>,
}

impl Starting {
    /// Starts responding on a copy of the listener.
    ///
    /// # Errors
    /// Fails if the listener can't be copied.
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
            // A dropped sender also ends it.
            match tokio::time::timeout(QUIET, &mut stopped).await {
                Ok(_) => true,
                Err(_) => server.serve(async move { drop(stopped.await) }).await,
            }
        });
        Ok(Starting { stop, server })
    }

    /// Ends the server and leaves the port to the API server.
    pub(super) async fn end(self) {
        drop(self.stop);
        if let Err(error) = self.server.await {
            tracing::warn!(%error, "server for the time of the start panicked");
        }
    }
}
