//! Messages at the end of a job, whether it ended now or in an earlier run.

use super::failures_out;
use super::outcome::{Outcome, second_text};
use super::results_out::{ResultsOut, keys_of};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::screen;
use crate::run::JobRun;
use crate::run::args::{IfFinished, Output, RunArgs};
use crate::run::handler::identity;
use crate::run::kept::only_failed::{self, Net};
use crate::run::kept::resume::command_in;
use windrow_core::settings::Results;
use windrow_core::task::lifecycle::Status;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_server::service::failures::item_data::Members;

impl JobRun<'_> {
    /// Reports that an earlier run finished the job. Printed even with `--quiet`: nothing was done now, and a script
    /// that repeats the command would never know.
    pub(in crate::run) async fn tell_ended(&self, task: TaskView) -> Result<Exit, Fault> {
        let net = only_failed::net(&*self.store, &task).await?;
        self.shell
            .screen
            .must_say(&already(&task, net.as_ref(), self.args));
        let is_finished = task.status == Status::Finished;
        let is_another = identity::is_another(&task, net.as_ref(), self.args);
        self.write_results(&task).await?;
        let outcome = Outcome::gather(&*self.store, task, None)
            .await?
            .netted(&*self.store, net)
            .await?;
        let exit = self.tell(outcome).await?;
        Ok(match self.args.if_finished.filter(|_| is_finished) {
            Some(IfFinished::Ok) => Exit::Ok,
            Some(IfFinished::Error) => Exit::Conflict,
            // The work of this command was never started.
            None if is_finished && is_another => Exit::Conflict,
            Some(IfFinished::Restart) | None => exit,
        })
    }

    /// Writes the results of a job that has ended, if `--results-out` is given.
    async fn write_results(&self, task: &TaskView) -> Result<(), Fault> {
        if self.args.results.out.is_none() {
            return Ok(());
        }
        if task.tuning.results == Results::Off {
            let because = format!("{} ran without --results-out", task.id);
            return Err(
                Fault::new(Exit::Conflict, "the job's results weren't kept", because)
                    .hint("--restart runs it again and keeps them"),
            );
        }
        let source = self.source_of(task).await?;
        self.check_shown(&*source).await?;
        if let Some(results) = ResultsOut::begin(self.args, &self.store, task, &source).await? {
            self.tell_results(results.finish().await?);
        }
        Ok(())
    }

    /// Reports that the run was cut off, and how to resume it.
    pub(in crate::run) fn tell_cut(&self, how: &str) -> Result<Exit, Fault> {
        let because = "calls in flight were aborted and will be repeated";
        self.shell.screen.must_say(&format!("aborted: {because}; {how}"));
        if self.args.output == Output::Json {
            let cut = Fault::new(Exit::Interrupted, "the run was aborted", because);
            screen::print_json(&cut.hint(how).json())?;
        }
        Ok(Exit::Interrupted)
    }

    /// Mentions the kept results: a job resumed by name keeps its handler and settings, but not the output files of
    /// its command.
    fn tell_of_outputs(&self, task: &TaskView) {
        let is_kept = task.tuning.results == Results::Keep && task.status.is_terminal();
        if let Some(name) = &self.args.resume
            && is_kept
            && self.args.results.out.is_none()
            && !self.args.only_failed
        {
            let again = command_in(name, self.args.state.as_deref());
            self.say(&format!(
                "results are kept: {again} --results-out FILE writes them all"
            ));
        }
    }

    /// Reports the outcome of the job, and writes its failures if `--failures-out` is given.
    pub(in crate::run) async fn tell(&self, outcome: Outcome) -> Result<Exit, Fault> {
        let source = if outcome.has_failures() || self.args.failures_out.is_some() {
            Some(self.source_of(outcome.failed_in()).await)
        } else {
            None
        };
        let outcome = match &source {
            Some(Ok(source)) => outcome.naming(&**source, &self.members()).await,
            _ => outcome,
        };
        if let Some(full) = outcome.disk_note() {
            self.shell.screen.must_say(&full);
        }
        if let Some(stop) = outcome.stop_note() {
            self.shell.screen.must_say(&stop);
        }
        let mut onto_stdout = self.args.results.is_onto_stdout();
        if let (Some(path), Some(source)) = (&self.args.failures_out, source) {
            onto_stdout |= path.as_os_str() == "-";
            let of = failures_out::Failed {
                failures: &*self.store,
                task: outcome.failed_in().id,
                keys: keys_of(&self.store, outcome.failed_in()).await?,
                source,
                members: &self.members(),
            };
            let written = failures_out::write(of, path).await?;
            self.say(&format!("{written} failed items written to {}", path.display()));
        }
        self.tell_of_outputs(outcome.task());
        match self.args.output {
            Output::Json => {
                let is_another = identity::is_another(outcome.task(), outcome.net.as_ref(), self.args);
                screen::print_json(&outcome.json(is_another))?;
            }
            Output::Table if onto_stdout => self.say(&outcome.table(None)),
            Output::Table => {
                let again = match &self.args.results.out {
                    _ if self.args.only_failed => "",
                    Some(_) => " with --only-failed and another --results-out",
                    None => " with --only-failed",
                };
                let hint = self.args.failures_out.is_none().then_some(again);
                screen::print(&outcome.table(hint))?;
            }
        }
        Ok(outcome.exit())
    }

    /// Returns the members of an item's data that identify it.
    pub(in crate::run) fn members(&self) -> Members {
        self.args
            .key_column
            .as_deref()
            .map_or(Members::All, Members::parse)
    }
}

/// Returns the sentence that an earlier run finished the job.
fn already(task: &TaskView, net: Option<&Net>, args: &RunArgs) -> String {
    let when = task
        .finished_at
        .map(|at| format!(" ({})", second_text(at)))
        .unwrap_or_default();
    let again = match args.resume.is_some() {
        true => "--restart runs the job again",
        false => {
            "--restart runs the job again, --name NAME starts another one, --if-finished sets the exit \
                code for scripts"
        }
    };
    let recovered = net.map_or(0, |net| net.recovered);
    let (good, failed) = match task.counters.failed {
        0 => ("", ""),
        failed if recovered >= failed => (", --only-failed recovered its failures", ""),
        _ if recovered > 0 => ("", "--only-failed retries the remaining failures, "),
        _ => ("", "--only-failed retries its failures, "),
    };
    let (id, status, other) = (task.id, task.status, identity::aside(task, net, args));
    format!("{id} already {status}{when}{other}{good}: nothing to send; {failed}{again}")
}
