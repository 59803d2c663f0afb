//! The ways to an actor: its address, and a route that stays the same when the actor is restarted.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use ractor::{ActorCell, ActorRef, Message};

use crate::actors::runtime::lock;
use crate::actors::runtime::tree::Leaf;

/// Where to send an actor messages; counts what waits in its mailbox, since ractor does not tell.
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

    /// Sends a message; says whether the actor still takes any.
    pub(crate) fn tell(&self, message: M) -> bool {
        self.leaf.count_waiting(1);
        let sent = self.actor.cast(message).is_ok();
        if !sent {
            self.leaf.count_waiting(-1);
        }
        sent
    }

    /// Who sends on what it is given, as a message.
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

    /// The same work, for a task of its own. A panic in it ends the actor as one of its own would: whoever waits for
    /// the work's answer would wait for ever, its parent starts it again.
    pub(crate) fn guard<W>(&self, work: W) -> impl Future<Output = ()> + Send + use<M, W>
    where
        W: Future<Output = ()> + Send,
    {
        let (actor, leaf) = (self.actor.clone(), self.leaf.clone());
        async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                tracing::error!(
                    actor = leaf.path(),
                    "work of the actor panicked; the actor ends with it"
                );
                actor.kill();
            }
        }
    }

    /// The actor itself, to stop or kill it.
    pub(crate) fn actor(&self) -> &ActorRef<M> {
        &self.actor
    }

    /// What the actor's children are linked to.
    pub(crate) fn cell(&self) -> ActorCell {
        self.actor.get_cell()
    }
}

/// A stable way to an actor that may be restarted: senders hold the route, and it leads to the newest address.
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
    /// From now on it leads here.
    pub(crate) fn lead_to(&self, address: &Address<M>) {
        *lock(&self.0) = Some(address.clone());
    }

    /// Sends a message; says whether someone took it. Senders of what must not be lost send again by themselves.
    pub(crate) fn tell(&self, message: M) -> bool {
        let address = lock(&self.0).clone();
        address.is_some_and(|address| address.tell(message))
    }
}
