//! Jobs over files that match a pattern. The list of the first start stays, whatever files come and go.

use super::source::opened_name;
use crate::fault::Fault;
use crate::run::JobRun;
use crate::run::kept::resume;
use windrow_engine::ports::tasks::store::TaskStore;
use windrow_node::jobs::BUSINESS;
use windrow_node::sources::{Input, OpenedSource, SourceSpec};

impl JobRun<'_> {
    /// Returns the job's name: the given one, or else one derived from the source. For a pattern it is derived from
    /// the pattern, not from the list.
    pub(in crate::run) fn name_of(&self, opened: &OpenedSource) -> String {
        let given = self.args.name.as_ref().or(self.args.resume.as_ref()).cloned();
        let pattern = self.prepared.spec.as_ref().filter(|spec| is_pattern(spec));
        given.unwrap_or_else(|| opened_name(pattern.unwrap_or(&opened.spec)))
    }

    /// Returns the list of files that the job of a pattern started with, or `None` if it starts now.
    pub(in crate::run) async fn listed(&self, spec: &SourceSpec) -> Result<Option<SourceSpec>, Fault> {
        if self.args.restart || !is_pattern(spec) {
            return Ok(None);
        }
        let name = self.args.name.clone();
        let name = name.unwrap_or_else(|| opened_name(spec));
        let Some(task) = self
            .store
            .find(BUSINESS, &name)
            .await?
            .filter(|task| !self.starts_over(task))
        else {
            return Ok(None);
        };
        let listed = resume::listed(&task, &self.state)?;
        if listed.is_some() {
            self.say("using the files listed at the first start; --restart lists them again");
        }
        Ok(listed)
    }
}

/// True if the items are files that match a pattern.
fn is_pattern(spec: &SourceSpec) -> bool {
    matches!(
        spec,
        SourceSpec::File {
            input: Input::Glob { .. },
            ..
        }
    )
}
