//! Arguments of `windrow serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Examples of `windrow serve`, for the help.
pub(in crate) const EXAMPLES: &str = "\
Examples:
  windrow serve --config /etc/windrow/config.toml
  windrow serve --data-dir ./data --listen 127.0.0.1:7700
  WINDROW_NODE__CAPACITY_RATE=3000/s windrow serve

It needs a directory of its own that it may write (node.data_dir, by default /var/lib/windrow: the database, its lock and
the key of stored secrets) and a free port (http.listen, by default 127.0.0.1:7700); no other server. At its first start it
writes a token for an administrator to a file and prints which (auth.bootstrap_token_file).

Without --config, ./config.toml is read if there is one; else defaults and the environment hold (WINDROW_NODE__DATA_DIR
is node.data_dir). The API is described at /docs of the address that is printed, with the file of the first token.
SIGTERM or Ctrl-C drains: no new work, calls under way end, progress is saved; a second one ends at once.
SIGHUP reads the configuration anew, SIGUSR1 prints the tree of actors.

Nodes with the same store.url (PostgreSQL or MariaDB) and copies of one auth.key_file are a cluster; each needs a name of its
own (node.id) and an address that the others reach (http.advertise). 'windrow db migrate' makes the tables once for all;
'windrow cluster' shows them, docs/operations.md says the rest.";

/// Arguments of `windrow serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Configuration file; defaults to ./config.toml if it exists
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Address to listen on, instead of http.listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// State directory with the database and its lock, instead of node.data_dir
    #[arg(long, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Start with an empty database if the old one is lost: the directory has a node's key and lock
    #[arg(long)]
    pub new: bool,
    /// Serve the dashboard from this folder, read at each request; for developing its pages
    #[arg(long, value_name = "DIR")]
    pub ui_dir: Option<PathBuf>,
}

/// Parses the address to listen on.
fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| "it takes an address and a port, such as 127.0.0.1:7700".to_owned())
}
