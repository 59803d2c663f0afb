//! What people do to tasks: the transition table decides, maps change.

use super::state::{State, Task};
use super::{control, hooks, progress, shards, shown};
use crate::adapters::start_token;
use crate::domain::execution::Reach;
use crate::domain::ids::{ItemIndex, TaskId, WallMs};
use crate::domain::lifecycle::{
    DORMANT, Refusal, ShardState, Standing, Status, StopReason, Verb, Wish, decide, note_of_command,
};
use crate::domain::meaning::{FieldRefusal, Meaning, changed};
use crate::domain::shards::{Nodes, PauseReason};
use crate::ports::StoreError;
use crate::ports::task_store::{Actor, CommandError, TaskCommand, TaskEdit, TaskView};

/// See [`crate::ports::task_store::TaskStore::command_if`].
pub(super) fn obey(
    state: &mut State,
    (id, expected): (TaskId, Option<u64>),
    command: &TaskCommand,
    actor: &Actor,
    now: WallMs,
) -> Result<TaskView, CommandError> {
    let task = state.tasks.get(&id).ok_or(CommandError::NotFound(id))?;
    if let Some(expected) = expected.filter(|expected| *expected != task.version) {
        return Err(CommandError::Changed { expected, found: task.version });
    }
    let standing = Standing { wish: task.wish, status: task.status, owned: task.is_owned() };
    let settings = act(state, id, command, standing, now)?;
    let task = state.tasks.get_mut(&id).ok_or(CommandError::NotFound(id))?;
    task.version += 1;
    let status = task.status;
    let statuses = (Some(progress::status_json(standing.status)), Some(progress::status_json(status)));
    state.record(Some(id), actor, now, command.action().to_owned(), settings.unwrap_or(statuses));
    if status == Status::Stopped && standing.status != Status::Stopped {
        hooks::announce(state, id, status, now);
    }
    if matches!(command, TaskCommand::Finish { .. }) || status == Status::Finalizing {
        progress::refresh(state, id, now, None);
    }
    let task = state.tasks.get(&id).ok_or(CommandError::NotFound(id))?;
    Ok(shown::view_with_owners(state, id, task))
}

/// What a change was and is, as the audit has it.
type Settings = Option<(Option<String>, Option<String>)>;

fn act(
    state: &mut State,
    id: TaskId,
    command: &TaskCommand,
    standing: Standing,
    now: WallMs,
) -> Result<Settings, CommandError> {
    if command.begins() && state.tasks.get(&id).is_some_and(is_dormant) {
        wake(state, id, standing, command.start_at(), now)?;
        return control::judge_items(state, id, command);
    }
    if command.is_start() {
        start(state, id, standing, command.start_at(), now)?;
        return control::judge_items(state, id, command);
    }
    let (taken, nodes) = (taken_name(state, id, command), shards::nodes(state));
    let task = state.tasks.get_mut(&id).ok_or(CommandError::NotFound(id))?;
    match command {
        TaskCommand::Start | TaskCommand::StartAt(_) | TaskCommand::StartJudging(_) => {}
        TaskCommand::Stop { reason } => end(task, decide(Verb::Stop, standing)?, (Verb::Stop, *reason), now),
        TaskCommand::StopNow => {
            end(task, decide(Verb::StopNow, standing)?, (Verb::StopNow, StopReason::Operator), now);
        }
        TaskCommand::Cancel => {
            end(task, decide(Verb::Cancel, standing)?, (Verb::Cancel, StopReason::Operator), now);
        }
        TaskCommand::Tune(tuning) => {
            decide(Verb::Tune, standing)?;
            return control::tune(task, tuning).map(Some);
        }
        TaskCommand::Edit(edit) => {
            edit.check(standing, has_run(task))?;
            return edit_task(task, edit, taken).map(Some);
        }
        TaskCommand::Finish { end } => finish(task, standing, *end, now)?,
        TaskCommand::Abandon { code } => return control::abandon(task, standing, code, now).map(Some),
        TaskCommand::Recover => recover(task, standing, now)?,
        TaskCommand::Ready { start_no, edit } => {
            check_start(task, *start_no)?;
            decide(Verb::HookReady, standing)?;
            edit_task(task, edit, taken)?;
            go(task, nodes, now);
        }
        TaskCommand::NotReady { start_no, text } => {
            not_ready(task, standing, (*start_no, text), now)?;
        }
    }
    Ok(None)
}

/// Starts what rested too long to go on by itself: as after a stop.
fn wake(
    state: &mut State,
    id: TaskId,
    standing: Standing,
    at: Option<WallMs>,
    now: WallMs,
) -> Result<(), CommandError> {
    decide(Verb::Woken, standing)?;
    let task = state.tasks.get_mut(&id).ok_or(CommandError::NotFound(id))?;
    progress::set_wish(task, Wish::Stop, now);
    let rested = Standing { wish: Wish::Stop, status: Status::Stopped, owned: false };
    start(state, id, rested, at, now)
}

/// Says that it rested too long to go on by itself.
fn is_dormant(task: &Task) -> bool {
    task.status_reason.as_deref() == Some(DORMANT)
}

fn start(
    state: &mut State,
    id: TaskId,
    standing: Standing,
    at: Option<WallMs>,
    now: WallMs,
) -> Result<(), CommandError> {
    let queued = decide(Verb::Start, standing)?;
    let token = start_token::make()?;
    let nodes = shards::nodes(state);
    let task = state.tasks.get_mut(&id).ok_or(CommandError::NotFound(id))?;
    if let Some(at) = at {
        task.new.start_at = Some(WallMs(at.0.max(0))).filter(|at| at.0 > 0);
    }
    if task.stop_reason == Some(StopReason::CanaryDone) {
        task.canary = None;
        task.control_rev += 1;
    }
    task.start_no += 1;
    task.started_at = task.started_at.or(Some(now));
    task.stop_reason = None;
    task.start_token = Some(start_token::hash(&token));
    state.start_tokens.insert(start_token::hash(&token), (id, task.start_no));
    let Some(until) = hooks::ready_until(state.hooks.get(&task.new.business), now) else {
        go(task, nodes, now);
        return Ok(());
    };
    let asked = decide(Verb::HookAsked, Standing { wish: queued.wish, status: queued.status, owned: false })?;
    task.wish = queued.wish;
    for shard in task.shards.iter_mut().filter(|shard| shard.state != ShardState::Done) {
        shard.state = ShardState::Stopped;
        shard.updated_at = now;
    }
    let text = "the business prepares itself for this start".to_owned();
    progress::enter(task, asked.status, Some((Some("prepare".to_owned()), text)), now);
    task.awaiting_until = Some(until);
    hooks::ask(state, id, &token, until, now);
    Ok(())
}

/// Makes the shards claimable, from the task's own `start_at` on.
fn go(task: &mut Task, nodes: Nodes, now: WallMs) {
    shards::make(task, nodes, now);
    (task.pause, task.slow) = (None, None);
    progress::set_wish(task, Wish::Run, now);
    let later = task.new.start_at.filter(|at| *at > now);
    task.queued_at = later.unwrap_or(now);
    if let Some(at) = later {
        let idle = task.shards.iter_mut().filter(|shard| shard.state == ShardState::Idle);
        idle.for_each(|shard| shard.not_before = at);
    }
    shards::deal(task);
    let note = later.map(|at| (Some("start_at".to_owned()), format!("it starts at {}", at.to_rfc3339())));
    progress::enter(task, Status::Queued, note, now);
}

fn not_ready(
    task: &mut Task,
    standing: Standing,
    (start_no, text): (u32, &str),
    now: WallMs,
) -> Result<(), CommandError> {
    check_start(task, start_no)?;
    let decision = decide(Verb::HookRefused, standing)?;
    task.stop_reason = Some(StopReason::Business);
    progress::set_wish(task, decision.wish, now);
    progress::enter(task, decision.status, Some((None, text.to_owned())), now);
    Ok(())
}

fn check_start(task: &Task, given: u32) -> Result<(), CommandError> {
    let present = task.start_no;
    if given == present { Ok(()) } else { Err(CommandError::StaleStart { given, present }) }
}

/// Stop and cancel.
fn end(
    task: &mut Task,
    decision: crate::domain::lifecycle::Decision,
    (verb, reason): (Verb, StopReason),
    now: WallMs,
) {
    if decision.wish != task.wish {
        progress::set_wish(task, decision.wish, now);
    }
    task.stop_reason = task.stop_reason.or(Some(reason));
    if decision.status != task.status {
        let said = note_of_command(verb, reason).map(|said| (said.reason, said.text));
        progress::enter(task, decision.status, said, now);
    }
}

fn has_run(task: &Task) -> bool {
    task.shards.iter().any(|shard| shard.run.0 > 0)
}

/// The name that a command wants and another task has, with that task.
fn taken_name(state: &State, id: TaskId, command: &TaskCommand) -> Option<(String, TaskId)> {
    let (TaskCommand::Edit(edit) | TaskCommand::Ready { edit, .. }) = command else { return None };
    let name = edit.name.clone()?;
    let holder = holder_of_name(state, id, &name)?;
    Some((name, holder))
}

fn holder_of_name(state: &State, id: TaskId, name: &str) -> Option<TaskId> {
    let business = &state.tasks.get(&id)?.new.business;
    let mut tasks = state.tasks.iter().filter(|(other, _)| **other != id);
    let holder = tasks.find(|(_, task)| task.new.business == *business && task.name.as_deref() == Some(name));
    holder.filter(|_| !name.is_empty()).map(|(id, _)| *id)
}

fn edit_task(
    task: &mut Task,
    edit: &TaskEdit,
    taken: Option<(String, TaskId)>,
) -> Result<(Option<String>, Option<String>), CommandError> {
    if let Some((name, holder)) = taken {
        return Err(CommandError::NameTaken(name, holder));
    }
    let next = meaning(task, edit)?;
    let before = described(task, edit)?;
    if let Some(name) = &edit.name {
        task.name = (!name.is_empty()).then(|| name.clone());
    }
    if let Some(labels) = &edit.labels {
        task.new.labels.clone_from(labels);
    }
    task.new.priority = edit.priority.unwrap_or(task.new.priority);
    task.new.deadline = edit.deadline.unwrap_or(task.new.deadline);
    task.new.params = edit.params.clone().or_else(|| task.new.params.take());
    if let Some(tuning) = &edit.tuning {
        task.tuning = tuning.clone();
        task.control_rev += 1;
    }
    if let Some(next) = next {
        let has_run = next.has_run;
        (task.new.total, task.new.skip_first, task.new.source) = (next.total, next.skip_first, next.source);
        task.new.shards = next.shards;
        if let Some((_, meaning)) = edit.source {
            task.new.meaning = meaning;
        }
        if has_run { extend(task) } else { cut(task) }
    }
    Ok((Some(before), Some(described(task, edit)?)))
}

fn meaning(task: &Task, edit: &TaskEdit) -> Result<Option<Meaning>, CommandError> {
    let change = edit.meaning();
    if change.is_empty() {
        return Ok(None);
    }
    let now = Meaning {
        total: task.new.total,
        skip_first: task.new.skip_first,
        source: task.new.source.clone(),
        shards: task.new.shards,
        has_run: has_run(task),
        is_cut: task.finish_at.is_some() || task.shards.iter().any(|shard| shard.end < shard.range_end),
    };
    changed(&now, &change).map(Some).map_err(CommandError::Fields)
}

fn cut(task: &mut Task) {
    let first = ItemIndex(task.new.skip_first.0.min(task.new.total.0));
    let end = ItemIndex(task.new.total.0);
    task.shards.truncate(1);
    for shard in &mut task.shards {
        (shard.first, shard.low_water, shard.high_water) = (first, first, first);
        shard.reach = Reach { may_leave: first, may_have_left: first };
        (shard.end, shard.range_end) = (end, end);
        shard.share = None;
    }
}

fn extend(task: &mut Task) {
    let end = ItemIndex(task.new.total.0);
    if let Some(shard) = task.shards.last_mut().filter(|shard| shard.range_end != end) {
        (shard.end, shard.range_end) = (end, end);
        if shard.state == ShardState::Done {
            shard.state = ShardState::Stopped;
        }
    }
}

fn described(task: &Task, edit: &TaskEdit) -> Result<String, StoreError> {
    use serde_json::Value;
    let read = |text: Option<&str>| -> Value {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    };
    let labels = if task.new.labels.is_empty() { Value::Null } else { serde_json::json!(task.new.labels) };
    let settings = control::json(&task.tuning)?;
    let members = [
        ("settings", edit.tuning.is_some(), read(settings.as_deref())),
        ("name", edit.name.is_some(), serde_json::json!(task.name)),
        ("labels", edit.labels.is_some(), labels),
        ("priority", edit.priority.is_some(), serde_json::json!(task.new.priority)),
        ("deadline_ms", edit.deadline.is_some(), serde_json::json!(task.new.deadline.map(|at| at.0))),
        ("params", edit.params.is_some(), read(task.new.params.as_deref())),
        ("total", edit.total.is_some(), serde_json::json!(task.new.total.0)),
        ("skip_first", edit.skip_first.is_some(), serde_json::json!(task.new.skip_first.0)),
        ("source", edit.source.is_some(), read(Some(task.new.source.as_str()))["kind"].take()),
        ("shards", edit.shards.is_some(), serde_json::json!(task.new.shards)),
    ];
    let named = members.into_iter().filter(|(_, is_named, _)| *is_named);
    Ok(Value::Object(named.map(|(name, _, value)| (name.to_owned(), value)).collect()).to_string())
}

fn finish(task: &mut Task, standing: Standing, end: ItemIndex, now: WallMs) -> Result<(), CommandError> {
    decide(Verb::Finish, standing)?;
    if end.0 >= task.new.total.0 {
        let why = format!("the task has {} items; an early finish lies below that", task.new.total.0);
        return Err(CommandError::Fields(vec![FieldRefusal::new("total", why)]));
    }
    let known = |shard: &super::state::Shard| match shard.state {
        ShardState::Running => shard.high_water,
        _ => shard.may_have_left(),
    };
    let dispatched = task.shards.iter().map(known).max().unwrap_or_default();
    let end = if task.shards.len() == 1 { end.max(dispatched) } else { end };
    task.finish_at = Some(task.finish_at.map_or(end, |earlier| earlier.min(end)));
    task.control_rev += 1;
    shards::cut_unowned(task, end, now);
    shards::settle(task, now);
    Ok(())
}

fn recover(task: &mut Task, standing: Standing, now: WallMs) -> Result<(), CommandError> {
    let decision = decide(Verb::Recover, standing)?;
    if decision.status == Status::Finalizing {
        return Ok(());
    }
    for shard in task.shards.iter_mut().filter(|shard| shard.state == ShardState::Recovering) {
        shard.state = ShardState::Idle;
        shard.not_before = WallMs(0);
        shard.updated_at = now;
    }
    if task.pause.is_some_and(|pause| pause.reason == PauseReason::ErrorBudget) {
        task.pause = None;
        task.control_rev += 1;
    }
    progress::enter(task, decision.status, None, now);
    Ok(())
}

/// See [`crate::ports::task_store::TaskStore::delete`].
pub(super) fn delete(state: &mut State, id: TaskId, actor: &Actor, now: WallMs) -> Result<(), CommandError> {
    let status = state.tasks.get(&id).ok_or(CommandError::NotFound(id))?.status;
    if !status.is_terminal() {
        return Err(Refusal { verb: "delete", status, allowed: vec!["cancel"] }.into());
    }
    let mut children = state.tasks.iter().filter(|(_, child)| child.new.parent == Some(id));
    if let Some((child, _)) = children.find(|(_, child)| !child.status.is_terminal()) {
        return Err(CommandError::HasRedrive(*child));
    }
    state.tasks.remove(&id);
    state.start_tokens.retain(|_, (task, _)| *task != id);
    state.outbox.retain(|call| call.task != id);
    state.log.retain(|line| line.1.shard.task != id);
    let before = Some(progress::status_json(status));
    state.record(Some(id), actor, now, "task.delete".to_owned(), (before, None));
    Ok(())
}
