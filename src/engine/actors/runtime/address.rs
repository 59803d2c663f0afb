//! Ways to reach an actor: its address, and a route that stays the same when the actor is restarted.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{ActorCell, ActorRef, Message};

use crate::actors::runtime::lock;
use crate::actors::runtime::tree::Leaf;

/// Address of an actor; counts the messages waiting in its mailbox, since ractor doesn't.
pub(crate) struct Address<M: Message> {
    actor: ActorRef<M>,
    pub(crate) leaf: Leaf,
}

impl<M: Message> Clone for Address<M> {
    fn clone(&self) -> Address<M> {
        Address {
            actor: self.actor.clone(),
            leaf: self.leaf.clone(),
        }
    }
}

impl<M: Message> Address<M> {
    pub(crate) fn new(actor: ActorRef<M>, leaf: Leaf) -> Address<M> {
        Address { actor, leaf }
    }

    /// Sends a message. Returns true if the actor still takes messages.
    pub(crate) fn tell(&self, message: M) -> bool {
        self.leaf.count_waiting(1);
        let sent = self.actor.cast(message).is_ok();
        if !sent {
            self.leaf.count_waiting(-1);
        }
        sent
    }

    /// Returns a callback that sends its argument as a message.
    pub(crate) fn sink<T: 'static>(&self, message: fn(T) -> M) -> Arc<dyn Fn(T) + Send + Sync> {
        let address = self.clone();
        Arc::new(move |given| {
            address.tell(message(given));
        })
    }

    /// Sends a message after a while, unless the actor is gone by then.
    pub(crate) fn tell_after(&self, wait: Duration, message: M) {
        let address = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            address.tell(message);
        });
    }

    /// Wraps work for a separate task. A panic in it ends the actor as one of its own would, since callers would wait
    /// forever for the work's answer; the parent restarts the actor.
    pub(crate) fn guard<W>(&self, work: W) -> impl Future<Output = ()> + Send + use<M, W>
    where
        W: Future<Output = ()> + Send,
    {
        let (actor, leaf) = (self.actor.clone(), self.leaf.clone());
        async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                tracing::error!(
                    actor = leaf.path(),
                    "work of the actor panicked; stopping the actor"
                );
                actor.kill();
            }
        }
    }

    /// Returns the actor itself, to stop or kill it.
    pub(crate) fn actor(&self) -> &ActorRef<M> {
        &self.actor
    }

    /// Returns the cell that the actor's children are linked to.
    pub(crate) fn cell(&self) -> ActorCell {
        self.actor.get_cell()
    }
}

/// Stable route to an actor that may be restarted: senders hold the route, and it leads to the newest address.
pub(crate) struct Route<M: Message>(Arc<Mutex<Option<Address<M>>>>);

impl<M: Message> Clone for Route<M> {
    fn clone(&self) -> Route<M> {
        Route(self.0.clone())
    }
}

impl<M: Message> Default for Route<M> {
    fn default() -> Route<M> {
        Route(Arc::new(Mutex::new(None)))
    }
}

impl<M: Message> Route<M> {
    /// Points the route at this address from now on.
    pub(crate) fn lead_to(&self, address: &Address<M>) {
        *lock(&self.0) = Some(address.clone());
    }

    /// Sends a message. Returns true if an actor took it. Senders of messages that must not be lost send again on
    /// their own.
    pub(crate) fn tell(&self, message: M) -> bool {
        let address = lock(&self.0).clone();
        address.is_some_and(|address| address.tell(message))
    }
}
