//! Implementation of `windrow serve`: reads the configuration, starts the node, and handles signals until it ends.

pub(crate) mod args;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::time::Duration;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::local::configuration;
use crate::local::serve::args::ServeArgs;
use crate::shell::Shell;
use crate::signals::{ProcessSignal, Signals};
use windrow_config::{Config, LogFormat};
use windrow_node::agreement::WitnessError;
use windrow_node::serve::{InProcess, Pages, Serve, ServeError, ServeOptions};
use windrow_node::{Runtimes, SecretFault, systemd};
use windrow_server::telemetry::{self, BadFilter, LogControl, Style};

/// Idle wait of the loop if the service manager asked for no watchdog signals.
const NO_PULSE: Duration = Duration::from_secs(3600);

/// Serves until a signal ends the node.
///
/// # Errors
/// The reason why it can't serve, with its exit code.
pub(crate) async fn serve(args: &ServeArgs, shell: &Shell, runtimes: Arc<Runtimes>) -> Result<Exit, Fault> {
    let mut signals = Signals::catch_for_a_node().map_err(|error| Fault::bug(error.to_string()))?;
    let config = configured(args, shell)?;
    let pages = pages(args)?;
    let log = start_log(&config, shell)?;
    let environment = shell.environment.clone();
    let starting = Serve::start(ServeOptions {
        config,
        environment,
        in_process: InProcess::new(),
        runtimes,
        log,
        pages,
        begins_anew: args.new,
    });
    let node = tokio::select! {
        node = starting => node?,
        // The database may take long to answer, or never answer.
        () = signals.stop() => {
            shell.screen.must_say("stopped before the start: nothing was started");
            return Ok(Exit::Ok);
        }
    };
    tell_address(&node, shell);
    systemd::ready(&format!("serves on {}", node.url()));
    let pulse = systemd::pulse();
    loop {
        tokio::select! {
            asked = signals.next() => match asked {
                ProcessSignal::Stop => return Ok(drain(node, &mut signals, shell).await),
                ProcessSignal::Reload => reload(&node, args, shell),
                ProcessSignal::Tree => shell.screen.must_say(node.tree().trim_end()),
            },
            () = node.failed() => {
                return Err(Fault::new(Exit::Failed, "the node stopped unexpectedly", "its actors failed too often; see the log")
                    .hint("start it again; every task continues from its last checkpoint"));
            }
            () = tokio::time::sleep(pulse.unwrap_or(NO_PULSE)) => {
                if pulse.is_some() && node.is_alive() {
                    systemd::alive();
                }
            }
        }
    }
}

/// Returns the dashboard's files: built in, or those of `--ui-dir`.
fn pages(args: &ServeArgs) -> Result<Pages, Fault> {
    let Some(folder) = &args.ui_dir else {
        return Ok(Pages::default());
    };
    Pages::of_folder(folder).map_err(|error| {
        let what = format!("can't serve the dashboard from {}", folder.display());
        Fault::new(Exit::Config, what, error.to_string())
            .hint("name the directory with index.html, such as --ui-dir ui; or omit --ui-dir")
    })
}

fn tell_address(node: &Serve, shell: &Shell) {
    let version = env!("CARGO_PKG_VERSION");
    shell.screen.must_say(&format!(
        "windrow {version}: {} listens on {}",
        node.name(),
        node.url()
    ));
    if let Some(file) = node.bootstrap_file() {
        shell.screen.must_say(&format!(
            "the first administrator's token is in {}",
            file.display()
        ));
    }
}

/// Loads the configuration and reports every error in it before anything starts.
fn configured(args: &ServeArgs, shell: &Shell) -> Result<Config, Fault> {
    read(args, shell).map_err(|faults| {
        // Log in the requested format, even if the configuration is too faulty to start.
        match written_format(args, shell).as_deref() {
            Some("json") => shell.screen.speak_as(Style::Json),
            Some("logfmt") => shell.screen.speak_as(Style::Logfmt),
            _ => {}
        }
        Fault::of_config(&faults)
    })
}

/// Returns `log.format`, as far as it can be read from a faulty configuration.
fn written_format(args: &ServeArgs, shell: &Shell) -> Option<String> {
    if let Some(format) = shell.var("WINDROW_LOG__FORMAT") {
        return Some(format.to_owned());
    }
    let text = std::fs::read_to_string(configuration(args.config.as_ref())?).ok()?;
    let written: toml::Table = text.parse().ok()?;
    Some(written.get("log")?.get("format")?.as_str()?.to_owned())
}

fn read(args: &ServeArgs, shell: &Shell) -> Result<Config, Vec<windrow_config::Fault>> {
    let file = configuration(args.config.as_ref());
    let mut config = windrow_config::load(file.as_deref(), shell.env.iter().cloned())?;
    if let Some(listen) = args.listen {
        config.http.listen = listen;
    }
    if let Some(directory) = &args.data_dir {
        config.node.data_dir.clone_from(directory);
    }
    serviceable(config)
}

/// Returns the configuration if a node can start with it.
///
/// # Errors
/// Returns every error in it.
pub(crate) fn serviceable(config: Config) -> Result<Config, Vec<windrow_config::Fault>> {
    let faults = windrow_node::serve::faults(&config);
    if faults.is_empty() {
        Ok(config)
    } else {
        Err(faults)
    }
}

/// Starts the log. `WINDROW_LOG` overrides the configuration for this process.
fn start_log(config: &Config, shell: &Shell) -> Result<Option<LogControl>, Fault> {
    let wanted = shell.env.iter().find(|(name, _)| name == "WINDROW_LOG");
    let filter = wanted.map_or(config.log.filter.as_str(), |(_, filter)| filter.as_str());
    let filter = filter.parse().map_err(|error: BadFilter| {
        Fault::new(Exit::Config, "invalid log filter", error.to_string())
            .hint("use a level, or levels by module: WINDROW_LOG=info,windrow_engine=debug")
    })?;
    let is_terminal = io::stderr().is_terminal();
    let style = match config.log.format {
        LogFormat::Auto if !is_terminal => Style::Json,
        LogFormat::Auto | LogFormat::Pretty => Style::Pretty { colours: is_terminal },
        LogFormat::Json => Style::Json,
        LogFormat::Logfmt => Style::Logfmt,
    };
    match config.log.format {
        LogFormat::Auto if !is_terminal => shell.screen.speak_objects_unasked(),
        _ => shell.screen.speak_as(style),
    }
    Ok(telemetry::start_log(filter, style, io::stderr))
}

/// Reloads the configuration. One with errors changes nothing.
fn reload(node: &Serve, args: &ServeArgs, shell: &Shell) {
    systemd::reloading();
    let outcome = match read(args, shell) {
        Ok(config) => node.reload(&config).map_err(|fault| vec![fault]),
        Err(faults) => Err(faults.iter().map(ToString::to_string).collect()),
    };
    match outcome {
        Ok((applied, ignored)) => {
            tracing::info!(applied = applied.join(","), "configuration reloaded");
            if !ignored.is_empty() {
                tracing::warn!(keys = ignored.join(","), "changed, but a restart is needed");
            }
        }
        Err(faults) => {
            for fault in faults {
                tracing::error!(fault, "configuration not reloaded; the old one stays in force");
            }
        }
    }
    systemd::ready(&format!("serves on {}", node.url()));
}

/// Drains the node. A second signal ends the process at once.
async fn drain(node: Serve, signals: &mut Signals, shell: &Shell) -> Exit {
    let within = node.config().node.drain_timeout + Duration::from_secs(15);
    systemd::stopping(within, "draining: waiting for calls in flight");
    shell
        .screen
        .must_say("draining: no new calls; waiting for those in flight; a second signal stops at once");
    tokio::select! {
        drained = node.drain() => if drained { Exit::Ok } else { Exit::Failed },
        () = signals.stop() => {
            shell.screen.must_say("aborted: calls in flight will be repeated once the node is back");
            Exit::Interrupted
        }
    }
}

impl From<ServeError> for Fault {
    fn from(error: ServeError) -> Fault {
        of_serve(
            &error,
            "node.data_dir (--data-dir)",
            "set http.listen (--listen) to another port",
        )
    }
}

/// Creates the fault for a node that can't serve. `place` names its directory and `port` tells how to choose another
/// port.
pub(crate) fn of_serve(error: &ServeError, place: &str, port: &str) -> Fault {
    let hint = match error {
        ServeError::Lock(error) => return Fault::of_lock(error, place),
        ServeError::Store(error) | ServeError::Witness(WitnessError::Store(error)) => {
            return Fault::of_store(error, place);
        }
        ServeError::Folder(error) => {
            let hint = "mount the same directory as the store's other nodes, or change the location; a \
                new one must be writable for the node's user";
            let what = "can't use a directory of the store";
            return Fault::new(Exit::Config, what, error.text()).hint(hint);
        }
        ServeError::Start(error) => return Fault::of_start(error, place),
        ServeError::Lost { .. } => {
            let hint = "put the file back, or run windrow db restore BACKUP; windrow serve --new \
                starts with an empty database";
            return Fault::new(Exit::Conflict, "can't start the node", error.to_string()).hint(hint);
        }
        ServeError::Witness(WitnessError::Differs { .. }) => {
            "set cluster.redis_url, redis_prefix and takeover_without_redis as on the other nodes; to \
                change them, stop all nodes, then start them with the new values"
        }
        ServeError::Name(_) => "node.id = \"n1\"",
        ServeError::Tls(_) => {
            "set PEM files for the certificate chain and its key; or neither for plain HTTP"
        }
        ServeError::Key(error) if matches!(&error.fault, SecretFault::Io(cause) if cause.kind() == io::ErrorKind::NotFound) => {
            "correct auth.key_file, or create a key: openssl rand -base64 32 > FILE; chmod 600 FILE"
        }
        ServeError::Key(_) => "correct auth.key_file; stored secrets are lost without their key",
        ServeError::Traces(_) => "correct the telemetry keys; traces_url = \"\" sends no spans",
        ServeError::PeerTrust(_) => "set a file with PEM certificates; or \"\" for the system's",
        ServeError::ClientCert(_) => {
            "correct handler.http.client_cert_file and client_key_file; or \"\" for no certificate"
        }
        ServeError::Token(_) => "correct auth.bootstrap_token_file, or make its directory writable",
        ServeError::Listen { cause, .. } => {
            let hint = match cause.kind() {
                io::ErrorKind::PermissionDenied => format!("ports below 1024 need privileges; {port}"),
                io::ErrorKind::AddrNotAvailable => {
                    "set http.listen (--listen) to an address of this machine".to_owned()
                }
                _ => format!("stop the program that uses the port, or {port}"),
            };
            return Fault::new(Exit::Conflict, "can't start the node", error.to_string()).hint(hint);
        }
    };
    Fault::new(Exit::Config, "can't start the node", error.to_string()).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_node::SecretFile;

    #[test]
    fn a_port_that_needs_rights_and_a_key_that_is_missing_are_told_with_what_helps() {
        let listen = |kind: io::ErrorKind| {
            let address = ([127, 0, 0, 1], 80).into();
            let cause = io::Error::from(kind);
            Fault::from(ServeError::Listen { address, cause })
                .hint
                .expect("a hint")
        };
        assert!(listen(io::ErrorKind::PermissionDenied).contains("ports below 1024"));
        assert!(listen(io::ErrorKind::AddrInUse).contains("stop the program that uses the port"));
        let key = SecretFile {
            what: "key",
            setting: "auth.key_file",
            form: "is no key",
            refused: 0,
        };
        let missing = key.read("/no/such/key".as_ref()).expect_err("no file");
        let hint = Fault::from(ServeError::Key(missing)).hint.expect("a hint");
        assert!(hint.contains("openssl rand -base64 32 > FILE"), "{hint}");
    }
}
