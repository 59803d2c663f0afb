//! Claim in two round trips, for servers that may be far away: the first raises the epoch and reads everything
//! needed, the second writes and commits. The statements and the locks are those of `claim`.

use sea_orm::{ColumnTrait, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use windrow_words::store as say;

use crate::sql::entity::{audit, item, run, session, shard_head, task};
use crate::sql::run::claim::{claimed, find_blob, find_retrying, is_own, raising};
use crate::sql::run::history;
use crate::sql::task::life::Held;
use crate::sql::task::record;
use crate::sql::{Talk, locks, words};
use windrow_core::checkpoint;
use windrow_core::life::succession::Fate;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::{ClaimOutcome, ClaimRequest, ClaimedShard};

/// Rows found by the first round trip.
struct Found {
    task: Option<task::Model>,
    /// Shard before the epoch was raised.
    before: Option<shard_head::Model>,
    is_raised: bool,
    /// Shards of the task after the epoch was raised.
    shards: Vec<shard_head::Model>,
    /// Session of the claimant, if it exists.
    me: Option<session::Model>,
    /// Run of the shard that began last.
    last: Option<run::Model>,
    blob: Vec<u8>,
    retrying: Vec<item::Model>,
}

/// Outcome of the claim's transaction.
enum Decision {
    /// Nothing is kept. Without an outcome, two round trips do not suffice for this claim.
    RollBack(Option<ClaimOutcome>),
    /// The claim succeeds; these statements are run and committed.
    Commit(Box<ClaimedShard>, Vec<String>),
}

/// Claims a shard. Returns `None`, with nothing kept, if the task's new state depends on more than its shards.
pub(crate) async fn claim(
    mut talk: Talk,
    request: &ClaimRequest,
) -> Result<Option<ClaimOutcome>, StoreError> {
    let found = read(&mut talk, request).await?;
    match decide(&talk, request, found)? {
        Decision::RollBack(outcome) => {
            talk.say(&["ROLLBACK".to_owned()]).await?;
            Ok(outcome)
        }
        Decision::Commit(claimed, mut writes) => {
            writes.push("COMMIT".to_owned());
            talk.say(&writes).await?;
            Ok(Some(ClaimOutcome::Claimed(claimed)))
        }
    }
}

async fn read(talk: &mut Talk, request: &ClaimRequest) -> Result<Found, StoreError> {
    let key = (request.shard.task.0, words::shard_no(request.shard));
    let last = run::Entity::find()
        .filter(run::Column::TaskId.eq(key.0))
        .filter(run::Column::ShardNo.eq(key.1))
        .order_by_desc(run::Column::RunNo)
        .limit(1);
    let me = session::Entity::find_by_id(words::session_text(request.session));
    let replies = talk
        .say(&[
            "BEGIN".to_owned(),
            // The task before its shard, like everywhere.
            talk.text(&locks::find_task(request.shard.task)),
            talk.text(&history::find_head(request.shard)),
            talk.text(&raising(request)),
            talk.text(&record::all_shards(request.shard.task)),
            talk.text(&me),
            talk.text(&last),
            talk.text(&find_blob(key)),
            talk.text(&find_retrying(key)),
        ])
        .await?;
    let [_, task, before, raised, shards, me, last, blob, retrying] = replies.as_slice() else {
        return Err(StoreError::Unavailable(
            say::answers(replies.len(), 9_u32).to_string(),
        ));
    };
    Ok(Found {
        task: task.one()?,
        before: before.one()?,
        is_raised: raised.affected == 1,
        shards: shards.all()?,
        me: me.one()?,
        last: last.one()?,
        blob: blob.value()?.unwrap_or_default(),
        retrying: retrying.all()?,
    })
}

fn decide(talk: &Talk, request: &ClaimRequest, found: Found) -> Result<Decision, StoreError> {
    let lost = Ok(Decision::RollBack(Some(ClaimOutcome::Lost)));
    let row = found.shards.iter().find(|row| is_own(row, request));
    let row = row.filter(|row| row.shard_no == words::shard_no(request.shard));
    let (Some(task), Some(row)) = (found.task, row) else {
        return lost;
    };
    let mut writes = Vec::new();
    let mut left_by = None;
    if found.is_raised {
        let mut held = Held::new(task, &found.shards)?;
        let Some(changed) = held.refresh_row(request.now)? else {
            return Ok(Decision::RollBack(None));
        };
        writes.extend(changed.map(|task| talk.text(&record::saving(&task, request.now))));
        let heir = found.me.map(|me| me.node);
        if let Some(before) = found.before.filter(|before| before.run_no > 0) {
            let last = found.last.filter(|run| run.run_no == before.run_no);
            if before.session_id.is_some() {
                let node = last.and_then(|run| run.node);
                writes.extend(succession(talk, request, &before, (node, heir.as_deref())));
            } else {
                left_by = last.and_then(history::left_by_run);
            }
        }
        writes.push(talk.text(&run::Entity::insert(history::new_run(request, row, heir))));
    } else if found.me.is_none_or(|me| me.fenced) {
        return lost;
    }
    let claimed = claimed(request, row, (found.blob, found.retrying), left_by)?;
    if let Some(version) = checkpoint::version_of(&claimed.blob).filter(|it| *it > checkpoint::VERSION) {
        // The shard stays as it was, for a node that can read it.
        return Ok(Decision::RollBack(Some(ClaimOutcome::Newer(version))));
    }
    Ok(Decision::Commit(Box::new(claimed), writes))
}

/// Builds the statements for the run that the claim found unended.
fn succession(
    talk: &Talk,
    request: &ClaimRequest,
    before: &shard_head::Model,
    (node, heir): (Option<String>, Option<&str>),
) -> Vec<String> {
    let told = heir.map(|heir| {
        let fate = Fate::TakenOver(heir);
        history::told(before, node.as_deref(), fate, request.now)
    });
    let text = told.as_ref().and_then(|(actor, _)| actor.reason.clone());
    let mut writes = vec![talk.text(&history::ending(before, (history::LOST, text), request.now))];
    if let Some((actor, change)) = told {
        let entry = record::entry(&actor, change, request.now);
        writes.push(talk.text(&audit::Entity::insert(entry)));
    }
    writes
}
