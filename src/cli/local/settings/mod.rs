//! Implementation of `windrow config`: checks and prints configurations.

pub(crate) mod args;
mod shown;

use std::path::PathBuf;

use self::args::FileArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::local::configuration;
use crate::local::serve::serviceable;
use crate::local::settings::args::{ConfigArgs, ConfigVerb};
use crate::output::screen;
use crate::shell::Shell;
use windrow_config::{AuthMode, Config};
use windrow_node::serve::ServeError;
use windrow_node::serve::look::{self, Port};

/// Executes the verb.
///
/// # Errors
/// `Config` with every error in the configuration.
pub(crate) fn settings(args: &ConfigArgs, shell: &Shell) -> Result<Exit, Fault> {
    let text = match &args.verb {
        ConfigVerb::Check(args) => {
            let file = chosen(args);
            // The check before a start must find exactly what the start itself would find.
            let config =
                serviceable(shell.config(file.as_deref())?).map_err(|faults| Fault::of_config(&faults))?;
            let port = startable(&config)?;
            let name = file.map_or_else(|| "the default".to_owned(), |file| file.display().to_string());
            format!("{name} is valid\n{}", needs(&config, port))
        }
        ConfigVerb::Default => windrow_config::documented(),
        ConfigVerb::Show(args) => return shown::show(args, shell),
    };
    screen::put(&text).map(|()| Exit::Ok)
}

/// Returns the named file, or else the one that a node would read.
fn chosen(args: &FileArgs) -> Option<PathBuf> {
    configuration(args.file.as_ref().or(args.named.as_ref()))
}

/// Checks that a start would accept the configured files and addresses, and returns whether the port is free now.
fn startable(config: &Config) -> Result<Port, Fault> {
    let mut faults = look::faults(config);
    let port = look::port(config.http.listen).unwrap_or_else(|fault| {
        faults.push(("http.listen", fault));
        Port::Taken
    });
    if faults.is_empty() {
        return Ok(port);
    }
    let told: Vec<windrow_config::Fault> = faults.into_iter().map(told).collect();
    Err(Fault::of_config(&told))
}

/// Converts the refusal of a start to an error of its configuration key.
fn told((key, refusal): (&'static str, ServeError)) -> windrow_config::Fault {
    let what = refusal.to_string();
    let try_ = match refusal {
        ServeError::Store(_) => {
            "use a file that only the node's user can read, with the password in its first line".to_owned()
        }
        refusal => Fault::from(refusal)
            .hint
            .unwrap_or_else(|| "windrow help serve".to_owned()),
    };
    windrow_config::Fault {
        key: key.to_owned(),
        origin: windrow_config::Origin::Default,
        what,
        try_,
    }
}

/// Describes the machine resources that a node with this configuration needs.
fn needs(config: &Config, port: Port) -> String {
    let listen = config.http.listen;
    let taken = if port == Port::Taken { "; in use now" } else { "" };
    let scheme = if config.http.tls_cert_file.is_some() {
        "https"
    } else {
        "http"
    };
    let data = config.node.data_dir.display();
    let key = config.auth.key_file.as_ref();
    let key = key.map_or_else(
        || format!("{data}/key, created at the first start"),
        |file| file.display().to_string(),
    );
    let own = format!("{data}/admin.token");
    let token = config
        .auth
        .bootstrap_token_file
        .as_ref()
        .map(|file| file.display().to_string());
    let token = token.filter(|file| *file != own).map_or_else(
        || own.clone(),
        |file| format!("{file}, or {own} if that can't be written"),
    );
    let mut text = format!(
        "requirements of the node\n  port             {listen} ({scheme}){taken}\n  writable         \
            {data}\n  key of secrets   {key}\n"
    );
    text.push_str(&match config.auth.mode {
        AuthMode::Off => {
            "  no token         auth.mode is off: anyone on this machine has full access".to_owned()
        }
        AuthMode::Token | AuthMode::Proxy => {
            format!("  first token      {token}, created at the first start if missing")
        }
    });
    text
}
