//! Checks of a run before anything is written: configuration, settings, source, handler.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::end::{failures_out, results_out};
use crate::exit::Exit;
use crate::fault::{Fault, as_flags};
use crate::run::args::RunArgs;
use crate::run::handler;
use crate::run::handler::each::Beside;
use crate::run::handler::identity;
use crate::run::handler::request::{self, RequestWanted};
use crate::run::items::source;
use crate::run::kept::{place, resume};
use crate::shell::Shell;
use windrow_config::{CommandHandler, Config};
use windrow_core::meter::metering::Metering;
use windrow_core::settings::check;
use windrow_core::settings::table::TuningPatch;
use windrow_core::settings::{RateLimit, Results};
use windrow_core::task::Tuning;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::tasks::store::TaskView;
use windrow_node::CallThreads;
use windrow_node::Runtimes;
use windrow_node::handlers::{self, HandlerChoice, HandlerParts, Sink};
use windrow_node::sources::SourceSpec;
use windrow_server::service::tasks::metered::{Answers, metering_faults};

/// Minimum time for the start of a worker, however short the first contact.
const STARTUP_MIN: Duration = Duration::from_secs(1);

/// Checked inputs of a run.
pub(super) struct Prepared {
    pub(super) config: Config,
    pub(super) tuning: Tuning,
    /// Limits in units that its calls count against.
    pub(super) metering: Metering,
    /// Source of the items; `None` means that of the resumed job.
    pub(super) spec: Option<SourceSpec>,
    pub(super) place: PathBuf,
    /// Request made for each item, if that is the handler.
    pub(super) request: Option<RequestWanted>,
    /// Time limit for first contact with the handler; `None` waits without limit.
    pub(super) first_contact: Option<Duration>,
}

/// Checks everything; writes nothing and starts nothing.
pub(super) fn prepare(
    args: &RunArgs,
    shell: &Shell,
    runtimes: &Runtimes,
    clock: &Arc<dyn Clock>,
) -> Result<Prepared, Fault> {
    failures_out::check(args)?;
    results_out::check(args)?;
    let mut config = shell.config(args.config.as_deref())?;
    args.http.trust(&mut config);
    let startup = &mut config.command_handler.startup_timeout;
    if !args.wait && *startup == CommandHandler::default().startup_timeout {
        // A worker that doesn't get ready was never reached. Users of a slow one have set their own timeout.
        *startup = args.first_contact.max(STARTUP_MIN).min(*startup);
    }
    let tuning = keeping(args, tuned(args, &config.task_defaults.tuning)?);
    let metering = args.limits.over(&Metering::default())?;
    let request = request::wanted(&args.request, &args.http)?;
    let spec = source::spec(
        &args.items,
        (args.glob.as_deref(), args.strict),
        args.total.unwrap_or(0),
    )?;
    let place = match (&args.resume, &args.state) {
        (Some(name), state) => resume::place(name, state.as_deref(), &shell.env)?,
        (None, Some(place)) => place.clone(),
        (None, None) => {
            let name = args.name.clone().or_else(|| source::early_name(&spec));
            place::of_job(name.as_deref(), &shell.env)?
        }
    };
    let spec = if args.resume.is_none() { Some(spec) } else { None };
    spec.as_ref().map_or(Ok(()), source::look)?;
    let prepared = Prepared {
        config,
        tuning,
        metering,
        spec,
        place,
        request,
        first_contact: (!args.wait).then_some(args.first_contact),
    };
    prepared.check_metering(args)?;
    let nowhere: Sink = Arc::new(|_| {});
    let making = prepared.making(shell, runtimes.calls(), clock, nowhere, None);
    if identity::has_handler(args) {
        handlers::factory(&prepared.wanted(args)?, making)?;
    }
    Ok(prepared)
}

/// Makes the job keep its results if they are to be written.
fn keeping(args: &RunArgs, mut tuning: Tuning) -> Tuning {
    if args.results.out.is_some() {
        tuning.results = Results::Keep;
    }
    tuning
}

impl Prepared {
    /// Applies the flags to the settings and limits of a job resumed by name, which keeps all others.
    ///
    /// # Errors
    /// `Usage` if they contradict one another.
    pub(super) fn resume(&mut self, args: &RunArgs, job: &TaskView) -> Result<(), Fault> {
        self.tuning = keeping(args, checked(args.tunes.0.apply(&job.tuning))?);
        self.metering = args.limits.over(&job.spec.metering)?;
        self.check_metering(args)
    }

    /// Checks that the limits fit the handler and the size of its calls.
    fn check_metering(&self, args: &RunArgs) -> Result<(), Fault> {
        let answers = match identity::has_handler(args) {
            true => Answers {
                are_responses: is_remote(args),
                name_costs: args.request.request.is_none() && args.each.each.is_none(),
            },
            // That of a job resumed by its name, which was checked when it was given.
            false => Answers::ANY,
        };
        let faults = metering_faults(&self.metering, self.tuning.batch, answers);
        let Some(fault) = faults.into_iter().next() else {
            return Ok(());
        };
        let refused = Fault::new(Exit::Usage, "can't use these limits", fault.detail);
        Err(match fault.advice {
            Some(advice) => refused.hint(as_flags(&advice)),
            None => refused,
        })
    }

    pub(super) fn wanted<'a>(&'a self, args: &'a RunArgs) -> Result<HandlerChoice<'a>, Fault> {
        if let Some(request) = &self.request {
            return request.choice(self.tuning.batch);
        }
        let beside = Beside {
            words: &args.worker,
            http: &args.http,
            batch: self.tuning.batch,
            concurrency: self.tuning.concurrency,
        };
        if let Some(each) = args.each.wanted(&beside)? {
            return Ok(each);
        }
        let worker = (args.worker.clone(), args.workers.unwrap_or(NonZeroU32::MIN));
        handler::wanted(args.url.as_deref(), &args.http, self.tuning.batch, worker)
    }

    pub(super) fn making(
        &self,
        shell: &Shell,
        calls: &CallThreads,
        clock: &Arc<dyn Clock>,
        sink: Sink,
        leftovers: Option<PathBuf>,
    ) -> HandlerParts<'_> {
        HandlerParts {
            config: &self.config,
            first_contact: self.first_contact,
            environment: shell.environment.clone(),
            clock: clock.clone(),
            sink,
            leftovers,
            calls: calls.clone(),
        }
    }
}

/// Applies the flags to the configured settings. Without `--rate`, whatever the configuration says, the autopilot
/// finds the rate of calls over the network, and a program of this machine is unpaced.
fn tuned(args: &RunArgs, base: &Tuning) -> Result<Tuning, Fault> {
    let rate = match is_remote(args) {
        true => RateLimit::Auto(None),
        false => RateLimit::Unlimited,
    };
    let unasked = TuningPatch {
        rate: Some(rate),
        ..TuningPatch::default()
    };
    checked(unasked.and(&args.tunes.0).apply(base))
}

/// True if calls go over the network, so that their answers can say what they cost.
fn is_remote(args: &RunArgs) -> bool {
    args.url.is_some() || args.request.request.is_some()
}

fn checked(tuning: Tuning) -> Result<Tuning, Fault> {
    let faults = check::faults(&tuning);
    if faults.is_empty() {
        return Ok(tuning);
    }
    let because = faults.iter().map(ToString::to_string).collect();
    let what = "can't run the job with these settings".to_owned();
    Err(Fault {
        exit: Exit::Usage,
        what,
        because,
        hint: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_config::TaskDefaults;

    fn args(words: &str) -> RunArgs {
        RunArgs::read(words.split(' ').skip(1)).expect("a sound command line")
    }

    #[test]
    fn a_program_without_a_rate_is_unpaced_and_flags_win() {
        let base = TaskDefaults::default().tuning;
        let flags = args("windrow run --total 3 --rate 5/s --max-attempts 1 --error-budget 1% -- true");
        let tuning = tuned(&flags, &base).expect("sound");
        assert_eq!(tuning.rate.to_string(), "5/s");
        assert_eq!(
            (tuning.max_attempts.get(), tuning.error_budget.to_string()),
            (1, "1%".to_owned())
        );
        assert_eq!(tuning.error_window, base.error_window);
        let plain = tuned(&args("windrow run --total 3 -- true"), &base).expect("sound");
        assert_eq!(
            plain,
            Tuning {
                rate: RateLimit::Unlimited,
                ..base
            }
        );
    }

    #[test]
    fn the_autopilot_finds_the_rate_of_calls_over_the_network() {
        let rate = |handler: &str| {
            let flags = args(&format!("windrow run --total 3 {handler}"));
            let tuning = tuned(&flags, &TaskDefaults::default().tuning).expect("sound");
            tuning.rate.to_string()
        };
        for (handler, expected) in [
            ("--url http://127.0.0.1:9/", "auto"),
            ("--request http://127.0.0.1:9/", "auto"),
            ("--url http://127.0.0.1:9/ --rate unlimited", "unlimited"),
            ("--url http://127.0.0.1:9/ --rate 7/s", "7/s"),
            ("--each true", "unlimited"),
            ("--rate auto -- true", "auto"),
        ] {
            assert_eq!(rate(handler), expected, "{handler}");
        }
    }

    #[test]
    fn settings_that_contradict_one_another_are_all_listed() {
        let flags = args("windrow run --total 3 --window 4 --concurrency 64 --batch 8 -- true");
        let fault = tuned(&flags, &TaskDefaults::default().tuning).expect_err("contradictions");
        assert_eq!((fault.exit, fault.because.len()), (Exit::Usage, 2));
    }
}
