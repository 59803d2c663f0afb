//! Live picture of a task on a terminal.

use std::io;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::feed::Feed;
use super::frame::frame;
use super::keys::Order;
use super::state::{News, State};
use super::terminal::{Terminal, read_keys};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::shell::Shell;
use crate::task::ending::ended;

/// Interval between two pictures; keys are answered immediately.
const DRAW_EVERY: Duration = Duration::from_millis(250);
/// Largest number of queued news.
const NEWS_MAX: usize = 256;
/// Largest number of queued keys and of queued orders.
const KEYS_MAX: usize = 64;

/// Watches until the task is over, or until the user quits, which returns `None`.
///
/// # Errors
/// Fails if the node is away for too long or refuses, or if the terminal is gone.
pub(super) async fn live(feed: Feed<'_>, mut state: State, shell: &Shell) -> Result<Option<Exit>, Fault> {
    let mut terminal = Terminal::take(feed.link.look.paper.colours, shell).map_err(lost)?;
    state.has_keys = terminal.has_keys();
    let (news, heard) = mpsc::channel(NEWS_MAX);
    let (keys, pressed) = mpsc::channel(KEYS_MAX);
    let (orders, ordered) = mpsc::channel(KEYS_MAX);
    let has_keys = state.has_keys;
    let typed = async {
        if has_keys {
            read_keys(&keys).await;
        }
        std::future::pending::<()>().await;
    };
    let picture = Picture {
        terminal: &mut terminal,
        state,
        orders,
        feed,
    };
    let followed = async {
        let Err(fault) = feed.follow(&news).await;
        fault
    };
    // Each of these runs as long as the picture does.
    let exit = tokio::select! {
        exit = picture.show(heard, pressed) => exit,
        fault = followed => Err(fault),
        never = feed.look(&news) => match never {},
        never = feed.obey(ordered, &news) => match never {},
        () = typed => Ok(None),
    };
    drop(terminal);
    exit
}

fn lost(error: io::Error) -> Fault {
    Fault::new(Exit::Failed, "can't use the terminal", error.to_string())
        .hint("`windrow task watch T | cat` works without one")
}

struct Picture<'a> {
    terminal: &'a mut Terminal,
    state: State,
    orders: mpsc::Sender<Order>,
    feed: Feed<'a>,
}

impl Picture<'_> {
    async fn show(
        mut self,
        mut heard: mpsc::Receiver<News>,
        mut pressed: mpsc::Receiver<u8>,
    ) -> Result<Option<Exit>, Fault> {
        let mut ticks = interval(DRAW_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        self.order(Order::Look);
        loop {
            tokio::select! {
                Some(news) = heard.recv() => {
                    if let Some(exit) = self.hear(news)? {
                        self.finish().await?;
                        return Ok(Some(exit));
                    }
                }
                Some(byte) = pressed.recv() => {
                    match self.state.press(byte) {
                        Some(Order::Quit) => return Ok(None),
                        Some(order) => self.order(order),
                        None => {}
                    }
                    self.draw()?;
                }
                _ = ticks.tick() => self.draw()?,
            }
        }
    }

    /// Processes news. Returns the exit code if the task is over.
    fn hear(&mut self, news: News) -> Result<Option<Exit>, Fault> {
        // For the end, only the numbers in the node's own task count, not events that are still arriving.
        let is_whole = matches!(news, News::Task(_));
        // An open list of failures is refreshed as often as the window.
        if matches!(news, News::Window(_)) && self.state.shows_failures() {
            self.order(Order::Failures);
        }
        if self.state.hear(news) {
            self.order(Order::Look);
        }
        if self.state.is_gone {
            return Err(super::gone(self.feed.id));
        }
        let rests = self.state.task.status == "stopped";
        self.feed.changes.on_task(&self.state.task);
        // The user may start it again.
        Ok(ended(&self.state.task).filter(|_| is_whole && !rests))
    }

    /// Draws the last picture, which shows nothing from before the end.
    async fn finish(&mut self) -> Result<(), Fault> {
        self.state.has_keys = false;
        self.state.windows.clear();
        if self.state.shows_failures() {
            match self.feed.done(Order::Failures).await {
                Ok(found) => {
                    for news in found {
                        self.state.hear(news);
                    }
                }
                Err(error) => tracing::debug!(%error, "can't read the latest failures"),
            }
        }
        self.draw()
    }

    /// Queues an order. Keys pressed faster than the node answers are lost. A lost refresh does no harm, since a
    /// queued one shows the same.
    fn order(&mut self, order: Order) {
        let is_look = matches!(order, Order::Look | Order::Failures);
        if self.orders.try_send(order).is_err() && !is_look {
            self.state.wanted = None;
            self.state.note = Some("too many keys at once; some were ignored".to_owned());
        }
    }

    fn draw(&mut self) -> Result<(), Fault> {
        self.state.now_ms = self.feed.time.now_ms();
        let lines = frame(&self.state, &self.terminal.sheet());
        self.terminal.draw(&lines).map_err(lost)
    }
}
