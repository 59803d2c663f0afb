//! Checks and messages about a job's items before the first one is dispatched.

use std::path::Path;
use std::time::Duration;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::table::human::{self, counted};
use crate::run::JobRun;
use crate::run::items::first_row;
use windrow_core::ids::ItemCount;
use windrow_core::settings::RateLimit;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_node::sources::OpenedSource;
use windrow_server::service::failures::item_data::Members;

/// Interval between items up to which nothing is said, since nobody takes a run for hung that soon.
const PERIOD_TOLD_MIN: Duration = Duration::from_secs(5);

/// Returns the interval between items, such as `12m`, if it is so long that the run may seem hung.
pub(crate) fn long_period(rate: RateLimit) -> Option<String> {
    let rate = rate.most()?;
    let period = Duration::from_nanos(rate.period_ns() / rate.items());
    (period > PERIOD_TOLD_MIN).then(|| human::span(period))
}

/// Returns the message for a rate at which even the first item takes a while.
fn first_leaves(rate: RateLimit) -> Option<String> {
    let (period, most) = long_period(rate).zip(rate.most())?;
    Some(format!(
        "at {most} the first item starts in {period}, then one every {period}: restarts never exceed \
            the rate"
    ))
}

impl JobRun<'_> {
    /// Reports that nothing is dispatched for a while if the rate is low, and that nobody chose it if it is `auto`.
    pub(in crate::run) fn tell_of_rate(&self, task: &TaskView) {
        if task.tuning.rate == RateLimit::Auto(None) && self.args.tunes.0.rate.is_none() {
            self.say("rate auto: found while it runs; --rate sets one");
        }
        first_leaves(task.tuning.rate)
            .iter()
            .for_each(|line| self.say(line));
    }

    /// Checks that the items were parsed as intended, and have the columns that the command names.
    pub(in crate::run) async fn check_columns(&self, opened: &OpenedSource) -> Result<(), Fault> {
        self.check_shown(&*opened.source).await?;
        if let Some(request) = &self.prepared.request {
            request.check_columns(opened).await?;
        }
        self.args.each.check_columns(&self.args.worker, opened).await?;
        first_row::check(&self.args.items, opened).await
    }

    /// Checks that the items have the columns to be shown and written. For lines of JSON only the first is examined.
    ///
    /// # Errors
    /// `Usage` with the existing columns.
    pub(in crate::run) async fn check_shown(&self, source: &dyn Source) -> Result<(), Fault> {
        self.check_after(source.total())?;
        let flags = [
            ("--key-column", &self.args.key_column),
            ("--results-data", &self.args.results.data),
        ];
        for (flag, wanted) in flags {
            let Some(wanted) = wanted else { continue };
            let keys = match source.columns() {
                [] => first_row::keys_in(source).await,
                columns => columns.to_vec(),
            };
            if let Some((why, there_are)) = Members::parse(wanted).unknown(source.has_data(), &keys) {
                return Err(Fault::new(Exit::Usage, format!("can't use {flag}"), why).hint(there_are));
            }
        }
        Ok(())
    }

    /// Checks that the item of `--results-after` exists.
    fn check_after(&self, total: ItemCount) -> Result<(), Fault> {
        match self.args.results.after {
            Some(index) if index >= total.0 => {
                let because = format!(
                    "no item {index}: the {} have the indexes 0 to {}",
                    counted(total.0, "item"),
                    total.0.saturating_sub(1)
                );
                let hint = "give the index of the last row in the file; without it all rows are written";
                Err(Fault::new(Exit::Usage, "can't use --results-after", because).hint(hint))
            }
            _ => Ok(()),
        }
    }

    /// Reports the items of a new job, and probable mistakes in them.
    pub(in crate::run) async fn introduce(&self, task: &TaskView, name: &str, opened: &OpenedSource) {
        let given = self.args.items.files().next().map(String::as_str);
        let items = counted(task.total.0, "item");
        self.say(&format!("{}: {items} ({name})", task.id));
        let named = Path::new(given.unwrap_or_default());
        if let Some(note) = first_row::packed(named, opened.packing) {
            self.shell.screen.must_say(&format!("warning: {note}"));
        }
        let looks = first_row::look(opened).await;
        looks.lines.iter().for_each(|line| self.say(line));
        let note = self.args.each.note(self.prepared.tuning.results);
        note.into_iter().for_each(|note| self.say(note));
        for doubt in looks.doubts {
            self.shell.screen.must_say(&format!("warning: {doubt}"));
        }
    }
}
