//! Name resolution on separate threads. The system's resolver blocks, for half a minute if a name server is silent;
//! other users of blocking threads must not wait for it, nor the other way round.
//!
//! Callers that ask for a name being resolved wait for the same answer: one dead name occupies one thread.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tokio::runtime::{Builder, Runtime};

/// Names that are resolved at a time.
const THREADS: usize = 16;

/// Resolver for calls of handlers and hooks.
pub(super) static HANDLERS: LazyLock<Names> = LazyLock::new(|| Names::new(THREADS, ask_system));
/// Resolver for everything else: addresses in requests must not delay the calls of handlers.
pub(super) static OTHERS: LazyLock<Names> = LazyLock::new(|| Names::new(THREADS, ask_system));

/// Function that resolves a name to its addresses, blocking.
type Ask = fn(&str) -> Result<Vec<IpAddr>, String>;
type Answer = Shared<BoxFuture<'static, Result<Vec<IpAddr>, String>>>;
type UnderWay = Arc<Mutex<HashMap<String, Answer>>>;

/// Resolver with its own threads.
pub(super) struct Names {
    /// Runtime that only provides the threads; nothing runs on it.
    threads: io::Result<Runtime>,
    ask: Ask,
    under_way: UnderWay,
}

impl Names {
    fn new(threads: usize, ask: Ask) -> Names {
        let threads = Builder::new_current_thread()
            .thread_name("windrow-names")
            .max_blocking_threads(threads)
            .build();
        Names {
            threads,
            ask,
            under_way: UnderWay::default(),
        }
    }

    /// Resolves a name to its addresses.
    ///
    /// # Errors
    /// The message of the system.
    pub(super) async fn resolve(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        self.answer(name)?.await
    }

    fn answer(&self, name: &str) -> Result<Answer, String> {
        let threads = self
            .threads
            .as_ref()
            .map_err(|error| format!("can't start threads to resolve names: {error}"))?;
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = under_way.get(name) {
            return Ok(answer.clone());
        }
        let (ask, asked, known) = (self.ask, name.to_owned(), self.under_way.clone());
        let work = threads.spawn_blocking(move || {
            let found = ask(&asked);
            // Later callers resolve it again.
            known
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remove(&asked);
            found
        });
        let answer = work
            .map(|done| done.unwrap_or_else(|error| Err(error.to_string())))
            .boxed()
            .shared();
        under_way.insert(name.to_owned(), answer.clone());
        Ok(answer)
    }
}

fn ask_system(name: &str) -> Result<Vec<IpAddr>, String> {
    let found = std::net::ToSocketAddrs::to_socket_addrs(&(name, 0)).map_err(|error| error.to_string())?;
    Ok(found.map(|address| address.ip()).collect())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::Condvar;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    static ASKED: AtomicUsize = AtomicUsize::new(0);
    static LET_GO: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

    /// Silent until the test lets it answer.
    fn silent_server(name: &str) -> Result<Vec<IpAddr>, String> {
        if name == "dead" {
            ASKED.fetch_add(1, Ordering::Relaxed);
            let waiting = LET_GO.0.lock().expect("not poisoned");
            drop(LET_GO.1.wait_while(waiting, |go| !*go).expect("not poisoned"));
            return Err("nobody answers".to_owned());
        }
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }

    #[tokio::test]
    async fn a_name_whose_server_is_silent_holds_one_thread_however_many_ask() {
        let names = Arc::new(Names::new(2, silent_server));
        let waiting: Vec<_> = (0..100).map(|_| names.answer("dead").expect("threads")).collect();
        // With one of two threads left, others are answered.
        assert_eq!(names.resolve("alive").await, Ok(vec![Ipv4Addr::LOCALHOST.into()]));
        *LET_GO.0.lock().expect("not poisoned") = true;
        LET_GO.1.notify_all();
        for answer in waiting {
            assert_eq!(answer.await, Err("nobody answers".to_owned()));
        }
        assert_eq!(ASKED.load(Ordering::Relaxed), 1);
        assert!(
            names.under_way.lock().expect("not poisoned").is_empty(),
            "the next one asks anew"
        );
        // A runtime must not be dropped where tasks run.
        std::thread::spawn(move || drop(names)).join().expect("dropped");
    }

    #[tokio::test]
    async fn the_system_knows_this_machine_and_no_name_of_nobody() {
        let found = OTHERS.resolve("localhost").await.expect("known");
        assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
        assert!(OTHERS.resolve("nobody.invalid").await.is_err());
    }
}
