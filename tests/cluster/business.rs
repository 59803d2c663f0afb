//! The business: one handler for all tasks, whose answers depend on the seed, the item and the attempt alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::sync::watch;
use windrow_core::ids::{Attempt, Epoch, ItemIndex, ShardId};
use windrow_core::items::output::Output;
use windrow_core::items::verdict::{Failure, FailureClass, Outcome, RetryAdvice};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{
    Call, CallFailure, Handler, HandlerFactory, ItemReplies, ItemVerdict, OpenError, Reply, RunContext,
};
use windrow_engine::ports::sources::provision::{Provider, Provision, ProvisionError};
use windrow_engine::ports::tasks::store::TaskView;
use windrow_sources::RangeSource;

use crate::judge::{Departure, Heard};
use crate::link::Link;
use crate::rng::Rng;

/// How handlers behave. Unit of the chances: of a thousand items.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manners {
    pub(crate) latency_ms: u64,
    pub(crate) slow: u64,
    pub(crate) hangs: u64,
    pub(crate) fails: u64,
    pub(crate) gives_up: u64,
    pub(crate) skips: u64,
    /// So many calls of all are answered with "too many".
    pub(crate) refusals: u32,
    /// So many calls of all panic.
    pub(crate) panics: u32,
}

/// See the module; shared by all nodes.
pub(crate) struct Business {
    pub(crate) seed: u64,
    pub(crate) manners: Manners,
    refusals: AtomicU32,
    panics: AtomicU32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Good(Outcome),
    Slow,
    Hang,
    Fail,
    GiveUp,
}

impl Business {
    pub(crate) fn new(seed: u64, manners: Manners) -> Business {
        let (refusals, panics) = (AtomicU32::new(manners.refusals), AtomicU32::new(manners.panics));
        Business {
            seed,
            manners,
            refusals,
            panics,
        }
    }

    fn act(&self, shard: ShardId, index: ItemIndex, attempt: Attempt) -> Act {
        let task = u64::try_from(shard.task.0).expect("positive");
        let mut rng = Rng(self.seed ^ (task << 32) ^ index.0.wrapping_mul(0x9e37));
        let (roll, times) = (rng.between(0, 999), rng.between(1, 3));
        let Manners {
            slow,
            hangs,
            fails,
            gives_up,
            skips,
            ..
        } = self.manners;
        let good = Act::Good(if rng.chance(skips) {
            Outcome::Skipped
        } else {
            Outcome::Succeeded
        });
        let early = u64::from(attempt.get()) <= times;
        match roll {
            _ if roll < gives_up => Act::GiveUp,
            _ if roll < gives_up + hangs && attempt == Attempt::FIRST => Act::Hang,
            _ if roll < gives_up + hangs + slow => Act::Slow,
            _ if roll < gives_up + hangs + slow + fails && early => Act::Fail,
            _ => good,
        }
    }

    fn takes(&self, of: &AtomicU32, rng: u64) -> bool {
        rng.is_multiple_of(23)
            && of
                .try_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
    }
}

/// What the node of one life opens handlers with.
pub(crate) struct Office {
    pub(crate) business: Arc<Business>,
    pub(crate) link: Arc<Link>,
}

#[async_trait]
impl Provider for Office {
    async fn provide(&self, task: &TaskView) -> Result<Provision, ProvisionError> {
        let handler = Arc::new(Opener {
            business: self.business.clone(),
            link: self.link.clone(),
        });
        Ok(Provision {
            handler,
            source: Arc::new(RangeSource::new(task.total)),
            limits: Vec::new(),
        })
    }
}

struct Opener {
    business: Arc<Business>,
    link: Arc<Link>,
}

impl HandlerFactory for Opener {
    fn open(&self, context: Arc<RunContext>) -> Result<Arc<dyn Handler>, OpenError> {
        let (business, link) = (self.business.clone(), self.link.clone());
        Ok(Arc::new(Resolver {
            business,
            link,
            context,
            slots: watch::Sender::new(None),
        }))
    }

    fn service(&self) -> Option<String> {
        Some("http://service.test".to_owned())
    }
}

/// The handler of one run.
struct Resolver {
    business: Arc<Business>,
    link: Arc<Link>,
    context: Arc<RunContext>,
    slots: watch::Sender<Option<u32>>,
}

/// Tells the judge how a call ended, also when it is dropped.
struct Out {
    link: Arc<Link>,
    shard: ShardId,
    epoch: Epoch,
    items: Vec<(ItemIndex, Attempt)>,
    heard: Vec<Heard>,
    /// What items came to, where that is kept.
    answers: Vec<(ItemIndex, Box<str>)>,
}

impl Drop for Out {
    fn drop(&mut self) {
        let Out {
            shard,
            epoch,
            items,
            heard,
            answers,
            ..
        } = self;
        // A poisoned judge is one that failed already.
        if let Ok(mut judge) = self.link.judge.lock() {
            for (index, json) in answers {
                judge.on_answer(*shard, *epoch, *index, json);
            }
            judge.on_return(*shard, *epoch, items, heard);
        }
    }
}

impl Resolver {
    async fn work(&self, call: &Call, out: &mut Out) -> Reply {
        let items = out.items.clone();
        let acts: Vec<Act> = items
            .iter()
            .map(|(index, attempt)| self.business.act(out.shard, *index, *attempt))
            .collect();
        let manners = self.business.manners;
        let roll = self
            .link
            .random(Duration::ZERO, Duration::from_millis(1))
            .as_micros() as u64;
        if self.business.takes(&self.business.panics, roll) {
            self.link.judge(|judge| judge.on_panic(out.shard, out.epoch));
            panic!("the scripted panic");
        }
        let latency = Duration::from_millis(manners.latency_ms);
        let base = self.link.random(latency / 2, latency * 2);
        let slow = if acts.contains(&Act::Slow) {
            Duration::from_millis(roll)
        } else {
            Duration::ZERO
        };
        let hangs = acts.contains(&Act::Hang);
        let took = if hangs {
            call.timeout
        } else {
            (base + slow).min(call.timeout)
        };
        self.link.wait(took).await;
        if hangs {
            out.heard = vec![Heard::Failed; items.len()];
            return Reply::failed(
                FailureClass::Unclear,
                Failure::new("TIMEOUT", "the scripted hang"),
            );
        }
        if self.business.takes(&self.business.refusals, roll / 7) {
            out.heard = vec![Heard::Failed; items.len()];
            self.link.judge(|judge| judge.seen("too many requests"));
            let (after, failure) = (
                Some(Duration::from_millis(400)),
                Failure::new("HTTP_429", "scripted"),
            );
            return Reply::Failed(Box::new(CallFailure::BackPressure { after, failure }));
        }
        let reply = reply(&items, &acts, &mut out.heard);
        if self.context.keeps_results {
            with_answers(reply, out)
        } else {
            reply
        }
    }
}

/// One of so many items comes to so much that few of them fill a segment.
const LARGE_ONE_OF: u64 = 24;
const LARGE_BYTES: usize = 50_000;

/// Each success comes to something that no other call for its item comes to.
fn with_answers(reply: Reply, out: &mut Out) -> Reply {
    let mut replies = match reply {
        Reply::AllOk => {
            let ok = |(index, _): &(ItemIndex, Attempt)| (*index, ItemVerdict::Settled(Outcome::Succeeded));
            Box::new(ItemReplies {
                verdicts: out.items.iter().map(ok).collect(),
                ..ItemReplies::default()
            })
        }
        Reply::Items(replies) => replies,
        other @ (Reply::Failed(_) | Reply::Told(_)) => return other,
    };
    for ((index, verdict), (_, attempt)) in replies.verdicts.iter_mut().zip(&out.items) {
        if *verdict != ItemVerdict::Settled(Outcome::Succeeded) {
            continue;
        }
        let (epoch, attempt, large) = (out.epoch.0, attempt.get(), index.0.is_multiple_of(LARGE_ONE_OF));
        let text = "x".repeat(if large { LARGE_BYTES } else { 0 });
        let answer = format!(
            r#"{{"item":{},"epoch":{epoch},"attempt":{attempt},"text":"{text}"}}"#,
            index.0
        );
        *verdict = ItemVerdict::SucceededWith(Output::of_json(&answer));
        out.answers.push((*index, answer.into()));
    }
    Reply::Items(replies)
}

fn reply(items: &[(ItemIndex, Attempt)], acts: &[Act], heard: &mut Vec<Heard>) -> Reply {
    let good = |act: &Act| matches!(act, Act::Good(Outcome::Succeeded) | Act::Slow);
    if acts.iter().all(good) {
        *heard = vec![Heard::Good(Outcome::Succeeded); items.len()];
        return Reply::AllOk;
    }
    let failed = |advice| ItemVerdict::Failed {
        failure: Failure::new("SCRIPTED", "the script says so"),
        advice,
    };
    let mut verdicts = Vec::new();
    for ((index, _), act) in items.iter().zip(acts) {
        let (verdict, word) = match act {
            Act::Good(outcome) => (ItemVerdict::Settled(*outcome), Heard::Good(*outcome)),
            Act::Slow | Act::Hang => (
                ItemVerdict::Settled(Outcome::Succeeded),
                Heard::Good(Outcome::Succeeded),
            ),
            Act::Fail => (failed(RetryAdvice::Retry { after: None }), Heard::Failed),
            Act::GiveUp => (failed(RetryAdvice::Fail), Heard::GivenUp),
        };
        verdicts.push((*index, verdict));
        heard.push(word);
    }
    Reply::Items(Box::new(ItemReplies {
        verdicts,
        ..ItemReplies::default()
    }))
}

impl Handler for Resolver {
    fn process<'a>(&'a self, call: Call) -> BoxFuture<'a, Reply> {
        let (shard, epoch) = (self.context.shard, self.context.epoch);
        let (at, items) = (self.link.clock.now(), call.items.iter().collect::<Vec<_>>());
        let mut out = Out {
            link: self.link.clone(),
            shard,
            epoch,
            items,
            heard: Vec::new(),
            answers: Vec::new(),
        };
        let who = (self.link.node, self.link.life);
        let is_awake = self.link.clock.frozen_for().is_none();
        let depart = move |out: &Out| {
            let items = &out.items;
            out.link.judge(|judge| {
                judge.on_departure(&Departure {
                    who,
                    shard,
                    epoch,
                    items,
                    at,
                })
            });
        };
        if is_awake && !self.link.is_dead() {
            depart(&out);
        }
        Box::pin(async move {
            // What a suspended node does, it does when it wakes: only then it passes the gate.
            self.link.stand_by().await;
            if !is_awake {
                depart(&out);
            }
            self.work(&call, &mut out).await
        })
    }

    fn slots(&self) -> watch::Receiver<Option<u32>> {
        self.slots.subscribe()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
