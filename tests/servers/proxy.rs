//! A TCP proxy that is as bad as networks are, and that is told live how bad.
//!
//! Included by `#[path = "../servers/proxy.rs"] mod proxy;`, apart from the servers, since it needs tokio. One proxy is
//! one link: every connection through it suffers the same [`Weather`]. What is held arrives later, as after a
//! partition that heals; what is dropped is gone, so a connection that lost bytes is reset once the weather clears,
//! for the rest of its bytes would make no sense.

#![allow(dead_code, reason = "each test binary uses its own part")]

#[path = "proxy/link.rs"]
mod link;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A direction, seen from whoever connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Requests.
    Up,
    /// Replies.
    Down,
}

/// What becomes of the bytes of a direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Flow {
    /// They arrive.
    #[default]
    Open,
    /// They wait, and arrive when the flow opens again.
    Hold,
    /// They vanish.
    Drop,
}

/// How a link is. The default is a perfect one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Weather {
    pub up: Flow,
    pub down: Flow,
    /// Of each piece of each direction.
    pub latency: Duration,
    /// Of each direction. Unit: bytes per second.
    pub rate: Option<u64>,
    /// New connections are reset at once.
    pub refuses: bool,
}

impl Weather {
    /// Nothing passes, and all of it arrives when it clears.
    pub fn held() -> Weather {
        Weather {
            up: Flow::Hold,
            down: Flow::Hold,
            ..Weather::default()
        }
    }

    /// Nothing passes, for good.
    pub fn blackhole() -> Weather {
        Weather {
            up: Flow::Drop,
            down: Flow::Drop,
            ..Weather::default()
        }
    }

    /// Requests arrive and are obeyed; nobody hears of it.
    pub fn lost_replies() -> Weather {
        Weather {
            down: Flow::Drop,
            ..Weather::default()
        }
    }

    /// Requests wait outside while replies to earlier ones still arrive.
    pub fn held_requests() -> Weather {
        Weather {
            up: Flow::Hold,
            ..Weather::default()
        }
    }

    fn flow(&self, way: Way) -> Flow {
        match way {
            Way::Up => self.up,
            Way::Down => self.down,
        }
    }
}

/// Bytes that a server answered, with the number of their connection.
pub type Question = (u64, Vec<u8>);

/// One-off orders to all present connections, each counted.
#[derive(Clone, Copy, Debug, Default)]
struct Orders {
    resets: u64,
    strandings: u64,
    half_closes: [u64; 2],
}

#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    weather: watch::Sender<Weather>,
    orders: watch::Sender<Orders>,
    /// Bytes until the next cut; `i64::MAX` is none.
    left: [AtomicI64; 2],
    carried: [AtomicU64; 2],
    /// The questions that were answered; none where nobody wants to know.
    answered: Mutex<Option<Vec<Question>>>,
    open: AtomicUsize,
    /// Connections so far.
    opened: AtomicU64,
}

/// A running proxy; dropped, it listens no more, and its connections are reset.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// In front of a port of this machine.
    pub async fn start(target: u16) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let shared = Arc::new(Shared {
            target: (Ipv4Addr::LOCALHOST, target).into(),
            weather: watch::Sender::default(),
            orders: watch::Sender::default(),
            left: [AtomicI64::new(i64::MAX), AtomicI64::new(i64::MAX)],
            carried: Default::default(),
            answered: Mutex::default(),
            open: AtomicUsize::new(0),
            opened: AtomicU64::new(0),
        });
        let accepting = tokio::spawn(link::accept(listener, shared.clone()));
        Proxy {
            port,
            shared,
            accepting,
        }
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// From now on, for present and coming connections.
    pub fn set(&self, weather: Weather) {
        self.shared.weather.send_replace(weather);
    }

    pub fn weather(&self) -> Weather {
        *self.shared.weather.borrow()
    }

    /// Perfect weather, and no cut to come.
    pub fn heal(&self) {
        for left in &self.shared.left {
            left.store(i64::MAX, Ordering::SeqCst);
        }
        self.set(Weather::default());
    }

    /// Resets every present connection on both sides.
    pub fn reset(&self) {
        self.shared.orders.send_modify(|orders| orders.resets += 1);
    }

    /// Every present connection falls silent for good and nobody is told, as when a firewall forgets it or its server
    /// loses its power; new ones work.
    pub fn strand(&self) {
        self.shared.orders.send_modify(|orders| orders.strandings += 1);
    }

    /// Ends this direction of every present connection in order; the other goes on.
    pub fn half_close(&self, way: Way) {
        self.shared
            .orders
            .send_modify(|orders| orders.half_closes[way as usize] += 1);
    }

    /// Resets every connection that is present when so many more bytes went this way; they themselves arrive.
    pub fn cut_after(&self, way: Way, bytes: u32) {
        self.shared.left[way as usize].store(i64::from(bytes), Ordering::SeqCst);
    }

    /// Bytes that arrived this way so far.
    pub fn carried(&self, way: Way) -> u64 {
        self.shared.carried[way as usize].load(Ordering::SeqCst)
    }

    /// From now on keeps what is asked on each connection, until [`Proxy::answered`] takes it.
    pub fn listen(&self) {
        self.shared
            .answered
            .lock()
            .expect("not poisoned")
            .get_or_insert_default();
    }

    /// Takes the questions that were answered so far, each with the number of its connection and as it was sent: a round
    /// trip, where a connection waits for one answer at a time.
    pub fn answered(&self) -> Vec<Question> {
        let mut answered = self.shared.answered.lock().expect("not poisoned");
        answered.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// How many connections there are.
    pub fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
        self.reset();
    }
}
