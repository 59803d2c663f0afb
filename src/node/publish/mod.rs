//! Additions to a generation beside its results, computed from the stored results by the node that owns the
//! publication.

mod keys;
#[cfg(feature = "redis")]
pub(crate) mod sink;
#[cfg(not(feature = "redis"))]
pub(crate) use crate::witness as sink;

use std::ffi::OsString;
use std::sync::Arc;

use async_trait::async_trait;

use super::Store;
use windrow_config::Config;
use windrow_core::business::HookKind;
use windrow_core::dataset::{Publishing, Reduce, SUMMARY_BYTES_MAX, summary};
use windrow_core::ids::ItemIndex;
use windrow_core::life::Listener;
use windrow_core::text::csv::Guard;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::business_store::BusinessStore;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::datasets::publication::{
    OwnClaim, PrepareError, Prepared, Preparer, PublicationStore,
};
use windrow_engine::ports::handling::hook::{HookCall, HookCaller, HookReply};
use windrow_engine::ports::ownership::run_store::CheckpointAck;
use windrow_engine::ports::tasks::store::{TaskStore, TaskView};
use windrow_handlers::command::{Environment, Leftovers};
use windrow_handlers::reduce::{Lines, ReduceError, Reducer};
use windrow_host::start_token;
use windrow_server::http::answer::result_rows::{Columns, Form, Rows};
use windrow_server::service::results::{Keys, Reader, Results};

/// Preparer of a node whose tasks publish nothing.
pub(crate) struct Nothing;

#[async_trait]
impl Preparer for Nothing {
    async fn prepare(&self, task: &TaskView, _: OwnClaim) -> Result<Prepared, PrepareError> {
        Err(PrepareError::Failed(format!(
            "{} is not one of this node's jobs",
            task.id
        )))
    }
}

/// Preparer of a serving node.
pub(crate) struct Publisher {
    /// Store of the results and keys.
    pub(crate) store: Arc<Store>,
    /// Caller of the business's hooks.
    pub(crate) hooks: Arc<dyn HookCaller>,
    /// Configuration with the reduce commands.
    pub(crate) config: Arc<Config>,
    /// Environment of this process, of which commands get `PATH`, `HOME` and `LANG`.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Record of live processes.
    pub(crate) leftovers: Arc<Leftovers>,
    pub(crate) clock: Arc<dyn Clock>,
    /// External base URL of the API server.
    pub(crate) url: String,
}

#[async_trait]
impl Preparer for Publisher {
    async fn prepare(&self, task: &TaskView, own: OwnClaim) -> Result<Prepared, PrepareError> {
        let Some(publishing) = &task.publishing else {
            return Ok(Prepared::default());
        };
        if let Some(member) = &publishing.publish.key {
            keys::write(&*self.store, self.read(task).await?, member, own).await?;
        }
        let answer = match &publishing.publish.reduce {
            Reduce::None => None,
            Reduce::Hook => Some(self.hook(task, publishing, own).await?),
            Reduce::Command(name) => Some(self.command(task, publishing, name).await?),
        };
        let summary = answer.map(|answer| summary(&answer)).transpose();
        Ok(Prepared {
            summary: summary.map_err(|fault| PrepareError::Failed(fault.to_string()))?,
            is_keyed: publishing.publish.key.is_some(),
        })
    }
}

impl Publisher {
    async fn read(&self, task: &TaskView) -> Result<Reader, PrepareError> {
        let reader = Results::new(self.store.clone()).read(task, ItemIndex(0)).await;
        reader.map_err(|why| PrepareError::Unavailable(why.to_string()))
    }

    /// Calls the reduce hook of the business, which reads the results itself.
    async fn hook(
        &self,
        task: &TaskView,
        publishing: &Publishing,
        own: OwnClaim,
    ) -> Result<Vec<u8>, PrepareError> {
        let business = self.store.business(&task.business).await.map_err(unavailable)?;
        let business =
            business.ok_or_else(|| PrepareError::Failed(format!("{} has no url to call", task.business)))?;
        let token = start_token::make().map_err(unavailable)?;
        let hash = start_token::hash(&token);
        match self.store.lend_token(own, &hash, self.clock.wall()).await {
            Ok(CheckpointAck::Stored) => {}
            Ok(CheckpointAck::Fenced) => return Err(PrepareError::Fenced),
            Err(error) => return Err(unavailable(error)),
        }
        let hook = business.spec.hooks.get(HookKind::Reduce);
        let timeout = hook.and_then(|hook| hook.timeout);
        let listener = Listener {
            business: task.business.clone(),
            hooks: business.spec.hooks.clone(),
        };
        let mut body = task.life.reduce_body(&listener, publishing, &token);
        let path = body["results_path"].as_str().unwrap_or_default().to_owned();
        body["results_url"] = format!("{}{path}", self.url.trim_end_matches('/')).into();
        let call = HookCall {
            kind: HookKind::Reduce,
            id: format!("reduce_{}_{}", task.id, own.epoch.0),
            body: body.to_string(),
            timeout: timeout.unwrap_or(task.tuning.reduce_timeout),
        };
        match self.hooks.call(&business, &call).await {
            HookReply::Done(Some(answer)) => Ok(answer.to_string().into_bytes()),
            HookReply::Done(None) => Err(PrepareError::Failed(
                "the business answered without JSON".to_owned(),
            )),
            HookReply::Later => {
                let text = "the business answered 202; task.reduce must be answered with the summary itself";
                Err(PrepareError::Failed(text.to_owned()))
            }
            HookReply::Refused(why) => Err(PrepareError::Failed(format!("the business refused: {why}"))),
            HookReply::Failed(why) => Err(PrepareError::Unavailable(why)),
        }
    }

    /// Runs a configured command over the results.
    async fn command(
        &self,
        task: &TaskView,
        publishing: &Publishing,
        name: &str,
    ) -> Result<Vec<u8>, PrepareError> {
        let config = &self.config.command_handler;
        let found = config.commands.get(name).filter(|_| config.enabled);
        let command = found.filter(|command| !command.cmd.is_empty()).ok_or_else(|| {
            let text =
                format!("command {name} with a cmd is not configured on this node; check [handler.command]");
            PrepareError::Failed(text)
        })?;
        let own = [
            ("WINDROW_TASK", task.id.to_string()),
            ("WINDROW_BUSINESS", task.business.clone()),
            ("WINDROW_DATASET", publishing.publish.dataset.clone()),
            ("WINDROW_GENERATION", publishing.generation.to_string()),
        ];
        let reducer = Reducer {
            argv: command.cmd.iter().map(OsString::from).collect(),
            environment: Environment::of(command, &self.environment),
            variables: own.map(|(name, value)| (name.into(), value.into())).into(),
            timeout: task.tuning.reduce_timeout,
            answer_bytes_max: SUMMARY_BYTES_MAX,
            leftovers: self.leftovers.clone(),
        };
        let mut lines = ResultLines {
            reader: self.read(task).await?,
            rows: Rows {
                form: Form::Ndjson,
                guard: Guard::Off,
                columns: Columns::Whole,
                keys: Keys {
                    store: self.store.store_id().await.map_err(unavailable)?,
                    task: task.id,
                },
                with_position: false,
                data: None,
            },
        };
        reducer.reduce(&mut lines).await.map_err(|why| match why {
            ReduceError::Failed(text) => PrepareError::Failed(text),
            ReduceError::Unavailable(text) => PrepareError::Unavailable(text),
        })
    }
}

fn unavailable(error: StoreError) -> PrepareError {
    PrepareError::Unavailable(error.text())
}

/// Results in the line format of `windrow task results`.
struct ResultLines {
    reader: Reader,
    rows: Rows,
}

#[async_trait]
impl Lines for ResultLines {
    async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        let outputs = self.reader.page().await.map_err(|why| why.to_string())?;
        let mut out = Vec::new();
        for output in &outputs {
            self.rows.push(output.index, output, None, &mut out);
        }
        Ok((!outputs.is_empty()).then_some(out))
    }
}
