//! The smallest engine of Windrow's shape: a core whose step carries a batch of facts, behind one mutex, and lanes that
//! poll each boxed call once. It calls the same handler in the same way, and reads the clock and asks the gate as often.
//! Beside that it has a window, a concurrency and counters, and nothing else: no pace, retries, checkpoints, rows, logs or
//! actors. What it does in a second is what the whole engine is held against.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use windrow_core::ids::{Attempt, ItemIndex, Moment};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::Dispatch;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Call, CallItems, CallRows, Handler, Reply};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_host::clock::SystemClock;

use super::engine::no_op;

/// Rounds between two yields to the other tasks of the thread.
const ROUNDS_PER_YIELD: u32 = 16;
/// Items asked for at once.
const CHUNK: u32 = 512;

/// Neighbouring items.
#[derive(Clone, Copy)]
struct Run {
    first: u64,
    len: u32,
}

struct Core {
    low: u64,
    next: u64,
    total: u64,
    window: u64,
    concurrency: u32,
    in_flight: u32,
    succeeded: u64,
    words: Vec<u64>,
}

impl Core {
    fn new(total: u64, concurrency: u32) -> Core {
        let window = (2 * u64::from(concurrency)).next_power_of_two();
        Core {
            low: 0,
            next: 0,
            total,
            window,
            concurrency,
            in_flight: 0,
            succeeded: 0,
            words: vec![0; (window / 64 + 1).next_power_of_two() as usize],
        }
    }

    fn step(&mut self, settled: &mut Vec<Run>, want: u32, granted: &mut Vec<Run>) -> bool {
        for run in settled.drain(..) {
            self.settle(run);
        }
        let room = u64::from(want.min(self.concurrency - self.in_flight));
        let to = (self.next + room).min(self.low + self.window).min(self.total);
        if to > self.next {
            let len = (to - self.next) as u32;
            granted.push(Run {
                first: self.next,
                len,
            });
            (self.next, self.in_flight) = (to, self.in_flight + len);
        }
        self.low == self.total
    }

    fn settle(&mut self, run: Run) {
        (self.in_flight, self.succeeded) = (self.in_flight - run.len, self.succeeded + u64::from(run.len));
        let slots = self.words.len() as u64 - 1;
        let (mut at, end) = (run.first, run.first + u64::from(run.len));
        while at < end {
            let bits = (64 - (at & 63)).min(end - at);
            self.words[(at >> 6 & slots) as usize] |= (u64::MAX >> (64 - bits)) << (at & 63);
            at += bits;
        }
        loop {
            let (slot, bit) = ((self.low >> 6 & slots) as usize, self.low & 63);
            let ones = u64::from((self.words[slot] >> bit).trailing_ones()).min(64 - bit);
            if ones == 0 {
                return;
            }
            self.words[slot] &= !((u64::MAX >> (64 - ones)) << bit);
            self.low += ones;
        }
    }
}

/// What lanes share.
struct Shared {
    core: Mutex<Core>,
    handler: Arc<dyn Handler>,
    clock: SystemClock,
    gate: Gate,
}

/// Drives `total` items through the no-op handler, `batch` a call.
pub fn run(total: u64, batch: u32, concurrency: u32, lanes: usize) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(lanes)
        .build()
        .unwrap();
    let shared = Arc::new(Shared {
        core: Mutex::new(Core::new(total, concurrency)),
        handler: no_op(),
        clock: SystemClock::new(),
        gate: Gate::always_open(),
    });
    runtime.block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..lanes {
            tasks.spawn(lane(shared.clone(), batch));
        }
        while tasks.join_next().await.is_some() {}
    });
    assert_eq!(shared.core.lock().unwrap().succeeded, total);
}

async fn lane(shared: Arc<Shared>, batch: u32) {
    let (mut settled, mut granted, mut rounds) = (Vec::new(), Vec::new(), 0);
    loop {
        granted.clear();
        let now = shared.clock.now();
        let want = if shared.gate.is_open(now) { CHUNK } else { 0 };
        let over = shared.core.lock().unwrap().step(&mut settled, want, &mut granted);
        if over {
            return;
        }
        std::future::poll_fn(|cx| {
            for run in &granted {
                call_all(&*shared.handler, (*run, now), batch, &mut settled, cx);
            }
            Poll::Ready(())
        })
        .await;
        rounds += 1;
        if granted.is_empty() || rounds % ROUNDS_PER_YIELD == 0 {
            tokio::task::yield_now().await;
        }
    }
}

fn call_all(
    handler: &dyn Handler,
    (run, now): (Run, Moment),
    batch: u32,
    settled: &mut Vec<Run>,
    cx: &mut Context<'_>,
) {
    let end = run.first + u64::from(run.len);
    let mut first = run.first;
    while first < end {
        let len = batch.min((end - first) as u32);
        let items = CallItems::One(Dispatch {
            run: IndexRun::new(ItemIndex(first), len).unwrap(),
            attempt: Attempt::FIRST,
        });
        let mut call = handler.process(Call {
            items,
            rows: CallRows::default(),
            gate_time: now,
            timeout: Duration::from_secs(10),
        });
        match call.as_mut().poll(cx) {
            Poll::Ready(reply) => assert!(matches!(reply, Reply::AllOk)),
            Poll::Pending => unreachable!("it answers at once"),
        }
        match settled.last_mut() {
            Some(last) if last.first + u64::from(last.len) == first => last.len += len,
            _ => settled.push(Run { first, len }),
        }
        first += u64::from(len);
    }
}
