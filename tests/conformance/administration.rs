//! What is kept beside the work, on each database: tokens, businesses, limits with a name, uploads, and what is told of them.

use std::collections::BTreeSet;

use windrow_core::business::access::Role;
use windrow_core::business::{BusinessLimits, BusinessSpec, HandlerSpec, Hooks, HttpHandlerSpec};
use windrow_core::ids::{Epoch, ItemIndex, RunNo, WallMs};
use windrow_core::limit::Bounds;
use windrow_core::meter::metering::Metering;
use windrow_core::settings::Rate;
use windrow_core::settings::table::TuningPatch;
use windrow_core::task::lifecycle::{ShardState, Status};
use windrow_engine::ports::access::audit_object::{AuditObject, ObjectKind};
use windrow_engine::ports::access::business_store::{BusinessChange, BusinessError, BusinessStore};
use windrow_engine::ports::access::named_limit_store::{NamedLimitError, NamedLimitStore};
use windrow_engine::ports::access::node_audit::{NodeAudit, NodeChange};
use windrow_engine::ports::access::token_store::{NewToken, TokenGrant, TokenStore};
use windrow_engine::ports::sources::store::IndexedSource;
use windrow_engine::ports::sources::uploads::{UploadDone, UploadId, UploadState, UploadStore};
use windrow_engine::ports::tasks::list::{AuditFilter, TaskList};
use windrow_engine::ports::tasks::report_store::ReportStore;
use windrow_engine::ports::tasks::shard_map::ShardMap;

use crate::fixture::{BUSINESS, Harness, NOW, at, task, write};

const LATER: WallMs = WallMs(NOW.0 + 1_000);

pub async fn tokens_are_kept_found_and_revoked(harness: Harness) {
    let store = harness.sql();
    store
        .register(BUSINESS, &spec("http://a"), None, &write(), NOW)
        .await
        .unwrap();
    let new = |name: &str, business: Option<&str>| NewToken {
        hash: format!("hash of {name}"),
        prefix: "wrk_abcd".to_owned(),
        grant: TokenGrant {
            name: name.to_owned(),
            role: Role::Operator,
            business: business.map(str::to_owned),
            expires_at: Some(LATER),
        },
    };
    let ann = store.add_token(&new("ann", None), &write(), NOW).await.unwrap();
    let ben = store
        .add_token(&new("ben", Some(BUSINESS)), &write(), NOW)
        .await
        .unwrap();
    let again = store.add_token(&new("ann", None), &write(), LATER).await.unwrap();
    assert_eq!((again.id, ben.business.as_deref()), (ann.id, Some(BUSINESS)));
    assert_eq!(store.token("hash of ben").await.unwrap(), Some(ben.clone()));
    assert_eq!(store.tokens(Some(ann.id), 9).await.unwrap(), [ben]);
    let revoked = store
        .revoke_token(ann.id, &write(), LATER)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(revoked.revoked_at, Some(LATER));
    assert_eq!(store.revoke_token(99, &write(), LATER).await.unwrap(), None);
}

fn spec(url: &str) -> BusinessSpec {
    BusinessSpec {
        display_name: Some("Post \u{2713}".to_owned()),
        pool: "default".to_owned(),
        handler: HandlerSpec::Http(HttpHandlerSpec {
            url: url.to_owned(),
            ..HttpHandlerSpec::default()
        }),
        hooks: Hooks::default(),
        defaults: TuningPatch::default(),
        limits: BusinessLimits::default(),
    }
}

pub async fn businesses_are_registered_changed_and_archived(harness: Harness) {
    let store = harness.sql();
    let sealed = Some(vec![0, 255, 39]);
    let made = store
        .register("post", &spec("http://a"), sealed.clone(), &write(), NOW)
        .await
        .unwrap();
    let taken = store
        .register("post", &spec("http://b"), None, &write(), NOW)
        .await
        .unwrap_err();
    assert_eq!(taken, BusinessError::Taken("post".to_owned()));
    assert_eq!((made.revision, &made.sealed), (1, &sealed));
    let change = |change: BusinessChange, expected| {
        let write = write();
        async move {
            store
                .change_business("post", expected, &change, "business.edit", &write, LATER)
                .await
        }
    };
    let moved = BusinessChange {
        spec: Some(spec("http://c")),
        ..BusinessChange::default()
    };
    let moved = change(moved, Some(1)).await.unwrap();
    assert_eq!((moved.revision, moved.spec), (2, spec("http://c")));
    let archived = BusinessChange {
        archived: Some(true),
        ..BusinessChange::default()
    };
    let stale = change(archived.clone(), Some(1)).await.unwrap_err();
    assert_eq!(
        stale,
        BusinessError::Changed {
            expected: 1,
            found: 2
        }
    );
    change(archived, None).await.unwrap();
    assert!(store.businesses(false, None, 9).await.unwrap().is_empty());
    assert_eq!(store.businesses(true, Some("a"), 9).await.unwrap().len(), 1);
    let revisions = store.business_revisions("post", None, 9).await.unwrap();
    assert_eq!(revisions.len(), 3);
    let older = store
        .business_revisions("post", Some(revisions[0].0), 9)
        .await
        .unwrap();
    assert_eq!(older, revisions[1..]);
}

pub async fn named_limits_are_made_used_and_deleted(harness: Harness) {
    let store = harness.sql();
    let bounds = |rate| Bounds {
        rate: Rate::per_second(rate),
        concurrency: None,
    };
    let (none, units) = (
        Metering::default(),
        Metering::parse(
            &["90k tokens/min".to_owned(), "500 calls".to_owned()],
            &[],
            &[],
            &[],
        )
        .unwrap(),
    );
    for name in ["mail", "sms"] {
        let made = store.create_limit(name, (bounds(5), &none), &write(), NOW).await;
        assert!(made.unwrap().metering.is_empty());
    }
    let taken = store
        .create_limit("sms", (bounds(6), &none), &write(), NOW)
        .await
        .unwrap_err();
    assert_eq!(taken, NamedLimitError::Taken("sms".to_owned()));
    let changed = store
        .change_limit("sms", 1, (bounds(7), &units), &write(), LATER)
        .await
        .unwrap();
    assert_eq!((changed.revision, changed.bounds), (2, bounds(7)));
    assert_eq!(changed.metering, units);
    assert_eq!(store.named_limit("sms").await.unwrap(), Some(changed));
    let among = BTreeSet::from(["mail".to_owned()]);
    assert_eq!(store.named_limits(Some(&among), None, 9).await.unwrap().len(), 1);
    assert_eq!(store.named_limits(None, Some("mail"), 9).await.unwrap().len(), 1);
    harness.created(&task(1)).await;
    assert!(store.limits_of(BUSINESS).await.unwrap().is_empty());
    assert!(store.limit_users("mail").await.unwrap().is_empty());
    store.delete_limit("mail", &write(), LATER).await.unwrap();
    assert_eq!(store.named_limit("mail").await.unwrap(), None);
}

pub async fn uploads_are_kept_in_parts_until_nobody_has_them(harness: Harness) {
    let store = harness.sql();
    let index = IndexedSource {
        kind: "lines".to_owned(),
        location: "upload".to_owned(),
        format: "{}".to_owned(),
        bytes: 4,
        modified_ns: 0,
        checksum: 1,
        rows: 1,
        columns: Vec::new(),
        stride: 1,
    };
    let source = harness.store.save(&index, &[vec![1]]).await.unwrap();
    let id = UploadStore::begin(store, "lines", "{}", "ann/1", NOW)
        .await
        .unwrap();
    for (number, part) in [(0, b"ab"), (1, b"c\0"), (1, b"c\0")] {
        UploadStore::append(store, id, number, part).await.unwrap();
    }
    let done = UploadDone {
        source,
        bytes: 4,
        sha256: "0".repeat(64),
        sample: "[]".to_owned(),
    };
    store.finish(id, &done).await.unwrap();
    let kept = store.upload(id).await.unwrap().unwrap();
    assert_eq!((kept.state, kept.bytes, kept.parts), (UploadState::Ready, 4, 2));
    assert_eq!(store.upload_part(id, 1).await.unwrap(), Some(b"c\0".to_vec()));
    assert_eq!(store.stored_by("ann/1").await.unwrap(), 4);
    assert_eq!(
        store.stored_most("ann", 9).await.unwrap(),
        [("ann/1".to_owned(), 4)]
    );
    store.take(id, NOW).await.unwrap();
    let open = UploadStore::begin(store, "lines", "{}", "ann/1", NOW)
        .await
        .unwrap();
    store.discard(open).await.unwrap();
    store.discard(UploadId(99)).await.unwrap();
    // No task was made of it.
    assert_eq!(store.expire_uploads(WallMs(LATER.0 + 1)).await.unwrap(), 1);
    assert_eq!(store.upload(id).await.unwrap(), None);
}

pub async fn what_is_told_of_tasks_and_shards_is_answered(harness: Harness) {
    let store = harness.sql();
    let (shard, session) = (harness.queued(10).await, harness.session().await);
    let run = harness.claimed(shard, Epoch(0), session).await;
    harness.stored(at(&run, 1, 4)).await;
    let id = run.shard.task;
    let facts = store.report_facts(id, 5).await.unwrap().unwrap();
    assert_eq!((facts.task.id, facts.runs.len()), (id, 1));
    let windows = store.saved_windows(id).await.unwrap();
    assert_eq!(windows[0].watermark, ItemIndex(4));
    assert!(store.waiting_items(id).await.unwrap().is_empty());
    assert!(store.redrives_of(id, 5).await.unwrap().is_empty());
    assert!(store.redriven_among(&[id]).await.unwrap().is_empty());
    assert_eq!(store.shards_of(&[id]).await.unwrap().len(), 1);
    let held = store.holdings(Some(session), 5).await.unwrap();
    assert_eq!((held[0].shard, held[0].run), (run.shard, RunNo(1)));
    let counts = store.shard_counts(100).await.unwrap();
    assert!(counts.contains(&(ShardState::Running, true, 1)), "{counts:?}");
    let counts = store.status_counts(100).await.unwrap();
    assert!(counts.contains(&(Status::Running, 1)), "{counts:?}");
    assert!(store.run(run.shard, RunNo(1)).await.unwrap().is_some());
    let change = NodeChange {
        action: "node.change",
        object: AuditObject::new(ObjectKind::Node, "n1"),
        business: Some(BUSINESS.to_owned()),
        before: None,
        after: "{}".to_owned(),
    };
    store.note(&change, &write(), NOW).await.unwrap();
    let filter = AuditFilter {
        business: Some(BUSINESS.to_owned()),
        action: Some("node.change".to_owned()),
        ..AuditFilter::default()
    };
    assert_eq!(store.audits(&filter, None, 5).await.unwrap().len(), 1);
}
