//! Order of the nodes for a shard that all of them could take. Each node computes the same order without asking the
//! others. The order decides nothing: the first to claim the shard has it.
//!
//! Weighted rendezvous hashing orders the nodes for each task; a node is first in proportion to its share of the
//! total capacity. The shards of a task rotate through that order, so four shards on three nodes never all run on one
//! node.

use super::Load;
use crate::ids::{SessionId, ShardId, TaskId};

/// Node that could take shards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Session of the node.
    pub session: SessionId,
    /// Capacity of the node; `None` is unlimited.
    pub capacity: Option<Load>,
    /// Pools that the node serves; `None` serves all, an empty list none.
    pub pools: Option<Vec<String>>,
}

/// Returns the number of peers that go before `me` for a shard; 0 is first.
pub fn rank(shard: ShardId, me: SessionId, peers: &[Peer]) -> usize {
    let takes = |peer: &&Peer| peer.pools.as_ref().is_none_or(|pools| !pools.is_empty());
    let takers = peers.iter().filter(takes).count();
    let place = place(shard.task, me, peers);
    if place >= takers {
        return place;
    }
    (place + takers - shard.no as usize % takers) % takers
}

/// Returns the number of peers that come before `me` in a task's order.
fn place(task: TaskId, me: SessionId, peers: &[Peer]) -> usize {
    let largest = peers.iter().filter_map(|peer| peer.capacity).max();
    let takes = |peer: &&Peer| peer.pools.as_ref().is_none_or(|pools| !pools.is_empty());
    let score = |peer: &Peer| {
        // A node without a limit weighs as much as the largest.
        let weight = peer
            .capacity
            .or(largest)
            .map_or(1.0, |load| (load.0.max(1)) as f64);
        (weight / -hash(task, peer.session).ln(), peer.session)
    };
    let Some(own) = peers.iter().find(|peer| peer.session == me).map(score) else {
        return 0;
    };
    peers
        .iter()
        .filter(takes)
        .filter(|peer| score(peer) > own)
        .count()
}

/// Returns a pseudorandom number strictly between 0 and 1, the same on every node.
fn hash(task: TaskId, session: SessionId) -> f64 {
    let (high, low) = session.0.as_u64_pair();
    let parts = [task.0.cast_unsigned(), high, low];
    let mixed = parts
        .into_iter()
        .fold(0x9E37_79B9_7F4A_7C15, |state, part| mix(state ^ part));
    ((mixed >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
}

/// Mixes the state with the SplitMix64 finalizer.
fn mix(state: u64) -> u64 {
    let state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn peer(no: u128, capacity: Option<u128>) -> Peer {
        Peer {
            session: SessionId(Uuid::from_u128(no * 7 + 1)),
            capacity: capacity.map(Load),
            pools: None,
        }
    }

    fn firsts(peers: &[Peer]) -> Vec<usize> {
        let mut firsts = vec![0; peers.len()];
        for task in 1..=1_000 {
            let shard = ShardId {
                task: TaskId(task),
                no: 0,
            };
            let mut ranks: Vec<usize> = peers
                .iter()
                .map(|peer| rank(shard, peer.session, peers))
                .collect();
            if let Some(first) = ranks.iter().position(|rank| *rank == 0) {
                firsts[first] += 1;
            }
            ranks.sort_unstable();
            assert_eq!(
                ranks,
                (0..peers.len()).collect::<Vec<_>>(),
                "an order without ties"
            );
        }
        firsts
    }

    #[test]
    fn each_node_is_first_for_a_part_that_follows_its_capacity() {
        let even = firsts(&[peer(1, None), peer(2, None), peer(3, None)]);
        assert!(even.iter().all(|count| (270..400).contains(count)), "{even:?}");
        let uneven = firsts(&[peer(1, Some(1_000)), peer(2, Some(3_000))]);
        assert!((200..300).contains(&uneven[0]), "{uneven:?}");
        let unlimited = firsts(&[peer(1, None), peer(2, Some(3_000))]);
        assert!((440..560).contains(&unlimited[0]), "{unlimited:?}");
    }

    #[test]
    fn the_shards_of_a_task_go_round() {
        let peers = [peer(1, None), peer(2, None), peer(3, Some(500))];
        for task in 1..100 {
            let mut firsts = vec![0; peers.len()];
            for no in 0..4 {
                let shard = ShardId {
                    task: TaskId(task),
                    no,
                };
                let ranks = peers.iter().map(|peer| rank(shard, peer.session, &peers));
                firsts[ranks
                    .into_iter()
                    .position(|rank| rank == 0)
                    .expect("one is first")] += 1;
            }
            firsts.sort_unstable();
            assert_eq!(firsts, [1, 1, 2]);
        }
    }

    #[test]
    fn one_that_takes_nothing_goes_before_nobody_and_a_stranger_does_not_wait() {
        let mut peers = vec![peer(1, None), peer(2, None)];
        peers[1].pools = Some(Vec::new());
        for task in 1..100 {
            let shard = ShardId {
                task: TaskId(task),
                no: 0,
            };
            assert_eq!(rank(shard, peers[0].session, &peers), 0);
            assert_eq!(rank(shard, SessionId(Uuid::from_u128(99)), &peers), 0);
        }
    }
}
