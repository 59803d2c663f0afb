//! Fires whose tasks can't be made: they say why at once, and are tried again.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::ids::{ScheduleId, TaskId};
use windrow_core::schedule::timing::Timing;
use windrow_core::schedule::{Missed, Overlap, Spec};
use windrow_engine::actors::runtime::context::ScheduleParts;
use windrow_engine::ports::clock::Clock as _;
use windrow_engine::ports::schedules::maker::{FireFault, FireMaker};
use windrow_engine::ports::schedules::store::{FireOutcome, NewSchedule, ScheduleStore, TakenFire};
use windrow_engine::ports::tasks::store::TaskStore as _;

use super::ok;
use crate::tasks::write;
use crate::world::World;

/// A maker with a bug.
#[derive(Default)]
struct Panicking(AtomicU32);

#[async_trait]
impl FireMaker for Panicking {
    async fn make(&self, _: &TakenFire) -> Result<TaskId, FireFault> {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("the scripted panic while making")
    }
}

async fn schedule(world: &World) -> ScheduleId {
    let (store, now) = (&world.store, world.clock.wall());
    store.ensure_business("run", &write(), now).await.expect("memory");
    let new = NewSchedule {
        business: "run".to_owned(),
        name: "hourly".to_owned(),
        spec: Spec {
            timing: Timing::every(Duration::from_secs(3600)).expect("sound"),
            start: None,
            end: None,
            jitter: Duration::ZERO,
            overlap: Overlap::Skip,
            missed: Missed::Latest,
        },
        template: r#"{"source":{"type":"range","total":3}}"#.to_owned(),
        is_guarded: false,
        paused: false,
    };
    store.create_schedule(&new, &write()).await.expect("memory").id
}

#[tokio::test(start_paused = true)]
async fn a_fire_whose_task_is_made_by_buggy_code_says_so_at_once() {
    let maker = Arc::new(Panicking::default());
    let arrange = |world: &mut World| {
        let made: Arc<OnceLock<Arc<dyn FireMaker>>> = Arc::default();
        assert!(made.set(maker.clone()).is_ok(), "it is new");
        world.schedules = Some(ScheduleParts {
            store: world.store.clone(),
            maker: made,
        });
    };
    let world = World::start_as("fires-panic", arrange, |_, _| ok()).await;
    let id = schedule(&world).await;
    world
        .store
        .trigger(id, &write())
        .await
        .expect("nothing is in its way");
    // The scheduler looks every second.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let fires = world.store.fires(id, None, None, 10).await.expect("memory");
    assert_eq!((fires[0].outcome, fires[0].attempts), (FireOutcome::Pending, 1));
    let text = fires[0].text.as_deref().expect("it says why");
    assert!(
        text.contains("a bug of Windrow") && !text.contains("scripted"),
        "{text}"
    );
    assert_eq!(maker.0.load(Ordering::SeqCst), 1, "tried again later");
}
