//! Shares of limits. A round is played under the lock of the limit's row and no other; the rows of several limits are
//! locked in the order of their names. Rows of sessions are only read, since `fenced` is never reset.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use sea_orm::ActiveValue::Set;
use sea_orm::sea_query::{Expr, ExprTrait as _, OnConflict};
use sea_orm::{ColumnTrait, ConnectionTrait, EntityTrait, QueryFilter, QueryOrder};

use crate::sql::business::alerts;
use crate::sql::dialect;
use crate::sql::entity::{business, limit_part, named_limit, session, shared_limit};
use crate::sql::session::named_limits;
use crate::sql::{Fetch, Pluck, Run, Store, Transaction, damaged, error, settled, words};
use windrow_core::alert::Notice;
use windrow_core::business::BusinessLimits;
use windrow_core::ids::SessionId;
use windrow_core::limit::key::LimitKey;
use windrow_core::limit::round::{Round, Row, Terms, play as play_round};
use windrow_core::limit::units::settle::{self, newly_used, uses_of};
use windrow_core::limit::units::{Ledger, Use};
use windrow_core::limit::{Amount, Bounds, Part};
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::limit_store::{LimitStore, PartView, RoundOutcome, part_view};

#[async_trait]
impl LimitStore for Store {
    async fn bounds(&self, names: &BTreeSet<String>) -> Result<BTreeMap<String, Bounds>, StoreError> {
        let (mut slugs, mut named) = (Vec::new(), Vec::new());
        for key in names {
            match LimitKey::parse(key) {
                LimitKey::Business(slug) => slugs.push(slug),
                LimitKey::Named(name) => named.push(name),
            }
        }
        let mut found = bounds_of_businesses(&self.readers, slugs).await?;
        found.retain(|_, bounds| bounds.is_limited());
        for (key, terms) in terms_of_named(&self.readers, named).await? {
            if terms.bounds.is_limited() || !terms.metering.limits.is_empty() {
                found.insert(key, terms.bounds);
            }
        }
        Ok(found)
    }

    async fn play(&self, rounds: &[(String, Round)]) -> Result<Vec<RoundOutcome>, StoreError> {
        // Two nodes that play the first round of a limit at once may conflict; then one repeats it.
        settled(|| play_all(self, rounds)).await
    }

    async fn parts(&self, name: &str) -> Result<Vec<PartView>, StoreError> {
        let transaction = self.snapshot().await?;
        let sessions = live_sessions(&transaction, name).await?;
        let (rows, _) = rows(&transaction, name, &sessions).await?;
        transaction.rollback().await?;
        let node = |row: &Row| sessions.get(&row.session).cloned().unwrap_or_default();
        Ok(rows.iter().map(|row| part_view(row, node(row))).collect())
    }

    async fn uses(&self, name: &str) -> Result<Vec<Use>, StoreError> {
        let transaction = self.snapshot().await?;
        let found = shared_limit::Entity::find_by_id(name.to_owned())
            .row(&transaction)
            .await?;
        let ledger = ledger(found.as_ref())?;
        let terms = terms(&transaction, name, ledger).await?;
        let sessions = live_sessions(&transaction, name).await?;
        let (rows, gone) = rows(&transaction, name, &sessions).await?;
        transaction.rollback().await?;
        Ok(uses_of(&terms, &rows, &gone))
    }
}

/// Reads the bounds of businesses' own limits, by limit key.
async fn bounds_of_businesses(
    db: &impl ConnectionTrait,
    slugs: Vec<&str>,
) -> Result<BTreeMap<String, Bounds>, StoreError> {
    use business::Column as C;
    if slugs.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found: Vec<(String, String)> = business::Entity::find()
        .filter(C::Slug.is_in(slugs))
        .filter(C::LimitsJson.is_not_null())
        .pluck([C::Slug, C::LimitsJson], db)
        .await?;
    let read = |(slug, limits): (String, String)| {
        let limits = limits_of(&limits)?;
        let concurrency = limits.concurrency.map(std::num::NonZeroU32::get);
        Ok((
            LimitKey::Business(&slug).text(),
            Bounds {
                rate: limits.rate,
                concurrency,
            },
        ))
    };
    found.into_iter().map(read).collect()
}

/// Reads the terms of named limits, by limit key, without their ledgers.
async fn terms_of_named(
    db: &impl ConnectionTrait,
    names: Vec<&str>,
) -> Result<BTreeMap<String, Terms>, StoreError> {
    if names.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = named_limit::Entity::find()
        .filter(named_limit::Column::Name.is_in(names))
        .rows(db)
        .await;
    let read = |row: named_limit::Model| {
        let terms = Terms {
            bounds: named_limits::bounds(&row)?,
            metering: named_limits::metering(&row)?,
            ..Terms::default()
        };
        Ok((LimitKey::Named(&row.name).text(), terms))
    };
    found?.into_iter().map(read).collect()
}

/// Reads the terms of a limit, with the time if it has an allowance; one that is gone limits nothing.
async fn terms(db: &impl ConnectionTrait, name: &str, ledger: Vec<Ledger>) -> Result<Terms, StoreError> {
    let found = match LimitKey::parse(name) {
        LimitKey::Business(slug) => {
            let bounds = bounds_of_businesses(db, vec![slug]).await?.into_values().next();
            bounds.map(|bounds| Terms {
                bounds,
                ..Terms::default()
            })
        }
        LimitKey::Named(named) => terms_of_named(db, vec![named]).await?.into_values().next(),
    };
    let found = found.unwrap_or_default();
    let now = match found.metering.has_allowance() {
        true => dialect::time(db).await?,
        false => found.now,
    };
    Ok(Terms { ledger, now, ..found })
}

/// Parses the use by sessions that are gone.
fn ledger(row: Option<&shared_limit::Model>) -> Result<Vec<Ledger>, StoreError> {
    let Some(text) = row.and_then(|row| row.units.as_ref()) else {
        return Ok(Vec::new());
    };
    serde_json::from_str(text).map_err(|fault| damaged("shared_limit.units", &fault.to_string()))
}

async fn play_all(store: &Store, rounds: &[(String, Round)]) -> Result<Vec<RoundOutcome>, StoreError> {
    let mut order: Vec<usize> = (0..rounds.len()).collect();
    order.sort_by_key(|at| &rounds[*at].0);
    let mut played = vec![RoundOutcome::Late; rounds.len()];
    let transaction = store.write().await?;
    for at in order {
        let (name, round) = &rounds[at];
        played[at] = play(&transaction, name, round).await?;
    }
    transaction.commit().await?;
    Ok(played)
}

async fn play(transaction: &Transaction, name: &str, round: &Round) -> Result<RoundOutcome, StoreError> {
    let (round_no, ledger) = lock(transaction, name).await?;
    let own = session::Entity::find_by_id(words::session_text(round.session))
        .row(transaction)
        .await;
    if own?.is_none_or(|own| own.fenced) {
        return Ok(RoundOutcome::Fenced);
    }
    let terms = terms(transaction, name, ledger).await?;
    let sessions = live_sessions(transaction, name).await?;
    let (rows, gone) = rows(transaction, name, &sessions).await?;
    let Some(played) = play_round(&terms, &rows, &gone, round) else {
        return Ok(RoundOutcome::Late);
    };
    if !rows.contains(&played.row) {
        write(transaction, name, &played.row).await?;
    }
    if played.ledger != terms.ledger || !gone.is_empty() {
        bury(transaction, name, &gone, &played.ledger).await?;
    }
    for used in newly_used((&terms, &rows, &gone), &played) {
        tell(transaction, name, &used).await?;
    }
    Ok(RoundOutcome::Allocated {
        bounds: terms.bounds,
        allocated: played.allocated,
        units: (Box::new(terms.metering), played.dealt),
        round_no,
    })
}

/// Tells people that most of a total is used, by the database's clock.
async fn tell(transaction: &Transaction, name: &str, used: &Use) -> Result<(), StoreError> {
    if let LimitKey::Named(name) = LimitKey::parse(name) {
        let now = dialect::time(transaction).await?;
        alerts::raise(transaction, &Notice::limit_used(name, used), now).await?;
    }
    Ok(())
}

/// Deletes the rows of sessions that are gone, with what they used now in the ledger.
async fn bury(
    transaction: &Transaction,
    name: &str,
    gone: &[Row],
    ledger: &[Ledger],
) -> Result<(), StoreError> {
    use shared_limit::Column as C;
    let text = (!ledger.is_empty()).then(|| json(&ledger)).transpose()?;
    let kept = shared_limit::Entity::update_many()
        .col_expr(C::Units, Expr::value(text))
        .filter(C::Name.eq(name));
    kept.exec(transaction).await.map_err(error)?;
    for row in gone {
        let buried = limit_part::Entity::delete_many()
            .filter(limit_part::Column::Name.eq(name))
            .filter(limit_part::Column::SessionId.eq(words::session_text(row.session)));
        buried.run(transaction).await?;
    }
    Ok(())
}

fn json(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|fault| StoreError::Refused(fault.to_string()))
}

/// Locks the limit's row, creating it if it is missing, and counts a round. Returns the number of the round, and the use
/// by sessions that are gone.
async fn lock(transaction: &Transaction, name: &str) -> Result<(u64, Vec<Ledger>), StoreError> {
    use shared_limit::Column as C;
    let count = || {
        shared_limit::Entity::update_many()
            .col_expr(C::RoundNo, Expr::col(C::RoundNo).add(1))
            .filter(C::Name.eq(name))
            .exec(transaction)
    };
    if count().await.map_err(error)?.rows_affected == 0 {
        let row = shared_limit::ActiveModel {
            name: Set(name.to_owned()),
            round_no: Set(1),
            units: Set(None),
        };
        shared_limit::Entity::insert(row).run(transaction).await?;
    }
    let row = shared_limit::Entity::find_by_id(name.to_owned())
        .row(transaction)
        .await?;
    let ledger = ledger(row.as_ref())?;
    Ok((row.map_or(0, |row| row.round_no.cast_unsigned()), ledger))
}

/// Returns the sessions that have a share and are not fenced, with the names of their nodes. The shares of all others
/// are free.
async fn live_sessions(
    transaction: &Transaction,
    name: &str,
) -> Result<BTreeMap<SessionId, String>, StoreError> {
    use session::Column as C;
    let with_part = sea_orm::sea_query::Query::select()
        .column(limit_part::Column::SessionId)
        .from(limit_part::Entity)
        .and_where(limit_part::Column::Name.eq(name))
        .to_owned();
    let found: Vec<(String, String)> = session::Entity::find()
        .filter(C::Fenced.eq(false))
        .filter(C::Id.in_subquery(with_part))
        .pluck([C::Id, C::Node], transaction)
        .await?;
    found
        .into_iter()
        .map(|(id, node)| Ok((SessionId(words::uuid(&id)?), node)))
        .collect()
}

/// Reads the rows of live sessions, and those of sessions that are gone but used something.
async fn rows(
    transaction: &Transaction,
    name: &str,
    sessions: &BTreeMap<SessionId, String>,
) -> Result<(Vec<Row>, Vec<Row>), StoreError> {
    use limit_part::Column as C;
    let found = limit_part::Entity::find()
        .filter(C::Name.eq(name))
        .order_by_asc(C::SessionId);
    let rows: Result<Vec<Row>, StoreError> = found.rows(transaction).await?.into_iter().map(read).collect();
    let (live, mut gone): (Vec<Row>, Vec<Row>) = rows?
        .into_iter()
        .partition(|row| sessions.contains_key(&row.session));
    gone.retain(|row| !row.units.is_empty());
    Ok((live, gone))
}

async fn write(transaction: &Transaction, name: &str, row: &Row) -> Result<(), StoreError> {
    use limit_part::Column as C;
    let stored = |amount: Amount| {
        amount
            .bound()
            .map(|number| i64::try_from(number).unwrap_or(i64::MAX))
    };
    let units = (!row.units.is_empty()).then(|| json(&row.units)).transpose()?;
    let written = limit_part::ActiveModel {
        name: Set(name.to_owned()),
        session_id: Set(words::session_text(row.session)),
        seat: Set(row.seat.cast_signed()),
        seq: Set(row.seq.cast_signed()),
        rate: Set(stored(row.held.rate)),
        burst: Set(stored(row.held.burst)),
        slots: Set(stored(row.held.slots)),
        demand: Set(json(&row.demand)?),
        units: Set(units),
    };
    let conflict = OnConflict::columns([C::Name, C::SessionId])
        .update_columns([C::Seat, C::Seq, C::Rate, C::Burst, C::Slots, C::Demand, C::Units])
        .to_owned();
    let insert = limit_part::Entity::insert(written).on_conflict(conflict);
    insert.run(transaction).await?;
    Ok(())
}

/// Counts all that is left of the named limits in units as used: nothing says what was used since a backup.
pub(crate) async fn forget_use(transaction: &Transaction) -> Result<(), StoreError> {
    let names: Vec<String> = named_limit::Entity::find()
        .order_by_asc(named_limit::Column::Name)
        .pluck([named_limit::Column::Name], transaction)
        .await?;
    for name in names {
        let name = LimitKey::Named(&name).text();
        let (_, ledger) = lock(transaction, &name).await?;
        let terms = terms(transaction, &name, ledger).await?;
        let sessions = live_sessions(transaction, &name).await?;
        let (rows, gone) = rows(transaction, &name, &sessions).await?;
        bury(transaction, &name, &gone, &settle::forget(&terms, &rows, &gone)).await?;
    }
    Ok(())
}

/// Removes the shares of a session that ends, in all limits. Rows that used units stay until the next round of their
/// limit counts them.
pub(crate) async fn forget(transaction: &Transaction, session: &str) -> Result<(), StoreError> {
    use limit_part::Column as C;
    let own = limit_part::Entity::delete_many()
        .filter(C::SessionId.eq(session))
        .filter(C::Units.is_null());
    own.run(transaction).await?;
    Ok(())
}

fn read(row: limit_part::Model) -> Result<Row, StoreError> {
    let amount =
        |stored: Option<i64>| Amount::at_most(stored.map(|number| u64::try_from(number).unwrap_or(0)));
    let demand = serde_json::from_str(&row.demand).map_err(|_| damaged("limit_share.demand", &row.demand));
    let units = row.units.as_deref().map_or(Ok(Vec::new()), |text| {
        serde_json::from_str(text).map_err(|_| damaged("limit_part.units", text))
    });
    Ok(Row {
        session: SessionId(words::uuid(&row.session_id)?),
        seat: row.seat.cast_unsigned(),
        seq: row.seq.cast_unsigned(),
        held: Part {
            rate: amount(row.rate),
            burst: amount(row.burst),
            slots: amount(row.slots),
        },
        demand: demand?,
        units: units?,
    })
}

/// Parses the limits of a business from their stored form.
pub(crate) fn limits_of(text: &str) -> Result<BusinessLimits, StoreError> {
    serde_json::from_str(text).map_err(|fault| damaged("business.limits", &fault.to_string()))
}
