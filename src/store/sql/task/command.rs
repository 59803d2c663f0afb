//! Execution of commands: the task's life decides their effect, one transaction writes it.

use std::sync::Arc;
use windrow_words::store as say;

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::sql::entity::{session, task};
use crate::sql::session::sessions;
use crate::sql::task::life::Held;
use crate::sql::task::record::{self, Change};
use crate::sql::task::view;
use crate::sql::{Fetch, Store, Transaction, keep, locks};
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::life::{Circumstances, Deeds, Listener, StartToken};
use windrow_core::shards::Nodes;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::tasks::store::{CommandError, TaskCommand, TaskView, Write};
use windrow_host::start_token;
use windrow_host::vault::KeyVault;

/// Implements [`windrow_engine::ports::tasks::store::TaskStore::command_if`] under the locks of the task and its
/// shards.
pub(crate) async fn command(
    store: &Store,
    (id, expected): (TaskId, Option<u64>),
    command: &TaskCommand,
    write: &Write,
    now: WallMs,
) -> Result<TaskView, CommandError> {
    let transaction = store.write().await?;
    let row = locks::task(&transaction, id)
        .await?
        .ok_or(CommandError::NotFound(id))?;
    locks::shards(&transaction, id).await?;
    let mut held = Held::of(&transaction, row).await?;
    check_version(&held, expected)?;
    let mut deeds = vec![obey(store, &transaction, &mut held, (command, now)).await?];
    if held.life.must_refresh(command) {
        deeds.push(held.refresh(&transaction, None, now).await?);
    }
    held.keep(&transaction, (&deeds, Some(&write.actor)), now).await?;
    let row = record::load(&transaction, id).await?;
    let view = view::view_with_owners(&transaction, row).await?;
    keep(transaction, write).await?;
    Ok(view)
}

/// Starts a task that was created in this transaction, or never started.
pub(crate) async fn start_new(
    store: &Store,
    transaction: &Transaction,
    row: task::Model,
    write: &Write,
    now: WallMs,
) -> Result<task::Model, StoreError> {
    let id = TaskId(row.id);
    let mut held = Held::of(transaction, row).await?;
    let deeds = match obey(store, transaction, &mut held, (&TaskCommand::Start, now)).await {
        Ok(deeds) => deeds,
        Err(CommandError::Store(error)) => return Err(error),
        Err(refusal) => return Err(StoreError::Refused(refusal.to_string())),
    };
    held.keep(transaction, (&[deeds], Some(&write.actor)), now)
        .await?;
    record::load(transaction, id).await
}

fn check_version(held: &Held, expected: Option<u64>) -> Result<(), CommandError> {
    let found = held.version();
    match expected {
        Some(expected) if expected != found => Err(CommandError::Changed { expected, found }),
        _ => Ok(()),
    }
}

/// Applies a command to the task's life, with the circumstances that the command depends on.
async fn obey(
    store: &Store,
    transaction: &Transaction,
    held: &mut Held,
    (command, now): (&TaskCommand, WallMs),
) -> Result<Deeds, CommandError> {
    let token = new_token(store, held.life.id)?;
    let listener = match command.begins() {
        true => held.listener(transaction).await?,
        false => Listener::default(),
    };
    let nodes = match command.cuts() {
        true => nodes(transaction, held.pool()).await?,
        false => Nodes::default(),
    };
    let name_holder = name_holder(transaction, held, command).await?;
    let around = Circumstances {
        now,
        listener: &listener,
        nodes,
        token: &token,
        name_holder,
    };
    let deeds = held.life.obey(command, &around)?;
    if store.vault.is_none() && deeds.call.is_some() {
        return Err(StoreError::Refused(say::no_key_for_token().to_string()).into());
    }
    Ok(deeds)
}

/// Creates the token of a start, sealed for the outbox, where it stays until it is delivered.
fn new_token(store: &Store, task: TaskId) -> Result<StartToken, StoreError> {
    let plain = start_token::make()?;
    let sealed = |vault: &Arc<KeyVault>| start_token::seal(&**vault, task, &plain);
    Ok(StartToken {
        hash: start_token::hash(&plain),
        plain: store.vault.as_ref().map(sealed).unwrap_or_default(),
    })
}

/// Returns the live nodes that take tasks of a pool.
async fn nodes(transaction: &Transaction, pool: Option<&str>) -> Result<Nodes, StoreError> {
    let rows = session::Entity::find()
        .filter(session::Column::Fenced.eq(false))
        .rows(transaction)
        .await;
    let mut offered = Vec::new();
    for row in rows? {
        if sessions::serves(&row, pool)? {
            offered.push(row.capacity.map(|micros| u128::from(micros.unsigned_abs())));
        }
    }
    Ok(offered.into_iter().collect())
}

/// Returns the other task of the business that has the name which the command wants.
async fn name_holder(
    transaction: &Transaction,
    held: &Held,
    command: &TaskCommand,
) -> Result<Option<TaskId>, StoreError> {
    let Some(name) = command.wanted_name() else {
        return Ok(None);
    };
    let holder = task::Entity::find()
        .filter(task::Column::BusinessId.eq(held.business_id()))
        .filter(task::Column::Name.eq(name))
        .filter(task::Column::Id.ne(held.life.id.0))
        .row(transaction);
    Ok(holder.await?.map(|holder| TaskId(holder.id)))
}

/// Implements [`windrow_engine::ports::tasks::store::TaskStore::release_name`]; a task without a name is left as it
/// is.
pub(crate) async fn release_name(
    store: &Store,
    id: TaskId,
    write: &Write,
    now: WallMs,
) -> Result<(), CommandError> {
    let transaction = store.write().await?;
    let mut row = locks::task(&transaction, id)
        .await?
        .ok_or(CommandError::NotFound(id))?;
    let Some(name) = row.name.take() else {
        return Ok(());
    };
    record::save(&transaction, &row, now).await?;
    let before = Some(serde_json::json!({ "name": name }).to_string());
    let after = Some(serde_json::json!({ "name": null }).to_string());
    let change = Change {
        object: AuditObject::task(id),
        task: Some(id),
        business: None,
        action: "task.release_name".to_owned(),
        before,
        after,
    };
    record::audit(&transaction, &write.actor, change, now).await?;
    keep(transaction, write).await?;
    Ok(())
}
