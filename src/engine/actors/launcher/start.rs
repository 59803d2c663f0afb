//! Start of a run: opens its handler, makes its core from the saved progress, spawns its children.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::actors::executor::gauge::Gauge;
use crate::actors::executor::row_feed::RowFeed;
use crate::actors::executor::run_cell::{self, Drives, LimitSlots, RunAbout, RunCell, in_order};
use crate::actors::executor::{self, WindowExecutor};
use crate::actors::launcher::idle::Idleness;
use crate::actors::launcher::lease_renewer::{self, LeaseRenewer};
use crate::actors::launcher::opening::Claimed;
use crate::actors::launcher::run::{Child, Run};
use crate::actors::launcher::share::InForce;
use crate::actors::launcher::talk::Talk;
use crate::actors::launcher::{Launcher, Msg};
use crate::actors::membership::local_buckets::Asks;
use crate::actors::runtime::actor::{Handled, start};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::policy::Kind;
use crate::ports::handling::handler::{HandlerFactory, Mode, OpenError, RunContext};
use crate::ports::ownership::gate::Gate;
use crate::ports::ownership::run_store::{ClaimedShard, Control};
use crate::ports::sources::provision::LimitOf;
use crate::ports::tasks::store::TaskView;
use windrow_core::execution::{Command, Execution, Restored, Shared, Start};
use windrow_core::ids::CheckpointSeq;
use windrow_core::items::trace::Sampling;
use windrow_core::limit::weight;
use windrow_core::meter::meterings::Meterings;
use windrow_core::settings::{RateLimit, Results};

impl Run {
    /// Opens the handler and makes the core from the saved progress. The control's desired state is obeyed, not the
    /// claim's: the control was read later, and heartbeats report only differences from the control.
    pub(crate) fn open(state: &Launcher, claimed: Claimed) -> Result<Run, OpenError> {
        let node = &state.arguments.node;
        let (gate, key, control) = (claimed.gate.clone(), claimed.key, claimed.control.clone());
        let (epoch, recoveries) = (claimed.shard.epoch, claimed.shard.recoveries);
        let cell = cell(state, claimed)?;
        node.directory.enter(cell.clone());
        let progress = cell.progress();
        // People see a start as `run began`, once everything has started.
        tracing::debug!(
            actor = state.me.leaf.path(),
            run = cell.about.run.0,
            epoch = epoch.0,
            from = progress.watermark.0,
            total = progress.total.0,
            "run started"
        );
        let run = Run {
            cell,
            gate,
            key,
            epoch,
            recoveries,
            claimed_at: node.clock.now(),
            in_force: InForce::new(&control, state.arguments.candidate.share),
            idleness: Idleness::default(),
            talk: Talk::new(node.clock.now()),
            control,
            seq: CheckpointSeq(0),
            pending: None,
            leaves: false,
            executor: Child::new(),
            renewer: Child::new(),
        };
        if let Some(end) = run.control.finish_at {
            run.steer(Command::Finish(end));
        }
        if !run.control.failed_codes.is_empty() {
            run.steer(Command::MarkFailed(run.control.failed_codes.clone()));
        }
        if !run.control.skips.is_empty() {
            run.steer(Command::Skip(run.control.skips.clone()));
        }
        run.hear(node.clock.wall());
        run.on_desired(run.control.desired);
        Ok(run)
    }

    /// Returns the number of lanes. More than one helps only a handler that answers at once, in this process, without
    /// a rate limit.
    pub(crate) fn lanes(&self, node: &NodeContext) -> usize {
        let unpaced = self.control.tuning.rate == RateLimit::Unlimited;
        if unpaced && self.cell.handler.answers_at_once() {
            node.lanes_unpaced
        } else {
            1
        }
    }
}

impl Launcher {
    /// Starts the executor on the run's cell; its lanes begin at once.
    pub(crate) async fn start_executor(&mut self) -> Handled {
        let Some(run) = &mut self.run else { return Ok(()) };
        let node = &self.arguments.node;
        let arguments = executor::Arguments {
            cell: run.cell.clone(),
            work: node.work.clone(),
            lanes: run.lanes(node),
            interval: run.control.tuning.checkpoint_interval,
            drafts: self.me.sink(|draft| Msg::Draft(Box::new(draft))),
            on_stale: self.me.sink(|()| Msg::Stale),
        };
        let leaf = self.me.leaf.enter_child(Kind::WindowExecutor);
        let executor = start::<WindowExecutor>(leaf, arguments, self.me.cell()).await?;
        run.executor.address = Some(executor);
        Ok(())
    }

    /// Starts the renewer on the thread of the leases, so that no load delays a renewal.
    pub(crate) async fn start_renewer(&mut self) -> Handled {
        let Some(run) = &mut self.run else { return Ok(()) };
        let arguments = lease_renewer::Arguments {
            node: self.arguments.node.clone(),
            key: run.key,
            gate: run.gate.clone(),
            session: self.arguments.life.trust.clone(),
            keeper: self.arguments.routes.lease_keeper.clone(),
            on_lost: self.me.sink(|()| Msg::Drop),
        };
        let leaf = self.me.leaf.enter_child(Kind::LeaseRenewer);
        let starting = start::<LeaseRenewer>(leaf, arguments, self.me.cell());
        run.renewer.address = Some(self.arguments.node.vital.spawn(starting).await??);
        Ok(())
    }
}

/// Builds the run's cell: the core and everything that it drives. Opens the handler.
fn cell(state: &Launcher, claimed: Claimed) -> Result<Arc<RunCell>, OpenError> {
    let node = &state.arguments.node;
    let (shard, gate, control) = (claimed.shard, claimed.gate, claimed.control);
    let (task, provision) = (claimed.task, claimed.provision);
    let about = about(&shard, &task, &control, &*provision.handler);
    let (metering, priority) = (meterings(&task, &provision.limits), task.life.spec.priority);
    let context = context(node, &shard, task, &control, (gate.clone(), metering.clone()));
    let handler = provision.handler.open(Arc::new(context))?;
    let has_data = provision.source.has_data();
    let start = Start {
        shard: shard.shard,
        range: shard.range,
        tuning: control.tuning.clone(),
        restored: Restored {
            is_proven: provision.handler.is_proven(),
            ..claimed.restored
        },
        has_data,
        stalls: shard.stalls,
        run: shard.run,
        canary: control.canary,
        shared: Shared {
            share: state.arguments.candidate.share,
            ..control.shared
        },
        first_contact: node.times.first_contact,
        supply: control.supply,
        is_service: about.service.is_some(),
        metering: metering.own().clone(),
    };
    let wake = Arc::default();
    let limits = limits(state, (&provision.limits, priority), &start, &wake);
    let drives = Drives {
        shard: shard.shard,
        about,
        gate,
        handler,
        clock: node.clock.clone(),
        rows: has_data.then(|| Arc::new(RowFeed::new(provision.source))),
        logs: state.arguments.logs.sink(),
        limits,
        gauge: Gauge::of(&metering),
        wake,
    };
    let mut execution = Execution::new(start, run_cell::now(&*node.clock));
    execution.share(metering.named());
    let lines = state.arguments.logs.of_replies(node.data_log.clone());
    let kept = (lines, results_of(node, &shard));
    Ok(Arc::new(RunCell::new(drives, execution, kept)))
}

/// Returns the metering of the task, and those of its limits in the order of their slots.
fn meterings(task: &TaskView, limits: &[LimitOf]) -> Arc<Meterings> {
    let named = in_order(limits).into_iter();
    let named = named.filter_map(|limit| limit.metering.clone()).collect();
    Arc::new(Meterings::new((*task.life.spec.metering).clone(), named))
}

/// Joins the limits that the run shares with others.
fn limits(
    state: &Launcher,
    (named, priority): (&[LimitOf], i32),
    start: &Start,
    wake: &Arc<Notify>,
) -> LimitSlots {
    let node = &state.arguments.node;
    let asks = Asks {
        rate: start.shared.share.of_limit(start.tuning.rate),
        batch: start.tuning.batch.get(),
        weight: weight(priority),
    };
    let limited = (&state.arguments.life, named);
    LimitSlots::join(&node.local_buckets, limited, asks, &node.clock, wake)
}

fn about(shard: &ClaimedShard, task: &TaskView, control: &Control, handler: &dyn HandlerFactory) -> RunAbout {
    RunAbout {
        run: shard.run,
        business: task.business.clone(),
        task_name: task.spec.name.clone(),
        kind: handler.kind(),
        service: handler.service(),
        keeps_results: control.tuning.results == Results::Keep,
    }
}

/// Returns the outputs of the run, counted on from those of earlier runs.
fn results_of(node: &NodeContext, shard: &ClaimedShard) -> executor::results::Results {
    let room = node.directory.result_room();
    executor::results::Results::new(room, shard.results_kept, shard.watermark)
}

/// Returns the facts about the run that its handler is given.
fn context(
    node: &NodeContext,
    shard: &ClaimedShard,
    task: TaskView,
    control: &Control,
    (gate, metering): (Arc<Gate>, Arc<Meterings>),
) -> RunContext {
    RunContext {
        shard: shard.shard,
        task_name: task.life.spec.name,
        task_revision: control.rev,
        business: task.business,
        params: task.life.spec.params.map(|json| json.0),
        run: shard.run,
        epoch: shard.epoch,
        store: node.store_id.clone(),
        keys_of: None,
        is_proven: false,
        keeps_results: control.tuning.results == Results::Keep,
        mode: if control.canary.is_some() {
            Mode::Canary
        } else {
            Mode::Live
        },
        sampling: Sampling::default(),
        metering,
        gate,
    }
}
