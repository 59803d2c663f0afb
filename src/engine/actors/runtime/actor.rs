//! Common parts of all actors in the tree: an entry in it, a count of handled messages, an orderly end.

use std::marker::PhantomData;

use ractor::actor::messages::BoxedState;
use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, Message, SpawnErr, SupervisionEvent};

use crate::actors::runtime::address::Address;
use crate::actors::runtime::tree::Leaf;

/// Result of handling a message; an error ends the actor, and its parent decides.
pub(crate) type Handled = Result<(), ActorProcessingErr>;

pub(crate) trait TreeActor: Sized + Send + 'static {
    type Msg: Message;
    type Arguments: Message;

    /// Returns the initial state; `me` is the actor's own address.
    fn begin(
        me: Address<Self::Msg>,
        arguments: Self::Arguments,
    ) -> impl Future<Output = Result<Self, ActorProcessingErr>> + Send;

    fn handle(&mut self, message: Self::Msg) -> impl Future<Output = Handled> + Send;

    /// Called when a child failed or ended, with the remaining state of one that ended.
    fn on_child_ended(&mut self, _child: &ActorCell, _left: Option<BoxedState>, _reason: &str) -> Handled {
        Ok(())
    }

    /// Called at the orderly end; no more messages are handled.
    fn end(&mut self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Actor with its entry in the tree, which is removed after the actor however it ends, also when it is killed.
pub(crate) struct Entered<A> {
    pub(crate) actor: A,
    leaf: Leaves,
}

struct Leaves(Leaf);

impl Drop for Leaves {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Only implementation of ractor's trait.
struct InTree<A>(PhantomData<fn() -> A>);

impl<A: TreeActor> Actor for InTree<A> {
    type Msg = A::Msg;
    type State = Entered<A>;
    type Arguments = (Leaves, A::Arguments);

    async fn pre_start(
        &self,
        me: ActorRef<A::Msg>,
        (leaf, arguments): Self::Arguments,
    ) -> Result<Entered<A>, ActorProcessingErr> {
        let me = Address::new(me, leaf.0.clone());
        let actor = A::begin(me, arguments).await?;
        Ok(Entered { actor, leaf })
    }

    async fn handle(&self, _: ActorRef<A::Msg>, message: A::Msg, state: &mut Entered<A>) -> Handled {
        state.leaf.0.handled();
        state.actor.handle(message).await
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<A::Msg>,
        event: SupervisionEvent,
        state: &mut Entered<A>,
    ) -> Handled {
        match event {
            SupervisionEvent::ActorFailed(child, error) => {
                state.actor.on_child_ended(&child, None, &error.to_string())
            }
            SupervisionEvent::ActorTerminated(child, left, reason) => {
                let reason = reason.as_deref().unwrap_or("ended");
                state.actor.on_child_ended(&child, left, reason)
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => Ok(()),
        }
    }

    async fn post_stop(&self, _: ActorRef<A::Msg>, state: &mut Entered<A>) -> Handled {
        state.actor.end().await;
        state.leaf.0.leave();
        Ok(())
    }
}

/// Starts an actor under its entry in the tree, linked to its parent.
pub(crate) async fn start<A: TreeActor>(
    leaf: Leaf,
    arguments: A::Arguments,
    parent: ActorCell,
) -> Result<Address<A::Msg>, SpawnErr> {
    let name = Some(leaf.path().to_string());
    let arguments = (Leaves(leaf.clone()), arguments);
    let (actor, _) = Actor::spawn_linked(name, InTree::<A>(PhantomData), arguments, parent).await?;
    Ok(Address::new(actor, leaf))
}

/// Starts the actor that has no parent. The handle completes when it ends.
pub(crate) async fn start_root<A: TreeActor>(
    leaf: Leaf,
    arguments: A::Arguments,
) -> Result<(Address<A::Msg>, tokio::task::JoinHandle<()>), SpawnErr> {
    let name = Some(leaf.path().to_string());
    let (actor, ended) =
        Actor::spawn(name, InTree::<A>(PhantomData), (Leaves(leaf.clone()), arguments)).await?;
    Ok((Address::new(actor, leaf), ended))
}
