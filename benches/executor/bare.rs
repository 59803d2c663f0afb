//! The bare windowed loop: 1,000 tasks claim `chunk` indexes at a time from a ring behind one mutex. They yield only
//! when the window is full, which is as quick as such a loop gets.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

const WORKERS: u64 = 1_000;

trait Handler: Send + Sync {
    fn process(&self, index: u64) -> Pin<Box<dyn Future<Output = bool> + Send + '_>>;
}

struct NoOp;

impl Handler for NoOp {
    fn process(&self, index: u64) -> Pin<Box<dyn Future<Output = bool> + Send + '_>> {
        Box::pin(async move { std::hint::black_box(index) != u64::MAX })
    }
}

struct Ring {
    low: u64,
    next: u64,
    total: u64,
    size: u64,
    words: Vec<u64>,
}

impl Ring {
    fn claim(&mut self, chunk: u64) -> Option<(u64, u64)> {
        let to = (self.next + chunk).min(self.low + self.size).min(self.total);
        let from = self.next;
        self.next = to.max(from);
        (from < self.total).then_some((from, self.next))
    }

    fn settle(&mut self, from: u64, to: u64) {
        let slots = self.words.len() as u64 - 1;
        for index in from..to {
            self.words[(index >> 6 & slots) as usize] |= 1 << (index & 63);
        }
        loop {
            let slot = (self.low >> 6 & slots) as usize;
            let bit = self.low & 63;
            let ones = u64::from((self.words[slot] >> bit).trailing_ones()).min(64 - bit);
            if ones == 0 {
                return;
            }
            self.words[slot] &= !((u64::MAX >> (64 - ones)) << bit);
            self.low += ones;
        }
    }
}

/// Drives `total` items through the no-op handler.
pub fn run(total: u64, chunk: u64, threads: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .build()
        .unwrap();
    let size = (2 * WORKERS * chunk).max(2_048).next_power_of_two();
    let words = vec![0; (size / 64 + 1).next_power_of_two() as usize];
    let ring = Arc::new(Mutex::new(Ring {
        low: 0,
        next: 0,
        total,
        size,
        words,
    }));
    let handler: Arc<dyn Handler> = Arc::new(NoOp);
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..WORKERS {
            tasks.spawn(work(ring.clone(), handler.clone(), chunk));
        }
        while tasks.join_next().await.is_some() {}
    });
    assert_eq!(ring.lock().unwrap().low, total);
}

async fn work(ring: Arc<Mutex<Ring>>, handler: Arc<dyn Handler>, chunk: u64) {
    let mut done = (0, 0);
    loop {
        let claimed = {
            let mut ring = ring.lock().unwrap();
            ring.settle(done.0, done.1);
            ring.claim(chunk)
        };
        let Some((from, to)) = claimed else { return };
        for index in from..to {
            assert!(handler.process(index).await);
        }
        done = (from, to);
        if from == to {
            tokio::task::yield_now().await;
        }
    }
}
