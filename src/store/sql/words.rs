//! Conversion between columns and domain types. Numbers are bit-cast: indexes and counts are at most `i64::MAX` by
//! contract.

use std::collections::BTreeMap;
use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::sql::damaged;
use crate::sql::entity::{shard_head, task};
use windrow_core::dataset::Publishing;
use windrow_core::ids::{ClaimId, ItemIndex, SessionId, ShardId, TaskId, WallMs};
use windrow_core::items::counters::Counters;
use windrow_core::items::stretches::Stretches;
use windrow_core::items::verdict::Outage;
use windrow_core::settings::Rate;
use windrow_core::shards::{Pause, PauseReason, Slow};
use windrow_core::task::Tuning;
use windrow_core::task::failed_codes::FailedCodes;
use windrow_core::task::lifecycle::{CutOff, Desired, ShardState, Status, StopReason, TaskResult};
use windrow_core::task::supply::{Intake, Supply};
use windrow_engine::ports::StoreError;

pub(super) fn shard_no(id: ShardId) -> i32 {
    id.no.cast_signed()
}

pub(super) fn shard_id(row: &shard_head::Model) -> ShardId {
    ShardId {
        task: TaskId(row.task_id),
        no: row.shard_no.cast_unsigned(),
    }
}

pub(super) fn session_text(id: SessionId) -> String {
    id.0.to_string()
}

pub(super) fn claim_text(id: ClaimId) -> String {
    id.0.to_string()
}

pub(super) fn uuid(text: &str) -> Result<Uuid, StoreError> {
    Uuid::parse_str(text).map_err(|_| damaged("a UUID", text))
}

/// Returns what can be read. Logs anything else and leaves it out, so that one row of a newer program doesn't hide
/// all others.
pub(super) fn readable<T>(what: &str, read: Result<T, StoreError>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!(what, %error, "row can't be read; skipping it"))
        .ok()
}

pub(super) fn desired(text: &str) -> Result<Desired, StoreError> {
    Desired::parse(text).ok_or_else(|| damaged("task.desired", text))
}

pub(super) fn status(row: &task::Model) -> Result<Status, StoreError> {
    Status::parse(&row.status).ok_or_else(|| damaged("status", &row.status))
}

pub(super) fn stop_reason(row: &task::Model) -> Result<Option<StopReason>, StoreError> {
    let read = |text: &str| StopReason::parse(text).ok_or_else(|| damaged("stop reason", text));
    row.stop_reason.as_deref().map(read).transpose()
}

pub(super) fn result(row: &task::Model) -> Result<Option<TaskResult>, StoreError> {
    let read = |text: &str| TaskResult::parse(text).ok_or_else(|| damaged("task.result", text));
    row.result.as_deref().map(read).transpose()
}

pub(super) fn intake(text: Option<&str>) -> Result<Option<Intake>, StoreError> {
    let read = |text: &str| Intake::parse(text).ok_or_else(|| damaged("task.intake", text));
    text.map(read).transpose()
}

/// Returns the present end of an open task's items; `None` for a task whose items are fixed.
pub(super) fn supply(row: &task::Model) -> Result<Option<Supply>, StoreError> {
    let supply = |intake| Supply {
        end: index(row.total),
        is_sealed: intake == Intake::Sealed,
    };
    Ok(intake(row.intake.as_deref())?.map(supply))
}

pub(super) fn index(column: i64) -> ItemIndex {
    ItemIndex(column.max(0).cast_unsigned())
}

pub(super) fn shard_state(row: &shard_head::Model) -> Result<ShardState, StoreError> {
    ShardState::parse(&row.state).ok_or_else(|| damaged("shard.state", &row.state))
}

pub(super) fn tuning(text: &str) -> Result<Tuning, StoreError> {
    serde_json::from_str(text).map_err(|cause| damaged("settings", &cause.to_string()))
}

pub(super) fn tuning_text(tuning: &Tuning) -> Result<String, StoreError> {
    serde_json::to_string(tuning).map_err(|cause| StoreError::Refused(format!("settings: {cause}")))
}

/// Returns the counters of a shard's own range; excluded items lie outside it.
pub(super) fn counters(row: &shard_head::Model) -> Counters {
    Counters {
        succeeded: row.succeeded.cast_unsigned(),
        skipped: row.skipped.cast_unsigned(),
        failed: row.failed.cast_unsigned(),
        parked: row.parked.cast_unsigned(),
        in_flight: 0,
        excluded: 0,
    }
}

pub(super) fn outage(row: &shard_head::Model) -> Option<Outage> {
    let probes = u32::try_from(row.circuit_probes.unwrap_or(0)).unwrap_or(u32::MAX);
    row.circuit_since.map(|since| Outage {
        since: WallMs(since),
        probes,
    })
}

/// Hashes texts of any length to 64 hexadecimal digits, for keys that no collation affects.
pub(super) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Formats labels as JSON text; null if there are none.
pub(super) fn labels_text(labels: &BTreeMap<String, String>) -> Result<Option<String>, StoreError> {
    let text = || serde_json::to_string(labels).map_err(|fault| StoreError::Refused(fault.to_string()));
    (!labels.is_empty()).then(text).transpose()
}

pub(super) fn labels(text: Option<&str>) -> Result<BTreeMap<String, String>, StoreError> {
    let Some(text) = text else {
        return Ok(BTreeMap::new());
    };
    serde_json::from_str(text).map_err(|_| damaged("labels", text))
}

pub(super) fn limits_text(names: &[String]) -> Result<Option<String>, StoreError> {
    let text = || serde_json::to_string(names).map_err(|fault| StoreError::Refused(fault.to_string()));
    (!names.is_empty()).then(text).transpose()
}

pub(super) fn limits(text: Option<&str>) -> Result<Vec<String>, StoreError> {
    let Some(text) = text else { return Ok(Vec::new()) };
    serde_json::from_str(text).map_err(|_| damaged("task.limits", text))
}

/// Formats decisions on codes as JSON text; null if there are none.
pub(super) fn failed_codes_text(decided: &FailedCodes) -> Result<Option<String>, StoreError> {
    let text = || serde_json::to_string(decided).map_err(|fault| StoreError::Refused(fault.to_string()));
    (!decided.is_empty()).then(text).transpose()
}

pub(super) fn failed_codes(text: Option<&str>) -> Result<FailedCodes, StoreError> {
    let Some(text) = text else {
        return Ok(FailedCodes::default());
    };
    serde_json::from_str(text).map_err(|_| damaged("task.failed_codes", text))
}

/// Formats the items to skip; null if there are none.
pub(super) fn skips_text(skips: &Stretches) -> Option<String> {
    (!skips.is_empty()).then(|| skips.to_string())
}

pub(super) fn skips(text: Option<&str>) -> Result<Stretches, StoreError> {
    let Some(text) = text else {
        return Ok(Stretches::default());
    };
    Stretches::parse(text).map_err(|_| damaged("task.skipped", text))
}

pub(super) fn cut_off_text(cut_off: &CutOff) -> Result<Option<String>, StoreError> {
    let text = || serde_json::to_string(cut_off).map_err(|fault| StoreError::Refused(fault.to_string()));
    (!cut_off.is_empty()).then(text).transpose()
}

pub(super) fn cut_off(text: Option<&str>) -> Result<CutOff, StoreError> {
    let Some(text) = text else {
        return Ok(CutOff::default());
    };
    serde_json::from_str(text).map_err(|_| damaged("task.cut_off", text))
}

/// Formats the publication of a task as JSON text; null if there is none.
pub(super) fn publishing_text(publishing: Option<&Publishing>) -> Result<Option<String>, StoreError> {
    let text = |it| serde_json::to_string(it).map_err(|fault| StoreError::Refused(fault.to_string()));
    publishing.map(text).transpose()
}

pub(super) fn publishing(text: Option<&str>) -> Result<Option<Publishing>, StoreError> {
    text.map(|text| serde_json::from_str(text).map_err(|_| damaged("task.publishing", text)))
        .transpose()
}

/// Returns the pause of a task, which may be over.
pub(super) fn pause(row: &task::Model) -> Result<Option<Pause>, StoreError> {
    let Some((until, text)) = row.pause_until.zip(row.pause_reason.as_deref()) else {
        return Ok(None);
    };
    let reason = PauseReason::parse(text).ok_or_else(|| damaged("pause.reason", text))?;
    Ok(Some(Pause {
        until: WallMs(until),
        reason,
    }))
}

/// Returns the lowered rate of a task, which may be over. The column is in millionths of an item per second.
pub(super) fn slow(row: &task::Model) -> Option<Slow> {
    let (until, micros) = row.slow_until.zip(row.slow_rate)?;
    let rate = Rate::new(micros.max(1).cast_unsigned(), Duration::from_secs(1_000_000))?;
    Some(Slow {
        rate,
        until: WallMs(until),
    })
}

/// Returns the columns of a lowered rate: its end, and the rate.
pub(super) fn slow_columns(slow: Option<Slow>) -> Option<(i64, i64)> {
    let micros = |slow: Slow| i64::try_from(slow.rate.micros_per_second()).unwrap_or(i64::MAX);
    slow.map(|slow| (slow.until.0, micros(slow)))
}
