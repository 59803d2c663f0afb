//! Comparison of the limits with the first items, before a job is started.

use windrow_core::ids::ItemIndex;
use windrow_core::meter::fit::{Misfit, misfit};
use windrow_core::meter::row::Row;
use windrow_engine::ports::sources::source::Source;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::limits;
use crate::output::table::human::counted;
use crate::run::JobRun;

/// Largest number of first items compared.
const ITEMS_MAX: u64 = 100;

impl JobRun<'_> {
    /// Refuses a job in which none of the first items can be sent.
    ///
    /// # Errors
    /// `Usage` names the limit and what would do.
    pub(in crate::run) async fn check_fit(&self, source: &dyn Source) -> Result<(), Fault> {
        let metering = &self.prepared.metering;
        if metering.is_empty() || self.args.only_failed {
            // The items that failed needn't be the first ones.
            return Ok(());
        }
        let rows = first_rows(source).await;
        misfit(metering, &rows).map_or(Ok(()), |misfit| Err(refused(&misfit, rows.len() as u64)))
    }

    /// Reports the limits in units as they were understood.
    pub(in crate::run) fn tell_of_limits(&self) {
        if let Some(limits) = limits::limits(&self.prepared.metering) {
            self.say(&format!("limits: {limits}"));
        }
    }
}

/// Returns the first rows that are read together; counted items have none, and all of them are alike. Rows that can't
/// be read are reported when they are needed.
async fn first_rows(source: &dyn Source) -> Vec<Row> {
    if source.total().0 == 0 {
        return Vec::new();
    }
    if !source.has_data() {
        return vec![Row::default()];
    }
    let Ok(chunk) = source.read(ItemIndex(0)).await else {
        return Vec::new();
    };
    let indexes = chunk.first().0..chunk.end().0.min(ITEMS_MAX);
    indexes
        .map(|index| Row::read(chunk.row(ItemIndex(index))))
        .collect()
}

fn refused(misfit: &Misfit, rows: u64) -> Fault {
    let what = "no item can be sent within the limits";
    let which = match rows {
        1 => "the first item".to_owned(),
        rows => format!("each of the first {}", counted(rows, "item")),
    };
    match misfit {
        Misfit::TooLarge { limit, least } => {
            let unit = limit
                .amount()
                .map(|(_, unit)| unit.to_string())
                .unwrap_or_default();
            let because = format!("{which} costs at least {least} {unit}, more than {limit}");
            let hint = format!("raise --limit to {least} {unit} or more, or correct --cost");
            Fault::new(Exit::Usage, what, because).hint(hint)
        }
        Misfit::NoValue { unit, fault } => {
            let because = format!("{which} has no cost in {unit}: {fault}");
            Fault::new(Exit::Usage, what, because)
                .hint("name a column of the items in --cost, or use --cost-from")
        }
    }
}
