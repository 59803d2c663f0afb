//! Watch without a terminal: an occasional line, and one for each change of status; or the events as JSON.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::to_string;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

use super::feed::Feed;
use super::keys::Order;
use super::state::{News, State};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Form;
use crate::output::body::joined;
use crate::output::screen;
use crate::output::table::{Tone, human};
use crate::task::ending::{ended, line};
use crate::task::words;
use windrow_client::Event;

/// Largest number of failures printed between two progress lines.
const FAILURES_MAX: u32 = 5;
/// Largest number of queued news.
const NEWS_MAX: usize = 64;
/// Interval between two checks that the task's nodes are alive, which no event reports.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Watches until the task is over.
///
/// # Errors
/// Fails if the node is away for too long or refuses, or if standard output can't be written.
pub(super) async fn plain(feed: Feed<'_>, state: State, every: Duration) -> Result<Exit, Fault> {
    let (news, heard) = mpsc::channel(NEWS_MAX);
    let (orders, ordered) = mpsc::channel(NEWS_MAX);
    let lines = Lines {
        feed,
        state,
        orders,
        status: String::new(),
        has_begun: false,
        failures: 0,
        silent: Vec::new(),
    };
    let followed = async {
        let Err(fault) = feed.follow(&news).await;
        fault
    };
    tokio::select! {
        exit = lines.tell(heard, every) => exit,
        fault = followed => Err(fault),
        never = feed.obey(ordered, &news) => match never {},
    }
}

struct Lines<'a> {
    feed: Feed<'a>,
    state: State,
    orders: mpsc::Sender<Order>,
    /// Status in the last printed line.
    status: String,
    /// True once an event has arrived.
    has_begun: bool,
    /// Number of failures since the last progress line.
    failures: u32,
    /// Nodes already reported as silent.
    silent: Vec<String>,
}

impl Lines<'_> {
    async fn tell(mut self, mut heard: mpsc::Receiver<News>, every: Duration) -> Result<Exit, Fault> {
        let [mut ticks, mut looks] = [every, LOOK_EVERY].map(interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick is immediate and would repeat the first line.
        ticks.tick().await;
        let wants_events = self.feed.link.look.form == Form::Ndjson;
        if let Some(exit) = ended(&self.state.task).filter(|_| !wants_events) {
            return self.last().map(|()| exit);
        }
        self.say()?;
        self.look();
        loop {
            tokio::select! {
                Some(news) = heard.recv() => {
                    if let Some(exit) = self.hear(news)? {
                        return Ok(exit);
                    }
                }
                _ = ticks.tick() => self.say()?,
                _ = looks.tick() => self.order(Order::Silence),
            }
        }
    }

    fn hear(&mut self, news: News) -> Result<Option<Exit>, Fault> {
        if let (News::Event(event), Form::Ndjson) = (&news, self.feed.link.look.form) {
            screen::put(&object(event))?;
        }
        match &news {
            News::Lost => self
                .feed
                .link
                .say("the node is unreachable; the numbers are stale"),
            News::Back => self.feed.link.say("the node is back"),
            News::Said(text) | News::Refused(text) => self.feed.link.say(text),
            News::Sign(task, why) => self.tell_silence(task, why)?,
            _ => {}
        }
        self.has_begun |= matches!(news, News::Event(_));
        let is_whole = match &news {
            News::Task(_) => self.has_begun || self.feed.link.look.form != Form::Ndjson,
            News::Event(event) => event.event == "snapshot",
            _ => false,
        };
        let was_lost = self.state.is_stale;
        if self.state.hear(news) {
            self.look();
        }
        self.tell_failures()?;
        self.tell_store(was_lost)?;
        if self.state.is_gone {
            return Err(super::gone(self.feed.id));
        }
        if let Some(exit) = ended(&self.state.task).filter(|_| is_whole) {
            self.last()?;
            return Ok(Some(exit));
        }
        if words::standing(&self.state.task).0 != self.status && ended(&self.state.task).is_none() {
            self.say()?;
        }
        Ok(None)
    }

    /// Returns the beginning of each line.
    fn who(&self) -> String {
        format!("{}  {}", words::address(&self.state.task), self.state.id())
    }

    fn is_for_people(&self) -> bool {
        let look = &self.feed.link.look;
        !look.is_quiet && look.form.is_for_people()
    }

    /// Prints a line for each failed item with its data, up to `FAILURES_MAX`.
    fn tell_failures(&mut self) -> Result<(), Fault> {
        while let Some(entry) = self.state.tail.pop_front() {
            if entry.tone != Tone::Bad || !self.is_for_people() {
                continue;
            }
            self.failures += 1;
            if self.failures <= FAILURES_MAX {
                let said = entry.line(self.state.style);
                screen::put(&format!("{}  {said}{}", self.who(), entry.who))?;
            }
        }
        Ok(())
    }

    /// Reports once that the node can't reach its database, and once that it can again.
    fn tell_store(&mut self, was_lost: bool) -> Result<(), Fault> {
        let said = match (was_lost, self.state.is_stale) {
            (false, true) => "the node can't reach its database; the numbers are stale",
            (true, false) => "the node can reach its database again",
            _ => return Ok(()),
        };
        self.feed.link.say(said);
        self.say()
    }

    /// Reports once that a node with a shard of the task is silent, and once that all shards run again.
    fn tell_silence(&mut self, task: &api::Task, why: &str) -> Result<(), Fault> {
        let silent = words::silent(task);
        let runs = task.live.as_ref().and_then(|live| joined(&live.nodes, ", "));
        // A task that runs on no node waits for a takeover, during which it may be `recovering` too.
        let is_under_way = ["running", "recovering", "queued"].contains(&&*task.status);
        if silent == self.silent || (is_under_way && silent.is_empty() && runs.is_none()) {
            return Ok(());
        }
        let is_new = silent.iter().any(|node| !self.silent.contains(node));
        self.silent = silent;
        match runs.filter(|_| self.silent.is_empty()) {
            Some(nodes) => self
                .feed
                .link
                .say(&format!("all of {} is running again, on {nodes}", self.feed.id)),
            None if is_new => self.feed.link.say(why),
            None => return Ok(()),
        }
        self.say()
    }

    /// Prints the current progress line.
    fn say(&mut self) -> Result<(), Fault> {
        self.status = words::standing(&self.state.task).0;
        if !self.is_for_people() {
            return Ok(());
        }
        if let Some(more) = std::mem::take(&mut self.failures)
            .checked_sub(FAILURES_MAX)
            .filter(|more| *more > 0)
        {
            let id = self.state.id();
            screen::put(&format!(
                "{}  and {more} more failed: windrow task failures {id}",
                self.who()
            ))?;
        }
        let task = &self.state.task;
        let is_known = task.status == "running" && self.silent.is_empty();
        let rate = task.pace.actual_rate.filter(|_| is_known);
        let wanted = human::of_limit(task.settings.tuning.rate);
        let rate = rate.map(|rate| format!("  {}{wanted}", windrow_core::explain::rate_text(rate)));
        let stale = match (self.state.lost_at_ms, joined(&self.silent, ", ")) {
            (Some(_), _) => "  (stale: the node is unreachable)".to_owned(),
            _ if self.state.is_stale => "  (stale: the node can't reach its database)".to_owned(),
            (None, Some(nodes)) => format!("  (stale: {nodes} unreachable)"),
            (None, None) => String::new(),
        };
        screen::put(&format!("{}{}{stale}", line(task), rate.unwrap_or_default()))
    }

    /// Prints the final line of the task.
    fn last(&mut self) -> Result<(), Fault> {
        match self.feed.link.look.form {
            Form::Table | Form::Wide | Form::Csv => screen::put(&line(&self.state.task)),
            Form::Json => {
                let task = to_string(&self.state.task).map_err(|error| Fault::bug(error.to_string()))?;
                screen::put(&task)
            }
            Form::Name => screen::put(self.state.id()),
            Form::Ndjson => Ok(()),
        }
    }

    fn look(&mut self) {
        self.order(Order::Look);
    }

    /// Queues an order. If the queue is full, a queued one shows the same.
    fn order(&mut self, order: Order) {
        self.orders.try_send(order).ok();
    }
}

/// Formats an event as one object, with its data as the node wrote it.
fn object(event: &Event) -> String {
    #[derive(Default, Deserialize)]
    struct Whole<'a> {
        #[serde(borrow)]
        topic: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    #[derive(Serialize)]
    struct Object<'a> {
        data: Option<&'a RawValue>,
        event: &'a str,
        id: &'a str,
        topic: Option<&'a RawValue>,
    }
    let Whole { topic, data } = serde_json::from_str(&event.data).unwrap_or_default();
    let (event, id) = (&event.event, &event.id);
    let object = Object {
        data,
        event,
        id,
        topic,
    };
    serde_json::to_string(&object).unwrap_or_default()
}
