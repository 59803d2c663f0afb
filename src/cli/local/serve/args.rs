//! Arguments of `windrow serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Examples of `windrow serve`, for the help.
pub(in crate) const EXAMPLES: &str = "Examples:
  windrow serve --config /etc/windrow/config.toml
  windrow serve --data-dir ./data --listen 127.0.0.1:7700
  WINDROW_NODE__CAPACITY_RATE=3000/s windrow serve

Needs only its own writable directory (node.data_dir, default /var/lib/windrow: database, lock and key of the stored
secrets) and a free port (http.listen, default 127.0.0.1:7700). On its first start it writes an administrator's token to a
file and prints the path (auth.bootstrap_token_file).

Without --config, ./config.toml is read if it exists; otherwise defaults and the environment apply (WINDROW_NODE__DATA_DIR
sets node.data_dir). /docs at the printed address describes the API; sign in with the first token.
SIGTERM or Ctrl-C drains: no new work, calls in flight end, progress is saved; a second signal stops at once.
SIGHUP reloads the configuration, SIGUSR1 prints the tree of actors.

Nodes with the same store.url (PostgreSQL or MariaDB) and copies of one auth.key_file form a cluster; each needs a unique
name (node.id) and an address that the others can reach (http.advertise). 'windrow db migrate' creates the tables once for all;
'windrow cluster' shows the nodes, docs/operations.md has the details.";

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
        .map_err(|_| "must be an address and port, such as 127.0.0.1:7700".to_owned())
}
