//! Facts about what autopilots tell each other.

use windrow_core::execution::Found;
use windrow_core::ids::{ShardId, TaskId, WallMs};
use windrow_core::pilot::{Knowledge, News};
use windrow_engine::ports::ownership::found_store::FoundRow;
use windrow_engine::ports::tasks::upkeep::Sweep;

use crate::fixture::{BUSINESS, Harness, NOW};

const SERVICE: &str = "https://api.example.com:8443";

fn row(task: i64, no: u32, allows: u32, at: i64) -> FoundRow {
    let knowledge = Knowledge {
        in_flight: f64::from(allows) + 0.5,
        rate: Some(5.1),
        top: None,
        base: Some(-3.25),
        refused_above: Some(20),
    };
    FoundRow {
        shard: ShardId {
            task: TaskId(task),
            no,
        },
        business: BUSINESS.to_owned(),
        service: SERVICE.to_owned(),
        news: News { allows, knowledge },
        at: WallMs(NOW.0 + at),
    }
}

fn found(row: &FoundRow) -> Option<Found> {
    Some(Found {
        knowledge: row.news.knowledge,
        at: row.at,
    })
}

pub async fn shards_of_a_task_hear_each_other_and_nobody_else(harness: Harness) {
    let store = &harness.store;
    assert_eq!(store.tell_found(&row(1, 0, 4, 0)).await.unwrap(), []);
    assert_eq!(store.tell_found(&row(2, 0, 5, 0)).await.unwrap(), []);
    assert_eq!(
        store.tell_found(&row(1, 1, 6, 1)).await.unwrap(),
        [row(1, 0, 4, 0)]
    );
    assert_eq!(
        store.tell_found(&row(1, 0, 9, 2)).await.unwrap(),
        [row(1, 1, 6, 1)]
    );
    let heard = store.tell_found(&row(1, 2, 1, 3)).await.unwrap();
    assert_eq!(heard, [row(1, 0, 9, 2), row(1, 1, 6, 1)]);
}

pub async fn last_news_of_a_business_at_a_service_is_found_until_it_is_swept(harness: Harness) {
    let store = &harness.store;
    for row in [row(1, 0, 4, 10), row(2, 0, 5, 30), row(3, 0, 6, 20)] {
        store.tell_found(&row).await.unwrap();
    }
    let last = async |business, service, since| {
        let since = WallMs(NOW.0 + since);
        store.last_found(business, service, since).await.unwrap()
    };
    assert_eq!(last(BUSINESS, SERVICE, 0).await, found(&row(2, 0, 5, 30)));
    assert_eq!(last(BUSINESS, SERVICE, 31).await, None);
    assert_eq!(last("other", SERVICE, 0).await, None);
    assert_eq!(last(BUSINESS, "https://api.example.com", 0).await, None);
    while store.sweep(Sweep::Found, WallMs(NOW.0 + 30)).await.unwrap() > 0 {}
    assert_eq!(last(BUSINESS, SERVICE, 0).await, found(&row(2, 0, 5, 30)));
    while store.sweep(Sweep::Found, WallMs(NOW.0 + 31)).await.unwrap() > 0 {}
    assert_eq!(last(BUSINESS, SERVICE, 0).await, None);
}
