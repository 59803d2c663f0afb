//! Facts about the places of failures: dense, in the order of commits, final; and about finding failures by them.

use windrow_core::ids::{ItemIndex, ShardId};
use windrow_core::items::verdict::{FailingItem, SideRecord};
use windrow_engine::ports::handling::data_log::LogOrigin;
use windrow_engine::ports::handling::handler::LogLevel;
use windrow_engine::ports::ownership::run_store::{FAILURE_CODE_OTHER, FAILURE_CODES_MAX};
use windrow_engine::ports::tasks::failure_list::{AMONG_MAX, FailurePage, RecordedState};
use windrow_engine::ports::tasks::store::FailureGroup;

use crate::fixture::{Harness, NOW, at, failed, parked, retrying, with};

async fn places(harness: &Harness, shard: ShardId, group: &str, first: u64, count: u32) -> Vec<u64> {
    let found = harness
        .store
        .places(shard.task, group, first, count)
        .await
        .unwrap();
    found.into_iter().map(|index| index.0).collect()
}

pub async fn places_follow_the_order_of_commits_and_never_change(harness: Harness) {
    let run = harness.running(100).await;
    let first = with(
        at(&run, 1, 50),
        vec![failed(40, "B"), failed(7, "A"), failed(3, "A")],
    );
    harness.stored(first.clone()).await;
    harness.stored(first).await;
    assert_eq!(places(&harness, run.shard, "A", 0, 9).await, [3, 7]);
    // The old ones again, with another code, and new ones below them.
    let again = vec![failed(7, "B"), failed(1, "A"), failed(2, "B"), failed(60, "A")];
    harness.stored(with(at(&run, 2, 70), again)).await;
    assert_eq!(places(&harness, run.shard, "A", 0, 9).await, [3, 7, 1, 60]);
    assert_eq!(places(&harness, run.shard, "B", 0, 9).await, [40, 2]);
    assert_eq!(places(&harness, run.shard, "A", 1, 2).await, [7, 1]);
    assert_eq!(places(&harness, run.shard, "A", 4, 2).await, [0_u64; 0]);
    assert_eq!(places(&harness, run.shard, "C", 0, 2).await, [0_u64; 0]);
    let groups = harness.store.groups(run.shard.task).await.unwrap();
    let counts: Vec<_> = groups
        .iter()
        .map(|group| (group.code.as_str(), group.count))
        .collect();
    assert_eq!(counts, [("A", 4), ("B", 2)]);
}

pub async fn an_item_gets_its_place_when_it_is_given_up(harness: Harness) {
    let run = harness.running(100).await;
    let waiting = vec![SideRecord::Retrying(retrying(4, "BUSY")), parked(5, NOW)];
    harness.stored(with(at(&run, 1, 3), waiting)).await;
    let item = |index| harness.store.item(run.shard.task, ItemIndex(index));
    let retrying = item(4).await.unwrap().unwrap();
    assert_eq!(
        (retrying.state, retrying.place, retrying.due_at),
        (RecordedState::Retrying, None, None)
    );
    let parked_item = item(5).await.unwrap().unwrap();
    assert_eq!(
        (parked_item.state, parked_item.due_at),
        (RecordedState::Parked, Some(NOW))
    );
    harness
        .stored(with(at(&run, 2, 9), vec![failed(5, "BUSY"), failed(4, "DEAD")]))
        .await;
    let given_up = item(4).await.unwrap().unwrap();
    assert_eq!(given_up.state, RecordedState::Failed);
    assert_eq!(given_up.place, Some(("DEAD".to_owned(), 0)));
    assert_eq!(given_up.message.as_deref(), Some("item 4 failed"));
    assert_eq!(
        item(5).await.unwrap().unwrap().place,
        Some(("BUSY".to_owned(), 0))
    );
    assert_eq!(item(6).await.unwrap(), None);
}

pub async fn tasks_do_not_share_places_and_a_batch_of_shards_numbers_each(harness: Harness) {
    let (one, two) = (harness.running(10).await, harness.running(10).await);
    let batch = [
        with(at(&one, 1, 5), vec![failed(1, "A"), failed(2, "A")]),
        with(at(&two, 1, 5), vec![failed(4, "A"), failed(3, "A")]),
    ];
    harness.store.checkpoint(&batch).await.unwrap();
    assert_eq!(places(&harness, one.shard, "A", 0, 9).await, [1, 2]);
    assert_eq!(places(&harness, two.shard, "A", 0, 9).await, [3, 4]);
}

pub async fn codes_past_the_hundredth_share_the_places_of_other(harness: Harness) {
    let run = harness.running(1000).await;
    let codes = FAILURE_CODES_MAX as u64 + 3;
    let side: Vec<_> = (0..codes * 2)
        .map(|n| failed(n, &format!("C{:03}", n % codes)))
        .collect();
    harness.stored(with(at(&run, 1, 900), side)).await;
    let first = FAILURE_CODES_MAX as u64;
    let expected = [
        first,
        first + 1,
        first + 2,
        first + codes,
        first + codes + 1,
        first + codes + 2,
    ];
    assert_eq!(
        places(&harness, run.shard, FAILURE_CODE_OTHER, 0, 99).await,
        expected
    );
    assert_eq!(places(&harness, run.shard, "C000", 0, 9).await, [0, codes]);
    assert_eq!(places(&harness, run.shard, "C101", 0, 9).await, [0_u64; 0]);
    let page = FailurePage::OfGroup(FAILURE_CODE_OTHER.to_owned(), 4);
    let found = harness.store.page(run.shard.task, &page, 9).await.unwrap();
    let codes: Vec<_> = found.iter().map(|item| item.code.as_deref().unwrap()).collect();
    assert_eq!(codes, ["C101", "C102"], "the row keeps the item's own code");
}

pub async fn pages_go_by_index_or_by_place(harness: Harness) {
    let run = harness.running(1000).await;
    let side: Vec<_> = (0..30)
        .map(|n| failed(n * 7, if n % 3 == 0 { "A" } else { "B" }))
        .collect();
    harness.stored(with(at(&run, 1, 300), side)).await;
    harness.stored(with(at(&run, 2, 300), vec![parked(1, NOW)])).await;
    let all: Vec<u64> = (0..30).map(|n| n * 7).collect();
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = harness
            .store
            .page(run.shard.task, &FailurePage::ByIndex(after), 7)
            .await
            .unwrap();
        let Some(last) = page.last() else { break };
        after = Some(last.index);
        seen.extend(page.iter().map(|item| item.index.0));
    }
    assert_eq!(seen, all);
    let page = FailurePage::OfGroup("A".to_owned(), 8);
    let found = harness.store.page(run.shard.task, &page, 5).await.unwrap();
    assert_eq!(
        found.iter().map(|item| item.index.0).collect::<Vec<_>>(),
        [24 * 7, 27 * 7]
    );
    let among = [0, 1, 7, 8, 203, 999].map(ItemIndex);
    let found = harness.store.among(run.shard.task, &among).await.unwrap();
    assert_eq!(
        found.iter().map(|item| item.index.0).collect::<Vec<_>>(),
        [0, 7, 203]
    );
    let many: Vec<_> = (0..=AMONG_MAX as u64).map(ItemIndex).collect();
    assert!(harness.store.among(run.shard.task, &many).await.is_err());
    assert_eq!(
        harness
            .store
            .among(run.shard.task, &many[1..])
            .await
            .unwrap()
            .len(),
        29
    );
}

pub async fn each_failed_item_writes_one_line_with_its_checkpoint(harness: Harness) {
    let run = harness.running(10).await;
    let checkpoint = with(at(&run, 1, 5), vec![failed(1, "A"), parked(2, NOW)]);
    harness.stored(checkpoint.clone()).await;
    harness.stored(checkpoint).await;
    harness
        .stored(with(at(&run, 2, 6), vec![failed(1, "A"), failed(2, "B")]))
        .await;
    let zombie = windrow_engine::ports::ownership::run_store::ShardCheckpoint {
        epoch: windrow_core::ids::Epoch(1),
        ..at(&run, 3, 7)
    };
    harness.write(with(zombie, vec![failed(3, "C")])).await;
    let lines = harness
        .store
        .tail(run.shard.task, LogLevel::Debug, 10)
        .await
        .unwrap();
    let told: Vec<_> = lines
        .iter()
        .map(|line| (line.line.index.unwrap().0, line.code.clone().unwrap()))
        .collect();
    assert_eq!(told, [(2, "B".to_owned()), (1, "A".to_owned())]);
    assert!(
        lines
            .iter()
            .all(|line| line.origin == LogOrigin::System && line.line.level == LogLevel::Error)
    );
}

pub async fn what_waits_is_counted_by_its_code(harness: Harness) {
    let (run, other) = (harness.running(100).await, harness.running(100).await);
    let waiting = || async {
        let found = harness.store.waiting(run.shard.task).await.unwrap();
        found
            .into_iter()
            .map(|one| (one.code, one.items))
            .collect::<Vec<_>>()
    };
    assert_eq!(waiting().await, []);
    let never_failed = FailingItem {
        failure: None,
        ..retrying(9, "NONE")
    };
    let side = vec![
        SideRecord::Retrying(retrying(4, "TIMEOUT")),
        parked(5, NOW),
        parked(6, NOW),
        SideRecord::Retrying(retrying(7, "BUSY")),
        SideRecord::Retrying(retrying(8, "RESET")),
        failed(3, "BUSY"),
        SideRecord::Parked {
            retrying: never_failed,
            due_at: NOW,
        },
    ];
    harness.stored(with(at(&run, 1, 4), side)).await;
    harness
        .stored(with(
            at(&other, 1, 4),
            vec![SideRecord::Retrying(retrying(4, "OTHER"))],
        ))
        .await;
    let expected = [("BUSY", 3), ("RESET", 1), ("TIMEOUT", 1)].map(|(code, items)| (code.to_owned(), items));
    assert_eq!(waiting().await, expected);
    harness
        .stored(with(
            at(&run, 2, 9),
            vec![failed(5, "BUSY"), SideRecord::Cleared(ItemIndex(8))],
        ))
        .await;
    let expected = [("BUSY", 2), ("TIMEOUT", 1)].map(|(code, items)| (code.to_owned(), items));
    assert_eq!(waiting().await, expected);
}

/// An item that failed for good, and nothing showed whether the handler failed for it alone.
fn unconfirmed(index: u64, code: &str) -> SideRecord {
    SideRecord::Failed(FailingItem {
        is_unconfirmed: true,
        ..retrying(index, code)
    })
}

pub async fn calls_answered_for_others_are_kept_of_an_item_that_failed_for_good(harness: Harness) {
    let run = harness.running(100).await;
    let compared = |index| FailingItem {
        others_answered: 214,
        ..retrying(index, "BUSY")
    };
    let side = vec![
        SideRecord::Retrying(compared(4)),
        SideRecord::Failed(compared(5)),
        unconfirmed(6, "BUSY"),
    ];
    harness.stored(with(at(&run, 1, 3), side)).await;
    let told = async |index| {
        let item = harness.store.item(run.shard.task, ItemIndex(index)).await;
        item.unwrap().unwrap().others_answered
    };
    assert_eq!(told(4).await, None, "it is tried again");
    assert_eq!((told(5).await, told(6).await), (Some(214), Some(0)));
    harness
        .stored(with(at(&run, 2, 7), vec![SideRecord::Failed(compared(4))]))
        .await;
    assert_eq!(told(4).await, Some(214));
}

pub async fn unconfirmed_failures_are_counted_apart_and_once(harness: Harness) {
    let (run, other) = (harness.running(100).await, harness.running(100).await);
    let counts = async || {
        let groups = harness.store.groups(run.shard.task).await.unwrap();
        let count = |group: FailureGroup| (group.code, group.count, group.unconfirmed);
        groups.into_iter().map(count).collect::<Vec<_>>()
    };
    let side = vec![failed(3, "BUSY"), unconfirmed(4, "BUSY"), failed(5, "DEAD")];
    let first = with(at(&run, 1, 6), side);
    harness.stored(first.clone()).await;
    harness.stored(first).await;
    harness
        .stored(with(at(&other, 1, 6), vec![unconfirmed(5, "BUSY")]))
        .await;
    let expected = [("BUSY", 2, 1), ("DEAD", 1, 0)];
    let named = |counts: &[(&str, u64, u64)]| {
        let owned = counts.iter().map(|(code, n, of)| ((*code).to_owned(), *n, *of));
        owned.collect::<Vec<_>>()
    };
    assert_eq!(counts().await, named(&expected));
    // What is final stays as it was, whatever is recorded of it later.
    let again = vec![unconfirmed(3, "BUSY"), failed(4, "BUSY"), unconfirmed(6, "DEAD")];
    harness.stored(with(at(&run, 2, 9), again)).await;
    assert_eq!(counts().await, named(&[("BUSY", 2, 1), ("DEAD", 2, 1)]));
}

pub async fn unconfirmed_failures_are_found_by_group_and_page_by_page(harness: Harness) {
    let (run, other) = (harness.running(1000).await, harness.running(1000).await);
    let record = |n: u64| match n % 3 {
        0 => failed(n, "BUSY"),
        1 => unconfirmed(n, "BUSY"),
        _ => unconfirmed(n, "DEAD"),
    };
    let side = (0..30).map(record).chain([parked(31, NOW)]).collect();
    harness.stored(with(at(&run, 1, 30), side)).await;
    harness
        .stored(with(at(&other, 1, 6), vec![unconfirmed(3, "BUSY")]))
        .await;
    let find = async |groups: &[&str], after: Option<u64>, limit| {
        let groups: Vec<String> = groups.iter().map(|code| (*code).to_owned()).collect();
        let after = after.map(ItemIndex);
        let found = harness.store.unconfirmed(run.shard.task, &groups, after, limit);
        let found = found.await.unwrap().into_iter();
        found.map(|index| index.0).collect::<Vec<_>>()
    };
    let of = |is_wanted: fn(u64) -> bool| (0..30).filter(|n| is_wanted(*n)).collect::<Vec<u64>>();
    assert_eq!(find(&[], None, 99).await, of(|n| n % 3 != 0));
    assert_eq!(find(&["DEAD"], None, 99).await, of(|n| n % 3 == 2));
    assert_eq!(find(&["DEAD", "BUSY"], None, 99).await, of(|n| n % 3 != 0));
    assert_eq!(find(&["NONE"], None, 99).await, [0_u64; 0]);
    assert_eq!(find(&[], Some(4), 3).await, [5, 7, 8]);
    assert_eq!(find(&["BUSY"], Some(28), 3).await, [0_u64; 0]);
}
