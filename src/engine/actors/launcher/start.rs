//! How a run begins: its handler is opened, its core made from what was saved, its children spawned.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::Notify;

use crate::actors::executor::row_feed::RowFeed;
use crate::actors::executor::run_cell::{CellParts, LimitSeats, RunAbout, RunCell};
use crate::actors::executor::{self, WindowExecutor};
use crate::actors::launcher::lease_renewer::{self, LeaseRenewer};
use crate::actors::launcher::opening::{self, Claimed};
use crate::actors::launcher::run::{Child, Run};
use crate::actors::launcher::share::InForce;
use crate::actors::launcher::{Msg, State};
use crate::actors::runtime::context::NodeContext;
use crate::actors::runtime::policy::Kind;
use crate::actors::runtime::tree::Address;
use crate::ports::handling::handler::{Mode, OpenError, RunContext};
use crate::ports::ownership::gate::Gate;
use crate::ports::ownership::run_store::{ClaimedShard, Control};
use crate::ports::tasks::store::TaskView;
use windrow_core::execution::{Command, Execution, Shared, Start};
use windrow_core::ids::CheckpointSeq;
use windrow_core::settings::RateLimit;

impl Run {
    /// Opens the handler and makes the core from what was saved. The control's wish is obeyed, not the claim's: the
    /// control was read after it, and heartbeats tell only what differs from the control.
    pub(crate) fn open(state: &State, claimed: Claimed) -> Result<Run, OpenError> {
        let node = &state.arguments.node;
        let (gate, key, control) = (claimed.gate.clone(), claimed.key, claimed.control.clone());
        let (epoch, recoveries) = (claimed.shard.epoch, claimed.shard.recoveries);
        let cell = cell(state, claimed)?;
        node.directory.enter(cell.clone());
        let progress = cell.progress();
        // What people hear of a start is `run began`, once all of it has started.
        tracing::debug!(
            actor = state.leaf.path(),
            run = cell.about.run.0,
            epoch = epoch.0,
            from = progress.low_water.0,
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
            control,
            seq: CheckpointSeq(0),
            pending: None,
            leaves: false,
            executor: None,
            renewer: None,
        };
        if let Some(end) = run.control.finish_at {
            run.steer(Command::Finish(end));
        }
        if !run.control.abandonments.is_empty() {
            run.steer(Command::GiveUp(run.control.abandonments.clone()));
        }
        run.hear(node.clock.wall());
        run.on_wish(run.control.wish);
        Ok(run)
    }

    /// Spawns the executor on the run's cell; its lanes begin at once.
    pub(crate) async fn start_executor(
        state: &mut State,
        me: &ActorRef<Msg>,
    ) -> Result<(), ActorProcessingErr> {
        let Some(run) = &state.run else { return Ok(()) };
        let node = &state.arguments.node;
        let (launcher, owner) = (state.me.clone(), state.me.clone());
        let leaf = node.tree.enter(
            &state.leaf.child(Kind::WindowExecutor.as_str()),
            Kind::WindowExecutor,
        );
        let arguments = executor::Arguments {
            cell: run.cell.clone(),
            leaf: leaf.clone(),
            work: node.work.clone(),
            lanes: run.lanes(node),
            interval: run.control.tuning.checkpoint_interval,
            drafts: Arc::new(move |draft| {
                launcher.tell(Msg::Draft(Box::new(draft)));
            }),
            on_stale: Arc::new(move || {
                owner.tell(Msg::Stale);
            }),
        };
        let name = Some(leaf.path().to_owned());
        let (actor, _) = Actor::spawn_linked(name, WindowExecutor, arguments, me.get_cell()).await?;
        if let Some(run) = &mut state.run {
            let restarts = run
                .executor
                .take()
                .map(|child| child.restarts)
                .unwrap_or_default();
            run.executor = Some(Child {
                address: Address::new(actor, leaf),
                restarts,
            });
        }
        Ok(())
    }

    /// Spawns the renewer.
    pub(crate) async fn start_renewer(
        state: &mut State,
        me: &ActorRef<Msg>,
    ) -> Result<(), ActorProcessingErr> {
        let Some(run) = &state.run else { return Ok(()) };
        let launcher = state.me.clone();
        let tree = &state.arguments.node.tree;
        let leaf = tree.enter(&state.leaf.child(Kind::LeaseRenewer.as_str()), Kind::LeaseRenewer);
        let arguments = lease_renewer::Arguments {
            node: state.arguments.node.clone(),
            leaf: leaf.clone(),
            key: run.key,
            gate: run.gate.clone(),
            session: state.arguments.life.trust.clone(),
            keeper: state.arguments.lines.lease_keeper.clone(),
            on_lost: Arc::new(move || {
                launcher.tell(Msg::Drop);
            }),
        };
        let name = Some(leaf.path().to_owned());
        // On the thread where leases are kept: no load delays a renewal.
        let spawning = Actor::spawn_linked(name, LeaseRenewer, arguments, me.get_cell());
        let (actor, _) = state.arguments.node.vital.spawn(spawning).await??;
        if let Some(run) = &mut state.run {
            let restarts = run.renewer.take().map(|child| child.restarts).unwrap_or_default();
            run.renewer = Some(Child {
                address: Address::new(actor, leaf),
                restarts,
            });
        }
        Ok(())
    }

    /// More than one lane helps only a handler that answers at once, in this process, and that no rate slows down.
    pub(crate) fn lanes(&self, node: &NodeContext) -> usize {
        let unpaced = self.control.tuning.rate == RateLimit::Unlimited;
        if unpaced && self.cell.handler.answers_at_once() {
            node.lanes_unpaced
        } else {
            1
        }
    }
}

/// The core of the run and what it drives; opens the handler.
fn cell(state: &State, claimed: Claimed) -> Result<Arc<RunCell>, OpenError> {
    let node = &state.arguments.node;
    let Claimed {
        shard,
        gate,
        task,
        control,
        restored,
        provision,
        ..
    } = claimed;
    let about = RunAbout {
        run: shard.run,
        business: task.business.clone(),
        task_name: task.name.clone(),
        kind: provision.handler.kind(),
    };
    let context = context(node, &shard, task, &control, gate.clone());
    let handler = provision.handler.open(Arc::new(context))?;
    let has_data = provision.source.has_data();
    let start = Start {
        shard: shard.shard,
        range: shard.range,
        tuning: control.tuning.clone(),
        restored,
        has_data,
        stalls: shard.stalls,
        run: shard.run,
        canary: control.canary,
        shared: Shared {
            share: state.arguments.candidate.share,
            ..control.shared
        },
        first_contact: node.times.first_contact,
    };
    let wake = Arc::<Notify>::default();
    let settings = (
        start.shared.share.of_limit(start.tuning.rate),
        control.tuning.batch.get(),
    );
    let limited = (&state.arguments.life, &*provision.limits);
    let limits = LimitSeats::join(&node.pots, limited, settings, &node.clock, &wake);
    Ok(Arc::new(RunCell::new(CellParts {
        shard: shard.shard,
        about,
        gate,
        handler,
        clock: node.clock.clone(),
        rows: has_data.then(|| Arc::new(RowFeed::new(provision.source))),
        logs: state.arguments.logs.sink(),
        lines: state.arguments.logs.of_replies(node.data_log.clone()),
        execution: Execution::new(start, opening::now(node)),
        timeout: control.tuning.timeout,
        batch: control.tuning.batch.get(),
        limits,
        wake,
    })))
}

/// What the handler is told about the run.
fn context(
    node: &NodeContext,
    shard: &ClaimedShard,
    task: TaskView,
    control: &Control,
    gate: Arc<Gate>,
) -> RunContext {
    RunContext {
        shard: shard.shard,
        task_name: task.life.name,
        task_revision: control.rev,
        business: task.business,
        params: task
            .life
            .params
            .and_then(|json| serde_json::value::RawValue::from_string(json).ok()),
        run: shard.run,
        epoch: shard.epoch,
        store: node.store_id.clone(),
        keys_of: None,
        mode: if control.canary.is_some() {
            Mode::Canary
        } else {
            Mode::Live
        },
        gate,
    }
}
