//! The ways to the actors that all launchers share; they stay the same when one of those is restarted.

use crate::actors::membership::restorer;
use crate::actors::membership::session;
use crate::actors::runtime::tree::Line;
use crate::actors::upkeep::outbox_dispatcher;
use crate::actors::writers::checkpoint_writer;
use crate::actors::writers::lease_keeper;

/// The ways to the actors that all launchers share.
#[derive(Clone, Default)]
pub(crate) struct Lines {
    pub(crate) lease_keeper: Line<lease_keeper::Msg>,
    pub(crate) checkpoint_writer: Line<checkpoint_writer::Msg>,
    pub(crate) restorer: Line<restorer::Msg>,
    pub(crate) courier: Line<outbox_dispatcher::Msg>,
    pub(crate) session: Line<session::Msg>,
}
