//! Selection of unconfirmed failures for a redrive.

use crate::service::failures::Failures;
use crate::service::failures::fates::FATES_MAX;
use crate::service::failures::selection::{RUNS_MAX, forgotten, runs_of};
use crate::service::{FieldFault, ServiceError};
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::sources::resolver::RedrivePart;
use windrow_engine::ports::tasks::failure_list::AMONG_MAX;
use windrow_engine::ports::tasks::store::TaskView;

impl Failures {
    /// Returns the unconfirmed failures of these groups; of all groups if none is given.
    pub(in crate::service) async fn unconfirmed(
        &self,
        origin: &TaskView,
        codes: &[String],
    ) -> Result<Vec<RedrivePart>, ServiceError> {
        let groups = self.groups_of(origin, codes).await?;
        let counted: u64 = groups.iter().map(|group| group.unconfirmed).sum();
        if counted == 0 {
            return Err(all_confirmed(origin, codes));
        }
        if counted > FATES_MAX {
            return Err(too_many(origin));
        }
        let found = self.unconfirmed_among(origin, codes).await?;
        // The counts were read earlier and only grow, so fewer rows means some are gone.
        if (found.len() as u64) < counted {
            return Err(forgotten(origin, "that are unconfirmed"));
        }
        let runs = runs_of(found);
        match runs.len() > RUNS_MAX {
            true => Err(too_many(origin)),
            false => Ok(runs),
        }
    }

    async fn unconfirmed_among(
        &self,
        origin: &TaskView,
        codes: &[String],
    ) -> Result<Vec<ItemIndex>, ServiceError> {
        let mut found: Vec<ItemIndex> = Vec::new();
        loop {
            let after = found.last().copied();
            let page = self.list.unconfirmed(origin.id, codes, after, AMONG_MAX as u32);
            let page = page.await?;
            let is_last = page.len() < AMONG_MAX;
            found.extend(page);
            if is_last {
                return Ok(found);
            }
        }
    }
}

fn all_confirmed(origin: &TaskView, codes: &[String]) -> ServiceError {
    let id = origin.id;
    let with_these = match codes.is_empty() {
        true => "",
        false => " with these codes",
    };
    let text = format!("{id} has no unconfirmed failures{with_these} to redrive");
    let fault = FieldFault::new("/filter/unconfirmed", text);
    ServiceError::NothingToDo(vec![fault.advise(format!(
        "`windrow task redrive {id} --all` redrives all of its failures"
    ))])
}

fn too_many(origin: &TaskView) -> ServiceError {
    let text = format!(
        "{} has more than {FATES_MAX} unconfirmed failures, or they are too scattered for one redrive; \
         redrive all failures of a code instead",
        origin.id
    );
    ServiceError::unprocessable("/filter/unconfirmed", text)
}
