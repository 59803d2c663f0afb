//! Implementation of `windrow try`: calls a handler with chosen items and shows its verdicts. It uses no server and
//! no store, and keeps nothing.

pub(crate) mod args;
mod costs;
mod data;
mod verdicts;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{sleep, timeout};

use self::costs::Costs;
use self::data::Data;
use self::verdicts::{ItemReport, Tally};
use crate::exit::Exit;
use crate::fault::Fault;
use crate::input::choice::Choice;
use crate::local::trial::args::TryArgs;
use crate::output::screen;
use crate::output::table::human::span;
use crate::run::handler;
use crate::run::handler::each::Beside;
use crate::run::handler::request::{self, RequestWanted};
use crate::shell::Shell;
use crate::signals::Signals;
use windrow_config::Config;
use windrow_core::ids::{Attempt, ItemIndex};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::Dispatch;
use windrow_core::meter::metering::Metering;
use windrow_core::settings::Auto;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{Call, CallItems, Handler, HandlerFactory, RunContext};
use windrow_node::handlers::{self, HandlerParts};
use windrow_node::{Runtimes, SystemClock};

/// Longest wait before a retry, since a person is watching.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);
/// Wait before a retry if the handler asked for none.
const RETRY_WAIT_DEFAULT: Duration = Duration::from_secs(1);
/// Extra time beyond the start-up time of workers, after which a worker that doesn't start has been reported.
const READY_EXTRA: Duration = Duration::from_secs(5);

/// Calls the handler.
///
/// # Errors
/// `BadHandler` if it violates the contract, `Rejected` if it can't be called at all.
pub(crate) async fn trial(args: &TryArgs, shell: &Shell, runtimes: Arc<Runtimes>) -> Result<Exit, Fault> {
    let mut signals = Signals::catch().map_err(|error| Fault::bug(error.to_string()))?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let mut config = shell.config(args.config.as_deref())?;
    args.http.trust(&mut config);
    let request = request::wanted(&args.request, &args.http)?;
    let factory = factory(args, request.as_ref(), shell, &config, &runtimes, &clock)?;
    let (data, items) = Data::of(args, request.as_ref(), shell, clock.wall()).await?;
    if let Some(first) = items.0.first() {
        let rows = data.rows(&[*first]).await?;
        args.each.check_row(&args.worker, rows.data(ItemIndex(*first)))?;
    }
    let metering = args.limits.over(&Metering::default())?;
    let context = Arc::new(RunContext {
        metering: Arc::new(metering.clone().into()),
        ..handlers::preview_context()
    });
    let handler = factory.open(context.clone())?;
    let ready_within = config.command_handler.startup_timeout + READY_EXTRA;
    let trial = Trial {
        args,
        handler: &*handler,
        clock: &*clock,
        data,
        items,
        request: request.map(|request| (request, context)),
        costs: Costs::of(&metering),
    };
    let tried = tokio::select! {
        tried = trial.run(ready_within) => tried,
        () = signals.stop() => {
            shell.screen.say("interrupted: waiting for the handler to end; Ctrl-C again kills it");
            Ok(Exit::Interrupted)
        }
    };
    // The handler's own timeouts bound this wait: workers are asked to end, then killed.
    tokio::select! {
        () = handler.close() => {}
        () = signals.stop() => {}
    }
    tried
}

fn factory(
    args: &TryArgs,
    request: Option<&RequestWanted>,
    shell: &Shell,
    config: &Config,
    runtimes: &Runtimes,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<dyn HandlerFactory>, Fault> {
    let screen = shell.screen.clone();
    let making = HandlerParts {
        config,
        first_contact: None,
        environment: shell.environment.clone(),
        clock: clock.clone(),
        sink: Arc::new(move |line| screen.say(&format!("  handler: {}", line.message))),
        leftovers: None,
        calls: runtimes.calls().clone(),
    };
    if let Some(request) = request {
        return Ok(handlers::factory(&request.choice(args.batch)?, making)?);
    }
    let beside = Beside {
        words: &args.worker,
        http: &args.http,
        batch: args.batch,
        concurrency: Auto::Auto,
    };
    if let Some(each) = args.each.wanted(&beside)? {
        return Ok(handlers::factory(&each, making)?);
    }
    let split = |cmd: &String| cmd.split_whitespace().map(Into::into).collect();
    let argv = args.cmd.as_ref().map_or_else(|| args.worker.clone(), split);
    let worker = (argv, NonZeroU32::MIN);
    let wanted = handler::wanted(
        args.url.as_ref().or(args.address.as_ref()).map(String::as_str),
        &args.http,
        args.batch,
        worker,
    )?;
    Ok(handlers::factory(&wanted, making)?)
}

/// One series of calls to a handler.
struct Trial<'a> {
    args: &'a TryArgs,
    handler: &'a dyn Handler,
    clock: &'a dyn Clock,
    data: Data,
    items: Choice,
    /// Request made for each item, to be printed. `None` for other handlers.
    request: Option<(RequestWanted, Arc<RunContext>)>,
    /// Costs to be shown, if anything is counted.
    costs: Option<Costs<'a>>,
}

impl Trial<'_> {
    async fn run(&self, ready_within: Duration) -> Result<Exit, Fault> {
        self.ready(ready_within).await;
        let mut tally = Tally::of(self.request.is_some());
        for items in self.items.0.chunks(self.args.batch.get() as usize) {
            self.call_until_settled(items, &mut tally).await?;
        }
        screen::print(&tally.summary())?;
        tally.contract()
    }

    /// Prints the requests that are about to be sent.
    fn show(&self, call: &Call) -> Result<(), Fault> {
        let Some((request, context)) = &self.request else {
            return Ok(());
        };
        for (index, attempt) in call.items.iter() {
            let (data, key) = (call.rows.data(index), context.item_key(index));
            screen::print(&request.shown(data, index.0, &key, attempt.get()))?;
        }
        Ok(())
    }

    /// Waits until the handler accepts calls. If it never does, its reply to the call will say why.
    async fn ready(&self, patience: Duration) {
        let mut slots = self.handler.slots();
        timeout(patience, slots.wait_for(|slots| *slots != Some(0)))
            .await
            .ok();
    }

    async fn call_until_settled(&self, items: &[u64], tally: &mut Tally) -> Result<(), Fault> {
        let mut left: Vec<u64> = items.to_vec();
        for attempt in 1..=self.args.max_attempts.get() {
            let begun = self.clock.now();
            let call = Call {
                items: dispatches(&left, Attempt::new(attempt)),
                rows: self.data.rows(&left).await?,
                gate_time: begun,
                timeout: self.args.call_timeout,
            };
            self.show(&call)?;
            let before = self
                .costs
                .as_ref()
                .map(|costs| (costs, costs.before(&call, self.handler)));
            let reply = self.handler.process(call).await;
            let took = self.clock.now().since(begun);
            let costs = before.map(|(costs, before)| costs.line(before, &reply, left.len()));
            let said = verdicts::read(&left, reply, took);
            for one in &said {
                screen::print(&one.line(attempt))?;
            }
            if let Some(line) = costs {
                screen::print(&line)?;
            }
            let again = said.iter().filter(|one| one.retry.is_some());
            left = again.map(|one| one.index).collect();
            let waits = said.iter().filter_map(|one| one.retry);
            let wait = waits.map(|wait| wait.unwrap_or(RETRY_WAIT_DEFAULT)).max();
            tally.on_call(said, took);
            match wait {
                Some(wait) if attempt < self.args.max_attempts.get() => sleep(wait.min(RETRY_WAIT_MAX)).await,
                _ => break,
            }
        }
        Ok(())
    }
}

fn dispatches(items: &[u64], attempt: Attempt) -> CallItems {
    let one = |index: &u64| Dispatch {
        run: IndexRun::one(ItemIndex(*index)),
        attempt,
    };
    match items {
        [only] => CallItems::One(one(only)),
        several => CallItems::Many(several.iter().map(one).collect()),
    }
}

impl ItemReport {
    /// Returns one line for people.
    fn line(&self, attempt: u32) -> String {
        let again = match attempt {
            1 => String::new(),
            _ => format!(" (attempt {attempt})"),
        };
        format!("#{} {}{again}  {}", self.index, self.text, span(self.took))
    }
}
