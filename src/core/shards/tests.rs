//! Goal: the parts tile the whole and never add up to more than it, for many numbers and not only for round ones.

use super::*;

fn range(start: u64, end: u64) -> ShardRange {
    ShardRange {
        start: ItemIndex(start),
        end: ItemIndex(end),
    }
}

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("not zero")
}

fn wanted(shards: Auto<NonZeroU32>) -> Sharding {
    Sharding {
        shards,
        rate: "5000/s".parse().expect("a rate"),
        concurrency: Auto::Auto,
        max_concurrency: number(1024),
        ordered: false,
        parts_max: None,
        canary: None,
    }
}

#[test]
fn parts_tile_the_range_and_differ_by_one_item_at_most() {
    for items in (0..200).chain([1_000_003, u64::from(u32::MAX) * 7]) {
        for count in [1, 2, 3, 7, 64, SHARDS_MAX] {
            let parts = cut(range(5, 5 + items), count);
            assert_eq!(
                parts.len() as u64,
                u64::from(count).min(items.max(1)),
                "{items} in {count}"
            );
            assert_eq!(parts[0].start, ItemIndex(5));
            assert!(
                parts.windows(2).all(|two| two[0].end == two[1].start),
                "{items} in {count}"
            );
            assert_eq!(parts[parts.len() - 1].end, ItemIndex(5 + items));
            let lengths: Vec<u64> = parts.iter().map(|part| part.len().0).collect();
            assert!(lengths.is_sorted_by(|one, next| one >= next), "{lengths:?}");
            assert!(lengths[0] - lengths[lengths.len() - 1] <= 1, "{lengths:?}");
        }
    }
}

#[test]
fn a_share_reads_back_and_no_sum_of_shares_is_more_than_the_whole() {
    assert_eq!(Share::read(None), Share::ALL);
    for parts in 1..=SHARDS_MAX {
        let share = Share::one_of(parts);
        assert_eq!(Share::read(Some(share.stored())), share, "{parts}");
        assert!(share.stored() * i64::from(parts) <= 1 << 30, "{parts}");
    }
    // What a shard that is done has, and what nobody wrote: as good as nothing.
    for stored in [0, -5] {
        assert!(Share::read(Some(stored)).parts() >= 1 << 30);
    }
}

#[test]
fn parts_of_a_rate_make_the_rate_and_never_more() {
    let exact = [
        ("500/s", 4, "125/s"),
        ("10/s", 4, "5/2s"),
        ("1/h", 3, "1/3h"),
        ("1000000/s", 1, "1000000/s"),
    ];
    for (rate, parts, part) in exact {
        let (rate, part): (Rate, Rate) = (rate.parse().expect("a rate"), part.parse().expect("a rate"));
        assert_eq!(Share::one_of(parts).of_rate(rate), part);
    }
    assert_eq!(
        Share::one_of(9).of_limit(RateLimit::Unlimited),
        RateLimit::Unlimited
    );
}

#[test]
fn a_number_is_obeyed_as_far_as_there_are_items_and_no_further_than_the_canary_lets() {
    let four = wanted(Auto::Fixed(number(4)));
    let nodes = Nodes {
        count: 1,
        capacity_micros: None,
    };
    assert_eq!(four.count(range(0, 1000), nodes), 4);
    assert_eq!(four.count(range(0, 3), nodes), 3);
    assert_eq!(four.count(range(7, 7), nodes), 1);
    assert_eq!(
        Sharding {
            ordered: true,
            ..four
        }
        .count(range(0, 1000), nodes),
        1
    );
    for items in 1..=1000 {
        let canary = Canary {
            items: NonZeroU64::new(items).expect("not zero"),
            then: Default::default(),
        };
        let count = Sharding {
            canary: Some(canary),
            ..four
        }
        .count(range(0, 1000), nodes);
        let first = cut(range(0, 1000), count)[0].len().0;
        assert!(
            count == 1 || first > items,
            "{items}: {count} shards, the first has {first}"
        );
        assert!(
            count == 4 || 1000_u64.div_ceil(u64::from(count) + 1) <= items,
            "{items}: more would do"
        );
    }
}

#[test]
fn auto_takes_the_fewest_that_fit() {
    let auto = wanted(Auto::Auto);
    let of = |count, capacity: Option<u64>| Nodes {
        count,
        capacity_micros: capacity.map(|rate| u128::from(rate) * 1_000_000),
    };
    let whole = range(0, 1_000_000);
    assert_eq!(auto.count(whole, of(3, None)), 1, "one node runs any rate");
    assert_eq!(auto.count(whole, of(3, Some(5000))), 1);
    assert_eq!(auto.count(whole, of(3, Some(4999))), 2);
    assert_eq!(auto.count(whole, of(3, Some(2000))), 3);
    assert_eq!(
        auto.count(whole, of(2, Some(1))),
        8,
        "no more than four for each node"
    );
    assert_eq!(auto.count(whole, of(99, Some(1))), SHARDS_AUTO_MAX);
    assert_eq!(auto.count(whole, of(0, Some(1))), 1, "no node was seen");
    let unpaced = Sharding {
        rate: RateLimit::Unlimited,
        ..auto
    };
    assert_eq!(
        unpaced.count(whole, of(3, Some(2000))),
        3,
        "every node takes part"
    );
    let wide = Sharding {
        concurrency: Auto::Fixed(number(3000)),
        ..auto
    };
    assert_eq!(wide.count(whole, of(3, None)), 3, "1024 on each");
    let tight = Sharding {
        parts_max: Some(2),
        ..auto
    };
    assert_eq!(
        tight.count(whole, of(3, Some(1000))),
        2,
        "the settings can't be shared by more"
    );
}
