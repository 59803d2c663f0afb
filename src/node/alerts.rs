//! Sending of notices: to URLs as calls of hooks are sent, and to commands of the configuration.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use crate::provider::{HookClient, ServiceProvider};
use windrow_config::Config;
use windrow_core::alert::{AlertSecrets, AlertTarget, Wording};
use windrow_engine::ports::access::vault::Vault;
use windrow_engine::ports::handling::alerts::{Alert, AlertSender};
use windrow_engine::ports::handling::hook::HookReply;
use windrow_handlers::command::{Environment, Leftovers};
use windrow_handlers::reduce::{Lines, ReduceError, Reducer};

/// Bytes of a command's output that are read; nothing uses it.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// Sender of notices on a node.
pub(crate) struct Sender {
    client: Arc<HookClient>,
    config: Arc<Config>,
    environment: Vec<(OsString, OsString)>,
    leftovers: Arc<Leftovers>,
    vault: Arc<dyn Vault>,
    /// External base URL of the API server.
    url: String,
}

#[async_trait]
impl AlertSender for Sender {
    async fn send(&self, alert: &Alert, id: &str, notice: &str, timeout: Duration) -> HookReply {
        let wording = match self.wording(alert, id, notice) {
            Ok(wording) => wording,
            Err(why) => return HookReply::Refused(why),
        };
        match &alert.spec.target {
            AlertTarget::Url(_) => match self.secrets(alert) {
                Ok(secrets) => self.client.tell(&secrets, id, &wording, timeout).await,
                Err(why) => HookReply::Failed(why),
            },
            AlertTarget::Command(name) => self.run(name, alert, wording, timeout).await,
        }
    }
}

impl Sender {
    /// Creates a sender that calls URLs as hooks are called, and runs commands as handlers are run.
    pub(crate) fn new((own, client): (&ServiceProvider, Arc<HookClient>), url: String) -> Sender {
        Sender {
            client,
            config: own.config.clone(),
            environment: own.environment.clone(),
            leftovers: own.workers.clone(),
            vault: own.vault.clone(),
            url,
        }
    }

    fn wording(&self, alert: &Alert, id: &str, notice: &str) -> Result<Wording, String> {
        let mut notice: Value = serde_json::from_str(notice).map_err(|why| why.to_string())?;
        let path = notice["path"].as_str().unwrap_or_default();
        notice["url"] = format!("{}{path}", self.url.trim_end_matches('/')).into();
        match &alert.spec.template {
            Some(template) => Wording::of_template(template, &notice, id).map_err(|why| why.to_string()),
            None => Ok(alert.spec.form.write(&notice)),
        }
    }

    fn secrets(&self, alert: &Alert) -> Result<AlertSecrets, String> {
        let sealed = alert.sealed.as_ref().ok_or("the alert has no URL")?;
        let opened = self.vault.open(&AlertSecrets::place(&alert.name), sealed);
        let opened = opened.map_err(|why| why.to_string())?;
        serde_json::from_slice(&opened).map_err(|_| "the stored secrets are not readable".to_owned())
    }

    /// Runs a command with the notice on its standard input. A node that doesn't have it leaves the notice to others.
    async fn run(&self, name: &str, alert: &Alert, wording: Wording, timeout: Duration) -> HookReply {
        let config = &self.config.command_handler;
        let found = config.commands.get(name).filter(|_| config.enabled);
        let Some(command) = found.filter(|command| !command.cmd.is_empty()) else {
            return HookReply::Failed(format!(
                "command {name} with a cmd is not configured on this node; check [handler.command]"
            ));
        };
        let program = Reducer {
            argv: command.cmd.iter().map(OsString::from).collect(),
            environment: Environment::of(command, &self.environment),
            variables: vec![("WINDROW_ALERT".into(), (&*alert.name).into())],
            // The caller's bound strikes first, and ends the program by dropping it.
            timeout: timeout * 2,
            answer_bytes_max: OUTPUT_BYTES_MAX,
            leftovers: self.leftovers.clone(),
        };
        match program.reduce(&mut Once(Some(wording.body.into_bytes()))).await {
            Ok(_) => HookReply::Done(None),
            // A program's failure may pass, and the notice is tried for a day.
            Err(ReduceError::Failed(why) | ReduceError::Unavailable(why)) => HookReply::Failed(why),
        }
    }
}

/// Input of a command: the notice and nothing more.
struct Once(Option<Vec<u8>>);

#[async_trait]
impl Lines for Once {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        Ok(self.0.take())
    }
}
