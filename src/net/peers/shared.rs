//! Sharing of questions, to spare peers and callers: callers of the same question share its answer, a fresh answer is
//! returned again, and a peer that didn't answer isn't asked for a while. Then it is tried again, and nobody waits
//! for that trial: of a dead peer, only the first question costs its timeout.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared as SharedFuture};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use windrow_core::ids::SessionId;
use windrow_engine::ports::ownership::peers::{Peer, PeerReply, Peers, Question, Unreachable};

/// Time for which an answer is returned again: streams look up to ten times a second, and a peer is asked four times.
const FRESH: Duration = Duration::from_millis(240);
/// Time for which a peer that didn't answer isn't asked.
const REST: Duration = Duration::from_secs(1);
/// Time for which a peer counts as silent while it is tried again.
const DOUBT: Duration = Duration::from_secs(5);
/// Maximum number of answers kept; above it, finished ones are dropped at once.
const KEPT_MAX: usize = 1_000;

type Answered = Result<PeerReply, Unreachable>;
type Asking = SharedFuture<BoxFuture<'static, Answered>>;

/// Question asked by a task of its own: nobody has to wait for its answer.
struct Asked {
    answer: Asking,
    since: Instant,
    task: AbortHandle,
}

impl Asked {
    fn is_of_use(&self, now: Instant) -> bool {
        !self.task.is_finished() || now.duration_since(self.since) < FRESH
    }
}

/// Client that shares questions to spare peers.
pub struct Shared {
    inner: Arc<dyn Peers>,
    board: Arc<Mutex<Board>>,
}

#[derive(Default)]
struct Board {
    asking: HashMap<(SessionId, String), Asked>,
    /// Time of the last failure of each silent peer, with its reason.
    silent: HashMap<SessionId, (Instant, Unreachable)>,
}

impl Shared {
    /// Creates a client that spares the peers of `inner`.
    pub fn new(inner: Arc<dyn Peers>) -> Shared {
        Shared {
            inner,
            board: Arc::default(),
        }
    }

    /// Returns the question under way, or a new one.
    fn asking(&self, peer: &Peer, question: &Question) -> Asking {
        let key = (peer.session, format!("{question:?}"));
        let now = Instant::now();
        let mut board = lock(&self.board);
        board.forget(now);
        if let Some(asked) = board.asking.get(&key) {
            return asked.answer.clone();
        }
        let (inner, asked, question) = (self.inner.clone(), peer.clone(), question.clone());
        let notes = self.board.clone();
        let task = tokio::spawn(async move {
            let answered = inner.ask(&asked, &question).await;
            lock(&notes).note(&asked, &answered);
            answered
        });
        let (handle, node) = (task.abort_handle(), peer.node.clone());
        let lost = move |_| {
            Err(Unreachable {
                node,
                why: "the request was lost in a panic".to_owned(),
            })
        };
        let answer = task.map(|ended| ended.unwrap_or_else(lost)).boxed().shared();
        board.asking.insert(
            key,
            Asked {
                answer: answer.clone(),
                since: now,
                task: handle,
            },
        );
        answer
    }
}

fn lock(board: &Mutex<Board>) -> MutexGuard<'_, Board> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    fn note(&mut self, peer: &Peer, answered: &Answered) {
        match answered {
            Ok(_) => {
                self.silent.remove(&peer.session);
            }
            Err(silent) => {
                self.silent.insert(peer.session, (Instant::now(), silent.clone()));
            }
        }
    }

    /// Returns the reason why a peer was silent just now, and true if it is to be tried again.
    fn doubted(&mut self, peer: &Peer) -> Option<(Unreachable, bool)> {
        self.silent.retain(|_, (since, _)| since.elapsed() < DOUBT);
        self.silent
            .get(&peer.session)
            .map(|(since, silent)| (silent.clone(), since.elapsed() >= REST))
    }

    fn forget(&mut self, now: Instant) {
        let is_full = self.asking.len() >= KEPT_MAX;
        self.asking
            .retain(|_, asked| asked.is_of_use(now) && !(is_full && asked.task.is_finished()));
    }
}

#[async_trait]
impl Peers for Shared {
    async fn ask(&self, peer: &Peer, question: &Question) -> Answered {
        // A change is worth an attempt of its own, and is never shared.
        if !question.only_reads() {
            let answered = self.inner.ask(peer, question).await;
            lock(&self.board).note(peer, &answered);
            return answered;
        }
        let doubted = lock(&self.board).doubted(peer);
        if let Some((silent, is_rested)) = doubted {
            if is_rested {
                // The task continues on its own.
                drop(self.asking(peer, question));
            }
            return Err(silent);
        }
        self.asking(peer, question).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use uuid::Uuid;

    use super::*;

    #[derive(Default)]
    struct Counting {
        asked: AtomicUsize,
        is_dead: std::sync::atomic::AtomicBool,
    }

    #[async_trait]
    impl Peers for Counting {
        async fn ask(&self, peer: &Peer, _: &Question) -> Answered {
            let number = self.asked.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            if self.is_dead.load(Ordering::SeqCst) {
                return Err(Unreachable {
                    node: peer.node.clone(),
                    why: "refused".to_owned(),
                });
            }
            Ok(PeerReply::Text(number.to_string()))
        }
    }

    fn peer(number: u128) -> Peer {
        let session = SessionId(Uuid::from_u128(number));
        Peer {
            node: format!("n{number}"),
            session,
            address: String::new(),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_the_same_shares_an_answer_for_a_quarter_of_a_second() {
        let counting = Arc::new(Counting::default());
        let shared = Shared::new(counting.clone());
        let (one, two) = (peer(1), peer(2));
        let ask = |peer| shared.ask(peer, &Question::Node);
        let (a, b, c) = tokio::join!(ask(&one), ask(&one), ask(&two));
        assert_eq!((&a, counting.asked.load(Ordering::SeqCst)), (&b, 2));
        assert_ne!(a, c, "another peer is asked itself");
        assert_eq!(ask(&one).await, a, "it is fresh");
        tokio::time::advance(FRESH).await;
        assert_ne!(ask(&one).await, a);
        assert_eq!(counting.asked.load(Ordering::SeqCst), 3);
        let book = Question::Book {
            task: windrow_core::ids::TaskId(1),
            rate: windrow_core::settings::RateLimit::Unlimited,
            is_trial: false,
        };
        let (a, b) = tokio::join!(shared.ask(&one, &book), shared.ask(&one, &book));
        assert_ne!(a, b, "a change is made for each who asks");
    }

    #[tokio::test(start_paused = true)]
    async fn who_was_silent_has_a_rest_and_nobody_waits_for_its_trial() {
        let counting = Arc::new(Counting::default());
        counting.is_dead.store(true, Ordering::SeqCst);
        let shared = Shared::new(counting.clone());
        let asked = || counting.asked.load(Ordering::SeqCst);
        assert!(shared.ask(&peer(1), &Question::Node).await.is_err());
        tokio::time::advance(REST / 2).await;
        assert!(shared.ask(&peer(1), &Question::Node).await.is_err());
        assert!(shared.ask(&peer(2), &Question::Node).await.is_err());
        assert_eq!(asked(), 2, "the first one has a rest, another hasn't");
        tokio::time::advance(REST).await;
        let begun = Instant::now();
        assert!(shared.ask(&peer(1), &Question::Node).await.is_err());
        assert_eq!(begun.elapsed(), Duration::ZERO, "nobody waits for the trial");
        tokio::time::sleep(REST * 2).await;
        assert_eq!(asked(), 3, "it was tried again");
        counting.is_dead.store(false, Ordering::SeqCst);
        assert!(
            shared.ask(&peer(1), &Question::Node).await.is_err(),
            "tried when it was dead, and now again"
        );
        tokio::time::sleep(FRESH).await;
        assert!(shared.ask(&peer(1), &Question::Node).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_doubt_is_forgotten_when_nobody_asks() {
        let counting = Arc::new(Counting::default());
        counting.is_dead.store(true, Ordering::SeqCst);
        let shared = Shared::new(counting.clone());
        assert!(shared.ask(&peer(1), &Question::Node).await.is_err());
        counting.is_dead.store(false, Ordering::SeqCst);
        tokio::time::advance(DOUBT).await;
        assert!(shared.ask(&peer(1), &Question::Node).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_leaves_the_question_to_the_others() {
        let shared = Arc::new(Shared::new(Arc::new(Counting::default())));
        let (first, second) = (shared.clone(), shared.clone());
        let first = tokio::spawn(async move { first.ask(&peer(1), &Question::Node).await });
        tokio::task::yield_now().await;
        let second = tokio::spawn(async move { second.ask(&peer(1), &Question::Node).await });
        tokio::task::yield_now().await;
        first.abort();
        assert_eq!(
            second.await.expect("it goes on"),
            Ok(PeerReply::Text("0".to_owned()))
        );
    }
}
