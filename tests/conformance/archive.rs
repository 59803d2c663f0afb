//! Facts about tasks that are archived: written whole before they are deleted, and not deleted where they can't be.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use windrow_core::ids::TaskId;
use windrow_core::task::spec::TaskSpec;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::ownership::run_store::RunClose;
use windrow_engine::ports::tasks::store::{CommandError, NewTask, Write};
use windrow_engine::ports::tasks::upkeep::Sweep;
use windrow_store::sql::Store;

use crate::engines::{Engine, runtime};
use crate::fixture::{BUSINESS, Harness, NOW, at, closing, failed, task, with, write};

/// A store that archives, and where.
struct Archive {
    harness: Harness,
    folder: PathBuf,
    place: tempfile::TempDir,
}

impl Archive {
    async fn over(mut store: Store) -> Archive {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("archive");
        store.archive_in(&folder).await.unwrap();
        Archive {
            harness: Harness::over(store),
            folder,
            place,
        }
    }

    async fn sqlite() -> (Archive, tempfile::TempDir) {
        let place = tempfile::tempdir().unwrap();
        let store = Store::open(&place.path().join("windrow.db")).await.unwrap();
        (Archive::over(store).await, place)
    }

    fn path(&self, id: TaskId) -> PathBuf {
        self.folder.join(BUSINESS).join(format!("{id}.ndjson.zst"))
    }

    fn lines(&self, id: TaskId) -> Vec<Value> {
        let packed = fs::read(self.path(id)).unwrap();
        let text = String::from_utf8(zstd::stream::decode_all(&packed[..]).unwrap()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// A task that is over, with a failure.
    async fn ended(&self) -> TaskId {
        let new = NewTask {
            spec: TaskSpec {
                name: Some("board".to_owned()),
                ..TaskSpec::default()
            },
            ..task(10)
        };
        let shard = self.harness.queued_as(&new).await;
        let session = self.harness.session().await;
        let run = self
            .harness
            .claimed(shard, windrow_core::ids::Epoch(0), session)
            .await;
        self.harness
            .stored(with(at(&run, 1, 4), vec![failed(2, "BAD")]))
            .await;
        let mut last = closing(&run, 2, 10, RunClose::Done);
        (last.counters.succeeded, last.counters.failed) = (9, 1);
        self.harness.stored(last).await;
        shard.task
    }

    async fn delete(&self, id: TaskId, how: &Write) -> Result<(), CommandError> {
        self.harness.store.delete(id, how, NOW).await
    }
}

fn of_kind<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["kind"] == kind).collect()
}

async fn is_written_whole(archive: &Archive) {
    let id = archive.ended().await;
    let dry = Write {
        dry_run: true,
        ..write()
    };
    archive.delete(id, &dry).await.unwrap();
    assert!(!archive.path(id).exists(), "a dry run writes nothing");
    archive.delete(id, &write()).await.unwrap();
    assert_eq!(archive.harness.store.get(id).await.unwrap(), None);
    let lines = archive.lines(id);
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["task", "shard", "run", "day", "failures", "failure"]);
    let head = &lines[0];
    assert_eq!(
        (&head["id"], &head["business"]),
        (&id.to_string().into(), &BUSINESS.into())
    );
    assert_eq!(
        (&head["name"], &head["result"]),
        (&"board".into(), &"with_failures".into())
    );
    assert_eq!(
        (&head["counts"]["succeeded"], &head["counts"]["failed"]),
        (&9.into(), &1.into())
    );
    assert_eq!(head["source"]["kind"], "range");
    assert!(head["settings"].is_object(), "{head}");
    assert_eq!(
        (&lines[2]["node"], &lines[2]["end_reason"]),
        (&"n1".into(), &"done".into())
    );
    assert_eq!(
        (&lines[3]["succeeded"], &lines[3]["failed"]),
        (&9.into(), &1.into())
    );
    let failure = of_kind(&lines, "failure")[0];
    assert_eq!((&failure["index"], &failure["code"]), (&2.into(), &"BAD".into()));
    assert_eq!(
        (&failure["unconfirmed"], &failure["others_answered"]),
        (&false.into(), &0.into())
    );
    assert_eq!(of_kind(&lines, "failures")[0]["unconfirmed"], 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_is_written_whole_before_it_is_deleted() {
    let (archive, _place) = Archive::sqlite().await;
    is_written_whole(&archive).await;
}

#[test]
fn a_task_is_written_whole_before_it_is_deleted_from_a_server() {
    for engine in [Engine::postgres(), Engine::mariadb()] {
        runtime().block_on(async {
            let archive = Archive::over(engine.store().await).await;
            is_written_whole(&archive).await;
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn halves_that_a_dead_process_left_are_removed_and_nothing_else() {
    let (archive, _place) = Archive::sqlite().await;
    let id = archive.ended().await;
    archive.delete(id, &write()).await.unwrap();
    let half = |name: &str| archive.folder.join(BUSINESS).join(name);
    for name in [".halfAbCd12", ".halfyoung", "note.txt"] {
        fs::write(half(name), "half").unwrap();
    }
    let hours = |ago: u64| std::time::SystemTime::now() - std::time::Duration::from_secs(ago * 3600);
    for (name, ago) in [(".halfAbCd12", 30), (".halfyoung", 1), ("note.txt", 30)] {
        let file = fs::File::options().write(true).open(half(name)).unwrap();
        file.set_modified(hours(ago)).unwrap();
    }
    let day_ago = hours(24)
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_millis();
    let before = windrow_core::ids::WallMs(i64::try_from(day_ago).unwrap());
    let sweep = async || {
        archive
            .harness
            .store
            .sweep(Sweep::ArchiveHalves, before)
            .await
            .unwrap()
    };
    assert_eq!((sweep().await, sweep().await), (1, 0));
    let there = [".halfAbCd12", ".halfyoung", "note.txt"].map(|name| half(name).exists());
    assert_eq!(there, [false, true, true], "what is young may be under way");
    assert!(archive.path(id).exists(), "what is whole stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_folder_is_away_no_task_is_deleted() {
    let (archive, _place) = Archive::sqlite().await;
    let id = archive.ended().await;
    let away = archive.place.path().join("away");
    fs::rename(&archive.folder, &away).unwrap();
    // What a mount leaves behind.
    fs::create_dir(&archive.folder).unwrap();
    let failed = archive.delete(id, &write()).await.unwrap_err();
    let CommandError::NotArchived(error @ StoreError::Unavailable(_)) = &failed else {
        panic!("{failed:?}")
    };
    assert!(error.to_string().contains("archive.location"), "{error}");
    let view = archive.harness.view(id).await;
    assert_eq!(
        (&view.status_reason, view.spec.name.as_deref()),
        (&None, Some("board")),
        "it is as it was"
    );
    fs::remove_dir(&archive.folder).unwrap();
    fs::rename(&away, &archive.folder).unwrap();
    archive.delete(id, &write()).await.unwrap();
    assert_eq!(of_kind(&archive.lines(id), "failure").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_deleted_or_is_being_deleted_is_not_written() {
    let (archive, place) = Archive::sqlite().await;
    let running = archive.harness.running(10).await.shard.task;
    archive.delete(running, &write()).await.unwrap_err();
    archive.delete(TaskId(99), &write()).await.unwrap_err();
    assert!(!archive.path(running).exists());
    let id = archive.ended().await;
    let deleting = "UPDATE task SET status_reason = 'deleting'";
    let url = format!("sqlite://{}?mode=rw", place.path().join("windrow.db").display());
    let db = sea_orm::Database::connect(url).await.unwrap();
    sea_orm::ConnectionTrait::execute_unprepared(&db, deleting)
        .await
        .unwrap();
    archive.delete(id, &write()).await.unwrap();
    assert!(
        !archive.path(id).exists(),
        "half a task would take the place of a whole one"
    );
}

#[tokio::test]
async fn an_archive_that_is_not_the_stores_own_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let open = async |folder: &Path| {
        let mut store = Store::open(&place.path().join("windrow.db")).await.unwrap();
        store.archive_in(folder).await
    };
    let folder = place.path().join("archive");
    open(&folder).await.unwrap();
    open(&folder).await.unwrap();
    let empty = place.path().join("empty");
    fs::create_dir(&empty).unwrap();
    for wrong in [&empty, &place.path().join("missing")] {
        let refused = open(wrong).await.unwrap_err().to_string();
        assert!(
            refused.contains("archive.location") && refused.contains("windrow-archive"),
            "{refused}"
        );
    }
    assert_eq!(
        fs::read_dir(&empty).unwrap().count(),
        0,
        "nothing is left where it isn't mounted"
    );
    fs::copy(folder.join("windrow-archive"), empty.join("windrow-archive")).unwrap();
    open(&empty).await.unwrap();
}
