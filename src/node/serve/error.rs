//! Why a node can't begin to serve.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::agreement::WitnessError;
use crate::bootstrap::BootstrapError;
use crate::{LockError, StartError};
use windrow_engine::ports::StoreError;
use windrow_host::secret_file::SecretFileError;
use windrow_server::http::server::BadTls;

/// See the module. Nothing runs then.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The node's name isn't one.
    #[error("{0:?} is no name of a node: 1 to 64 letters, digits, dots, - and _ are; set node.id")]
    Name(String),
    /// The certificate or its key.
    #[error(transparent)]
    Tls(#[from] BadTls),
    /// The port can't be had.
    #[error("{address} can't be listened on: {cause}")]
    Listen {
        /// `http.listen`.
        address: SocketAddr,
        /// What the system said.
        cause: io::Error,
    },
    /// The state directory can't be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A node worked here and left its key; its database is gone.
    #[error("{} has the key and the lock of a node, but its database {} is gone", directory.display(), database.display())]
    Lost {
        /// The data directory.
        directory: PathBuf,
        /// Where the database was.
        database: PathBuf,
    },
    /// The database can't be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The folder of results, or of archived tasks, can't be used.
    #[error("{}", .0.text())]
    Folder(StoreError),
    /// The key that seals secrets can't be used.
    #[error(transparent)]
    Key(#[from] SecretFileError),
    /// Nobody can be trusted to be another node.
    #[error("cluster.ca_file: {0}")]
    PeerTrust(String),
    /// The first token can't be made or read.
    #[error(transparent)]
    Token(BootstrapError),
    /// The other nodes of the store live on another witness.
    #[error(transparent)]
    Witness(#[from] WitnessError),
    /// The tree did not come up.
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
