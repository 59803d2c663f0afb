//! Construction of a run's handler.

use std::path::Path;
use std::sync::Arc;

use crate::exit::Exit;
use crate::fault::Fault;
use crate::run::JobRun;
use crate::run::args::RunArgs;
use crate::run::kept::recall;
use windrow_engine::ports::handling::handler::HandlerFactory;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_node::handlers;
use windrow_node::sources::{origin_view, stored_sources};

/// Headings of the flags for items and pace. Flags for handlers and outputs are left out, because programs have the
/// same names: `--json`, `--config`.
const DRIVING: [&str; 2] = ["Items", "Pace and limits"];

impl JobRun<'_> {
    /// True if this handler succeeded in the job whose failures a task redoes.
    async fn has_proven(&self, task: &TaskView) -> Result<bool, Fault> {
        let sources = stored_sources(&self.store, &self.state, &self.clock);
        let proven = sources.has_proven_origin(task, |origin| recall::is_kin(origin, self.args));
        let what = "can't read the job's earlier state";
        let proven = proven.await;
        proven.map_err(|error| Fault::new(Exit::Failed, what, error.to_string()))
    }

    /// Creates the handler. For a run over failures, it sees the items of the first job.
    pub(in crate::run) async fn handler(
        &self,
        task: &TaskView,
        sink: handlers::Sink,
    ) -> Result<Arc<dyn HandlerFactory>, Fault> {
        let mut view = origin_view(task).map_err(|error| Fault::bug(error.to_string()))?;
        if let Some(again) = view {
            view = Some(again.proven(self.has_proven(task).await?));
        }
        let sink = if let Some(view) = &view {
            view.sink(sink)
        } else {
            sink
        };
        let (calls, workers) = (self.runtimes.calls(), Some(self.state.workers()));
        let making = self
            .prepared
            .making(self.shell, calls, &self.clock, sink, workers);
        let handler = handlers::factory(&self.prepared.wanted(self.args)?, making)?;
        Ok(if let Some(view) = view {
            view.wrap(handler)
        } else {
            handler
        })
    }
}

/// Returns a warning for a flag of `run` after `--`, which goes to the program: `-- cat --rate 10/s`. The program may
/// have a flag of that name, so it is only a warning.
pub(in crate::run) fn behind(args: &RunArgs) -> Option<String> {
    let (program, words) = args.worker.split_first()?;
    let is_ours = Path::new(program)
        .file_name()
        .is_some_and(|name| name == "windrow");
    if is_ours {
        return None;
    }
    let run = RunArgs::command();
    let is_flag = |word: &str| {
        let long = word
            .strip_prefix("--")
            .map(|long| long.split('=').next().unwrap_or(long));
        let drives = |heading: Option<&str>| heading.is_some_and(|heading| DRIVING.contains(&heading));
        long.is_some_and(|long| {
            let mut flags = run.get_arguments();
            flags.any(|flag| flag.get_long() == Some(long) && drives(flag.get_help_heading()))
        })
    };
    let flag = words
        .iter()
        .filter_map(|word| word.to_str())
        .find(|word| is_flag(word))?;
    let program = program.to_string_lossy();
    Some(format!(
        "warning: {flag} comes after -- and is passed to {program}; put windrow's flags before --"
    ))
}
