//! Hook calls that are due.

use async_trait::async_trait;

use super::state::{CallState, LeftCall, State};
use super::{Call, MemoryStore};
use windrow_core::business::HookKind;
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::handling::outbox::{Delivery, HookTarget, OutboxStore, Settlement, Target};

#[async_trait]
impl OutboxStore for MemoryStore {
    async fn take_due(&self, now: WallMs, until: WallMs, limit: u32) -> Result<Vec<Delivery>, StoreError> {
        self.act(Call::Outbox, |state| Ok(take(state, now, until, limit)))
            .await
    }

    async fn settle(&self, delivery: &Delivery, settlement: &Settlement) -> Result<bool, StoreError> {
        self.act(Call::Outbox, |state| {
            let call = state.outbox.iter_mut().find(|call| call.id == delivery.id);
            let own = call.filter(|call| call.state == CallState::Due && call.attempts == delivery.attempts);
            let Some(call) = own else { return Ok(false) };
            settle(call, settlement);
            Ok(true)
        })
        .await
    }
}

fn take(state: &mut State, now: WallMs, until: WallMs, limit: u32) -> Vec<Delivery> {
    let is_due = |call: &&mut LeftCall| call.state == CallState::Due && call.due_at <= now;
    let mut due: Vec<&mut LeftCall> = state.outbox.iter_mut().filter(is_due).collect();
    due.sort_by_key(|call| (call.due_at, call.id));
    let mut taken = Vec::new();
    for call in due.into_iter().take(limit as usize) {
        call.due_at = until;
        call.attempts += 1;
        let Some(task) = state.tasks.get(&call.task) else {
            continue;
        };
        taken.push(Delivery {
            id: call.id,
            target: Target::Hook(HookTarget {
                task: call.task,
                start_no: call.start_no,
                business: task.new.business.clone(),
                kind: call.kind,
            }),
            delivery_id: call.delivery.clone(),
            body: call.body.to_string(),
            attempts: call.attempts,
            expires_at: call.expires_at,
        });
    }
    taken
}

fn settle(call: &mut LeftCall, settlement: &Settlement) {
    match settlement {
        Settlement::Done => call.state = CallState::Done,
        Settlement::Again { due_at, error } => {
            call.due_at = *due_at;
            call.last_error = error.clone().or_else(|| call.last_error.take());
            return;
        }
        Settlement::Dead { error } => {
            call.state = CallState::Dead;
            call.last_error = Some(error.clone());
        }
    }
    if call.kind == HookKind::Prepare {
        call.body = serde_json::json!({});
    }
}
