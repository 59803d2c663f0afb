//! `windrow config`: checks and prints configurations.

pub(super) mod args;

use super::Shell;
use super::args::{ConfigArgs, ConfigVerb};
use super::exit::Exit;
use super::fault::Fault;
use super::run::load;
use super::screen;
use super::serve::serviceable;
use crate::config::{AuthMode, Config};

/// Every key with its default, as it stands in the repository.
const DOCUMENTED: &str = include_str!("../../config.toml");

/// Obeys.
///
/// # Errors
/// `Config` with every fault of the configuration.
pub(super) fn settings(args: &ConfigArgs, shell: &Shell) -> Result<Exit, Fault> {
    let text = match &args.verb {
        ConfigVerb::Check { file } => {
            // What the service manager asks before a start must be what the start itself will find.
            let config = serviceable(load(Some(file), shell)?).map_err(|faults| Fault::of_config(&faults))?;
            format!("{} is sound\n{}", file.display(), needs(&config))
        }
        ConfigVerb::Default => DOCUMENTED.to_owned(),
        ConfigVerb::Show { file } => {
            let config = load(file.as_deref(), shell)?;
            let shown = serde_json::to_string_pretty(&config.task_defaults.tuning);
            shown.map_err(|error| Fault::bug(error.to_string()))?
        }
    };
    screen::print(&text).map(|()| Exit::Ok)
}

/// What a node with this configuration needs of its machine.
fn needs(config: &Config) -> String {
    let listen = config.http.listen;
    let scheme = if config.http.tls_cert_file.is_some() { "https" } else { "http" };
    let data = config.node.data_dir.display();
    let key = config.auth.key_file.as_ref();
    let key =
        key.map_or_else(|| format!("{data}/key, made at the first start"), |file| file.display().to_string());
    let token = config.auth.bootstrap_token_file.as_ref();
    let token = token.map_or_else(|| format!("{data}/admin.token"), |file| file.display().to_string());
    let mut text = format!(
        "a node needs\n  the port         {listen} ({scheme})\n  to write         {data}\n  the secrets' key {key}\n"
    );
    text.push_str(&match config.auth.mode {
        AuthMode::Off => {
            "  no token         auth.mode is off: everybody on this machine may do everything".to_owned()
        }
        AuthMode::Token | AuthMode::Proxy => {
            format!("  the first token  {token}, made at the first start unless it is there")
        }
    });
    text
}
