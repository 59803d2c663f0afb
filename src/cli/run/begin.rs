//! Job whose items are open: started, resumed, or reported if it has ended.

use super::JobRun;
use super::handler::identity;
use super::kept::resume::{self, Before};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::signals::Signals;
use windrow_node::sources::OpenedSource;
use windrow_server::service::JobStart;

impl JobRun<'_> {
    /// Starts the job of these items or resumes it, and drives it to its end.
    pub(super) async fn go(&self, opened: OpenedSource, signals: &mut Signals) -> Result<Exit, Fault> {
        self.check_columns(&opened).await?;
        self.check_fit(&*opened.source).await?;
        let job = self.job(&opened);
        if self.args.only_failed {
            return Box::pin(self.go_over_failed(job, signals)).await;
        }
        let before = Before::of(&*self.store, &job.business, &job.name).await?;
        match self.begin(&job).await? {
            JobStart::Ended(task) => Box::pin(self.tell_ended(task)).await,
            JobStart::New(task) => {
                self.introduce(&task, &job.name, &opened).await;
                self.tell_of_others(&task).await?;
                Box::pin(self.drive(task, opened.source, signals)).await
            }
            JobStart::Resumed(task) => {
                let other = identity::note(&task, self.args);
                other.iter().for_each(|note| self.shell.screen.must_say(note));
                self.say(&resume::told(&task, before));
                self.remember(&task, &job).await?;
                Box::pin(self.drive(task, opened.source, signals)).await
            }
        }
    }
}
