//! Connection to a node: sends requests and prints answers.

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

/// Waiting time after which the user is told that the node hasn't answered.
const SLOW: Duration = Duration::from_secs(3);

/// Connection to a node, with the output options.
pub struct Link<'a> {
    /// HTTP client, public for uploads, downloads and events.
    pub client: Client,
    /// Output options for answers.
    pub look: Look,
    pub(super) names: Names,
    pub(super) remote: &'a Remote,
    pub(super) shell: &'a Shell,
}

impl<'a> Link<'a> {
    /// Resolves the node's address and token. The first request connects.
    ///
    /// # Errors
    /// Fails if a context, a token or an address can't be used.
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

    /// Makes faults name request members by their pointers, for a request that a person wrote in a file.
    #[must_use]
    pub fn of_file(self) -> Link<'a> {
        Link {
            names: Names::Members,
            ..self
        }
    }

    /// Sends a request to the node.
    ///
    /// # Errors
    /// The node's refusal, or the reason why it didn't answer, with the exit code.
    pub async fn send(&self, request: Request) -> Result<Answer, Fault> {
        match self.told_if_slow(self.client.send(request)).await {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.fault(error).await),
        }
    }

    /// Tells the user which address hasn't answered yet if it takes long: the address may belong to something else.
    async fn told_if_slow<T>(&self, answer: impl Future<Output = T>) -> T {
        let mut answer = pin!(answer);
        if let Ok(answer) = timeout(SLOW, answer.as_mut()).await {
            return answer;
        }
        let server = self.client.server();
        self.say(&format!("still waiting for a response from {server}"));
        answer.await
    }

    /// Sends a GET request for a path.
    ///
    /// # Errors
    /// Same as [`Link::send`].
    pub async fn get(&self, path: &str) -> Result<Answer, Fault> {
        self.send(Request::get(path)).await
    }

    /// Resolves a task address, `t42` or `business/name`, to the task's number.
    ///
    /// # Errors
    /// `Usage` for any other text, `NotFound` if no task has the name; otherwise same as [`Link::send`].
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

    /// Returns the node's time at an answer, for texts such as "3m ago". Unit: milliseconds since 1970.
    pub fn now_ms(&self, answer: &Answer) -> i64 {
        answer.date_ms().unwrap_or_else(|| SystemClock::new().wall().0)
    }

    /// Returns the format of times relative to an answer.
    pub fn times(&self, answer: &Answer) -> Times {
        self.look.times(self.now_ms(answer))
    }

    /// Prints a line on standard error unless `--quiet` is set.
    pub fn say(&self, line: &str) {
        if !self.look.is_quiet {
            self.shell.screen.must_say(&self.said(line));
        }
    }

    /// True if it serves a job of this machine, not the tasks of a node.
    pub(crate) fn is_of_job(&self) -> bool {
        self.shell.here.is_some()
    }

    /// Rewrites the commands in a text to those that the user can type here.
    pub(crate) fn said(&self, text: &str) -> String {
        match &self.shell.here {
            Some(here) => here.said(text),
            None => text.to_owned(),
        }
    }

    /// Prints a line on standard error even with `--quiet`, for errors.
    pub fn must_say(&self, line: &str) {
        self.shell.screen.must_say(&self.said(line));
    }

    /// Returns a line on standard error that updates in place. Prints nothing without a terminal or with `--quiet`.
    pub(crate) fn meter(&self) -> Meter {
        self.shell.screen.meter(self.look.is_quiet)
    }

    /// Returns the time limit of a request.
    pub fn timeout(&self) -> Duration {
        self.remote.request_timeout
    }

    /// Prints a hint, for people only.
    pub fn hint(&self, line: &str) {
        if self.look.form.is_for_people() {
            self.say(&format!("hint: {line}"));
        }
    }

    /// Prints a list in the requested format. `things` are the rows of tables: the list's own objects, perhaps with
    /// more members.
    ///
    /// # Errors
    /// Fails if standard output can't be written.
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
        // JSON contains the cursor. In other formats a truncated list must not look complete.
        if listed.has_more() && self.look.form != Form::Json {
            self.say("hint: more results; use --limit N or --all");
        }
        Ok(Exit::Ok)
    }

    /// Prints one object in the requested format, for people as a card.
    ///
    /// # Errors
    /// Fails if the answer isn't JSON, or standard output can't be written.
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

    /// Prints a sentence on what was done for people, the object for scripts.
    ///
    /// # Errors
    /// Same as [`Link::show_one`].
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

    /// Prints that an object was deleted, for which the API's answer has no body.
    ///
    /// # Errors
    /// Fails if standard output can't be written.
    pub fn show_gone(&self, name: &str, done: &str) -> Result<Exit, Fault> {
        let text = match self.look.form {
            Form::Table | Form::Wide => done,
            Form::Name => name,
            Form::Json | Form::Ndjson | Form::Csv => "",
        };
        screen::put(text).map(|()| Exit::Ok)
    }

    /// Prints a body unchanged.
    ///
    /// # Errors
    /// Fails if standard output can't be written.
    pub fn put(&self, bytes: &[u8]) -> Result<Exit, Fault> {
        screen::put_bytes(bytes).map(|()| Exit::Ok)
    }
}
