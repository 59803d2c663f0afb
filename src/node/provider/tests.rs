use serde_json::json;

use super::*;
use crate::handlers::preview_context;
use windrow_config::Command;
use windrow_core::ids::{ItemCount, WallMs};
use windrow_engine::ports::tasks::store::{Actor, NewTask, TaskStore, Write};
use windrow_host::clock::SystemClock;
use windrow_memory::MemoryStore;
use windrow_store::sql::Store;

const NOW: WallMs = WallMs(1_000);

struct Place {
    store: Arc<Store>,
    provider: ServiceProvider,
    _directory: tempfile::TempDir,
}

impl Place {
    async fn new(config: Config) -> Place {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Arc::new(
            Store::open(&directory.path().join("windrow.db"))
                .await
                .expect("opened"),
        );
        let provider = ServiceProvider {
            limits: store.clone(),
            businesses: store.clone(),
            vault: Arc::new(KeyVault::with_key([1; 32])),
            config: Arc::new(config),
            in_process: InProcess::new(),
            node: "n1".to_owned(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            clock: Arc::new(SystemClock::new()),
            data_log: Arc::new(MemoryStore::new()),
            transports: Arc::default(),
            workers: Arc::new(Leftovers::take_over(None)),
            processes: Arc::new(Records::take_over(None)),
            sources: Arc::new(StoredSources::new(
                store.clone(),
                store.clone(),
                store.clone(),
                store.clone(),
                store.clone(),
                directory.path().to_owned(),
                Arc::new(SystemClock::new()),
            )),
            tracing: Tracing::default(),
            work: Runtime::current(),
            calls: CallThreads::new(vec![Runtime::current()]),
        };
        Place {
            store,
            provider,
            _directory: directory,
        }
    }

    async fn business(&self, spec: serde_json::Value) {
        let spec = serde_json::from_value(spec).expect("a business");
        self.store
            .register("push", &spec, None, &me(), NOW)
            .await
            .expect("registered");
    }

    async fn task(&self) -> TaskView {
        let new = NewTask {
            source: r#"{"kind":"inline","items":[1,2,3]}"#.to_owned(),
            meaning: self.meaning().await,
            ..NewTask::of("push", ItemCount(3), Config::default().task_defaults.tuning)
        };
        self.store.create(&new, &me(), NOW).await.expect("made")
    }

    async fn meaning(&self) -> u64 {
        let spec = serde_json::from_str(r#"{"kind":"inline","items":[1,2,3]}"#).expect("a source");
        super::super::sources::open_for_a_look(&spec, NOW)
            .await
            .expect("opened")
            .meaning
    }
}

fn me() -> Write {
    Actor {
        name: "ann".to_owned(),
        source: "api",
        ..Actor::windrow(None)
    }
    .writes()
}

fn refusal(outcome: Result<Provision, ProvisionError>) -> String {
    match outcome {
        Err(ProvisionError::HandlerUnusable(text)) => text,
        Err(other) => panic!("another error: {other:?}"),
        Ok(_) => panic!("provided"),
    }
}

#[tokio::test]
async fn a_url_business_is_provided_with_its_items_and_slots_without_bounds() {
    let place = Place::new(Config::default()).await;
    let http = json!({"http": {"url": "http://127.0.0.1:1/"}});
    place
        .business(json!({"pool": "default", "handler": http, "limits": {"concurrency": 8}}))
        .await;
    let provision = place
        .provider
        .provide(&place.task().await)
        .await
        .expect("provided");
    assert_eq!(provision.source.total(), ItemCount(3));
    // The business's limit is allocated over all nodes, beside the handler.
    let handler = provision
        .handler
        .open(Arc::new(preview_context()))
        .expect("opened");
    assert_eq!(*handler.slots().borrow(), None);
}

#[tokio::test]
async fn a_command_needs_the_configuration_and_a_program() {
    let mut config = Config::default();
    for (name, program) in [("true", "true"), ("gone", "/no/such/program")] {
        let command = Command {
            cmd: vec![program.to_owned()],
            ..Command::default()
        };
        config.command_handler.commands.insert(name.to_owned(), command);
    }
    let refused = |config: Config, command: &'static str| async move {
        let place = Place::new(config).await;
        place
            .business(json!({"pool": "default", "handler": {"command": command}}))
            .await;
        let task = place.task().await;
        refusal(place.provider.provide(&task).await)
    };
    assert!(
        refused(config.clone(), "true")
            .await
            .contains("commands are disabled")
    );
    config.command_handler.enabled = true;
    assert!(
        refused(config.clone(), "other")
            .await
            .contains("command other is not configured on this node")
    );
    assert!(refused(config.clone(), "gone").await.contains("/no/such/program"));
    let place = Place::new(config).await;
    place
        .business(json!({"pool": "default", "handler": {"command": "true"}}))
        .await;
    place
        .provider
        .provide(&place.task().await)
        .await
        .expect("provided");
}

#[tokio::test]
async fn a_business_without_a_handler_is_unusable_and_secrets_under_another_key_are_left_to_another_node() {
    let place = Place::new(Config::default()).await;
    place
        .store
        .ensure_business("push", &me(), NOW)
        .await
        .expect("made");
    let task = place.task().await;
    assert!(refusal(place.provider.provide(&task).await).contains("register the business"));
    let spec = json!({"pool": "default", "handler": {"http": {"url": "http://127.0.0.1:1/"}}});
    let spec = serde_json::from_value(spec).expect("a business");
    let sealed = KeyVault::with_key([2; 32]).seal("business/push", b"{}");
    place
        .store
        .register("push", &spec, Some(sealed), &me(), NOW)
        .await
        .expect("registered");
    match place.provider.provide(&task).await {
        Err(ProvisionError::KeyMissing(text)) => {
            assert!(
                text.contains("another key") && text.starts_with("node "),
                "{text}"
            );
        }
        other => panic!("{:?}", other.err()),
    }
}

#[tokio::test]
async fn a_source_that_is_another_one_now_stops_the_task() {
    let place = Place::new(Config::default()).await;
    place
        .business(json!({"pool": "default", "handler": {"http": {"url": "http://127.0.0.1:1/"}}}))
        .await;
    let mut task = place.task().await;
    task.life.meaning ^= 1;
    let outcome = place.provider.provide(&task).await;
    assert!(matches!(outcome, Err(ProvisionError::SourceChanged(_))));
}
