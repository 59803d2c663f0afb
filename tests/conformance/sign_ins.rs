//! Sign-ins of browsers over each database: found by a hash, bounded in number, gone once they are ended. (They are records,
//! which the memory adapter has none of.)

use windrow_core::business::access::Role;
use windrow_core::ids::WallMs;
use windrow_engine::ports::access::actor::Actor;
use windrow_engine::ports::access::sign_in_store::{NewSignIn, SIGN_INS_MAX, SignInStore, SignInView};
use windrow_engine::ports::access::token_store::{NewToken, TokenGrant, TokenStore, TokenView};
use windrow_engine::ports::tasks::list::{AuditFilter, TaskList};
use windrow_engine::ports::tasks::store::Write;
use windrow_engine::ports::tasks::upkeep::{Sweep, UpkeepStore};
use windrow_store::sql::Store;

use crate::engines::{Engine, runtime};

const NOW: WallMs = WallMs(1_000_000);
const LATER: WallMs = WallMs(2_000_000);

#[test]
fn sign_ins_are_kept_on_postgres() {
    let engine = Engine::postgres();
    runtime().block_on(async { facts(&engine.store().await).await });
}

#[test]
fn sign_ins_are_kept_on_mariadb() {
    let engine = Engine::mariadb();
    runtime().block_on(async { facts(&engine.store().await).await });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sign_ins_are_kept_on_sqlite() {
    let place = tempfile::tempdir().unwrap();
    let store = Store::open(&place.path().join("windrow.db")).await.unwrap();
    facts(&store).await;
}

fn ann(dry_run: bool) -> Write {
    Write {
        actor: Actor::windrow(None),
        dry_run,
    }
}

async fn token(store: &Store, name: &str) -> TokenView {
    let new = NewToken {
        hash: format!("hash of {name}"),
        prefix: "wrk_abcd".to_owned(),
        grant: TokenGrant {
            name: name.to_owned(),
            role: Role::Operator,
            business: None,
            expires_at: None,
        },
    };
    store.add_token(&new, &ann(false), NOW).await.unwrap()
}

async fn begun(store: &Store, token: &TokenView, hash: &str, until: WallMs, now: WallMs) -> SignInView {
    let new = NewSignIn {
        hash: hash.to_owned(),
        address: Some("192.0.2.1".to_owned()),
        expires_at: until,
    };
    store.add_sign_in(token, &new, &ann(false), now).await.unwrap()
}

async fn hashes_of(store: &Store, hashes: &[&str]) -> Vec<bool> {
    let mut known = Vec::new();
    for hash in hashes {
        known.push(store.sign_in(hash).await.unwrap().is_some());
    }
    known
}

async fn facts(store: &Store) {
    let (ann_token, bob) = (token(store, "ann").await, token(store, "bob").await);
    let short = begun(store, &ann_token, "h-short", WallMs(NOW.0 + 10), NOW).await;
    let long = begun(store, &ann_token, "h-long", LATER, NOW).await;
    let of_bob = begun(store, &bob, "h-bob", WallMs(NOW.0 + 10), NOW).await;
    assert_eq!(store.sign_in("h-long").await.unwrap(), Some(long.clone()));
    assert_eq!(store.sign_in_of_row(short.id).await.unwrap(), Some(short.clone()));
    assert_eq!(
        store.sign_in("H-LONG").await.unwrap(),
        None,
        "hashes are compared byte by byte"
    );
    let all = store.sign_ins(None, 10).await.unwrap();
    assert_eq!(all, [short.clone(), long.clone(), of_bob.clone()]);
    assert_eq!(
        store.sign_ins(Some(short.id), 1).await.unwrap(),
        std::slice::from_ref(&long)
    );

    // A revoked token is seen at once in what stands for it.
    let revoked = store
        .revoke_token(bob.id, &ann(false), NOW)
        .await
        .unwrap()
        .unwrap();
    let seen = store.sign_in("h-bob").await.unwrap().unwrap();
    assert!(seen.token == revoked && !seen.is_live(NOW) && long.is_live(NOW));

    store.end_sign_in(&long, &ann(true), NOW).await.unwrap();
    assert!(
        store.sign_in("h-long").await.unwrap().is_some(),
        "it was only tried"
    );
    store.end_sign_in(&long, &ann(false), NOW).await.unwrap();
    store.end_sign_in(&long, &ann(false), NOW).await.unwrap();
    assert_eq!(
        hashes_of(store, &["h-long", "h-short", "h-bob"]).await,
        [false, true, true]
    );

    // What is over of a token goes when it is next signed in with; that of others stays.
    for number in 0..=SIGN_INS_MAX {
        begun(
            store,
            &ann_token,
            &format!("h-{number}"),
            LATER,
            WallMs(NOW.0 + 10),
        )
        .await;
    }
    let newest = format!("h-{SIGN_INS_MAX}");
    let known = hashes_of(store, &["h-short", "h-bob", "h-0", "h-1", &newest]).await;
    assert_eq!(known, [false, true, false, true, true]);
    let left = store.sign_ins(None, 1000).await.unwrap();
    assert_eq!(left.len() as u64, SIGN_INS_MAX + 1);

    let entries = |action: &str| AuditFilter {
        action: Some(action.to_owned()),
        ..AuditFilter::default()
    };
    let ended = store.audits(&entries("session.end"), None, 1000).await.unwrap();
    assert_eq!(ended.len(), 1, "one was ended, once");
    assert_eq!(
        store.sweep(Sweep::SignIns, WallMs(NOW.0 + 10)).await.unwrap(),
        0,
        "it is over at that moment"
    );
    assert_eq!(store.sweep(Sweep::SignIns, WallMs(NOW.0 + 11)).await.unwrap(), 1);
    assert_eq!(
        hashes_of(store, &["h-bob", &newest]).await,
        [false, true],
        "of whichever token"
    );
    let begins = store.audits(&entries("session.begin"), None, 1000).await.unwrap();
    assert_eq!(begins.len() as u64, 3 + SIGN_INS_MAX + 1);
}
