//! A handler that does what a test says, and the provider that gives it to every task.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::limit::key::LimitKey;
use windrow_core::meter::metering::Metering;
use windrow_engine::ports::handling::handler::{Call, Handler, HandlerFactory, OpenError, Reply, RunContext};
use windrow_engine::ports::sources::provision::{LimitOf, Provider, Provision, ProvisionError};
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_sources::RangeSource;

/// What a scripted handler does with one item.
pub enum Act {
    Reply(Reply),
    /// Takes a while, then succeeds.
    Slow(Duration),
    /// Takes a while, then answers so.
    Slowly(Duration, Reply),
    /// Never answers.
    Hang,
    /// Panics in the lane: a bug of a handler's adapter.
    Panic,
}

type Script = Box<dyn Fn(ItemIndex, Attempt) -> Act + Send + Sync>;

/// A handler that follows a script and writes down every call.
pub struct Scripted {
    script: Script,
    pub calls: Mutex<Vec<(ItemIndex, Attempt)>>,
    pub opened: Mutex<u32>,
    pub closed: Mutex<u32>,
    /// How often closing still panics.
    pub close_panics: AtomicU32,
    slots: watch::Sender<Option<u32>>,
}

impl Scripted {
    pub fn new(script: impl Fn(ItemIndex, Attempt) -> Act + Send + Sync + 'static) -> Arc<Scripted> {
        Arc::new(Scripted {
            script: Box::new(script),
            calls: Mutex::default(),
            opened: Mutex::default(),
            closed: Mutex::default(),
            close_panics: AtomicU32::new(0),
            slots: watch::Sender::new(None),
        })
    }

    /// How often each item was delivered.
    pub fn deliveries(&self) -> BTreeMap<ItemIndex, u32> {
        let mut counts = BTreeMap::new();
        for (index, _) in self.calls.lock().expect("no panic while held").iter() {
            *counts.entry(*index).or_insert(0) += 1;
        }
        counts
    }
}

impl Handler for Scripted {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        let (index, attempt) = call.items.iter().next().expect("a call has an item");
        self.calls
            .lock()
            .expect("no panic while held")
            .extend(call.items.iter());
        let act = (self.script)(index, attempt);
        Box::pin(async move {
            match act {
                Act::Reply(reply) => reply,
                Act::Slow(wait) => {
                    tokio::time::sleep(wait).await;
                    Reply::AllOk
                }
                Act::Slowly(wait, reply) => {
                    tokio::time::sleep(wait).await;
                    reply
                }
                Act::Hang => std::future::pending().await,
                Act::Panic => panic!("the scripted panic"),
            }
        })
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        *self.closed.lock().expect("no panic while held") += 1;
        assert!(!takes_one(&self.close_panics), "the scripted panic while closing");
        Box::pin(std::future::ready(()))
    }
}

/// Whether there was one left.
fn takes_one(left: &AtomicU32) -> bool {
    left.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1))
        .is_ok()
}

struct Factory(Arc<Scripted>);

impl HandlerFactory for Factory {
    fn open(&self, _: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        *self.0.opened.lock().expect("no panic while held") += 1;
        Ok(self.0.clone())
    }

    fn service(&self) -> Option<String> {
        Some("http://service.test".to_owned())
    }
}

/// Gives every task the same handler and the same rows.
pub struct Everything {
    pub handler: Arc<Scripted>,
    /// Numbers alone, if none.
    pub source: Option<Arc<dyn Source>>,
    /// How often providing still panics.
    pub panics: Arc<AtomicU32>,
    /// Whether items count against the limit of their business.
    pub limited: bool,
    /// Metering of named limits.
    pub metering: Option<Metering>,
}

impl Everything {
    pub fn of(handler: Arc<Scripted>) -> Everything {
        Everything {
            handler,
            source: None,
            panics: Arc::default(),
            limited: false,
            metering: None,
        }
    }
}

#[async_trait]
impl Provider for Everything {
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError> {
        assert!(!takes_one(&self.panics), "the scripted panic while providing");
        let source: Arc<dyn Source> = match &self.source {
            Some(source) => source.clone(),
            None => Arc::new(RangeSource::new(task.total)),
        };
        let own = self.limited.then(|| LimitKey::Business(&task.business).text());
        let named = task.spec.limits.iter().map(|name| LimitKey::Named(name).text());
        let limits = own
            .into_iter()
            .chain(named)
            .map(|name| LimitOf {
                metering: match LimitKey::parse(&name) {
                    LimitKey::Named(_) => self.metering.clone(),
                    LimitKey::Business(_) => None,
                },
                name,
                is_limited: true,
            })
            .collect();
        Ok(Provision {
            handler: Arc::new(Factory(self.handler.clone())),
            source,
            limits,
        })
    }
}
