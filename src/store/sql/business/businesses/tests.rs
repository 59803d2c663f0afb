use super::*;
use windrow_core::business::{HandlerSpec, HttpHandlerSpec};
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::tasks::store::TaskStore;

const NOW: WallMs = WallMs(1_000);
static ANN: std::sync::LazyLock<Write> = std::sync::LazyLock::new(ann);

async fn store() -> (tempfile::TempDir, Store) {
    let place = tempfile::tempdir().expect("a directory");
    let store = Store::open(&place.path().join("windrow.db"))
        .await
        .expect("opened");
    (place, store)
}

fn ann() -> Write {
    Actor {
        name: "ann".to_owned(),
        role: None,
        source: "api",
        reason: Some("new team".to_owned()),
        request_id: Some("r1".to_owned()),
    }
    .writes()
}

fn spec(url: &str) -> BusinessSpec {
    BusinessSpec {
        display_name: Some("Push ✓".to_owned()),
        pool: "slow".to_owned(),
        handler: HandlerSpec::Http(HttpHandlerSpec {
            url: url.to_owned(),
            ..HttpHandlerSpec::default()
        }),
        hooks: serde_json::from_str(r#"{"prepare":{"timeout":"30m"}}"#).expect("hooks"),
        defaults: serde_json::from_str(r#"{"rate":"500/s"}"#).expect("defaults"),
        limits: serde_json::from_str(r#"{"rate":"2000/s","concurrency":512}"#).expect("limits"),
    }
}

async fn register(store: &Store, slug: &str) -> Business {
    let made = store
        .register(slug, &spec("http://a"), Some(b"sealed".to_vec()), &ann(), NOW)
        .await;
    made.expect("registered")
}

#[tokio::test]
async fn a_business_reads_back_as_it_was_registered_and_its_slug_is_taken() {
    let (_place, store) = store().await;
    let made = register(&store, "push").await;
    assert_eq!((made.revision, &made.spec), (1, &spec("http://a")));
    assert_eq!(store.business("push").await.expect("read"), Some(made));
    let again = store.register("push", &spec("http://b"), None, &ann(), NOW).await;
    assert_eq!(again, Err(BusinessError::Taken("push".to_owned())));
    assert_eq!(store.business("other").await.expect("read"), None);
}

#[tokio::test]
async fn a_change_needs_the_expected_revision_and_leaves_what_it_does_not_name() {
    let (_place, store) = store().await;
    register(&store, "push").await;
    let edit = BusinessChange {
        spec: Some(spec("http://b")),
        ..BusinessChange::default()
    };
    let change = |expected| store.change_business("push", expected, &edit, "business.edit", &ANN, WallMs(2));
    let stale = change(Some(7)).await;
    assert_eq!(
        stale,
        Err(BusinessError::Changed {
            expected: 7,
            found: 1
        })
    );
    let changed = change(Some(1)).await.expect("changed");
    assert_eq!((changed.revision, changed.updated_at), (2, WallMs(2)));
    assert_eq!(changed.sealed.as_deref(), Some(&b"sealed"[..]));
    let nobody = store
        .change_business("x", None, &edit, "business.edit", &ANN, NOW)
        .await;
    assert_eq!(nobody, Err(BusinessError::NotFound("x".to_owned())));
}

#[tokio::test]
async fn revisions_say_who_changed_what_and_never_a_secret() {
    let (_place, store) = store().await;
    register(&store, "push").await;
    let sealed = BusinessChange {
        sealed: Some(b"new".to_vec()),
        ..BusinessChange::default()
    };
    store
        .change_business("push", None, &sealed, "business.rotate_secret", &ANN, NOW)
        .await
        .expect("changed");
    let archive = BusinessChange {
        archived: Some(true),
        ..BusinessChange::default()
    };
    store
        .change_business("push", None, &archive, "business.archive", &ANN, NOW)
        .await
        .expect("changed");
    let all = store.business_revisions("push", None, 10).await.expect("read");
    let actions: Vec<&str> = all.iter().map(|(_, entry)| entry.action.as_str()).collect();
    assert_eq!(
        actions,
        ["business.archive", "business.rotate_secret", "business.create"]
    );
    let after = all[1].1.after.as_deref().expect("after");
    assert!(
        after.contains(r#""revision":2"#) && after.contains(r#""secrets_changed":true"#),
        "{after}"
    );
    assert!(
        !all[0]
            .1
            .after
            .as_deref()
            .expect("after")
            .contains("secrets_changed")
    );
    assert!(!format!("{all:?}").contains("sealed"), "{all:?}");
    let older = store
        .business_revisions("push", Some(all[1].0), 10)
        .await
        .expect("read");
    assert_eq!(older, all[2..]);
    assert_eq!(
        (all[2].1.actor.as_str(), all[2].1.reason.as_deref()),
        ("ann", Some("new team"))
    );
}

#[tokio::test]
async fn lists_are_in_the_order_of_slugs_and_hide_the_archived_and_those_without_a_handler() {
    let (_place, store) = store().await;
    for slug in ["b", "a", "c", "d"] {
        register(&store, slug).await;
    }
    store.ensure_business("run", &ann(), NOW).await.expect("made");
    let archive = BusinessChange {
        archived: Some(true),
        ..BusinessChange::default()
    };
    store
        .change_business("c", None, &archive, "business.archive", &ann(), NOW)
        .await
        .expect("archived");
    let slugs = |found: Vec<Business>| found.into_iter().map(|one| one.slug).collect::<Vec<_>>();
    assert_eq!(
        slugs(store.businesses(false, None, 10).await.expect("read")),
        ["a", "b", "d"]
    );
    assert_eq!(
        slugs(store.businesses(false, Some("a"), 1).await.expect("read")),
        ["b"]
    );
    assert_eq!(
        slugs(store.businesses(true, None, 10).await.expect("read")),
        ["c"]
    );
    assert_eq!(store.business("run").await.expect("read"), None);
}

#[tokio::test]
async fn a_business_that_a_command_line_made_can_be_registered_and_stays_the_same_row() {
    let (_place, store) = store().await;
    store.ensure_business("run", &ann(), NOW).await.expect("made");
    let made = register(&store, "run").await;
    assert_eq!(made.revision, 2);
    store
        .ensure_business("run", &ann(), NOW)
        .await
        .expect("still there");
    assert_eq!(store.business("run").await.expect("read"), Some(made));
}
