//! Routes to the actors that all launchers share; they stay the same when one of these is restarted.

use crate::actors::membership::restorer;
use crate::actors::membership::session;
use crate::actors::runtime::address::Route;
use crate::actors::upkeep::outbox_dispatcher;
use crate::actors::upkeep::scheduler;
use crate::actors::writers::checkpoint_writer;
use crate::actors::writers::lease_keeper;

/// Routes to the actors that all launchers share.
#[derive(Clone, Default)]
pub(crate) struct Routes {
    pub(crate) lease_keeper: Route<lease_keeper::Msg>,
    pub(crate) checkpoint_writer: Route<checkpoint_writer::Msg>,
    pub(crate) restorer: Route<restorer::Msg>,
    pub(crate) outbox_dispatcher: Route<outbox_dispatcher::Msg>,
    pub(crate) scheduler: Route<scheduler::Msg>,
    pub(crate) session: Route<session::Msg>,
}
