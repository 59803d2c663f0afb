//! Handlers that start a process for each item, and what is called of them.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use windrow_core::template::program::{Argv, Recipe, ShellText};
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::handling::handler::{HandlerFactory, Mode};
use windrow_engine::ports::ownership::gate::Gate;
use windrow_handlers::command::{Environment, Inherit};
use windrow_handlers::exec::{ExecHandlerFactory, Settings};
use windrow_host::clock::SystemClock;

use super::command_support::{Log, Rig, run};

/// How an exec rig differs from the usual.
pub(crate) struct Exec {
    recipe: Recipe,
    keeps_results: bool,
    timeout: Duration,
}

impl Exec {
    pub(crate) fn argv(words: &[&str]) -> Exec {
        Exec::of(Recipe::Argv(Argv::parse(words, false).expect("a sound template")))
    }

    pub(crate) fn shell(text: &str) -> Exec {
        Exec::of(Recipe::Shell(ShellText::parse(text).expect("a sound text")))
    }

    fn of(recipe: Recipe) -> Exec {
        Exec {
            recipe,
            keeps_results: true,
            timeout: Duration::from_secs(30),
        }
    }

    pub(crate) fn without_results(mut self) -> Exec {
        self.keeps_results = false;
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Exec {
        self.timeout = timeout;
        self
    }

    pub(crate) fn open(self) -> Rig {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let (log, gate) = (Log::default(), Arc::new(Gate::always_open()));
        let environment = Environment {
            inherit: Inherit::All(std::env::vars_os().collect()),
            variables: Vec::new(),
        };
        let factory = ExecHandlerFactory::new(Settings {
            recipe: self.recipe,
            processes: NonZeroU32::new(8),
            unavailable_exits: vec![28],
            environment,
            cwd: None,
            records: None,
            clock: clock.clone(),
            sink: log.sink(),
        });
        let mut context = run(Mode::Live, gate.clone(), Arc::default());
        context.keeps_results = self.keeps_results;
        let handler = factory.open(Arc::new(context)).expect("the program is there");
        Rig {
            handler,
            log,
            clock,
            timeout: self.timeout,
            gate,
        }
    }
}
