//! Creation of businesses and tasks, each once.

use sea_orm::ActiveValue::{NotSet, Set};
use sea_orm::{ColumnTrait, EntityTrait, QueryFilter};

use crate::sql::dataset::begin::{self, Begun};
use crate::sql::entity::{business, idempotency, shard, task};
use crate::sql::schedule;
use crate::sql::session::named_limits;
use crate::sql::source::upload_use;
use crate::sql::task::command;
use crate::sql::task::delete::DELETING;
use crate::sql::task::life;
use crate::sql::task::record::{self, Change};
use crate::sql::task::spec;
use crate::sql::task::view;
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, error, keep, locks, words};
use windrow_core::dataset::Publishing;
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::life::{ShardLife, status_json};
use windrow_core::task::lifecycle::{Desired, Status};
use windrow_core::task::supply::Intake;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::schedules::store::{Fire, FireKind};
use windrow_engine::ports::tasks::store::{CreateError, Family, FireKey, Making, NewTask, TaskView, Write};

/// Maximum number of tasks in one `IN (…)`.
const MEMBERS_PER_STATEMENT: usize = 5_000;

/// Implements [`windrow_engine::ports::tasks::store::TaskStore::ensure_business`]: inserts a business without a
/// handler if the slug is free.
pub(crate) async fn ensure_business(
    store: &Store,
    slug: &str,
    write: &Write,
    now: WallMs,
) -> Result<(), StoreError> {
    let transaction = store.write().await?;
    if find_business(&transaction, slug).await?.is_some() {
        return Ok(());
    }
    let row = business::ActiveModel {
        id: NotSet,
        slug: Set(slug.to_owned()),
        display_name: Set(None),
        pool: Set(None),
        revision: Set(1),
        handler: Set(None),
        hooks: Set(None),
        defaults_json: Set(None),
        limits_json: Set(None),
        secrets: Set(None),
        archived_at: Set(None),
        version: Set(1),
        created_at: Set(now.0),
        updated_at: Set(now.0),
    };
    business::Entity::insert(row).run(&transaction).await?;
    let after = Some(serde_json::json!({ "slug": slug }).to_string());
    let change = Change {
        object: AuditObject::new(ObjectKind::Business, slug),
        task: None,
        business: None,
        action: "business.create".to_owned(),
        before: None,
        after,
    };
    record::audit(&transaction, &write.actor, change, now).await?;
    keep(transaction, write).await
}

/// Finds a business by its slug.
pub(crate) async fn find_business(
    transaction: &Transaction,
    slug: &str,
) -> Result<Option<business::Model>, StoreError> {
    let found = business::Entity::find()
        .filter(business::Column::Slug.eq(slug))
        .row(transaction);
    found.await
}

/// Implements [`windrow_engine::ports::tasks::store::TaskStore::make`] in one transaction, since thousands may be
/// created at once and each commit waits for the disk.
pub(crate) async fn create(
    store: &Store,
    (new, how): (&NewTask, Making<'_>),
    write: &Write,
    now: WallMs,
) -> Result<TaskView, CreateError> {
    new.check()?;
    let transaction = store.write().await?;
    let owner = find_business(&transaction, &new.business).await?;
    let owner = owner.ok_or_else(|| CreateError::NoBusiness(new.business.clone()))?;
    let row = match made_before(&transaction, new).await? {
        Some(made) => made,
        None => {
            if let Some(seen) = how.beside {
                refuse_overtaken(&transaction, new, seen).await?;
            }
            make(&transaction, &owner, (new, how), write, now).await?
        }
    };
    // A task that was started before may have been stopped since: a repeated request changes nothing.
    let row = match how.starts && row.start_no == 0 && row.status == Status::Created.as_str() {
        true => Box::pin(command::start_new(store, &transaction, row, write, now)).await?,
        false => row,
    };
    // A task that was created before may be running, and so has owners.
    let view = Box::pin(view::view_with_owners(&transaction, row)).await?;
    keep(transaction, write).await?;
    Ok(view)
}

async fn make(
    transaction: &Transaction,
    owner: &business::Model,
    (new, how): (&NewTask, Making<'_>),
    write: &Write,
    now: WallMs,
) -> Result<task::Model, CreateError> {
    let fire = how.fire;
    let kind = match fire {
        Some(fire) => Some(schedule::refuse_settled(transaction, fire).await?),
        None => None,
    };
    refuse_taken_name(transaction, owner.id, new).await?;
    refuse_lost_parent(transaction, new).await?;
    if let Some(missing) = named_limits::missing(transaction, &new.spec.limits).await? {
        return Err(CreateError::NoLimit(missing));
    }
    let (begun, note) = begin_generation(transaction, owner, (new, fire.zip(kind)), now).await?;
    let publishing = begun.as_ref().map(|begun| &begun.publishing);
    let id = insert(transaction, owner, (new, publishing, fire), now).await?;
    if let Some(begun) = &begun {
        begin::register(transaction, begun, id, now).await?;
    }
    if let Some(fire) = fire {
        schedule::settle(transaction, (fire, note), id).await?;
    }
    remember_key(transaction, id, new, now).await?;
    let created = of_task(id, "task.create", status_json(Status::Created));
    record::audit(transaction, &write.actor, created, now).await?;
    if let Some((origin, after)) = how.replayed(new, id) {
        let replayed = of_task(origin, "task.replay", after);
        record::audit(transaction, &write.actor, replayed, now).await?;
    }
    Ok(record::load(transaction, id).await?)
}

fn of_task(id: TaskId, action: &str, after: String) -> Change {
    Change {
        object: AuditObject::task(id),
        task: Some(id),
        business: None,
        action: action.to_owned(),
        before: None,
        after: Some(after),
    }
}

/// Assigns a number to the generation that a task is to publish. A fire for a past time publishes nothing once a
/// later fire has made its task, since the past would become current. Returns the reason then.
async fn begin_generation(
    transaction: &Transaction,
    owner: &business::Model,
    (new, fire): (&NewTask, Option<(FireKey, FireKind)>),
    now: WallMs,
) -> Result<(Option<Begun>, Option<String>), CreateError> {
    let Some(publish) = &new.publish else {
        return Ok((None, None));
    };
    // Locks the dataset, so every number that another task has of it is visible.
    let begun = begin::begin(transaction, owner, publish, now).await?;
    let later = match fire {
        Some((key, FireKind::Backfilled)) => schedule::later_made(transaction, key).await?,
        _ => None,
    };
    Ok(match later {
        Some(later) => (None, Some(Fire::overtaken(later))),
        None => (Some(begun), None),
    })
}

/// Returns the task that an earlier request with the same key created.
async fn made_before(transaction: &Transaction, new: &NewTask) -> Result<Option<task::Model>, CreateError> {
    let Some(key) = &new.idempotency_key else {
        return Ok(None);
    };
    let known = idempotency::Entity::find_by_id((new.business.clone(), words::digest(&[key])));
    let Some(known) = known.row(transaction).await? else {
        return Ok(None);
    };
    let id = TaskId(known.task_id);
    if known.request_hash != request_hash(new)? {
        return Err(CreateError::KeyReused(id));
    }
    // Locked, so that a repeated request sees the task as the first one left it, and starts it only if nobody did.
    let made = locks::task(transaction, id).await?;
    if made.is_none() {
        // The task was deleted since: the key is free again.
        idempotency::Entity::delete_by_id((known.scope, known.key_hash))
            .run(transaction)
            .await?;
    }
    Ok(made)
}

/// Fails if the family has a redrive that the caller hasn't seen. Redrives of a family are created one after another,
/// under the lock of its root, so earlier ones are visible here.
async fn refuse_overtaken(
    transaction: &Transaction,
    new: &NewTask,
    seen: &Family,
) -> Result<(), CreateError> {
    locks::tasks(transaction, &new.parent.into_iter().chain([seen.root]).collect()).await?;
    let members: Vec<i64> = seen.members().map(|id| id.0).collect();
    for some in members.chunks(MEMBERS_PER_STATEMENT) {
        let found: Vec<i64> = task::Entity::find()
            .filter(task::Column::ParentId.is_in(some.iter().copied()))
            .pluck([task::Column::Id], transaction)
            .await?;
        if found.into_iter().any(|id| !seen.redrives.contains(&TaskId(id))) {
            return Err(CreateError::Overtaken(seen.root));
        }
    }
    Ok(())
}

/// Fails if the parent is missing or being deleted: its failures disappear while the new task is created.
async fn refuse_lost_parent(transaction: &Transaction, new: &NewTask) -> Result<(), CreateError> {
    let Some(id) = new.parent else { return Ok(()) };
    let parent = locks::task(transaction, id).await?;
    let is_there = parent.is_some_and(|row| row.status_reason.as_deref() != Some(DELETING));
    if is_there {
        Ok(())
    } else {
        Err(CreateError::NoParent(id))
    }
}

async fn remember_key(
    transaction: &Transaction,
    id: TaskId,
    new: &NewTask,
    now: WallMs,
) -> Result<(), StoreError> {
    let Some(key) = &new.idempotency_key else {
        return Ok(());
    };
    let row = idempotency::ActiveModel {
        scope: Set(new.business.clone()),
        key_hash: Set(words::digest(&[key])),
        request_hash: Set(request_hash(new)?),
        task_id: Set(id.0),
        session_id: Set(None),
        response: Set(None),
        created_at: Set(now.0),
        status: Set(0),
    };
    idempotency::Entity::insert(row).run(transaction).await?;
    Ok(())
}

/// Hashes everything that makes two requests the same one.
fn request_hash(new: &NewTask) -> Result<String, StoreError> {
    let tuning = words::tuning_text(&new.tuning)?;
    let spec = new.spec.members(|_| true);
    let request = (
        &new.business,
        spec,
        new.total,
        &new.source,
        new.meaning,
        new.parent,
    );
    let request = serde_json::to_string(&request).map_err(|fault| StoreError::Refused(fault.to_string()))?;
    let mut parts = vec![request, tuning];
    if let Some(publish) = &new.publish {
        parts.push(serde_json::to_string(publish).map_err(|fault| StoreError::Refused(fault.to_string()))?);
    }
    if new.is_open {
        parts.push(Intake::Open.as_str().to_owned());
    }
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(words::digest(&parts))
}

async fn refuse_taken_name(
    transaction: &Transaction,
    business_id: i64,
    new: &NewTask,
) -> Result<(), CreateError> {
    let Some(name) = &new.spec.name else { return Ok(()) };
    let holder = task::Entity::find()
        .filter(task::Column::BusinessId.eq(business_id))
        .filter(task::Column::Name.eq(name.as_str()))
        .row(transaction);
    match holder.await? {
        Some(holder) => Err(CreateError::NameTaken(name.clone(), TaskId(holder.id))),
        None => Ok(()),
    }
}

async fn insert(
    transaction: &Transaction,
    owner: &business::Model,
    (new, publishing, fire): (&NewTask, Option<&Publishing>, Option<FireKey>),
    now: WallMs,
) -> Result<TaskId, StoreError> {
    let mut row = task_row(owner.id, owner.pool.as_deref(), new, now)?;
    row.publishing = Set(words::publishing_text(publishing)?);
    row.source_id = Set(upload_use::index_of(transaction, &new.source).await?);
    row.schedule_id = Set(fire.map(|fire| fire.schedule.0));
    row.fire_time = Set(fire.map(|fire| fire.time.0));
    let id = task::Entity::insert(row).exec(transaction).await;
    let id = id.map_err(error)?.last_insert_id;
    let row = life::new_shard(id, &ShardLife::new(0, new.range(), Desired::Rest, now), 1, now);
    shard::Entity::insert(row).run(transaction).await?;
    Ok(TaskId(id))
}

/// Builds the row of a task. Columns that are left out are null, or start at their default of 0.
fn task_row(
    business_id: i64,
    pool: Option<&str>,
    new: &NewTask,
    now: WallMs,
) -> Result<task::ActiveModel, StoreError> {
    Ok(task::ActiveModel {
        business_id: Set(business_id),
        status: Set(Status::Created.as_str().to_owned()),
        status_since: Set(now.0),
        desired: Set(Desired::Rest.as_str().to_owned()),
        tuning: Set(words::tuning_text(&new.tuning)?),
        control_rev: Set(1),
        version: Set(1),
        total: Set(new.total.0.cast_signed()),
        source: Set(new.source.clone()),
        meaning_hash: Set(new.meaning.cast_signed()),
        pool: Set(pool.map(str::to_owned)),
        parent_id: Set(new.parent.map(|id| id.0)),
        intake: Set(new.is_open.then(|| Intake::Open.as_str().to_owned())),
        created_at: Set(now.0),
        updated_at: Set(now.0),
        ..spec::columns(&new.spec)?
    })
}
