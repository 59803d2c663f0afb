//! Mapping of a task's life to its rows: read under the task's lock, and written back where it differs.

use sea_orm::ActiveValue::Set;
use sea_orm::{ActiveModelTrait, ColumnTrait, EntityTrait, Iterable, QueryFilter};
use windrow_words::store as say;

use crate::sql::business::{alerts, outbox};
use crate::sql::dataset::begin;
use crate::sql::entity::{business, failure_group, item, shard, shard_head, start_token, task};
use crate::sql::run::{items, results};
use crate::sql::source::upload_use;
use crate::sql::task::record::{self, Change};
use crate::sql::task::spec;
use crate::sql::{Fetch, Pluck, Run, Transaction, damaged, words};
use windrow_core::alert::Notice;
use windrow_core::ids::{ItemCount, ItemIndex, RunNo, SessionId, TaskId, WallMs};
use windrow_core::life::{Deeds, Evidence, Life, Listener, ShardLife};
use windrow_core::task::lifecycle::Note;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::audit_object::AuditObject;
use windrow_engine::ports::tasks::store::Actor;

/// Task whose lock this transaction holds.
pub(crate) struct Held {
    row: task::Model,
    before: Life,
    /// Life of the task as it is to be written.
    pub(crate) life: Life,
}

impl Held {
    /// Reads the shards of a task whose row was read under its lock.
    pub(crate) async fn of(transaction: &Transaction, row: task::Model) -> Result<Held, StoreError> {
        let shards = record::shards(transaction, TaskId(row.id)).await?;
        Held::new(row, &shards)
    }

    /// Combines a task and its shards, as read by this transaction.
    pub(crate) fn new(row: task::Model, shards: &[shard_head::Model]) -> Result<Held, StoreError> {
        let before = read(&row, shards)?;
        Ok(Held {
            life: before.clone(),
            row,
            before,
        })
    }

    /// Loads a task that must exist, because one of its shards does.
    pub(crate) async fn find(transaction: &Transaction, id: TaskId) -> Result<Held, StoreError> {
        Held::of(transaction, record::load(transaction, id).await?).await
    }

    /// Returns the pool whose nodes take the task.
    pub(crate) fn pool(&self) -> Option<&str> {
        self.row.pool.as_deref()
    }

    pub(crate) fn business_id(&self) -> i64 {
        self.row.business_id
    }

    /// Returns the version that the task was read with.
    pub(crate) fn version(&self) -> u64 {
        self.row.version.cast_unsigned()
    }

    /// Returns the task's business as a listener, with its hooks.
    pub(crate) async fn listener(&self, transaction: &Transaction) -> Result<Listener, StoreError> {
        let id = self.row.business_id;
        let owner = business::Entity::find_by_id(id).row(transaction).await?;
        let owner = owner.ok_or_else(|| damaged("task.business_id", &id.to_string()))?;
        let hooks = match owner.hooks.unwrap_or_default().trim() {
            "" | "null" => Ok(Default::default()),
            text => serde_json::from_str(text).map_err(|fault| damaged("hooks", &fault.to_string())),
        };
        Ok(Listener {
            business: owner.slug,
            hooks: hooks?,
        })
    }

    /// Derives the task's status from its shards, one of which brings `news`.
    pub(crate) async fn refresh(
        &mut self,
        transaction: &Transaction,
        news: Option<Note>,
        now: WallMs,
    ) -> Result<Deeds, StoreError> {
        let evidence = self.evidence(transaction).await?;
        Ok(self.life.refresh(news, evidence, now))
    }

    /// Derives the task's status after a shard was claimed.
    pub(crate) async fn refresh_claimed(
        &mut self,
        transaction: &Transaction,
        now: WallMs,
    ) -> Result<Deeds, StoreError> {
        let evidence = self.evidence(transaction).await?;
        Ok(self.life.refresh_claimed(evidence, now))
    }

    async fn evidence(&self, transaction: &Transaction) -> Result<Evidence, StoreError> {
        match self.life.is_settled() {
            true => evidence(transaction, self.row.id).await,
            false => Ok(Evidence::default()),
        }
    }

    /// Derives the task's status after a claim if its shards alone determine it, and returns the row to write, if
    /// any. Returns `None` if more must be read or written.
    pub(crate) fn refresh_row(&mut self, now: WallMs) -> Result<Option<Option<task::Model>>, StoreError> {
        if self.life.is_settled() {
            return Ok(None);
        }
        let deeds = self.life.refresh_claimed(Evidence::default(), now);
        let row = written(&self.row, &self.life)?;
        let is_plain = deeds == Deeds::default()
            && self.life.shards == self.before.shards
            && self.life.control_rev == self.before.control_rev
            && row.source == self.row.source;
        Ok(is_plain.then(|| Some(row).filter(|row| *row != self.row)))
    }

    /// Writes what differs, with the side effects of the changes. `by` gave the command, which makes a new version
    /// even if it changes nothing; `None` for changes made by runs.
    pub(crate) async fn keep(
        self,
        transaction: &Transaction,
        (deeds, by): (&[Deeds], Option<&Actor>),
        now: WallMs,
    ) -> Result<(), StoreError> {
        let row = self.new_row(transaction).await?;
        write_shards(transaction, &self.before, &self.life, now).await?;
        if by.is_some() || row != self.row {
            record::save(transaction, &row, now).await?;
        }
        for deeds in deeds {
            // Rare beside the writes of each checkpoint, whose future would carry it.
            Box::pin(self.perform(transaction, (deeds, by), now)).await?;
        }
        Ok(())
    }

    async fn new_row(&self, transaction: &Transaction) -> Result<task::Model, StoreError> {
        let mut row = written(&self.row, &self.life)?;
        if row.source != self.row.source {
            row.source_id = upload_use::index_of(transaction, &row.source).await?;
            if row.source_id != self.row.source_id {
                upload_use::give_up(transaction, self.row.source_id, row.id).await?;
            }
        }
        Ok(row)
    }

    async fn perform(
        &self,
        transaction: &Transaction,
        (deeds, by): (&Deeds, Option<&Actor>),
        now: WallMs,
    ) -> Result<(), StoreError> {
        if deeds.takes_token {
            keep_token(transaction, &self.life).await?;
        }
        for record in &deeds.records {
            let author = Actor::of(record.by, by);
            let (before, after) = (Some(record.before.clone()), Some(record.after.clone()));
            let action = record.action.clone();
            let change = Change {
                object: AuditObject::task(self.life.id),
                task: Some(self.life.id),
                business: None,
                action,
                before,
                after,
            };
            record::audit(transaction, &author, change, now).await?;
        }
        if let Some(call) = &deeds.call {
            outbox::leave(transaction, self.life.id, call, now).await?;
        }
        if let Some(why) = &deeds.withholds {
            begin::withhold(transaction, self.life.id, why, now).await?;
        }
        if deeds.ends_start {
            let listener = self.listener(transaction).await?;
            if let Some(call) = self.life.announcement(&listener, now) {
                outbox::leave(transaction, self.life.id, &call, now).await?;
            }
            for notice in Notice::of_end(&self.life, &listener.business) {
                alerts::raise(transaction, &notice, now).await?;
            }
        }
        Ok(())
    }
}

/// Stores only the hash of a start's token; the plain one leaves with the `prepare` hook, if there is one.
async fn keep_token(transaction: &Transaction, life: &Life) -> Result<(), StoreError> {
    let kept = start_token::ActiveModel {
        token_hash: Set(life.start_token.clone().unwrap_or_default()),
        task_id: Set(life.id.0),
        start_no: Set(life.start_no.cast_signed()),
    };
    start_token::Entity::insert(kept).run(transaction).await?;
    Ok(())
}

async fn evidence(transaction: &Transaction, task: i64) -> Result<Evidence, StoreError> {
    let of_task = failure_group::Column::TaskId.eq(task);
    let groups = failure_group::Entity::find()
        .filter(of_task)
        .rows(transaction)
        .await?;
    let parked = item::Entity::find()
        .filter(item::Column::TaskId.eq(task))
        .filter(item::Column::State.eq(items::PARKED))
        .row(transaction);
    let failures = groups.iter().map(|group| group.n.cast_unsigned()).sum();
    Ok(Evidence {
        failures,
        is_parked: parked.await?.is_some(),
        results_said: results_said(transaction, task).await?,
        results_stored: results::count(transaction, task).await?,
    })
}

async fn results_said(transaction: &Transaction, task: i64) -> Result<u64, StoreError> {
    let said: Vec<i64> = shard_head::Entity::find()
        .filter(shard_head::Column::TaskId.eq(task))
        .pluck([shard_head::Column::Results], transaction)
        .await?;
    Ok(said.into_iter().map(i64::cast_unsigned).sum())
}

/// Reads the life of a task from its rows.
pub(crate) fn read(row: &task::Model, shards: &[shard_head::Model]) -> Result<Life, StoreError> {
    let note = row.status_text.clone().map(|text| Note {
        reason: row.status_reason.clone(),
        text,
    });
    Ok(Life {
        id: TaskId(row.id),
        spec: spec::read(row)?,
        total: ItemCount(row.total.cast_unsigned()),
        source: row.source.clone(),
        meaning: row.meaning_hash.cast_unsigned(),
        tuning: words::tuning(&row.tuning)?,
        failed_codes: words::failed_codes(row.failed_codes.as_deref())?,
        skips: words::skips(row.skips.as_deref())?,
        desired: words::desired(&row.desired)?,
        status: words::status(row)?,
        since: WallMs(row.status_since),
        note,
        cut_off: words::cut_off(row.cut_off.as_deref())?,
        next_at: row.next_at.map(WallMs),
        stop_reason: words::stop_reason(row)?,
        result: words::result(row)?,
        start_no: row.start_no.cast_unsigned(),
        queued_at: WallMs(row.queued_at),
        started_at: row.started_at.map(WallMs),
        finished_at: row.finished_at.map(WallMs),
        awaiting_until: row.awaiting_until.map(WallMs),
        start_token: row.start_token_hash.clone(),
        control_rev: row.control_rev.cast_unsigned(),
        finish_at: row.finish_at.map(words::index),
        pause: words::pause(row)?,
        slow: words::slow(row),
        intake: words::intake(row.intake.as_deref())?,
        publishing: words::publishing(row.publishing.as_deref())?,
        shards: shards.iter().map(shard_life).collect::<Result<_, _>>()?,
    })
}

/// Returns the row with everything that a life can change.
fn written(row: &task::Model, life: &Life) -> Result<task::Model, StoreError> {
    let ms = |at: Option<WallMs>| at.map(|at| at.0);
    let note = life.note.clone();
    let (reason, text) = note.map_or((None, None), |note| (note.reason, Some(note.text)));
    let slow = words::slow_columns(life.slow);
    let mut new = task::Model {
        total: life.total.0.cast_signed(),
        source: life.source.clone(),
        meaning_hash: life.meaning.cast_signed(),
        failed_codes: words::failed_codes_text(&life.failed_codes)?,
        skips: words::skips_text(&life.skips),
        desired: life.desired.as_str().to_owned(),
        status: life.status.as_str().to_owned(),
        status_since: life.since.0,
        status_reason: reason,
        status_text: text,
        cut_off: words::cut_off_text(&life.cut_off)?,
        next_at: ms(life.next_at),
        stop_reason: life.stop_reason.map(|reason| reason.as_str().to_owned()),
        result: life.result.map(|result| result.as_str().to_owned()),
        start_no: life.start_no.cast_signed(),
        queued_at: life.queued_at.0,
        started_at: ms(life.started_at),
        finished_at: ms(life.finished_at),
        awaiting_until: ms(life.awaiting_until),
        start_token_hash: life.start_token.clone(),
        control_rev: life.control_rev.cast_signed(),
        finish_at: life.finish_at.map(|end| end.0.cast_signed()),
        pause_until: life.pause.map(|pause| pause.until.0),
        pause_reason: life.pause.map(|pause| pause.reason.as_str().to_owned()),
        intake: life.intake.map(|intake| intake.as_str().to_owned()),
        slow_until: slow.map(|(until, _)| until),
        slow_rate: slow.map(|(_, micros)| micros),
        ..row.clone()
    };
    spec::write(&mut new, &life.spec)?;
    // A different text of the same settings is no change.
    if words::tuning(&row.tuning)? != life.tuning {
        new.tuning = words::tuning_text(&life.tuning)?;
    }
    Ok(new)
}

pub(crate) fn shard_life(row: &shard_head::Model) -> Result<ShardLife, StoreError> {
    let session = row.session_id.as_deref().map(words::uuid).transpose()?;
    Ok(ShardLife {
        no: row.shard_no.cast_unsigned(),
        first: words::index(row.first_index),
        end: words::index(row.end_index),
        range_end: words::index(row.range_end),
        state: words::shard_state(row)?,
        desired: words::desired(&row.desired)?,
        session: session.map(SessionId),
        run: RunNo(row.run_no.cast_unsigned()),
        watermark: words::index(row.watermark),
        high_water: words::index(row.high_water),
        horizon: words::index(row.horizon),
        counters: words::counters(row),
        recoveries: row.recoveries.cast_unsigned(),
        claimed_at: Some(row.last_claim_lw).filter(|at| *at >= 0).map(words::index),
        not_before: WallMs(row.not_before),
        updated_at: WallMs(row.updated_at),
        moves_until: row.move_until.map(WallMs),
        share: row.rate_share,
    })
}

/// Returns the columns that a life can change.
fn columns(shard: &ShardLife, control_rev: u64) -> shard::ActiveModel {
    let index = |index: ItemIndex| Set(index.0.cast_signed());
    shard::ActiveModel {
        first_index: index(shard.first),
        end_index: index(shard.end),
        range_end: index(shard.range_end),
        state: Set(shard.state.as_str().to_owned()),
        desired: Set(shard.desired.as_str().to_owned()),
        control_rev: Set(control_rev.cast_signed()),
        session_id: Set(shard.session.map(words::session_text)),
        watermark: index(shard.watermark),
        high_water: index(shard.high_water),
        horizon: index(shard.horizon),
        recoveries: Set(shard.recoveries.cast_signed()),
        last_claim_lw: Set(shard.claimed_at.map_or(-1, |at| at.0.cast_signed())),
        not_before: Set(shard.not_before.0),
        updated_at: Set(shard.updated_at.0),
        move_until: Set(shard.moves_until.map(|at| at.0)),
        rate_share: Set(shard.share),
        ..Default::default()
    }
}

/// Builds the row of a shard that never ran.
pub(crate) fn new_shard(task: i64, life: &ShardLife, control_rev: u64, now: WallMs) -> shard::ActiveModel {
    shard::ActiveModel {
        task_id: Set(task),
        shard_no: Set(life.no.cast_signed()),
        horizon_before: Set(life.first.0.cast_signed()),
        results: Set(0),
        ckpt_blob: Set(Vec::new()),
        created_at: Set(now.0),
        ..columns(life, control_rev)
    }
}

async fn write_shards(
    transaction: &Transaction,
    before: &Life,
    after: &Life,
    now: WallMs,
) -> Result<(), StoreError> {
    use shard::Column as C;
    let of_task = || C::TaskId.eq(after.id.0);
    let was = |no: u32| before.shards.iter().find(|shard| shard.no == no);
    let gone = before
        .shards
        .iter()
        .filter(|old| after.shards.iter().all(|new| new.no != old.no));
    let gone: Vec<i32> = gone.map(|shard| shard.no.cast_signed()).collect();
    if !gone.is_empty() {
        let gone = shard::Entity::delete_many()
            .filter(of_task())
            .filter(C::ShardNo.is_in(gone));
        gone.run(transaction).await?;
    }
    let new = after.shards.iter().filter(|shard| was(shard.no).is_none());
    let new: Vec<_> = new
        .map(|shard| new_shard(after.id.0, shard, after.control_rev, now))
        .collect();
    if !new.is_empty() {
        shard::Entity::insert_many(new).run(transaction).await?;
    }
    for (change, shards) in changes(before, after) {
        let expected = shards.len() as u64;
        let update = shard::Entity::update_many().set(change).filter(of_task());
        let done = update.filter(C::ShardNo.is_in(shards)).run(transaction).await?;
        if done != expected {
            return Err(StoreError::Unavailable(
                say::shard_changed(after.id.to_string()).to_string(),
            ));
        }
    }
    Ok(())
}

/// Returns each change with the shards it applies to: most changes apply to all.
fn changes(before: &Life, after: &Life) -> Vec<(shard::ActiveModel, Vec<i32>)> {
    let mut changes: Vec<(shard::ActiveModel, Vec<i32>)> = Vec::new();
    for shard in &after.shards {
        let Some(was) = before.shards.iter().find(|was| was.no == shard.no) else {
            continue;
        };
        let (was, mut is) = (
            columns(was, before.control_rev),
            columns(shard, after.control_rev),
        );
        for column in shard::Column::iter() {
            if was.get(column) == is.get(column) {
                is.not_set(column);
            }
        }
        // A recreated shard never ran: the items that an earlier run may have sent end where it begins.
        if let Set(first) = is.first_index {
            is.horizon_before = Set(first);
        }
        if !is.is_changed() {
            continue;
        }
        match changes.iter_mut().find(|(change, _)| *change == is) {
            Some((_, shards)) => shards.push(shard.no.cast_signed()),
            None => changes.push((is, vec![shard.no.cast_signed()])),
        }
    }
    changes
}
