//! The ways to the actors that all launchers share; they stay the same when one of those is restarted.

use super::tree::Line;
use super::{checkpoint_writer, courier, lease_keeper, restorer, session};

/// The ways to the actors that all launchers share.
#[derive(Clone, Default)]
pub(crate) struct Lines {
    pub(crate) lease_keeper: Line<lease_keeper::Msg>,
    pub(crate) checkpoint_writer: Line<checkpoint_writer::Msg>,
    pub(crate) restorer: Line<restorer::Msg>,
    pub(crate) courier: Line<courier::Msg>,
    pub(crate) session: Line<session::Msg>,
}
