//! Facts about datasets: one pointer, moved with the end of a task under the claim of its last shard.

use std::num::NonZeroU32;

use windrow_core::dataset::{GenerationNo, GenerationState, Publish, PublishIf, Reduce, Sink, key_hash};
use windrow_core::ids::{Epoch, ItemIndex, ShardId, TaskId, WallMs};
use windrow_core::task::lifecycle::{Status, StopReason, TaskResult};
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::datasets::publication::{OwnClaim, Prepared};
use windrow_engine::ports::datasets::sink::{Copied, SinkAgenda, SinkEnd, SinkJob};
use windrow_engine::ports::datasets::store::{DatasetChange, DatasetError, Generation, NewDataset, Which};
use windrow_engine::ports::ownership::run_store::{
    CandidateQuery, CheckpointAck, ClaimOutcome, ClaimedShard, RunClose,
};
use windrow_engine::ports::tasks::store::{CommandError, CreateError, NewTask, TaskCommand};
use windrow_engine::ports::tasks::upkeep::Sweep;

use crate::fixture::{BUSINESS, Harness, NOW, at, closing, failed, hunt, request, task, with, write};
use crate::results::{found, keeping, segment};

/// The dataset of all facts.
const BOARD: &str = "board";
/// Only the newest stays.
const KEEP_ONE: DatasetChange = DatasetChange::Edit {
    keep: Some(NonZeroU32::MIN),
    sink: None,
};
/// Long after everything.
const LATER: WallMs = WallMs(NOW.0 + 1_000_000_000);

fn publish(condition: PublishIf) -> Publish {
    Publish {
        dataset: BOARD.to_owned(),
        condition,
        reduce: Reduce::None,
        key: Some("n".to_owned()),
    }
}

fn publishing(total: u64) -> NewTask {
    NewTask {
        publish: Some(publish(PublishIf::ALL)),
        ..task(total)
    }
}

fn own(claimed: &ClaimedShard) -> OwnClaim {
    OwnClaim {
        shard: claimed.shard,
        epoch: claimed.epoch,
        claim: claimed.claim,
    }
}

fn prepared(summary: &str) -> Prepared {
    Prepared {
        summary: Some(summary.into()),
        is_keyed: false,
    }
}

impl Harness {
    /// A task of this form whose items have all come to something.
    async fn settled(&self, new: &NewTask) -> TaskId {
        let shard = self.queued_as(new).await;
        self.settle(shard).await;
        shard.task
    }

    async fn settle(&self, shard: ShardId) {
        let session = self.session().await;
        let run = self.claimed(shard, Epoch(0), session).await;
        let total = run.range.end.0;
        let all: Vec<u64> = (0..total).collect();
        let mut last = keeping(at(&run, 1, total), total, vec![segment(0, &all)]);
        last.close = Some(RunClose::Done);
        self.stored(last).await;
    }

    /// The publication of a task, owned by a session of its own.
    async fn publication(&self, id: TaskId) -> ClaimedShard {
        let session = self.session().await;
        self.publication_of(id, session).await
    }

    async fn publication_of(&self, id: TaskId, session: windrow_core::ids::SessionId) -> ClaimedShard {
        let shard = ShardId::publication(id);
        let page = self.store.candidates(&hunt()).await.unwrap();
        let seen = page.found.iter().find(|candidate| candidate.rank.shard == shard);
        let seen = seen.unwrap_or_else(|| panic!("{shard} is to be had")).epoch;
        self.claimed(shard, seen, session).await
    }

    /// A task of this form, published.
    async fn published(&self, new: &NewTask, summary: &str) -> TaskId {
        let id = self.settled(new).await;
        let claimed = self.publication(id).await;
        let ack = self.store.publish(own(&claimed), &prepared(summary), NOW).await;
        assert_eq!(ack.unwrap(), CheckpointAck::Stored);
        id
    }

    async fn current(&self) -> Option<(u64, String)> {
        let reading = self.store.reading(BOARD, Which::Current).await.unwrap()?;
        let summary = reading.summary.map(String::from).unwrap_or_default();
        Some((reading.generation.no.0, summary))
    }

    async fn generation(&self, no: u64) -> Option<Generation> {
        let reading = self
            .store
            .reading(BOARD, Which::No(GenerationNo(no)))
            .await
            .unwrap();
        reading.map(|reading| reading.generation)
    }

    async fn change(&self, change: DatasetChange) -> Result<u64, DatasetError> {
        let changed = self
            .store
            .change_dataset(BOARD, None, change, &write(), NOW)
            .await?;
        Ok(changed.pointer.publication)
    }

    async fn is_to_be_had(&self, id: TaskId, now: WallMs) -> bool {
        let page = self
            .store
            .candidates(&CandidateQuery { now, ..hunt() })
            .await
            .unwrap();
        page.found
            .iter()
            .any(|one| one.rank.shard == ShardId::publication(id))
    }
}

pub async fn a_task_that_publishes_has_its_number_from_the_day_it_is_made(harness: Harness) {
    let (first, second) = (
        harness.created(&publishing(3)).await,
        harness.created(&publishing(3)).await,
    );
    let number = |view: &windrow_engine::ports::tasks::store::TaskView| {
        view.publishing
            .as_ref()
            .map(|it| (it.generation.0, it.publish.clone()))
    };
    assert_eq!(number(&first), Some((1, publish(PublishIf::ALL))));
    assert_eq!(number(&second).map(|it| it.0), Some(2));
    let again = harness.store.get(first.id).await.unwrap().unwrap();
    assert_eq!(number(&again), number(&first));
    let pending = harness.generation(2).await.unwrap();
    assert_eq!(
        (pending.state, pending.task),
        (GenerationState::Pending, second.id)
    );
    let all = harness.store.generations(BOARD, None, 10).await.unwrap();
    assert_eq!(all.iter().map(|one| one.no.0).collect::<Vec<_>>(), [2, 1]);
    let below = harness
        .store
        .generations(BOARD, Some(GenerationNo(2)), 10)
        .await
        .unwrap();
    assert_eq!(below.iter().map(|one| one.no.0).collect::<Vec<_>>(), [1]);
    assert_eq!(harness.current().await, None);
    assert_eq!(harness.created(&task(1)).await.publishing, None);
    let dataset = harness.store.dataset(BOARD).await.unwrap().unwrap();
    assert_eq!((dataset.business.as_str(), dataset.last.0), (BUSINESS, 2));
    let keyed = NewTask {
        idempotency_key: Some("k1".to_owned()),
        ..publishing(3)
    };
    let (made, repeat) = (harness.created(&keyed).await, harness.created(&keyed).await);
    assert_eq!((made.id, number(&repeat)), (repeat.id, number(&made)));
    let other = NewTask {
        publish: None,
        ..keyed
    };
    let refused = harness.store.create(&other, &write(), NOW).await;
    assert_eq!(refused.unwrap_err(), CreateError::KeyReused(made.id));
}

pub async fn a_dataset_belongs_to_the_business_of_its_first_task(harness: Harness) {
    harness.created(&publishing(3)).await;
    harness
        .store
        .ensure_business("push", &write(), NOW)
        .await
        .unwrap();
    let foreign = NewTask {
        business: "push".to_owned(),
        ..publishing(3)
    };
    let refused = harness.store.create(&foreign, &write(), NOW).await.unwrap_err();
    assert_eq!(refused, CreateError::DatasetTaken(BOARD.to_owned()));
    let mut dry = write();
    dry.dry_run = true;
    let other = NewTask {
        publish: Some(Publish {
            dataset: "other".to_owned(),
            ..publish(PublishIf::ALL)
        }),
        ..foreign
    };
    harness.store.create(&other, &dry, NOW).await.unwrap();
    let names = |of: Option<&'static str>, after: Option<&'static str>| {
        let store = harness.store.clone();
        async move {
            let found = store.datasets(of, after, 10).await.unwrap();
            found.into_iter().map(|dataset| dataset.name).collect::<Vec<_>>()
        }
    };
    assert_eq!(names(None, None).await, [BOARD], "of a dry run nothing is kept");
    harness.store.create(&other, &write(), NOW).await.unwrap();
    assert_eq!(names(None, None).await, [BOARD, "other"]);
    assert_eq!(names(Some("push"), None).await, ["other"]);
    assert_eq!(names(None, Some(BOARD)).await, ["other"]);
    assert_eq!(names(Some("nobody"), None).await, Vec::<String>::new());
}

pub async fn results_are_published_with_the_end_of_their_task_by_the_owner_of_the_claim(harness: Harness) {
    let id = harness.settled(&publishing(3)).await;
    let view = harness.view(id).await;
    assert_eq!((view.status, view.result), (Status::Finalizing, None));
    assert_eq!(harness.current().await, None);
    let claimed = harness.publication(id).await;
    assert!(claimed.range.is_empty() && claimed.shard.is_publication());
    assert_eq!(harness.view(id).await.status, Status::Finalizing);
    let ack = harness
        .store
        .publish(own(&claimed), &prepared("{\"best\":7}"), NOW)
        .await;
    assert_eq!(ack.unwrap(), CheckpointAck::Stored);
    let view = harness.view(id).await;
    assert_eq!(
        (view.status, view.result, view.finished_at),
        (Status::Finished, Some(TaskResult::Succeeded), Some(NOW))
    );
    assert_eq!(harness.current().await, Some((1, "{\"best\":7}".to_owned())));
    let reading = harness
        .store
        .reading(BOARD, Which::Current)
        .await
        .unwrap()
        .unwrap();
    let (dataset, generation) = (reading.dataset, reading.generation);
    assert_eq!(
        (dataset.pointer.publication, dataset.published_at),
        (1, Some(NOW))
    );
    assert_eq!(
        (generation.state, generation.results, generation.publication),
        (GenerationState::Published, 3, Some(1))
    );
    let [shard] = generation.shards.as_slice() else {
        panic!("{generation:?}")
    };
    assert_eq!(
        (shard.shard, shard.end, shard.kept),
        (ShardId { task: id, no: 0 }, ItemIndex(3), 3)
    );
    let repeat = harness.store.publish(own(&claimed), &prepared("{}"), NOW).await;
    assert_eq!(
        repeat.unwrap(),
        CheckpointAck::Stored,
        "the first answer was lost"
    );
    assert_eq!(harness.current().await, Some((1, "{\"best\":7}".to_owned())));
    let audit = harness.store.audit(id).await.unwrap();
    let actions: Vec<&str> = audit.iter().map(|entry| entry.action.as_str()).collect();
    assert!(
        actions.contains(&"dataset.publish") && actions.contains(&"task.finished"),
        "{actions:?}"
    );
    assert!(!harness.is_to_be_had(id, LATER).await, "it is over");
}

pub async fn a_publication_under_an_older_claim_moves_nothing(harness: Harness) {
    let id = harness.settled(&publishing(3)).await;
    let zombie = harness.session().await;
    let old = harness.publication_of(id, zombie).await;
    let written = harness.store.write_keys(own(&old), 0, &[(7, ItemIndex(0))]).await;
    assert_eq!(written.unwrap(), CheckpointAck::Stored);
    harness.fence(zombie).await;
    let new = harness.publication(id).await;
    assert!(new.epoch > old.epoch);
    let fenced = harness.store.publish(own(&old), &prepared("\"old\""), NOW).await;
    assert_eq!(fenced.unwrap(), CheckpointAck::Fenced);
    let written = harness.store.write_keys(own(&old), 1, &[(7, ItemIndex(0))]).await;
    assert_eq!(written.unwrap(), CheckpointAck::Fenced);
    let lent = harness.store.lend_token(own(&old), "hash", NOW).await;
    assert_eq!(lent.unwrap(), CheckpointAck::Fenced);
    assert_eq!(
        (harness.current().await, harness.view(id).await.status),
        (None, Status::Finalizing)
    );
    let accepted = harness.store.publish(own(&new), &prepared("\"new\""), NOW).await;
    assert_eq!(accepted.unwrap(), CheckpointAck::Stored);
    let late = harness.store.publish(own(&old), &prepared("\"old\""), NOW).await;
    assert_eq!(late.unwrap(), CheckpointAck::Fenced);
    assert_eq!(harness.current().await, Some((1, "\"new\"".to_owned())));
}

pub async fn a_generation_that_comes_too_late_is_withheld_and_its_task_finishes(harness: Harness) {
    let first = harness.settled(&publishing(3)).await;
    harness.published(&publishing(3), "2").await;
    let claimed = harness.publication(first).await;
    let ack = harness.store.publish(own(&claimed), &prepared("1"), NOW).await;
    assert_eq!(ack.unwrap(), CheckpointAck::Stored);
    assert_eq!(harness.view(first).await.status, Status::Finished);
    assert_eq!(harness.current().await, Some((2, "2".to_owned())));
    let withheld = harness.generation(1).await.unwrap();
    assert_eq!(
        (withheld.state, withheld.why.as_deref()),
        (
            GenerationState::Withheld,
            Some("generation 2 was published before")
        )
    );
}

pub async fn what_did_not_succeed_as_it_should_is_withheld(harness: Harness) {
    let failing = |condition| NewTask {
        publish: Some(publish(condition)),
        ..task(10)
    };
    let half: PublishIf = "50%".parse().unwrap();
    for (condition, is_published) in [(PublishIf::ALL, false), (half, true), (PublishIf::ANY, true)] {
        let shard = harness.queued_as(&failing(condition)).await;
        let session = harness.session().await;
        let run = harness.claimed(shard, Epoch(0), session).await;
        let last = closing(&run, 1, 10, RunClose::Done);
        harness.stored(with(last, vec![failed(3, "BOOM")])).await;
        let view = harness.view(shard.task).await;
        assert_eq!(view.status == Status::Finalizing, is_published, "{condition}");
        let no = view.publishing.as_ref().unwrap().generation.0;
        let generation = harness.generation(no).await.unwrap();
        if is_published {
            assert_eq!(generation.state, GenerationState::Pending);
        } else {
            assert_eq!(view.result, Some(TaskResult::WithFailures));
            let why = generation.why.as_deref();
            assert_eq!(generation.state, GenerationState::Withheld);
            assert_eq!(why, Some("9 of 10 items succeeded; publish_if is all"));
        }
    }
    assert_eq!(harness.current().await, None);
}

pub async fn a_publication_is_stopped_started_again_and_cancelled(harness: Harness) {
    let id = harness.settled(&publishing(3)).await;
    let claimed = harness.publication(id).await;
    let failed = RunClose::stopped(StopReason::ReduceFailed, "it printed no JSON".to_owned());
    let (shard, epoch, claim) = (claimed.shard, claimed.epoch, claimed.claim);
    let ack = harness.store.release(shard, epoch, claim, &failed, NOW).await;
    assert_eq!(ack.unwrap(), CheckpointAck::Stored);
    let view = harness.view(id).await;
    assert_eq!(
        (view.status, view.stop_reason, view.status_text.as_deref()),
        (
            Status::Stopped,
            Some(StopReason::ReduceFailed),
            Some("it printed no JSON")
        )
    );
    assert!(!harness.is_to_be_had(id, LATER).await);
    let started = harness.command(id, TaskCommand::Start).await;
    assert_eq!((started.status, started.stop_reason), (Status::Finalizing, None));
    let reason = StopReason::Operator;
    let stopped = harness.command(id, TaskCommand::Stop { reason }).await;
    assert_eq!(stopped.status, Status::Stopped, "nobody owns it");
    harness.command(id, TaskCommand::Start).await;
    let claimed = harness.publication(id).await;
    let stopping = harness.command(id, TaskCommand::Cancel).await;
    assert_eq!(
        stopping.status,
        Status::Stopping,
        "its owner has yet to hear of it"
    );
    let (shard, epoch, claim) = (claimed.shard, claimed.epoch, claimed.claim);
    let ack = harness
        .store
        .release(shard, epoch, claim, &RunClose::Released, NOW)
        .await;
    assert_eq!(ack.unwrap(), CheckpointAck::Stored);
    assert_eq!(harness.view(id).await.status, Status::Cancelled);
    let generation = harness.generation(1).await.unwrap();
    assert_eq!(
        (generation.state, generation.why.as_deref()),
        (GenerationState::Withheld, Some("the task was cancelled"))
    );
    let waiting = harness.created(&publishing(3)).await.id;
    harness.command(waiting, TaskCommand::Cancel).await;
    assert_eq!(
        harness.generation(2).await.unwrap().state,
        GenerationState::Withheld
    );
    assert_eq!(harness.current().await, None);
    // One whose end adds up and that publishes nothing can't be stopped at its end.
    let plain = harness.settled(&task(3)).await;
    let refused = harness
        .store
        .command(plain, &TaskCommand::Cancel, &write(), NOW)
        .await;
    assert!(matches!(refused, Err(CommandError::Refused(_))), "{refused:?}");
}

pub async fn a_publication_past_its_deadline_is_still_to_be_had(harness: Harness) {
    let late = NewTask {
        spec: TaskSpec {
            deadline: Some(WallMs(NOW.0 + 10)),
            ..TaskSpec::default()
        },
        ..publishing(3)
    };
    let id = harness.settled(&late).await;
    assert!(harness.is_to_be_had(id, LATER).await);
    assert_eq!(harness.store.past_deadline(LATER, 10).await.unwrap(), []);
}

pub async fn a_reduce_that_is_not_to_be_had_is_tried_again_later(harness: Harness) {
    let id = harness.settled(&publishing(3)).await;
    let claimed = harness.publication(id).await;
    let due = WallMs(NOW.0 + 5_000);
    let later = RunClose::Recovering {
        not_before: due,
        reason: "reduce_unavailable".to_owned(),
        text: "connection refused; try 1 of 5".to_owned(),
        nth: Some(1),
    };
    let (shard, epoch, claim) = (claimed.shard, claimed.epoch, claimed.claim);
    harness
        .store
        .release(shard, epoch, claim, &later, NOW)
        .await
        .unwrap();
    let view = harness.view(id).await;
    assert_eq!(view.status, Status::Finalizing);
    assert_eq!(
        view.status_text.as_deref(),
        Some("connection refused; try 1 of 5")
    );
    assert!(!harness.is_to_be_had(id, NOW).await && harness.is_to_be_had(id, due).await);
    harness.command(id, TaskCommand::Recover).await;
    assert!(harness.is_to_be_had(id, NOW).await, "people want it now");
    assert_eq!(harness.publication(id).await.recoveries, 1);
}

pub async fn the_newest_stay_pinned_ones_too_and_results_outlive_their_task(harness: Harness) {
    let first = harness.published(&publishing(3), "1").await;
    harness
        .change(DatasetChange::Pin(GenerationNo(1), true))
        .await
        .unwrap();
    harness.change(KEEP_ONE).await.unwrap();
    let second = harness.published(&publishing(3), "2").await;
    let third = harness.published(&publishing(3), "3").await;
    let numbers = harness.store.generations(BOARD, None, 10).await.unwrap();
    assert_eq!(
        numbers
            .iter()
            .map(|one| (one.no.0, one.pinned))
            .collect::<Vec<_>>(),
        [(3, false), (1, true)]
    );
    for task in [first, second, third] {
        harness.store.delete(task, &write(), NOW).await.unwrap();
    }
    let of = |task| ShardId { task, no: 0 };
    harness.store.sweep(Sweep::Results, LATER).await.unwrap();
    while harness.store.sweep(Sweep::Generations, LATER).await.unwrap() > 0 {}
    assert_eq!(
        found(&harness, of(first), 0, None).await,
        [vec![0, 1, 2]],
        "it is pinned"
    );
    assert_eq!(
        found(&harness, of(third), 0, None).await,
        [vec![0, 1, 2]],
        "it is current"
    );
    assert_eq!(found(&harness, of(second), 0, None).await, Vec::<Vec<u64>>::new());
    let output = harness.store.output(of(third), ItemIndex(2)).await.unwrap();
    assert_eq!(output.as_deref(), Some("{\"n\":2}"));
    assert_eq!(harness.generation(2).await, None);
    harness
        .change(DatasetChange::Pin(GenerationNo(1), false))
        .await
        .unwrap();
    while harness.store.sweep(Sweep::Generations, LATER).await.unwrap() > 0 {}
    assert_eq!(found(&harness, of(first), 0, None).await, Vec::<Vec<u64>>::new());
    let gone = harness
        .change(DatasetChange::RollBack(GenerationNo(1)))
        .await
        .unwrap_err();
    assert_eq!(
        gone,
        DatasetError::NoGeneration(BOARD.to_owned(), GenerationNo(1))
    );
}

pub async fn a_rollback_moves_the_pointer_back_and_its_number_on(harness: Harness) {
    for summary in ["1", "2"] {
        harness.published(&publishing(3), summary).await;
    }
    let publication = harness
        .change(DatasetChange::RollBack(GenerationNo(1)))
        .await
        .unwrap();
    assert_eq!(
        (publication, harness.current().await),
        (3, Some((1, "1".to_owned())))
    );
    let again = harness
        .change(DatasetChange::RollBack(GenerationNo(1)))
        .await
        .unwrap();
    assert_eq!(again, 3, "it is there already");
    harness.change(KEEP_ONE).await.unwrap();
    assert!(harness.generation(1).await.is_some(), "the current one stays");
    let stale = harness
        .store
        .change_dataset(BOARD, Some(1), KEEP_ONE, &write(), NOW)
        .await;
    assert!(
        matches!(stale, Err(DatasetError::Changed { expected: 1, .. })),
        "{stale:?}"
    );
    harness.published(&publishing(3), "3").await;
    assert_eq!(harness.current().await, Some((3, "3".to_owned())));
    let pending = harness.created(&publishing(3)).await;
    let no = pending.publishing.as_ref().unwrap().generation;
    let refused = harness.change(DatasetChange::RollBack(no)).await.unwrap_err();
    assert_eq!(refused, DatasetError::NoGeneration(BOARD.to_owned(), no));
}

pub async fn a_dataset_goes_only_when_no_task_is_to_publish_it(harness: Harness) {
    let id = harness.published(&publishing(3), "1").await;
    let waiting = harness.created(&publishing(3)).await.id;
    let refused = harness
        .store
        .delete_dataset(BOARD, &write(), NOW)
        .await
        .unwrap_err();
    assert_eq!(refused, DatasetError::InUse(waiting));
    assert!(harness.current().await.is_some());
    harness.command(waiting, TaskCommand::Cancel).await;
    let before = harness.store.dataset(BOARD).await.unwrap().unwrap();
    harness.store.delete_dataset(BOARD, &write(), NOW).await.unwrap();
    assert_eq!(harness.store.dataset(BOARD).await.unwrap(), None);
    let refused = harness
        .store
        .delete_dataset(BOARD, &write(), NOW)
        .await
        .unwrap_err();
    assert_eq!(refused, DatasetError::NotFound(BOARD.to_owned()));
    while harness.store.sweep(Sweep::Generations, LATER).await.unwrap() > 0 {}
    assert_eq!(
        found(&harness, ShardId { task: id, no: 0 }, 0, None).await,
        Vec::<Vec<u64>>::new()
    );
    harness.published(&publishing(3), "anew").await;
    let after = harness.store.dataset(BOARD).await.unwrap().unwrap();
    assert!(after.id > before.id, "one of the same name is another one");
    assert_eq!(harness.current().await, Some((1, "anew".to_owned())));
}

pub async fn a_dataset_is_made_before_its_first_task_and_only_once(harness: Harness) {
    harness.created(&task(1)).await;
    let new = NewDataset {
        name: BOARD.to_owned(),
        business: BUSINESS.to_owned(),
        keep: Some(NonZeroU32::MIN),
        sink: Some(Sink::Redis),
    };
    let dry = windrow_engine::ports::tasks::store::Write {
        dry_run: true,
        ..write()
    };
    harness.store.create_dataset(&new, &dry, NOW).await.unwrap();
    assert_eq!(harness.store.dataset(BOARD).await.unwrap(), None);
    let made = harness.store.create_dataset(&new, &write(), NOW).await.unwrap();
    assert_eq!(
        (made.keep, made.last.0, made.sink.is_some()),
        (NonZeroU32::MIN, 0, true)
    );
    assert_eq!(harness.store.dataset(BOARD).await.unwrap(), Some(made.clone()));
    let again = harness.store.create_dataset(&new, &write(), NOW).await;
    assert_eq!(again.unwrap_err(), DatasetError::Taken(BOARD.to_owned()));
    let nobody = NewDataset {
        name: "other".to_owned(),
        business: "nobody".to_owned(),
        ..new
    };
    let refused = harness.store.create_dataset(&nobody, &write(), NOW).await;
    assert_eq!(
        refused.unwrap_err(),
        DatasetError::NoBusiness("nobody".to_owned())
    );
    harness.published(&publishing(3), "1").await;
    let after = harness.store.dataset(BOARD).await.unwrap().unwrap();
    assert_eq!(
        (after.id, after.keep, after.last.0),
        (made.id, NonZeroU32::MIN, 1)
    );
}

pub async fn keys_are_found_by_their_hash_in_every_write_of_the_claim(harness: Harness) {
    let id = harness.settled(&publishing(3)).await;
    let claimed = harness.publication(id).await;
    let many: Vec<(u64, ItemIndex)> = {
        let mut keys: Vec<_> = (0..5_000)
            .map(|n: u64| (key_hash(&(n % 1_000).to_string()), ItemIndex(n)))
            .collect();
        keys.sort_unstable();
        keys
    };
    let far = [(key_hash("17"), ItemIndex(9_017)), (u64::MAX, ItemIndex(9_999))];
    let mut far = far.to_vec();
    far.sort_unstable();
    for (no, keys) in [(0, many.as_slice()), (1, far.as_slice()), (0, many.as_slice())] {
        let ack = harness.store.write_keys(own(&claimed), no, keys).await;
        assert_eq!(ack.unwrap(), CheckpointAck::Stored);
    }
    let find = |hash: u64, from: u64, count: u32| {
        let (store, epoch) = (harness.store.clone(), claimed.epoch);
        async move {
            let found = store
                .key_indexes(id, epoch, hash, ItemIndex(from), count)
                .await
                .unwrap();
            found.into_iter().map(|index| index.0).collect::<Vec<_>>()
        }
    };
    assert_eq!(
        find(key_hash("17"), 0, 100).await,
        [17, 1_017, 2_017, 3_017, 4_017, 9_017]
    );
    assert_eq!(find(key_hash("17"), 1_018, 2).await, [2_017, 3_017]);
    assert_eq!(find(u64::MAX, 0, 9).await, [9_999]);
    assert_eq!(find(key_hash("1000"), 0, 9).await, Vec::<u64>::new());
    let other = harness
        .store
        .key_indexes(id, Epoch(1), key_hash("17"), ItemIndex(0), 9)
        .await;
    assert_eq!(other.unwrap(), [], "another claim wrote none");
    let keyed = Prepared {
        is_keyed: true,
        ..prepared("{}")
    };
    harness.store.publish(own(&claimed), &keyed, NOW).await.unwrap();
    let generation = harness.generation(1).await.unwrap();
    assert_eq!(generation.key, Some(("n".to_owned(), claimed.epoch)));
}

pub async fn a_token_is_lent_by_the_owner_of_the_claim_for_as_long_as_it_publishes(harness: Harness) {
    let id = harness.settled(&publishing(3)).await;
    let claimed = harness.publication(id).await;
    let token = "wst_of_the_reduce";
    let hash = windrow_host::start_token::hash(token);
    let lent = harness.store.lend_token(own(&claimed), &hash, NOW).await;
    assert_eq!(lent.unwrap(), CheckpointAck::Stored);
    let start = harness.store.start_of_token(token).await.unwrap().unwrap();
    assert_eq!((start.task, start.is_live), (id, true));
    harness
        .store
        .publish(own(&claimed), &prepared("{}"), NOW)
        .await
        .unwrap();
    let start = harness.store.start_of_token(token).await.unwrap().unwrap();
    assert!(!start.is_live);
    let claim = request(claimed.shard, claimed.epoch, harness.session().await);
    assert_eq!(
        harness.store.claim(claim).await.unwrap(),
        ClaimOutcome::Lost,
        "it is done"
    );
}

fn copied_to(sink: Sink) -> DatasetChange {
    DatasetChange::Edit {
        keep: None,
        sink: Some(sink),
    }
}

fn end_of(publication: u64, generation: u64) -> SinkEnd {
    SinkEnd::Copied {
        publication,
        generation: GenerationNo(generation),
    }
}

impl Harness {
    async fn sinks(&self) -> SinkAgenda {
        self.store.take_sinks(10).await.unwrap()
    }

    /// The only claim there is to be had.
    async fn sink(&self) -> SinkJob {
        let agenda = self.sinks().await;
        assert_eq!(agenda.jobs.len(), 1, "{agenda:?}");
        agenda.jobs.into_iter().next().unwrap()
    }

    async fn copied(&self) -> Option<(u64, u64)> {
        let dataset = self.store.dataset(BOARD).await.unwrap().unwrap();
        let copied = dataset.sink.and_then(|sink| sink.copied);
        copied.map(|copied| (copied.publication, copied.generation.0))
    }
}

pub async fn a_copy_is_claimed_by_one_and_noted_under_the_newest_claim_alone(harness: Harness) {
    harness.published(&publishing(3), "1").await;
    assert_eq!(harness.sinks().await, SinkAgenda::default(), "nobody wants it");
    let version = harness.store.dataset(BOARD).await.unwrap().unwrap().version;
    harness.change(copied_to(Sink::Redis)).await.unwrap();
    harness
        .change(copied_to(Sink::Redis))
        .await
        .expect("it is so already");
    let dataset = harness.store.dataset(BOARD).await.unwrap().unwrap();
    assert_eq!(dataset.version, version + 1);
    assert!(dataset.behind_since().is_some());
    let all = harness.store.datasets(None, None, 10).await.unwrap();
    assert_eq!(all, [dataset]);
    let job = harness.sink().await;
    assert_eq!((job.name.as_str(), job.removes, job.attempts), (BOARD, false, 0));
    let again = harness.sinks().await;
    assert_eq!((again.jobs.len(), again.behind), (0, 1), "it has its claim");
    assert!(harness.store.keep_sink(&job).await.unwrap());
    let older = SinkJob {
        epoch: job.epoch - 1,
        ..job.clone()
    };
    assert!(!harness.store.keep_sink(&older).await.unwrap());
    assert!(!harness.store.end_sink(&older, &end_of(1, 1)).await.unwrap());
    assert_eq!(harness.copied().await, None);
    assert!(harness.store.end_sink(&job, &end_of(1, 1)).await.unwrap());
    assert_eq!(harness.copied().await, Some((1, 1)));
    assert_eq!(harness.sinks().await, SinkAgenda::default());
    harness.published(&publishing(3), "2").await;
    assert_eq!(harness.sink().await.epoch, job.epoch + 1);
    // Until it is copied what was there still is.
    assert_eq!(harness.copied().await, Some((1, 1)));
}

pub async fn a_copy_that_fails_is_tried_again_and_one_that_is_lost_is_made_anew(harness: Harness) {
    harness.published(&publishing(3), "1").await;
    harness.change(copied_to(Sink::Redis)).await.unwrap();
    let failed = |again| SinkEnd::Failed {
        text: "Redis takes no connections".to_owned(),
        again,
    };
    let job = harness.sink().await;
    let hour = std::time::Duration::from_secs(3600);
    assert!(
        harness
            .store
            .end_sink(&job, &failed(std::time::Duration::ZERO))
            .await
            .unwrap()
    );
    let dataset = harness.store.dataset(BOARD).await.unwrap().unwrap();
    let fault = dataset.sink.and_then(|sink| sink.fault);
    assert_eq!(fault.as_deref(), Some("Redis takes no connections"));
    let job = harness.sink().await;
    assert_eq!(job.attempts, 1);
    assert!(harness.store.end_sink(&job, &failed(hour)).await.unwrap());
    let waiting = harness.sinks().await;
    assert_eq!((waiting.jobs.len(), waiting.behind), (0, 1));
    // Switched on anew it waits for nothing.
    harness.change(copied_to(Sink::None)).await.unwrap();
    harness.change(copied_to(Sink::Redis)).await.unwrap();
    let job = harness.sink().await;
    assert_eq!(job.attempts, 0);
    assert!(harness.store.sinks_copied(None, 10).await.unwrap().is_empty());
    assert!(harness.store.end_sink(&job, &end_of(1, 1)).await.unwrap());
    let copied = harness.store.sinks_copied(None, 10).await.unwrap();
    let expected = Copied {
        dataset: job.dataset,
        name: BOARD.to_owned(),
        publication: 1,
    };
    assert_eq!(copied, std::slice::from_ref(&expected));
    assert!(
        harness
            .store
            .sinks_copied(Some(job.dataset), 10)
            .await
            .unwrap()
            .is_empty()
    );
    let other = Copied {
        publication: 7,
        ..expected.clone()
    };
    harness.store.lose_sink(&other).await.unwrap();
    assert_eq!(harness.copied().await, Some((1, 1)), "that wasn't there");
    harness.store.lose_sink(&expected).await.unwrap();
    assert_eq!(harness.copied().await, None);
    harness.sink().await;
}

pub async fn a_copy_is_taken_away_when_it_is_switched_off_and_with_its_dataset(harness: Harness) {
    harness.published(&publishing(3), "1").await;
    harness.change(copied_to(Sink::Redis)).await.unwrap();
    let job = harness.sink().await;
    harness.change(copied_to(Sink::None)).await.unwrap();
    assert!(
        !harness.store.end_sink(&job, &end_of(1, 1)).await.unwrap(),
        "it came late"
    );
    let removal = harness.sink().await;
    assert!(removal.removes && removal.epoch > job.epoch);
    assert!(harness.store.end_sink(&removal, &SinkEnd::Removed).await.unwrap());
    assert_eq!(harness.sinks().await, SinkAgenda::default());
    harness.change(copied_to(Sink::Redis)).await.unwrap();
    let job = harness.sink().await;
    assert!(!job.removes && job.epoch > removal.epoch);
    assert!(harness.store.end_sink(&job, &end_of(1, 1)).await.unwrap());
    let mut dry = write();
    dry.dry_run = true;
    harness.store.delete_dataset(BOARD, &dry, NOW).await.unwrap();
    assert_eq!(harness.copied().await, Some((1, 1)));
    harness.store.delete_dataset(BOARD, &write(), NOW).await.unwrap();
    // Another one of the name has nothing to do with it.
    harness.published(&publishing(3), "1").await;
    let removal = harness.sink().await;
    assert!(removal.removes && removal.dataset == job.dataset);
    harness.change(copied_to(Sink::Redis)).await.unwrap();
    assert!(harness.store.end_sink(&removal, &SinkEnd::Removed).await.unwrap());
    let other = harness.sink().await;
    assert!(!other.removes && other.dataset != job.dataset);
}
