//! End of a run whose source has no items: there is nothing to do, and no job is started.

use serde_json::json;

use super::source::{early_name, opened_name};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen;
use crate::output::table::clean;
use crate::run::JobRun;
use crate::run::args::{IfEmpty, Output};
use crate::run::end::{failures_out, results_out};
use windrow_core::explain::counted;
use windrow_engine::ports::tasks::store::TaskStore;
use windrow_node::jobs::BUSINESS;
use windrow_node::sources::{OpenSourceError, SourceSpec};

impl JobRun<'_> {
    /// Reports that there is nothing to do, and writes the requested files without rows. No job is started: the next
    /// run may bring items under the same name.
    ///
    /// # Errors
    /// Fails with `--if-empty error`, and if a job of this name has items: those have vanished.
    pub(in crate::run) async fn do_nothing(
        &self,
        spec: &SourceSpec,
        why: OpenSourceError,
    ) -> Result<Exit, Fault> {
        let because = match &why {
            OpenSourceError::Index { name, error } => format!("{name}: {error}"),
            other => other.because(),
        };
        if self.args.if_empty == IfEmpty::Error {
            return Err(why.into());
        }
        let given = self.args.name.as_ref().or(self.args.resume.as_ref()).cloned();
        let name = given.unwrap_or_else(|| early_name(spec).unwrap_or_else(|| opened_name(spec)));
        let there = self.store.find(BUSINESS, &name).await?;
        if let Some(task) = there.filter(|task| !self.starts_over(task)) {
            let items = counted(task.total.0, "item");
            let text = format!("the job \"{name}\" was started with {items}");
            let mut fault = Fault::from(why);
            fault.because.push(text);
            return Err(fault.hint("put the items back, or give this run another --name"));
        }
        results_out::write_none(self.args, &self.store).await?;
        failures_out::write_none(self.args)?;
        self.say(&clean(&format!("nothing to do: {because}")));
        if self.args.output == Output::Json {
            let none = json!({ "id": null, "name": name, "status": "finished", "total": 0 });
            screen::print(&none.to_string())?;
        }
        Ok(Exit::Ok)
    }
}
