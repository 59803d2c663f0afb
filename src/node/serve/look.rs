//! Everything that a start refuses because of the files and places that its configuration names. `windrow config check`
//! looks at them without a start, and a start before it begins anything: through the same functions that then use them.
//!
//! What depends on the moment stands apart: another process may hold the port or the data directory, and a running node
//! does both while its configuration is checked.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use super::compose::peer_tls;
use super::{ServeError, acceptor, name};
use crate::{StateDir, bootstrap, database, witness};
use windrow_config::Config;
use windrow_engine::ports::StoreError;
use windrow_host::vault::KeyVault;

/// Whether a port can be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// Nobody has it.
    Free,
    /// Somebody listens there now.
    Taken,
}

/// Everything that is wrong, in the order in which a start meets it, each with the key of the configuration.
pub fn faults(config: &Config) -> Vec<(&'static str, ServeError)> {
    let (auth, data_dir) = (&config.auth, &config.node.data_dir);
    let tls = acceptor(config).map(drop);
    let tls_key = tls.as_ref().err().map_or("http.tls_cert_file", |bad| bad.key);
    let peers = peer_tls(config);
    let looks: [(&'static str, Result<(), ServeError>); 10] = [
        ("node.id", name(config).map(drop)),
        (tls_key, tls.map_err(ServeError::from)),
        (
            "node.data_dir",
            StateDir::look(data_dir).map_err(ServeError::from),
        ),
        (
            "store.password_file",
            database::address(config).map(drop).map_err(ServeError::from),
        ),
        (
            "cluster.redis_url",
            witness::is_readable(&config.cluster).map_err(ServeError::from),
        ),
        (
            "auth.key_file",
            KeyVault::look(auth.key_file.as_deref(), data_dir).map_err(ServeError::from),
        ),
        (
            "results.location",
            folder("results.location", config.results.location.as_deref()),
        ),
        (
            "archive.location",
            folder("archive.location", config.archive.location.as_deref()),
        ),
        ("cluster.ca_file", peers.look().map_err(ServeError::PeerTrust)),
        (
            "auth.bootstrap_token_file",
            bootstrap::look(auth, data_dir).map_err(ServeError::from),
        ),
    ];
    looks
        .into_iter()
        .filter_map(|(key, look)| Some((key, look.err()?)))
        .collect()
}

/// Whether the folder of a setting is one, or can be made.
fn folder(setting: &str, folder: Option<&Path>) -> Result<(), ServeError> {
    folder.map_or(Ok(()), StateDir::could_be).map_err(|error| {
        let text = format!("{setting} can't be used: {error}");
        ServeError::Folder(StoreError::Refused(text))
    })
}

/// The same for a start, which says only the first.
///
/// # Errors
/// That one.
pub(super) fn refuse(config: &Config) -> Result<(), ServeError> {
    faults(config)
        .into_iter()
        .next()
        .map_or(Ok(()), |(_, fault)| Err(fault))
}

/// Whether the façade could listen now.
///
/// # Errors
/// `Listen` where no process at all could: the address isn't this machine's, or the port needs rights.
pub fn port(address: SocketAddr) -> Result<Port, ServeError> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(Port::Free),
        Err(cause) if cause.kind() == ErrorKind::AddrInUse => Ok(Port::Taken),
        Err(cause) => Err(ServeError::Listen { address, cause }),
    }
}
