//! Hook calls: delivered at least once, with one id each, whatever the business answers and whoever dies meanwhile.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::time::Instant;
use windrow_core::business::{BusinessSpec, Hook, HookKind, Hooks};
use windrow_core::ids::{TaskId, WallMs};
use windrow_core::task::lifecycle::{Status, StopReason};
use windrow_engine::actors::runtime::context::HookParts;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::access::business_store::{Business, BusinessChange, BusinessError, BusinessStore};
use windrow_engine::ports::handling::data_log::{DataLog, LogQuery};
use windrow_engine::ports::handling::handler::LogLevel;
use windrow_engine::ports::handling::hook::{HookCall, HookCaller, HookReply};
use windrow_engine::ports::tasks::store::{AuditEntry, TaskCommand, Write};

use super::ok;
use crate::world::World;

const PREPARE: Duration = Duration::from_secs(60);

fn hooks() -> Hooks {
    let hook = |timeout| Some(Hook { url: None, timeout });
    Hooks {
        validate: None,
        prepare: hook(Some(PREPARE)),
        stopped: hook(None),
        finished: hook(None),
        reduce: None,
    }
}

/// One business, and what it answers, call by call; when nothing is left to say it never answers.
struct Fake {
    calls: Mutex<Vec<(Instant, HookCall)>>,
    replies: Mutex<VecDeque<HookReply>>,
}

#[async_trait]
impl HookCaller for Fake {
    async fn call(&self, business: &Business, call: &HookCall) -> HookReply {
        assert_eq!(business.slug, "run");
        self.calls
            .lock()
            .expect("ok")
            .push((Instant::now(), call.clone()));
        let reply = self.replies.lock().expect("ok").pop_front();
        match reply {
            Some(reply) => reply,
            None => std::future::pending().await,
        }
    }
}

#[async_trait]
impl BusinessStore for Fake {
    async fn business(&self, slug: &str) -> Result<Option<Business>, StoreError> {
        let spec = json!({"pool": "default", "handler": {"command": "x"}});
        let spec: BusinessSpec = serde_json::from_value(spec).expect("sound");
        Ok(Some(Business {
            id: 1,
            slug: slug.to_owned(),
            spec: BusinessSpec {
                hooks: hooks(),
                ..spec
            },
            sealed: None,
            revision: 1,
            archived_at: None,
            created_at: WallMs(0),
            updated_at: WallMs(0),
        }))
    }

    async fn register(
        &self,
        slug: &str,
        _: &BusinessSpec,
        _: Option<Vec<u8>>,
        _: &Write,
        _: WallMs,
    ) -> Result<Business, BusinessError> {
        Err(BusinessError::Taken(slug.to_owned()))
    }

    async fn businesses(&self, _: bool, _: Option<&str>, _: u32) -> Result<Vec<Business>, StoreError> {
        Ok(Vec::new())
    }

    async fn change_business(
        &self,
        slug: &str,
        _: Option<u64>,
        _: &BusinessChange,
        _: &str,
        _: &Write,
        _: WallMs,
    ) -> Result<Business, BusinessError> {
        Err(BusinessError::NotFound(slug.to_owned()))
    }

    async fn business_revisions(
        &self,
        _: &str,
        _: Option<i64>,
        _: u32,
    ) -> Result<Vec<(i64, AuditEntry)>, StoreError> {
        Ok(Vec::new())
    }
}

impl Fake {
    fn calls(&self) -> Vec<(Instant, HookCall)> {
        self.calls.lock().expect("ok").clone()
    }

    fn then(&self, reply: HookReply) {
        self.replies.lock().expect("ok").push_back(reply);
    }
}

async fn world(name: &str, replies: impl IntoIterator<Item = HookReply>) -> (World, Arc<Fake>) {
    let replies = Mutex::new(replies.into_iter().collect());
    let fake = Arc::new(Fake {
        calls: Mutex::default(),
        replies,
    });
    let parts = |world: &mut World| {
        world.store.set_hooks("run", hooks());
        world.hooks = Some(HookParts {
            outbox: world.store.clone(),
            businesses: fake.clone(),
            caller: fake.clone(),
            alerts: None,
        });
    };
    (World::start_as(name, parts, |_, _| ok()).await, fake)
}

fn done(body: Value) -> HookReply {
    HookReply::Done(Some(body))
}

#[tokio::test(start_paused = true)]
async fn a_task_waits_for_its_business_and_runs_as_the_answer_says() {
    let (world, fake) = world("hook-ready", [done(json!({"total": 7})), HookReply::Done(None)]).await;
    let task = world
        .made(3, |new| new.source = json!({"kind": "range"}).to_string())
        .await;
    world.command(task, TaskCommand::Start).await;
    let view = world.until(task, Status::Finished).await;
    assert_eq!((view.total.0, view.counters.succeeded), (7, 7));
    world.until_that(task, "told", |_| fake.calls().len() == 2).await;
    let kinds: Vec<HookKind> = fake.calls().iter().map(|(_, call)| call.kind).collect();
    assert_eq!(kinds, [HookKind::Prepare, HookKind::Finished]);
    // Much longer than the wait before a second try.
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(fake.calls().len(), 2, "each is heard once");
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_tried_again_ever_later_under_the_same_id() {
    let failed = || HookReply::Failed("it answered 503".to_owned());
    let (world, fake) = world(
        "hook-again",
        [failed(), failed(), failed(), HookReply::Done(None)],
    )
    .await;
    let task = world.task(3, |_| {}).await;
    world.until(task, Status::Finished).await;
    let prepares: Vec<_> = fake
        .calls()
        .into_iter()
        .filter(|(_, call)| call.kind == HookKind::Prepare)
        .collect();
    assert_eq!(prepares.len(), 4);
    assert!(
        prepares
            .iter()
            .all(|(_, call)| call.id == prepares[0].1.id && call.body == prepares[0].1.body)
    );
    let waits: Vec<u64> = prepares
        .windows(2)
        .map(|two| (two[1].0 - two[0].0).as_secs())
        .collect();
    assert!(
        waits[0] >= 1 && waits[1] >= 2 && waits[2] >= 4 && waits[2] <= 6,
        "{waits:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_business_that_refuses_stops_the_task_with_its_own_words() {
    let refused = HookReply::Refused("the list is empty".to_owned());
    let (world, _) = world("hook-refused", [refused, HookReply::Done(None)]).await;
    let task = world.task(3, |_| {}).await;
    let view = world.until(task, Status::Stopped).await;
    assert_eq!(view.stop_reason, Some(StopReason::Business));
    assert_eq!(view.status_text.as_deref(), Some("the list is empty"));
    assert!(world.handler.deliveries().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_can_not_be_used_stops_the_task() {
    let (world, _) = world(
        "hook-odd",
        [done(json!({"total": "many"})), HookReply::Done(None)],
    )
    .await;
    let task = world.task(3, |_| {}).await;
    let text = world
        .until(task, Status::Stopped)
        .await
        .status_text
        .expect("it says why");
    assert_eq!(
        text,
        "the business answered with a total that is not a number: \"many\""
    );
}

#[tokio::test(start_paused = true)]
async fn a_business_that_never_says_that_it_is_ready_is_not_waited_for_longer_than_promised() {
    let (world, fake) = world("hook-late", [HookReply::Later, HookReply::Done(None)]).await;
    let task = world.task(3, |_| {}).await;
    let begun = Instant::now();
    world.until(task, Status::AwaitingBusiness).await;
    let view = world.until(task, Status::Stopped).await;
    assert!(
        (PREPARE..PREPARE + Duration::from_secs(8)).contains(&begun.elapsed()),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(
        view.status_text.as_deref(),
        Some("the business did not say in time that it is ready")
    );
    world.until_that(task, "told", |_| fake.calls().len() == 2).await;
    assert_eq!(fake.calls()[1].1.kind, HookKind::Stopped);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_start_is_over_is_dropped() {
    let failed = HookReply::Failed("down".to_owned());
    let (world, fake) = world("hook-stale", [failed]).await;
    let task = world.task(3, |_| {}).await;
    world.until_that(task, "asked", |_| fake.calls().len() == 1).await;
    fake.then(HookReply::Done(None));
    world
        .command(
            task,
            TaskCommand::Stop {
                reason: StopReason::Operator,
            },
        )
        .await;
    world.until(task, Status::Stopped).await;
    // Much longer than the wait before the next try of what failed.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let kinds: Vec<HookKind> = fake.calls().iter().map(|(_, call)| call.kind).collect();
    assert_eq!(
        kinds,
        [HookKind::Prepare, HookKind::Stopped],
        "nobody is asked about a start that is over"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_refused_for_good_is_given_up_and_people_can_read_it() {
    let (world, fake) = world(
        "hook-dead",
        [done(json!({})), HookReply::Refused("gone".to_owned())],
    )
    .await;
    let task = world.task(3, |_| {}).await;
    world.until(task, Status::Finished).await;
    world.until_that(task, "told", |_| fake.calls().len() == 2).await;
    // Much longer than the wait before a second try.
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(fake.calls().len(), 2);
    let lines = world
        .store
        .search(&LogQuery::newest(Some(task), 10))
        .await
        .expect("memory");
    let given_up = lines
        .lines
        .iter()
        .find(|(_, line)| line.code.as_deref() == Some("HOOK_GIVEN_UP"));
    let line = &given_up.expect("a line says so").1.line;
    assert_eq!(line.level, LogLevel::Error);
    assert_eq!(
        line.message,
        "the hook task.finished failed after 1 attempt: gone"
    );
}

#[tokio::test(start_paused = true)]
async fn an_outbox_dispatcher_that_dies_with_a_call_out_makes_it_again() {
    let (world, fake) = world("hook-kill", []).await;
    let task = world.task(3, |_| {}).await;
    world.until_that(task, "asked", |_| fake.calls().len() == 1).await;
    world.kill("outbox-dispatcher").await;
    fake.then(HookReply::Done(None));
    fake.then(HookReply::Done(None));
    world.until(task, Status::Finished).await;
    let calls = fake.calls();
    assert_eq!(calls[0].1.id, calls[1].1.id);
    assert_eq!(calls[1].1.kind, HookKind::Prepare);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_outbox_dispatcher_is_started_again() {
    let (world, _) = world("hook-panic", [done(json!({})), HookReply::Done(None)]).await;
    world.panic_in("outbox-dispatcher", 1).await;
    let task = world.task(3, |_| {}).await;
    world.until(task, Status::Finished).await;
    assert_eq!(task, TaskId(1));
}
