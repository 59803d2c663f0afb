//! How many items may be called a second time when a job goes on whose last run was cut off.

use std::fmt;

use windrow_core::checkpoint::{self, Snapshot};
use windrow_core::ids::ItemIndex;
use windrow_core::settings::RateLimit;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::tasks::report_store::{ReportStore, SavedWindow};
use windrow_engine::ports::tasks::store::TaskView;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MayRepeat {
    /// These: their calls were cut off by a stop that didn't wait for them.
    CutOff(u64),
    /// The process is gone.
    UpTo {
        /// Nothing leaves further than a checkpoint said before: a bound that holds although databases are slow at times.
        most: u64,
        /// Where checkpoints were as far apart as they should be; none where that says no more.
        about: Option<u64>,
    },
}

impl MayRepeat {
    /// How many, at most.
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

/// Whether no process has to run a task for it to be what it says it is.
pub fn is_at_rest(status: Status) -> bool {
    status.is_terminal() || matches!(status, Status::Created | Status::Stopped)
}

/// How many items of a task that nobody runs may be called a second time when it goes on; none where none will.
///
/// # Errors
/// The store can't be read.
pub async fn may_repeat(reports: &dyn ReportStore, task: &TaskView) -> Result<Option<MayRepeat>, StoreError> {
    if is_at_rest(task.status) {
        let cut_off = task.life.cut_off.items;
        let is_open = !task.status.is_terminal() && cut_off > 0;
        return Ok(is_open.then_some(MayRepeat::CutOff(cut_off)));
    }
    let windows = reports.saved_windows(task.id).await?;
    let most = windows
        .iter()
        .map(|window| open_below(task, window, window.reach))
        .sum();
    let saved: u64 = windows
        .iter()
        .map(|window| open_below(task, window, window.high_water))
        .sum();
    let about = match task.tuning.rate {
        RateLimit::Limited(rate) => Some(saved + rate.items_in(task.tuning.checkpoint_interval)),
        RateLimit::Unlimited => None,
    };
    Ok((most > 0).then_some(MayRepeat::UpTo {
        most,
        about: about.filter(|about| *about < most),
    }))
}

/// What isn't saved as settled below an index of a shard. Of a checkpoint that can't be read only its watermark counts.
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
