//! A run that makes calls without an engine: what handlers are told of it, and the data of its items.

use std::sync::Arc;

use windrow_core::ids::{Epoch, RunNo, ShardId, StoreId, TaskId};
use windrow_core::items::trace::Sampling;
use windrow_engine::ports::handling::handler::{Mode, RunContext};
use windrow_engine::ports::ownership::gate::Gate;

/// The data of each item.
pub const ROW: &str = r#"{"user_id":"u_3818","locale":"zh-CN"}"#;

/// What its handler is told.
pub fn context() -> Arc<RunContext> {
    Arc::new(RunContext {
        shard: ShardId {
            task: TaskId(1042),
            no: 0,
        },
        task_name: Some("black-friday".into()),
        task_revision: 4,
        business: "push-campaign".into(),
        params: None,
        run: RunNo(3),
        epoch: Epoch(1_795_194_100_123),
        store: StoreId("k7f3q2".into()),
        keys_of: None,
        is_proven: false,
        keeps_results: false,
        mode: Mode::Live,
        sampling: Sampling::default(),
        metering: Arc::default(),
        gate: Arc::new(Gate::always_open()),
    })
}
