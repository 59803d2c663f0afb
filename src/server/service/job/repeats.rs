//! Number of items that may be called twice when a job resumes after an interrupted run.

use std::fmt;

use windrow_core::checkpoint::{self, Snapshot};
use windrow_core::ids::ItemIndex;
use windrow_core::settings::RateLimit;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::report_store::{ReportStore, SavedWindow};
use windrow_engine::ports::tasks::store::TaskView;

/// Number of items that may be called twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayRepeat {
    /// Exactly this many: a stop cut off their calls without waiting for them.
    CutOff(u64),
    /// At most this many, because the process crashed.
    UpTo {
        /// Upper bound: no item is dispatched beyond the last checkpoint's dispatch horizon, even if the database is
        /// slow.
        most: u64,
        /// Estimate for checkpoints at their normal interval; `None` if that isn't lower.
        about: Option<u64>,
    },
}

impl MayRepeat {
    /// Returns the maximum number of items.
    pub fn items(self) -> u64 {
        match self {
            MayRepeat::CutOff(items) | MayRepeat::UpTo { most: items, .. } => items,
        }
    }
}

impl fmt::Display for MayRepeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let up_to = match self {
            MayRepeat::CutOff(_) => "",
            MayRepeat::UpTo { .. } => "up to ",
        };
        let items = self.items();
        let noun = if items == 1 { "item" } else { "items" };
        write!(f, "{up_to}{items} {noun} may be called a second time")?;
        match self {
            MayRepeat::UpTo {
                about: Some(about), ..
            } => {
                write!(f, " (about {about} if its last checkpoint was on time)")
            }
            _ => Ok(()),
        }
    }
}

/// Returns true if the status is valid without a process that runs the task.
pub fn is_at_rest(status: Status) -> bool {
    status.is_terminal() || matches!(status, Status::Created | Status::Stopped)
}

/// Returns the number of items that may be called twice when a task that isn't running resumes; `None` if there are
/// none.
///
/// # Errors
/// If the store can't be read.
pub async fn may_repeat(reports: &dyn ReportStore, task: &TaskView) -> Result<Option<MayRepeat>, StoreError> {
    if is_at_rest(task.status) {
        let cut_off = task.life.cut_off.items;
        let is_open = !task.status.is_terminal() && cut_off > 0;
        return Ok(is_open.then_some(MayRepeat::CutOff(cut_off)));
    }
    let windows = reports.saved_windows(task.id).await?;
    let most = windows
        .iter()
        .map(|window| open_below(task, window, window.horizon))
        .sum();
    let saved: u64 = windows
        .iter()
        .map(|window| open_below(task, window, window.high_water))
        .sum();
    let about = match task.tuning.rate {
        RateLimit::Limited(rate) => Some(saved + rate.items_in(task.tuning.checkpoint_interval)),
        RateLimit::Unlimited | RateLimit::Auto(_) => None,
    };
    Ok((most > 0).then_some(MayRepeat::UpTo {
        most,
        about: about.filter(|about| *about < most),
    }))
}

/// Returns the number of items below an index that aren't saved as settled. If the checkpoint can't be read, only its
/// watermark counts.
fn open_below(task: &TaskView, window: &SavedWindow, end: ItemIndex) -> u64 {
    let Some(shard) = task.shards.iter().find(|shard| shard.no == window.shard.no) else {
        return 0;
    };
    let unread = Snapshot {
        watermark: window.watermark,
        ..Snapshot::default()
    };
    let saved = checkpoint::decode(&window.blob, window.watermark).unwrap_or(unread);
    saved.open_below(end.min(shard.end))
}
