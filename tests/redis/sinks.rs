//! Copies of datasets for readers: whole at once, never back, whatever dies, comes late or is lost in between.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use redis::AsyncCommands;
use redis::aio::MultiplexedConnection;
use tokio::runtime::Handle;
use uuid::Uuid;
use windrow_core::dataset::{GenerationNo, key_of};
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::datasets::sink::{Copied, SinkError, SinkJob};
use windrow_engine::ports::tasks::results::ItemOutput;
use windrow_host::clock::SystemClock;
use windrow_store::redis::{Begun, CopyPlace, Finished, RedisOptions, RedisSink, Section};

use crate::fixture::{LONG, options};
use crate::groups::{Cluster, secured};
use crate::servers::Redis;
use crate::twin::Dice;

const STEPS: u32 = 4_000;

fn sink(from: RedisOptions, grace: Duration) -> RedisSink {
    let options = RedisOptions {
        section: Section::READERS,
        ..from
    };
    RedisSink::new(options, grace, Arc::new(SystemClock::new()), &Handle::current())
}

fn job(name: &str, dataset: i64, epoch: u64) -> SinkJob {
    SinkJob {
        dataset,
        name: name.to_owned(),
        epoch,
        removes: false,
        attempts: 0,
    }
}

fn place(job: &SinkJob, publication: u64, generation: u64) -> CopyPlace {
    CopyPlace {
        job: job.clone(),
        publication,
        generation: GenerationNo(generation),
    }
}

/// The results of a generation: every output says whose it is.
fn results(generation: u64) -> Vec<ItemOutput> {
    let output = |index: u64| ItemOutput {
        // There are gaps: some items have no output.
        index: ItemIndex(index * 2 + generation % 2),
        json: format!("{{\"g\":{generation},\"k\":\"k{}\"}}", index % 3).into(),
    };
    (0..3 + generation % 4).map(output).collect()
}

fn keyed(outputs: &[ItemOutput]) -> Vec<(ItemOutput, Option<String>)> {
    let keyed = |output: &ItemOutput| (output.clone(), key_of(&output.json, "k"));
    outputs.iter().map(keyed).collect()
}

fn finished(summary: &str, results: u64) -> Finished<'_> {
    Finished {
        results,
        is_keyed: true,
        summary: Some(summary),
    }
}

async fn begun(sink: &RedisSink, place: &CopyPlace) -> (String, ItemIndex) {
    match sink.begin(place).await.expect("begun") {
        Begun::Copy { copy, from } => (copy, from),
        Begun::There => panic!("it isn't there: {place:?}"),
    }
}

/// Copies a generation in one go.
async fn copy(sink: &RedisSink, place: &CopyPlace) {
    let outputs = results(place.generation.0);
    let (copy, from) = begun(sink, place).await;
    let to = outputs.last().expect("some").index.plus(1);
    let rest: Vec<ItemOutput> = outputs.iter().filter(|one| one.index >= from).cloned().collect();
    if !rest.is_empty() {
        let appended = sink.append((&place.job, &copy), (from, to), &keyed(&rest)).await;
        appended.expect("appended");
    }
    let summary = format!("{{\"g\":{}}}", place.generation);
    let flipped = sink
        .flip(place, &copy, &finished(&summary, outputs.len() as u64))
        .await;
    flipped.expect("flipped");
}

async fn connection(server: &Redis) -> MultiplexedConnection {
    let client = redis::Client::open(server.url()).expect("a URL");
    client
        .get_multiplexed_async_connection()
        .await
        .expect("connected")
}

/// What a reader finds: publication and generation, after it was compared with what that generation is.
async fn read(redis: &mut MultiplexedConnection, name: &str) -> Option<(u64, u64)> {
    let now: HashMap<String, String> = redis
        .hgetall(format!("windrow:{{a1b2c3:{name}}}:current"))
        .await
        .unwrap();
    let items = now.get("items")?;
    let number = |member: &str| now[member].parse::<u64>().expect("a number");
    let found: BTreeMap<u64, String> = redis.hgetall(items).await.unwrap();
    let keys: BTreeMap<String, String> = redis.hgetall(&now["keys"]).await.unwrap();
    let generation = number("generation");
    let expected = results(generation);
    let outputs: BTreeMap<u64, String> = expected
        .iter()
        .map(|output| (output.index.0, output.json.to_string()))
        .collect();
    assert_eq!(found, outputs, "generation {generation} is whole: {now:?}");
    let mut by_key: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (output, key) in keyed(&expected) {
        by_key
            .entry(key.expect("a key"))
            .or_default()
            .push(output.index.0.to_string());
    }
    let by_key: BTreeMap<String, String> = by_key.into_iter().map(|(key, of)| (key, of.join(","))).collect();
    assert_eq!(keys, by_key);
    assert_eq!(now["summary"], format!("{{\"g\":{generation}}}"));
    assert_eq!(number("results"), outputs.len() as u64);
    Some((number("publication"), generation))
}

#[tokio::test]
async fn readers_find_a_copy_whole_and_what_was_current_for_a_while() {
    let server = Redis::start();
    let mut redis = connection(&server).await;
    let sink = sink(options(&server.url()), Duration::from_secs(60));
    assert_eq!(read(&mut redis, "board").await, None);
    for no in 1..=6_u64 {
        copy(&sink, &place(&job("board", 3, no), no, no)).await;
        assert_eq!(read(&mut redis, "board").await, Some((no, no)));
    }
    let is_there = |publication| Copied {
        dataset: 3,
        name: "board".to_owned(),
        publication,
    };
    assert_eq!(sink.is_there(&is_there(6)).await, Ok(true));
    assert_eq!(sink.is_there(&is_there(5)).await, Ok(false));
    // A repeat of what is there, and a generation that is current again.
    let again = sink.begin(&place(&job("board", 3, 7), 6, 6)).await;
    assert_eq!(again, Ok(Begun::There));
    copy(&sink, &place(&job("board", 3, 8), 7, 2)).await;
    assert_eq!(read(&mut redis, "board").await, Some((7, 2)));
    let items: Vec<String> = redis.keys("windrow:*:items").await.unwrap();
    assert_eq!(items.len(), 4, "the current one and three older ones: {items:?}");
    for key in items {
        let left: i64 = redis.pttl(&key).await.unwrap();
        let is_current = key.contains(":g:2:3-8:");
        assert_eq!(left == -1, is_current, "{key}: {left}");
        assert!(left <= 60_000, "{key}: {left}");
    }
    sink.remove(&job("board", 3, 9)).await.unwrap();
    assert_eq!(read(&mut redis, "board").await, None);
    let lasting: Vec<String> = redis.keys("*").await.unwrap();
    for key in lasting {
        let left: i64 = redis.pttl(&key).await.unwrap();
        assert!(left > 0, "{key} goes by itself");
    }
}

#[tokio::test]
async fn a_copy_that_was_cut_short_is_gone_on_with_and_its_owner_is_refused() {
    let server = Redis::start();
    let mut redis = connection(&server).await;
    let sink = sink(options(&server.url()), LONG);
    copy(&sink, &place(&job("board", 3, 1), 1, 1)).await;
    let (first, second) = (place(&job("board", 3, 2), 2, 3), place(&job("board", 3, 3), 2, 3));
    let outputs = keyed(&results(3));
    let (copied, from) = begun(&sink, &first).await;
    let half = outputs[2].0.index.plus(1);
    let append = async |place: &CopyPlace, from, to, some: &[_]| {
        sink.append((&place.job, &copied), (from, to), some).await
    };
    append(&first, from, half, &outputs[..3]).await.unwrap();
    append(&first, from, half, &outputs[..3])
        .await
        .expect("a repeat has no effect");
    let unfinished: i64 = redis.pttl(format!("{copied}:items")).await.unwrap();
    assert!(unfinished > 0, "it goes by itself");
    assert_eq!(begun(&sink, &second).await, (copied.clone(), half));
    let end = outputs.last().unwrap().0.index.plus(1);
    let late = append(&first, half, end, &outputs[3..]).await;
    assert_eq!(late, Err(SinkError::Fenced));
    let early = sink
        .flip(&second, &copied, &finished("{\"g\":3}", outputs.len() as u64))
        .await;
    assert!(
        matches!(early, Err(SinkError::Failed(_))),
        "it is not whole: {early:?}"
    );
    assert_eq!(read(&mut redis, "board").await, Some((1, 1)));
    copy(&sink, &second).await;
    assert_eq!(read(&mut redis, "board").await, Some((2, 3)));
    let late = sink.flip(&first, &copied, &finished("{}", 6)).await;
    assert_eq!(late, Err(SinkError::Fenced));
    assert_eq!(sink.begin(&first).await, Err(SinkError::Fenced));
    let older = sink.begin(&place(&job("board", 3, 4), 1, 1)).await;
    assert!(matches!(older, Err(SinkError::Failed(_))), "{older:?}");
    assert_eq!(read(&mut redis, "board").await, Some((2, 3)));
}

#[tokio::test]
async fn a_dataset_that_is_made_anew_takes_the_place_of_the_old_one() {
    let server = Redis::start();
    let mut redis = connection(&server).await;
    let sink = sink(options(&server.url()), LONG);
    copy(&sink, &place(&job("board", 3, 9), 50, 7)).await;
    copy(&sink, &place(&job("board", 4, 1), 1, 1)).await;
    assert_eq!(read(&mut redis, "board").await, Some((1, 1)));
    assert_eq!(
        sink.begin(&place(&job("board", 3, 10), 51, 8)).await,
        Err(SinkError::Fenced)
    );
    sink.remove(&job("board", 3, 11))
        .await
        .expect("it has nothing left");
    assert_eq!(read(&mut redis, "board").await, Some((1, 1)));
}

#[tokio::test]
async fn what_redis_lost_is_seen_and_copied_again() {
    let server = Redis::start();
    let mut redis = connection(&server).await;
    let sink = sink(options(&server.url()), LONG);
    copy(&sink, &place(&job("board", 3, 1), 1, 1)).await;
    let copied = Copied {
        dataset: 3,
        name: "board".to_owned(),
        publication: 1,
    };
    let items: String = redis
        .hget("windrow:{a1b2c3:board}:current", "items")
        .await
        .unwrap();
    let _: () = redis.del(items).await.unwrap();
    assert_eq!(sink.is_there(&copied).await, Ok(false), "its items were evicted");
    copy(&sink, &place(&job("board", 3, 2), 1, 1)).await;
    assert_eq!(read(&mut redis, "board").await, Some((1, 1)));
    server.cli(&["FLUSHALL"]);
    assert_eq!(sink.is_there(&copied).await, Ok(false));
    copy(&sink, &place(&job("board", 3, 3), 1, 1)).await;
    assert_eq!(
        (read(&mut redis, "board").await, sink.is_there(&copied).await),
        (Some((1, 1)), Ok(true))
    );
}

#[tokio::test]
async fn one_key_has_so_many_indexes_and_says_that_there_are_more() {
    let server = Redis::start();
    let mut redis = connection(&server).await;
    let sink = sink(options(&server.url()), LONG);
    let place = place(&job("board", 3, 1), 1, 1);
    let (copy, mut from) = begun(&sink, &place).await;
    let output = |index| ItemOutput {
        index: ItemIndex(index),
        json: "{\"k\":1}".into(),
    };
    for first in (0..6_000).step_by(500) {
        let outputs: Vec<_> = (first..first + 500)
            .map(|index| (output(index), Some("1".to_owned())))
            .collect();
        let to = ItemIndex(first + 500);
        sink.append((&place.job, &copy), (from, to), &outputs)
            .await
            .unwrap();
        from = to;
    }
    sink.flip(&place, &copy, &finished("{}", 6_000)).await.unwrap();
    let text: String = redis.hget(format!("{copy}:keys"), "1").await.unwrap();
    assert!(
        text.ends_with(',') && text.len() <= 16_001,
        "{} bytes",
        text.len()
    );
    assert!(text.starts_with("0,1,2,3,") && text.matches(',').count() > 3_000);
}

#[tokio::test]
async fn a_user_needs_the_rights_that_are_documented_and_tls_works() {
    let (server, options) = secured();
    let sink = sink(options, LONG);
    let refused = sink.begin(&place(&job("board", 3, 1), 1, 1)).await;
    let Err(SinkError::Failed(why)) = refused else {
        panic!("{refused:?}")
    };
    assert!(
        why.contains("datasets.redis_url") && why.contains("copies of datasets"),
        "{why}"
    );
    let rights = "+evalsha +eval +hget +hmget +hset +hdel +hlen +hincrby +del +unlink +pexpire +persist +lpush +rpop +llen";
    let mut command = vec!["ACL", "SETUSER", "windrow"];
    command.extend(rights.split(' '));
    assert_eq!(server.cli(&command), "OK");
    for no in 1..=5 {
        copy(&sink, &place(&job("board", 3, no), no, no)).await;
    }
    sink.remove(&job("board", 3, 6)).await.unwrap();
}

#[tokio::test]
async fn in_a_cluster_each_dataset_is_where_its_slot_is() {
    let cluster = Cluster::start().await;
    let sink = sink(options(&cluster.url()), LONG);
    let names: Vec<String> = (0..9).map(|n| format!("board-{n}")).collect();
    for round in 1..=3 {
        for name in &names {
            copy(&sink, &place(&job(name, 3, round), round, round)).await;
        }
    }
    let mut found = 0;
    for server in &cluster.servers {
        let mut redis = connection(server).await;
        let own: Vec<String> = redis.keys("windrow:*:current").await.unwrap();
        for pointer in &own {
            let name = pointer
                .trim_start_matches("windrow:{a1b2c3:")
                .trim_end_matches("}:current");
            assert_eq!(read(&mut redis, name).await, Some((3, 3)), "{name}");
        }
        assert!(!own.is_empty(), "nine datasets are spread");
        found += own.len();
    }
    assert_eq!(found, names.len());
}

/// A claim on the copy, alive or believed dead, and how far it is.
#[derive(Clone, Debug)]
struct Owner {
    place: CopyPlace,
    /// The copy and the index from which it goes on, once it has begun.
    at: Option<(String, ItemIndex)>,
    is_over: bool,
}

struct World {
    sink: RedisSink,
    redis: MultiplexedConnection,
    dice: Dice,
    owners: Vec<Owner>,
    epoch: u64,
    /// What is current in the database: each publication's generation.
    published: Vec<u64>,
    /// The lowest publication that readers may find, since what was there was lost or taken away last.
    floor: u64,
    /// The claim that took it away last.
    removed: u64,
}

impl World {
    fn claim(&mut self) {
        self.epoch += 1;
        let publication = self.published.len() as u64;
        let generation = self.published[self.published.len() - 1];
        let place = place(&job("board", 3, self.epoch), publication, generation);
        self.owners.push(Owner {
            place,
            at: None,
            is_over: false,
        });
        if self.owners.len() > 4 {
            self.owners.remove(0);
        }
    }

    /// One step of one claim, whichever comes to its turn.
    async fn step(&mut self, nth: usize) {
        let mut owner = self.owners[nth].clone();
        if owner.is_over {
            return;
        }
        let outputs = results(owner.place.generation.0);
        let outcome = match &owner.at {
            None => match self.sink.begin(&owner.place).await {
                Ok(Begun::Copy { copy, from }) => {
                    owner.at = Some((copy, from));
                    Ok(())
                }
                Ok(Begun::There) => {
                    owner.is_over = true;
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Some((copy, from)) => {
                let left = outputs.iter().filter(|one| one.index >= *from);
                let some: Vec<ItemOutput> = left.take(1 + self.dice.roll(2) as usize).cloned().collect();
                match some.last() {
                    Some(last) => {
                        let to = last.index.plus(1);
                        let own = (&owner.place.job, copy.as_str());
                        let appended = self.sink.append(own, (*from, to), &keyed(&some)).await;
                        owner.at = Some((copy.clone(), to));
                        appended
                    }
                    None => {
                        owner.is_over = true;
                        let summary = format!("{{\"g\":{}}}", owner.place.generation);
                        let finished = finished(&summary, outputs.len() as u64);
                        self.sink.flip(&owner.place, copy, &finished).await
                    }
                }
            }
        };
        // A claim that failed is tried under a number of its own.
        owner.is_over |= outcome.is_err();
        self.owners[nth] = owner;
    }

    async fn judge(&mut self, told: &str) {
        let Some((publication, generation)) = read(&mut self.redis, "board").await else {
            return;
        };
        assert!(
            publication >= self.floor,
            "{told}: {publication} after {}",
            self.floor
        );
        assert_eq!(generation, self.published[publication as usize - 1], "{told}");
        let by: String = self
            .redis
            .hget("windrow:{a1b2c3:board}:current", "copy")
            .await
            .unwrap();
        let by: u64 = by.rsplit('-').next().unwrap().parse().unwrap();
        assert!(
            by > self.removed,
            "{told}: {by} brought back what {} took away",
            self.removed
        );
        self.floor = publication;
    }

    async fn act(&mut self) {
        match self.dice.roll(100) {
            0..8 => self.claim(),
            8..14 => {
                let generations = self.published.iter().max().copied().unwrap_or_default();
                let is_back = self.dice.roll(3) == 0;
                let next = if is_back {
                    1 + self.dice.roll(generations)
                } else {
                    generations + 1
                };
                self.published.push(next);
            }
            14 => {
                let _: () = redis::cmd("FLUSHALL").query_async(&mut self.redis).await.unwrap();
                (self.floor, self.removed) = (0, 0);
            }
            15 => {
                self.epoch += 1;
                self.sink.remove(&job("board", 3, self.epoch)).await.unwrap();
                (self.floor, self.removed) = (0, self.epoch);
            }
            _ if self.owners.is_empty() => self.claim(),
            _ => {
                let nth = self.dice.roll(self.owners.len() as u64) as usize;
                self.step(nth).await;
            }
        }
    }
}

#[tokio::test]
async fn whatever_dies_comes_late_or_is_lost_readers_find_one_generation_whole_and_never_an_older_one() {
    let server = Redis::start();
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
    println!("seed {seed}: repeat with SEED={seed}");
    let mut world = World {
        sink: sink(options(&server.url()), LONG),
        redis: connection(&server).await,
        dice: Dice(seed),
        owners: Vec::new(),
        epoch: 0,
        published: vec![1],
        floor: 0,
        removed: 0,
    };
    for step in 0..STEPS {
        world.act().await;
        world.judge(&format!("seed {seed}, step {step}")).await;
    }
    // Once nothing goes wrong any more, the newest claim brings what is current.
    world.claim();
    while world.owners.last().is_some_and(|owner| !owner.is_over) {
        let newest = world.owners.len() - 1;
        world.step(newest).await;
    }
    let current = (
        world.published.len() as u64,
        world.published[world.published.len() - 1],
    );
    assert_eq!(
        read(&mut world.redis, "board").await,
        Some(current),
        "seed {seed}"
    );
}
