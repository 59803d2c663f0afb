//! `windrow serve`: reads the configuration, starts the node, and listens to signals until it ends.

pub(crate) mod args;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::Shell;
use crate::args::ServeArgs;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::signals::{Asked, Signals};
use windrow_config::{Config, LogFormat};
use windrow_node::agreement::WitnessError;
use windrow_node::serve::{Serve, ServeError, ServeOptions};
use windrow_node::{KeyError, Runtimes, systemd};
use windrow_server::telemetry::{self, BadFilter, LogControl, Style};

/// What is read when no file is named.
const FILE_DEFAULT: &str = "config.toml";
/// Until the service manager hears from a node without a pulse; it never asked for one.
const NO_PULSE: Duration = Duration::from_secs(3600);

/// Serves until it is told to end.
///
/// # Errors
/// What keeps it from serving, with its exit code.
pub(crate) async fn serve(args: &ServeArgs, shell: &Shell, runtimes: Arc<Runtimes>) -> Result<Exit, Fault> {
    let mut signals = Signals::catch_for_a_node().map_err(|error| Fault::bug(error.to_string()))?;
    let config = configured(args, shell)?;
    let log = start_log(&config, shell)?;
    let environment = shell.environment.clone();
    let node = Serve::start(ServeOptions {
        config,
        environment,
        runtimes,
        log,
    })
    .await?;
    tell_address(&node, shell);
    systemd::ready(&format!("serves on {}", node.url()));
    let pulse = systemd::pulse();
    loop {
        tokio::select! {
            asked = signals.next() => match asked {
                Asked::Stop => return Ok(drain(node, &mut signals, shell).await),
                Asked::Reload => reload(&node, args, shell),
                Asked::Tree => shell.screen.must_say(node.tree().trim_end()),
            },
            () = node.failed() => {
                return Err(Fault::new(Exit::Failed, "the node ended by itself", "its actors failed too often; the log says why")
                    .hint("start it again; every task goes on from its last checkpoint"));
            }
            () = tokio::time::sleep(pulse.unwrap_or(NO_PULSE)) => {
                if pulse.is_some() && node.is_alive() {
                    systemd::alive();
                }
            }
        }
    }
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

/// Everything that is wrong with the configuration is found before anything is begun.
fn configured(args: &ServeArgs, shell: &Shell) -> Result<Config, Fault> {
    read(args, shell).map_err(|faults| {
        // Also what can't be started with says how its log is read.
        match written_format(args, shell).as_deref() {
            Some("json") => shell.screen.speak_as(Style::Json),
            Some("logfmt") => shell.screen.speak_as(Style::Logfmt),
            _ => {}
        }
        Fault::of_config(&faults)
    })
}

/// `log.format`, as far as it can be read of a faulty configuration.
fn written_format(args: &ServeArgs, shell: &Shell) -> Option<String> {
    if let Some(format) = shell.var("WINDROW_LOG__FORMAT") {
        return Some(format.to_owned());
    }
    let text = std::fs::read_to_string(file(args)?).ok()?;
    let written: toml::Table = text.parse().ok()?;
    Some(written.get("log")?.get("format")?.as_str()?.to_owned())
}

fn read(args: &ServeArgs, shell: &Shell) -> Result<Config, Vec<windrow_config::Fault>> {
    let file = file(args);
    let mut config = windrow_config::load(file.as_deref(), shell.env.iter().cloned())?;
    if let Some(listen) = args.listen {
        config.http.listen = listen;
    }
    if let Some(directory) = &args.data_dir {
        config.node.data_dir.clone_from(directory);
    }
    serviceable(config)
}

/// The configuration, if a node can be started with it.
///
/// # Errors
/// Every fault.
pub(crate) fn serviceable(config: Config) -> Result<Config, Vec<windrow_config::Fault>> {
    let mut faults = config.faults();
    faults.extend(config.not_built());
    if let Err(error) = config.log.filter.parse::<telemetry::Filter>() {
        faults.push(bad_filter(&error));
    }
    if faults.is_empty() {
        Ok(config)
    } else {
        Err(faults)
    }
}

fn bad_filter(error: &BadFilter) -> windrow_config::Fault {
    windrow_config::Fault {
        key: "log.filter".to_owned(),
        origin: windrow_config::Origin::Default,
        what: format!("it can't be read: {error}"),
        try_: "\"info\", or levels by module: \"info,windrow_engine=debug\"".to_owned(),
    }
}

fn file(args: &ServeArgs) -> Option<PathBuf> {
    let here = Path::new(FILE_DEFAULT);
    args.config
        .clone()
        .or_else(|| here.exists().then(|| here.to_owned()))
}

/// `WINDROW_LOG` wins over the configuration, for one start.
fn start_log(config: &Config, shell: &Shell) -> Result<Option<LogControl>, Fault> {
    let wanted = shell.env.iter().find(|(name, _)| name == "WINDROW_LOG");
    let filter = wanted.map_or(config.log.filter.as_str(), |(_, filter)| filter.as_str());
    let filter = filter.parse().map_err(|error: BadFilter| {
        Fault::new(Exit::Config, "the log's filter can't be used", error.to_string())
            .hint("a level, or levels by module: WINDROW_LOG=info,windrow_engine=debug")
    })?;
    let is_terminal = io::stderr().is_terminal();
    let style = match config.log.format {
        LogFormat::Auto if !is_terminal => Style::Json,
        LogFormat::Auto | LogFormat::Pretty => Style::Pretty { colours: is_terminal },
        LogFormat::Json => Style::Json,
        LogFormat::Logfmt => Style::Logfmt,
    };
    shell.screen.speak_as(style);
    Ok(telemetry::start_log(filter, style, io::stderr))
}

/// A configuration with faults changes nothing.
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
                tracing::warn!(
                    keys = ignored.join(","),
                    "changed, but only a restart can apply it"
                );
            }
        }
        Err(faults) => {
            for fault in faults {
                tracing::error!(
                    fault,
                    "the configuration was not reloaded; the old one stays in force"
                );
            }
        }
    }
    systemd::ready(&format!("serves on {}", node.url()));
}

/// Drains; a second signal ends the process at once.
async fn drain(node: Serve, signals: &mut Signals, shell: &Shell) -> Exit {
    let within = node.config().node.drain_timeout + Duration::from_secs(15);
    systemd::stopping(within, "drains: calls under way end, progress is saved");
    shell
        .screen
        .must_say("draining: calls under way end, progress is saved; again to end at once");
    tokio::select! {
        drained = node.drain() => if drained { Exit::Ok } else { Exit::Failed },
        () = signals.stop() => {
            shell.screen.must_say("cut off: calls in flight will be repeated when the node is back");
            Exit::Interrupted
        }
    }
}

impl From<ServeError> for Fault {
    fn from(error: ServeError) -> Fault {
        let text = error.to_string();
        let what = "the node can't start";
        match error {
            ServeError::Lock(error) => data_dir(error.into()),
            ServeError::Store(error) => data_dir(error.into()),
            ServeError::Start(error) => data_dir(error.into()),
            ServeError::Witness(WitnessError::Store(error)) => data_dir(error.into()),
            ServeError::Witness(WitnessError::Differs { .. }) => Fault::new(Exit::Config, what, text).hint(
                "set cluster.redis_url, redis_prefix and takeover_without_redis as on the other nodes; to change them for \
                 the store, stop all nodes, then start them with the new setting",
            ),
            ServeError::Name(_) => Fault::new(Exit::Config, what, text).hint("node.id = \"n1\""),
            ServeError::Tls(_) => Fault::new(Exit::Config, what, text)
                .hint("PEM files of a certificate chain and its key; or neither for plain HTTP"),
            ServeError::Key(KeyError::Io { cause, .. }) if cause.kind() == io::ErrorKind::NotFound => {
                Fault::new(Exit::Config, what, text)
                    .hint("correct auth.key_file, or make a key: openssl rand -base64 32 > FILE; chmod 600 FILE")
            }
            ServeError::Key(_) => Fault::new(Exit::Config, what, text)
                .hint("correct auth.key_file; without its key stored secrets are lost"),
            ServeError::PeerTrust(_) => Fault::new(Exit::Config, what, text)
                .hint("a file of certificates in PEM form; or \"\" for the system's"),
            ServeError::Token(_) => Fault::new(Exit::Config, what, text)
                .hint("correct auth.bootstrap_token_file, or make its directory writable"),
            ServeError::Listen { cause, .. } => {
                let hint = match cause.kind() {
                    io::ErrorKind::PermissionDenied => {
                        "ports below 1024 need rights: set http.listen (--listen) to a higher one, such as 127.0.0.1:7700"
                    }
                    io::ErrorKind::AddrNotAvailable => "set http.listen (--listen) to an address of this machine",
                    _ => "end what listens there, or set http.listen (--listen) to another port",
                };
                Fault::new(Exit::Conflict, what, text).hint(hint)
            }
        }
    }
}

/// The same with the words of a node, whose directory is named by the configuration.
fn data_dir(fault: Fault) -> Fault {
    let words = |text: String| {
        text.replace("another --state directory", "another node.data_dir (--data-dir)")
            .replace("a --state directory", "a node.data_dir (--data-dir)")
    };
    Fault {
        hint: fault.hint.map(words),
        ..fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(listen(io::ErrorKind::AddrInUse).contains("end what listens there"));
        let (path, cause) = ("/k".into(), io::Error::from(io::ErrorKind::NotFound));
        let hint = Fault::from(ServeError::Key(KeyError::Io { path, cause }))
            .hint
            .expect("a hint");
        assert!(hint.contains("openssl rand -base64 32 > FILE"), "{hint}");
    }
}
