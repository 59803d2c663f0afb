//! An open way to a node: what is asked goes through it, what is shown comes out of it.

use std::pin::pin;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::args::{Form, Remote};
use super::look::Look;
use super::pages::Listed;
use super::reach;
use crate::exit::Exit;
use crate::fault::{Fault, Names};
use crate::output::screen;
use crate::output::screen::Meter;
use crate::output::table::times::Times;
use crate::output::table::{Card, Listing};
use crate::shell::Shell;
use windrow_client::{Answer, Client, Depth, Options, Request, Tap};
use windrow_core::ids::TaskId;
use windrow_engine::ports::clock::Clock;
use windrow_node::SystemClock;

/// After so long somebody who waits for an answer is told so.
const SLOW: Duration = Duration::from_secs(3);

/// The way to a node.
pub struct Link<'a> {
    /// The client; for uploads, downloads and events.
    pub client: Client,
    /// How things are shown.
    pub look: Look,
    pub(super) names: Names,
    pub(super) remote: &'a Remote,
    pub(super) shell: &'a Shell,
}

impl<'a> Link<'a> {
    /// Finds out where the node is and who calls. It connects with the first request.
    ///
    /// # Errors
    /// When a context, a token or an address can't be used.
    pub fn open(remote: &'a Remote, shell: &'a Shell) -> Result<Link<'a>, Fault> {
        let depth = match remote.verbose {
            0 => Depth::Nothing,
            1 => Depth::Lines,
            _ => Depth::Everything,
        };
        let screen = shell.screen.clone();
        let tap = Tap::new(depth, move |line| screen.must_say(line));
        let client = match &shell.here {
            Some(here) => here.client(remote, tap)?,
            None => {
                let reach = reach::reach(remote, shell)?;
                Client::new(Options {
                    server: reach.server,
                    token: reach.token,
                    timeout: remote.request_timeout,
                    ca_file: reach.ca_file,
                    proxies: shell.proxies(),
                    tap,
                })?
            }
        };
        Ok(Link {
            client,
            look: Look::new(&remote.view, shell),
            names: Names::Flags,
            remote,
            shell,
        })
    }

    /// The same where a person wrote what is sent: what the node refuses of it is named as it stands there.
    #[must_use]
    pub fn of_file(self) -> Link<'a> {
        Link {
            names: Names::Members,
            ..self
        }
    }

    /// Asks the node.
    ///
    /// # Errors
    /// What the node refused or what kept it from answering, with the exit code.
    pub async fn send(&self, request: Request) -> Result<Answer, Fault> {
        match self.told_if_slow(self.client.send(request)).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.fault(error).await),
        }
    }

    /// Says whose answer is waited for, where it takes long: the address may be that of something else.
    async fn told_if_slow<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        if let Ok(answer) = timeout(SLOW, answer.as_mut()).await {
            return answer;
        }
        let server = self.client.server();
        self.say(&format!("still waiting for an answer of {server}"));
        answer.await
    }

    /// Asks for a path.
    ///
    /// # Errors
    /// As [`Link::send`].
    pub async fn get(&self, path: &str) -> Result<Answer, Fault> {
        self.send(Request::get(path)).await
    }

    /// The number of a task that is addressed as `t42` or as `business/name`.
    ///
    /// # Errors
    /// `Usage` for any other text, `NotFound` when no task has the name; else as [`Link::send`].
    pub async fn task(&self, address: &str) -> Result<String, Fault> {
        if let Some(here) = self.shell.here.as_ref().filter(|here| here.job == address) {
            return Ok(here.task.to_string());
        }
        if let Ok(id) = address.parse::<TaskId>() {
            return Ok(id.to_string());
        }
        let Some((business, name)) = address
            .split_once('/')
            .filter(|(b, n)| !b.is_empty() && !n.is_empty())
        else {
            return Err(self.no_address("task", "t42", address).await);
        };
        let request = Request::get("/v1/tasks")
            .query("business", business)
            .query("name", name)
            .query("limit", 1);
        let found: api::Page<api::Task> = self.send(request).await?.read()?;
        match found.items.into_iter().next() {
            Some(task) => Ok(task.id),
            None => Err(self.no_such("task", business, name).await),
        }
    }

    /// The node's time at an answer, for what is shown as "3m ago". Unit: milliseconds since 1970.
    pub fn now_ms(&self, answer: &Answer) -> i64 {
        answer.date_ms().unwrap_or_else(|| SystemClock::new().wall().0)
    }

    /// How times are shown, seen from an answer.
    pub fn times(&self, answer: &Answer) -> Times {
        self.look.times(self.now_ms(answer))
    }

    /// Says a line on standard error, unless it is to be quiet.
    pub fn say(&self, line: &str) {
        if !self.look.is_quiet {
            self.shell.screen.must_say(&self.said(line));
        }
    }

    /// A text with the commands that whoever reads it can type.
    pub(crate) fn said(&self, text: &str) -> String {
        match &self.shell.here {
            Some(here) => here.said(text),
            None => text.to_owned(),
        }
    }

    /// Says a line on standard error even when it is to be quiet: errors.
    pub fn must_say(&self, line: &str) {
        self.shell.screen.must_say(&self.said(line));
    }

    /// A line on standard error that changes in place; nothing where there is no terminal, or when it is to be quiet.
    pub(crate) fn meter(&self) -> Meter {
        self.shell.screen.meter(self.look.is_quiet)
    }

    /// How long a request may take.
    pub fn timeout(&self) -> Duration {
        self.remote.request_timeout
    }

    /// Says what may help, to people only.
    pub fn hint(&self, line: &str) {
        if self.look.form.is_for_people() {
            self.say(&format!("hint: {line}"));
        }
    }

    /// Prints a list in the form that was asked for. `things` are what tables show of it: the list's own, perhaps with
    /// more members.
    ///
    /// # Errors
    /// When standard output can't be written.
    pub fn show_list<T>(&self, listing: &Listing<T>, listed: &Listed, things: &[T]) -> Result<Exit, Fault> {
        let times = self.look.times(listed.now_ms);
        let text = match self.look.form {
            Form::Json => listed.json()?,
            Form::Ndjson => listed.ndjson(),
            Form::Name => listing.names(things),
            Form::Csv => listing.csv(things, &times, self.look.guard.into()),
            Form::Table | Form::Wide if things.is_empty() => {
                self.say(listing.none);
                return Ok(Exit::Ok);
            }
            form => listing.table(things, &times, self.look.paper, form == Form::Wide),
        };
        screen::put(&text)?;
        // JSON says it itself; whatever else was asked for, a list that ends early mustn't look like a whole one.
        if listed.has_more() && self.look.form != Form::Json {
            self.say("hint: there are more; --limit N or --all shows them");
        }
        Ok(Exit::Ok)
    }

    /// Prints one thing in the form that was asked for; people get the card.
    ///
    /// # Errors
    /// When the answer isn't JSON, or standard output can't be written.
    pub fn show_one<T: DeserializeOwned>(
        &self,
        listing: &Listing<T>,
        answer: &Answer,
        card: impl FnOnce(&T, &Times) -> Card,
    ) -> Result<Exit, Fault> {
        let (thing, times) = (answer.read()?, self.times(answer));
        let text = match self.look.form {
            Form::Json => answer.text(),
            Form::Ndjson => answer.line(),
            Form::Name => listing.names(&[thing]),
            Form::Csv => listing.csv(&[thing], &times, self.look.guard.into()),
            Form::Table | Form::Wide => card(&thing, &times).text(self.look.paper),
        };
        screen::put(&text).map(|()| Exit::Ok)
    }

    /// Prints what was done for people; scripts get the thing.
    ///
    /// # Errors
    /// As [`Link::show_one`].
    pub fn show_done<T: DeserializeOwned>(
        &self,
        listing: &Listing<T>,
        answer: &Answer,
        done: &str,
    ) -> Result<Exit, Fault> {
        if self.look.form.is_for_people() {
            return screen::put(done).map(|()| Exit::Ok);
        }
        self.show_one(listing, answer, |_, _| Card::new())
    }

    /// Prints that something is gone, of which the API answers nothing.
    ///
    /// # Errors
    /// When standard output can't be written.
    pub fn show_gone(&self, name: &str, done: &str) -> Result<Exit, Fault> {
        let text = match self.look.form {
            Form::Table | Form::Wide => done,
            Form::Name => name,
            Form::Json | Form::Ndjson | Form::Csv => "",
        };
        screen::put(text).map(|()| Exit::Ok)
    }

    /// Prints a body as it is.
    ///
    /// # Errors
    /// When standard output can't be written.
    pub fn put(&self, bytes: &[u8]) -> Result<Exit, Fault> {
        screen::put_bytes(bytes).map(|()| Exit::Ok)
    }
}
