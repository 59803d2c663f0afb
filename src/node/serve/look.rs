//! Checks of the files and paths named by a configuration, as far as a start would refuse them. `windrow config
//! check` runs them without a start, and a start runs them before anything else, through the same functions that
//! later use the files.
//!
//! Conditions of the moment are separate: another process may hold the port or the data directory, and a running node
//! holds both while its configuration is checked.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;

use super::compose::peer_tls;
use super::{ServeError, acceptor, name};
use crate::traces::Tracing;
use crate::{StateDir, bootstrap, database, witness};
use windrow_config::Config;
use windrow_engine::ports::StoreError;
use windrow_host::vault::KeyVault;
use windrow_net::Outbound;

/// Availability of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// No process listens on it.
    Free,
    /// Another process listens on it now.
    Taken,
}

/// Returns all faults in the order in which a start meets them, each with its configuration key.
pub fn faults(config: &Config) -> Vec<(&'static str, ServeError)> {
    let (auth, data_dir) = (&config.auth, &config.node.data_dir);
    let tls = acceptor(config).map(drop);
    let tls_key = tls.as_ref().err().map_or("http.tls_cert_file", |bad| bad.key);
    let peers = peer_tls(config);
    let looks: [(&'static str, Result<(), ServeError>); 12] = [
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
        ("handler.http.client_cert_file", client_cert(config)),
        (
            "telemetry.traces_url",
            Tracing::look(config).map_err(ServeError::Traces),
        ),
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

/// Checks that a configured directory exists or can be created.
fn folder(setting: &str, folder: Option<&Path>) -> Result<(), ServeError> {
    folder.map_or(Ok(()), StateDir::could_be).map_err(|error| {
        let text = format!("can't use {setting}: {error}");
        ServeError::Folder(StoreError::Refused(text))
    })
}

/// Checks that the node's client certificate can be presented.
fn client_cert(config: &Config) -> Result<(), ServeError> {
    let client_cert = Outbound::to_handlers(&config.http_handler).client_cert;
    let loaded = client_cert.map_or(Ok(()), |one| one.load().map(drop));
    loaded.map_err(ServeError::ClientCert)
}

/// Runs the checks for a start, which reports only the first fault.
///
/// # Errors
/// Returns the first fault.
pub(super) fn refuse(config: &Config) -> Result<(), ServeError> {
    faults(config)
        .into_iter()
        .next()
        .map_or(Ok(()), |(_, fault)| Err(fault))
}

/// Checks if the API server could listen on the address now.
///
/// # Errors
/// `Listen` if no process could: the address isn't this machine's, or the port needs privileges.
pub fn port(address: SocketAddr) -> Result<Port, ServeError> {
    match TcpListener::bind(address) {
        Ok(_) => Ok(Port::Free),
        Err(cause) if cause.kind() == ErrorKind::AddrInUse => Ok(Port::Taken),
        Err(cause) => Err(ServeError::Listen { address, cause }),
    }
}
