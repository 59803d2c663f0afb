//! Changes of a task: settings within a second, the name at any time, and its meaning only while it isn't running.

use std::num::NonZeroU32;

use serde_json::json;

use crate::service::tasks::Tasks;
use crate::service::tasks::create::{check_shared, settings};
use crate::service::tasks::outlook::Outlook;
use crate::service::{FieldFault, ServiceError};
use windrow_core::business::{BusinessLimits, BusinessSpec, HandlerSpec, Hooks, POOL_DEFAULT};
use windrow_core::capacity::{Load, Refusal};
use windrow_core::ids::TaskId;
use windrow_core::settings::table::TuningPatch;
use windrow_core::settings::{Auto, RateLimit};
use windrow_core::shards::Share;
use windrow_core::task::lifecycle::Status;
use windrow_core::task::spec::{JsonText, Shards};
use windrow_engine::ports::access::business_store::Business;
use windrow_engine::ports::ownership::peers::{Peer, PeerReply, Question};
use windrow_engine::ports::sources::resolver::SourceRequest;
use windrow_engine::ports::tasks::store::{CommandError, TaskCommand, TaskEdit, TaskView, Write};

/// Attempts to apply a change when concurrent changes of the settings interfere.
const TRIES_MAX: u32 = 200;

/// Requested changes of a task; `None` keeps a value.
#[derive(Clone, Debug, Default)]
pub struct TaskChange {
    /// Members stored as given. Source and settings are not set here; they are derived from the fields below.
    pub edit: TaskEdit,
    /// Settings to change; the others stay.
    pub tuning: TuningPatch,
    /// New source of the items.
    pub source: Option<SourceRequest>,
    /// True if warnings are treated as errors.
    pub strict: bool,
}

impl Tasks {
    /// Changes a task; with `expected`, only at that version.
    ///
    /// # Errors
    /// `FieldsRefused` names each member that can't be changed now; `NoCapacity` says what would fit; `EtagMismatch`,
    /// `Unprocessable`, `BusinessRejected`; `WrongState` after the end.
    pub async fn change(
        &self,
        id: TaskId,
        expected: Option<u64>,
        change: TaskChange,
        write: &Write,
    ) -> Result<TaskView, ServiceError> {
        let mut turn = None;
        for _ in 0..TRIES_MAX {
            let task = self.get(id).await?;
            self.check_change(&task, &change, write)?;
            let business = self.businesses.find(&task.business).await?;
            let business = business.unwrap_or_else(|| unregistered(&task));
            let edit = self.edit(&task, &business, change.clone(), write).await?;
            if change.strict {
                // A change neither starts nor stops the task.
                let outlook = Outlook::going_on(&task).started(None).changed(&task, &edit);
                self.refuse_foreseen(&outlook, &business).await?;
            }
            if edit == TaskEdit::default() {
                return match expected.filter(|expected| *expected != task.version) {
                    Some(_) => Err(ServiceError::EtagMismatch(format!("{id} was changed"))),
                    None => Ok(task),
                };
            }
            // One change of a task at a time, so that booked and stored rates don't get out of step.
            if turn.is_none() {
                turn = Some(self.turns.turn(id).await);
            }
            if let Some(changed) = self.commit(&task, expected, edit, write).await? {
                if !write.dry_run {
                    self.node.look_at(id);
                }
                return Ok(changed);
            }
            // From now on the turn is held, even while the business is called.
        }
        Err(ServiceError::EtagMismatch(format!("{id} keeps being changed")))
    }

    /// Books a higher rate, stores the change, and books a lower rate. Returns `None` if the task's settings have
    /// changed since they were read, because concurrent changes would be lost.
    async fn commit(
        &self,
        seen: &TaskView,
        expected: Option<u64>,
        edit: TaskEdit,
        write: &Write,
    ) -> Result<Option<TaskView>, ServiceError> {
        let task = self.get(seen.id).await?;
        let lays_over = expected.is_none() && edit.tuning.is_some();
        if lays_over && task.tuning != seen.tuning {
            return Ok(None);
        }
        let expected = expected.or_else(|| lays_over.then_some(task.version));
        let held = task.tuning.rate;
        let rate = edit.tuning.as_ref().map_or(held, |tuning| tuning.rate);
        let is_raise = self.load(rate) > self.load(held);
        if is_raise {
            self.book(&task, rate, write.dry_run).await?;
        }
        let command = command(edit);
        let stored = self
            .store
            .command_if(task.id, expected, &command, write, self.node.now())
            .await;
        // Undo a raise that wasn't stored; book a lower rate only after it is stored.
        let to_book = match &stored {
            _ if write.dry_run => None,
            Ok(_) if !is_raise && rate != held => Some(rate),
            Err(_) if is_raise => Some(held),
            _ => None,
        };
        // Neither refuses the change: one is stored, the other is undone. The next look at the line books again.
        if let Some(rate) = to_book
            && let Err(error) = self.book(&task, rate, false).await
        {
            tracing::info!(task = %task.id, %rate, %error, "rate not booked now");
        }
        match stored {
            Err(CommandError::Changed { .. }) if lays_over => Ok(None),
            stored => Ok(Some(stored?)),
        }
    }

    fn check_change(&self, task: &TaskView, change: &TaskChange, write: &Write) -> Result<(), ServiceError> {
        let edit = &change.edit;
        self.check_line(&edit.spec.clone().apply(&task.spec), Some(&task.spec), write)?;
        self.check_spec(&edit.spec)?;
        self.check_deadline(edit.spec.deadline.flatten())?;
        let (wanted, now) = (&change.tuning, &task.tuning);
        let fixed = [
            ("/ordered", wanted.ordered.is_some_and(|wish| wish != now.ordered)),
            ("/results", wanted.results.is_some_and(|wish| wish != now.results)),
        ];
        let why = "it is fixed once the task was started; `windrow task clone` makes another";
        let changed = fixed
            .into_iter()
            .filter(|(_, changes)| *changes && task.start_no > 0);
        let faults: Vec<FieldFault> = changed.map(|(place, _)| FieldFault::new(place, why)).collect();
        if faults.is_empty() {
            Ok(())
        } else {
            Err(ServiceError::FieldsRefused(faults))
        }
    }

    /// Builds the edit for the store, after calling the business.
    async fn edit(
        &self,
        task: &TaskView,
        business: &Business,
        change: TaskChange,
        write: &Write,
    ) -> Result<TaskEdit, ServiceError> {
        let tuning = self.checked_settings(change.tuning.apply(&task.tuning), business)?;
        let mut edit = change.edit;
        edit.spec.shards = edit.spec.shards.filter(|shards| *shards != task.spec.shards);
        check_shared(&tuning, shards(task, edit.spec.shards))?;
        if let Some(request) = &change.source {
            let source = self.sources.resolve(request, &task.business, write).await?;
            edit.total = Some(source.total);
            edit.source = Some((source.json, source.meaning));
        }
        edit.tuning = (change.tuning != TuningPatch::default()).then_some(tuning);
        if edit == TaskEdit::default() {
            return Ok(edit);
        }
        if let Some(total) = self.validate(business, picture(task, &edit)?).await? {
            edit.total = Some(total).filter(|total| *total != task.total);
        }
        Ok(edit)
    }

    /// Books a rate on all nodes that run a part of the task, or on none. A dry run only checks if it would fit. A
    /// node that can't be reached runs at whatever fits there.
    async fn book(&self, task: &TaskView, rate: RateLimit, dry_run: bool) -> Result<(), ServiceError> {
        let share = Share::of_each(task.shards.len());
        let (shards, peers, _) = self.cluster.owners(task.id).await;
        let runs_elsewhere_only = shards.iter().any(|shard| shard.life.session.is_some())
            && self.stats.live_here(task.id).is_none();
        if !runs_elsewhere_only {
            let booked = match dry_run {
                true => self.node.supervisor.would_book(task.id, rate, share).await,
                false => self.node.supervisor.rebook(task.id, rate, share).await,
            };
            let refused = |refusal: &Refusal| {
                no_capacity(
                    task,
                    rate,
                    &refusal.to_string(),
                    &refusal.free.to_string(),
                    self.own_name(),
                )
            };
            booked.map_err(|refusal| refused(&refusal))?;
        }
        let Some((why, free, node)) = self.book_elsewhere(task, rate, dry_run, peers).await else {
            return Ok(());
        };
        if !runs_elsewhere_only && !dry_run {
            // The previous rate always fits.
            self.node.supervisor.rebook(task.id, task.tuning.rate, share).await.unwrap_or_else(|refusal| {
                tracing::warn!(task = %task.id, %refusal, "raise that failed elsewhere stays reserved here");
            });
        }
        Err(no_capacity(task, rate, &why, &free, node))
    }

    /// Books a rate on other nodes. If one has no capacity, the others get their previous rate back; returns the
    /// reason, the rate that would fit, and the node.
    async fn book_elsewhere(
        &self,
        task: &TaskView,
        rate: RateLimit,
        dry_run: bool,
        peers: Vec<Peer>,
    ) -> Option<(String, String, String)> {
        let question = Question::Book {
            task: task.id,
            rate,
            is_trial: dry_run,
        };
        let asked = peers
            .iter()
            .map(|peer| (peer.clone(), question.clone()))
            .collect();
        let mut refused = None;
        let mut booked = Vec::new();
        for (peer, answer) in self.cluster.ask_all(asked).await {
            match answer {
                Ok(PeerReply::NoRoom { why, free }) => refused = refused.or(Some((why, free, peer.node))),
                // A node that didn't respond may have booked it, so it must undo it too.
                _ => booked.push(peer),
            }
        }
        if refused.is_some() && !dry_run {
            let held = Question::Book {
                task: task.id,
                rate: task.tuning.rate,
                is_trial: false,
            };
            let asked = booked.into_iter().map(|peer| (peer, held.clone())).collect();
            for (peer, answer) in self.cluster.ask_all(asked).await {
                if !matches!(answer, Ok(PeerReply::Booked)) {
                    // The node books the stored rate when it next reads the task.
                    tracing::warn!(task = %task.id, node = peer.node, "failed raise may stay reserved there");
                }
            }
        }
        refused
    }

    fn own_name(&self) -> String {
        match &self.node.config().node.id {
            Auto::Fixed(_) => self.node.name.clone(),
            Auto::Auto if self.cluster.parts.is_shared => self.node.name.clone(),
            Auto::Auto => "this node".to_owned(),
        }
    }

    fn load(&self, rate: RateLimit) -> Load {
        let reserves = self.node.config().node.unlimited_reserves;
        Load::needed_by(rate.most().unwrap_or(reserves))
    }
}

/// Returns the number of shards that share the settings: the existing ones, or those that the next start creates.
fn shards(task: &TaskView, wanted: Option<Shards>) -> Auto<NonZeroU32> {
    let rests = matches!(
        task.status,
        Status::Created | Status::AwaitingBusiness | Status::Stopped
    );
    let has_run = task.shards.iter().any(|shard| shard.run.0 > 0);
    let there = NonZeroU32::new(u32::try_from(task.shards.len()).unwrap_or(u32::MAX));
    let to_be = wanted.unwrap_or(task.spec.shards).0;
    there.filter(|_| !rests || has_run).map_or(to_be, Auto::Fixed)
}

/// Builds the command; a change of settings alone has its own name in the audit log.
fn command(mut edit: TaskEdit) -> TaskCommand {
    match edit.tuning.take() {
        Some(tuning) if edit == TaskEdit::default() => TaskCommand::Tune(Box::new(tuning)),
        tuning => TaskCommand::Edit(Box::new(TaskEdit { tuning, ..edit })),
    }
}

fn no_capacity(task: &TaskView, rate: RateLimit, why: &str, free: &str, node: String) -> ServiceError {
    ServiceError::NoCapacity {
        detail: format!(
            "{} can't change from {} to {rate}: {why}",
            task.id, task.tuning.rate
        ),
        max_rate: vec![(node, free.to_owned())],
    }
}

/// Builds the changed task as sent to the `validate` hook.
fn picture(task: &TaskView, edit: &TaskEdit) -> Result<serde_json::Value, ServiceError> {
    let spec = edit.spec.clone().apply(&task.spec);
    Ok(json!({
        "id": task.id.to_string(), "name": spec.name, "total": edit.total.unwrap_or(task.total),
        "skip_first": spec.skip_first, "labels": spec.labels, "params": spec.params.as_ref().map(JsonText::value),
        "settings": settings(edit.tuning.as_ref().unwrap_or(&task.tuning))?,
    }))
}
/// Returns a stand-in for the unregistered business of a job's task, without hooks or limits.
fn unregistered(task: &TaskView) -> Business {
    let spec = BusinessSpec {
        display_name: None,
        pool: POOL_DEFAULT.to_owned(),
        handler: HandlerSpec::Command(String::new()),
        hooks: Hooks::default(),
        defaults: TuningPatch::default(),
        limits: BusinessLimits::default(),
    };
    Business {
        id: 0,
        slug: task.business.clone(),
        spec,
        sealed: None,
        revision: 0,
        archived_at: None,
        created_at: task.since,
        updated_at: task.since,
    }
}
