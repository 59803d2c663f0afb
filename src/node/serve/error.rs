//! Errors that keep a node from serving.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::agreement::WitnessError;
use crate::bootstrap::BootstrapError;
use crate::{LockError, StartError};
use windrow_engine::ports::StoreError;
use windrow_host::secret_file::SecretFileError;
use windrow_net::IdentityFault;
use windrow_server::http::server::BadTls;

/// Error that keeps a node from serving. Nothing runs then.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The node's name is invalid.
    #[error("{0:?} is not a valid node name (1 to 64 letters, digits, dots, - and _); set node.id")]
    Name(String),
    /// The collector of spans can't be used.
    #[error("{0}")]
    Traces(String),
    /// The certificate or its key can't be used.
    #[error(transparent)]
    Tls(#[from] BadTls),
    /// The port can't be listened on.
    #[error("can't listen on {address}: {cause}")]
    Listen {
        /// Address to listen on, from `http.listen`.
        address: SocketAddr,
        /// Error of the operating system.
        cause: io::Error,
    },
    /// The state directory can't be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The directory has the key of an earlier node, but its database has disappeared.
    #[error(
        "{} has a node's key and lock, but its database {} is missing",
        directory.display(), database.display()
    )]
    Lost {
        /// Path of the data directory.
        directory: PathBuf,
        /// Expected path of the database.
        database: PathBuf,
    },
    /// The database can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The directory of results or of archived tasks can't be used.
    #[error("{}", .0.text())]
    Folder(StoreError),
    /// The key that encrypts secrets can't be used.
    #[error(transparent)]
    Key(#[from] SecretFileError),
    /// The certificates for trusting other nodes can't be used.
    #[error("cluster.ca_file: {0}")]
    PeerTrust(String),
    /// The certificate presented to handlers can't be used.
    #[error("client certificate: {0}")]
    ClientCert(IdentityFault),
    /// The first token can't be created or read.
    #[error(transparent)]
    Token(BootstrapError),
    /// The other nodes of the store use another witness.
    #[error(transparent)]
    Witness(#[from] WitnessError),
    /// The supervision tree failed to start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl From<BootstrapError> for ServeError {
    fn from(error: BootstrapError) -> ServeError {
        match error {
            BootstrapError::Store(error) => ServeError::Store(error),
            error => ServeError::Token(error),
        }
    }
}
