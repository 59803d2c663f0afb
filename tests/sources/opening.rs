//! Opening by description: when an index is used again, what a task's meaning is, what is no source.

use std::fs::OpenOptions;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::json;
use windrow_core::ids::{ItemIndex, WallMs};
use windrow_engine::ports::ErrorClass;
use windrow_sources::{
    Expansion, FaultKind, IndexError, IndexProgress, IndexWatch, OpenSourceError, OpenedSource, Opening,
    SourceSpec, index_file, open,
};

use crate::common::{FAR_FUTURE, Place, csv, rows};

fn spec(text: &str) -> SourceSpec {
    SourceSpec::parse(text).expect("it is a description")
}

fn csv_at(path: &std::path::Path) -> SourceSpec {
    spec(&json!({"kind": "csv", "path": path}).to_string())
}

async fn opened(place: &Place, spec: &SourceSpec) -> Result<OpenedSource, OpenSourceError> {
    let spool = place.spool();
    open(spec, &place.opening(&spool)).await
}

#[tokio::test]
async fn a_range_counts_and_has_no_data() {
    let range = opened(&Place::new(), &spec(r#"{"kind":"range","total":5}"#))
        .await
        .expect("it is a source");
    assert_eq!(
        (range.source.total().0, range.source.has_data(), range.fresh),
        (5, false, false)
    );
    assert!(range.source.read(ItemIndex(0)).await.is_err());
}

#[tokio::test]
async fn inline_items_keep_their_text_on_one_line() {
    let inline = spec("{\"kind\":\"inline\",\"items\":[{\"b\":1,\n\"a\":123456789012345678901},\"x\",null]}");
    let inline = opened(&Place::new(), &inline).await.expect("it is a source");
    let chunk = inline.source.read(ItemIndex(1)).await.expect("it is there");
    assert_eq!(
        chunk.row(ItemIndex(0)),
        Some("{\"b\":1, \"a\":123456789012345678901}")
    );
    assert_eq!(
        (chunk.row(ItemIndex(1)), chunk.row(ItemIndex(2))),
        (Some("\"x\""), Some("null"))
    );
    assert!(inline.source.read(ItemIndex(3)).await.is_err());
    let meaning = |text| async move {
        opened(&Place::new(), &spec(text))
            .await
            .expect("it is a source")
            .meaning
    };
    let split = meaning(r#"{"kind":"inline","items":[1,23]}"#).await;
    assert_ne!(split, meaning(r#"{"kind":"inline","items":[12,3]}"#).await);
    assert_eq!(split, meaning(r#"{"kind":"inline","items":[1,23]}"#).await);
}

#[tokio::test]
async fn sources_without_items_are_refused() {
    for text in [r#"{"kind":"range","total":0}"#, r#"{"kind":"inline","items":[]}"#] {
        let error = opened(&Place::new(), &spec(text))
            .await
            .expect_err("there is nothing to do");
        assert!(
            matches!(error, OpenSourceError::NoItems) && error.is_nothing(),
            "{error}"
        );
    }
    let huge = spec(r#"{"kind":"range","total":18446744073709551615}"#);
    assert!(matches!(
        opened(&Place::new(), &huge).await,
        Err(OpenSourceError::BadSpec(_))
    ));
    let long = spec(&json!({"kind": "inline", "items": ["x".repeat(5 << 20)]}).to_string());
    assert!(matches!(
        opened(&Place::new(), &long).await,
        Err(OpenSourceError::InlineTooLong)
    ));
}

#[tokio::test]
async fn an_unchanged_file_is_not_read_again() {
    let place = Place::new();
    let path = place.write("u.csv", "id\n1\n2\n");
    let first = opened(&place, &csv_at(&path)).await.expect("it is a source");
    assert!(first.fresh);
    let read = Arc::new(AtomicU64::new(0));
    let seen = Arc::clone(&read);
    let progress = move |progress: IndexProgress| seen.store(progress.bytes, Ordering::Relaxed);
    let watch = IndexWatch {
        progress: Arc::new(progress),
        ..IndexWatch::default()
    };
    let opening = Opening {
        store: &place.store,
        spool: place.dir.path(),
        watch,
        reuse: true,
        expansion: Expansion::default(),
        now: FAR_FUTURE,
    };
    let again = open(&csv_at(&path), &opening).await.expect("it is a source");
    assert_eq!(
        (again.fresh, again.meaning, read.load(Ordering::Relaxed)),
        (false, first.meaning, 0)
    );
    assert_eq!(
        rows(&*again.source).await,
        [json!({"id": "1"}), json!({"id": "2"})]
    );
    let forced = open(
        &csv_at(&path),
        &Opening {
            reuse: false,
            ..opening
        },
    )
    .await
    .expect("it is a source");
    assert_eq!(
        (forced.fresh, forced.meaning, read.load(Ordering::Relaxed)),
        (true, first.meaning, 7)
    );
}

#[tokio::test]
async fn a_touched_file_is_indexed_again_and_means_the_same() {
    let place = Place::new();
    let path = place.write("u.csv", "id\n1\n2\n");
    let first = opened(&place, &csv_at(&path)).await.expect("it is a source");
    let file = OpenOptions::new().write(true).open(&path).expect("it is there");
    let later = file.metadata().and_then(|m| m.modified()).expect("it has a time")
        + std::time::Duration::from_secs(2);
    file.set_modified(later).expect("the time can be set");
    let again = opened(&place, &csv_at(&path)).await.expect("it is a source");
    assert_eq!((again.fresh, again.meaning), (true, first.meaning));
}

#[tokio::test]
async fn a_file_that_grew_or_was_replaced_means_something_else() {
    let place = Place::new();
    let path = place.write("u.csv", "id\n1\n2\n");
    let first = opened(&place, &csv_at(&path)).await.expect("it is a source");
    let mut file = OpenOptions::new().append(true).open(&path).expect("it is there");
    file.write_all(b"3\n").expect("it can be written");
    let grown = opened(&place, &csv_at(&path)).await.expect("it is a source");
    assert_eq!((grown.fresh, grown.source.total().0), (true, 3));
    assert_ne!(grown.meaning, first.meaning);
    assert_eq!(
        rows(&*first.source).await.len(),
        2,
        "what was open goes on with its rows"
    );
    let other = place.write("other.csv", "id\n7\n8\n9\n10\n");
    std::fs::rename(other, &path).expect("the directory is writable");
    let replaced = opened(&place, &csv_at(&path)).await.expect("it is a source");
    assert!(replaced.fresh && replaced.meaning != grown.meaning);
}

#[tokio::test]
async fn the_index_of_a_file_that_had_just_changed_is_not_used_again() {
    let place = Place::new();
    let path = place.write("u.csv", "id\n1\n2\n");
    let changed = path.metadata().and_then(|m| m.modified()).expect("it has a time");
    let changed = changed
        .duration_since(std::time::UNIX_EPOCH)
        .expect("it is not that old")
        .as_millis();
    let fresh_at = |after_ms: i64| {
        let (place, path) = (&place, csv_at(&path));
        async move {
            let now = WallMs(i64::try_from(changed).expect("it fits") + after_ms);
            let spool = place.spool();
            open(
                &path,
                &Opening {
                    now,
                    ..place.opening(&spool)
                },
            )
            .await
            .expect("it is a source")
            .fresh
        }
    };
    assert!(fresh_at(500).await);
    assert!(
        fresh_at(1_000).await,
        "the first pass may have seen another file of the same time and size"
    );
    assert!(fresh_at(10_000).await, "so may the second");
    assert!(!fresh_at(10_001).await, "the third was 10 s after the change");
}

#[tokio::test]
async fn a_damaged_stored_index_is_made_anew() {
    let place = Place::new();
    let path = place.write("u.csv", "id\n1\n2\n");
    let first = opened(&place, &csv_at(&path)).await.expect("it is a source");
    place.store.saved.lock().expect("nobody panicked")[0].1[0][12] ^= 1;
    let again = opened(&place, &csv_at(&path)).await.expect("it is a source");
    assert_eq!((again.fresh, again.meaning), (true, first.meaning));
    place.store.saved.lock().expect("nobody panicked")[1].1.clear();
    assert!(
        opened(&place, &csv_at(&path))
            .await
            .expect("it is a source")
            .fresh
    );
}

#[tokio::test]
async fn paths_are_stored_canonical_and_formats_apart() {
    let place = Place::new();
    let path = place.write("u.csv", "1\n2\n");
    let link = place.dir.path().join("link");
    std::os::unix::fs::symlink(&path, &link).expect("links can be made");
    let first = opened(&place, &csv_at(&path)).await.expect("it is a source");
    let linked = opened(&place, &csv_at(&link)).await.expect("it is a source");
    assert!(!linked.fresh);
    assert_eq!(linked.spec.to_text(), first.spec.to_text());
    let ndjson = spec(&json!({"kind": "ndjson", "path": path}).to_string());
    let ndjson = opened(&place, &ndjson).await.expect("it is a source");
    assert!(ndjson.fresh && ndjson.meaning != first.meaning);
    assert_eq!(rows(&*ndjson.source).await, [json!(1), json!(2)]);
    let bare = spec(&json!({"kind": "csv", "path": path, "format": {"header": false}}).to_string());
    let bare = opened(&place, &bare).await.expect("it is a source");
    assert_eq!(
        rows(&*bare.source).await,
        [json!({"c1": "1"}), json!({"c1": "2"})]
    );
}

#[tokio::test]
async fn a_pipe_with_a_name_is_kept_and_known_by_its_content() {
    let place = Place::new();
    let fifo = place.dir.path().join("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).expect("pipes can be made");
    let mut meanings = Vec::new();
    for text in ["a\n1\n", "a\n2\n", "a\n1\n"] {
        let path = fifo.clone();
        let writer = std::thread::spawn(move || std::fs::write(path, text).expect("it is read"));
        let piped = opened(&place, &csv_at(&fifo)).await.expect("it is a source");
        writer.join().expect("it has written");
        assert!(piped.spec.to_text().contains("\"spooled\":\"stdin-"), "{piped:?}");
        assert_eq!(rows(&*piped.source).await, [json!({"a": text[2..3]})]);
        meanings.push(piped.meaning);
    }
    assert!(meanings[0] == meanings[2] && meanings[0] != meanings[1]);
    let nothing = opened(&place, &csv_at(std::path::Path::new("/dev/null"))).await;
    assert!(!nothing.expect_err("it has no header").is_nothing());
}

#[tokio::test]
async fn what_is_no_file_is_refused_at_once() {
    let place = Place::new();
    let missing = opened(&place, &csv_at(&place.dir.path().join("no.csv"))).await;
    assert!(
        matches!(missing, Err(OpenSourceError::NotFound(_))),
        "{missing:?}"
    );
    let error = opened(&place, &csv_at(place.dir.path())).await;
    let error = error.expect_err("it is no file");
    assert!(matches!(error, OpenSourceError::NotAFile(_)), "{error}");
    assert!(error.hint().contains("pass a file in it"), "{error}");
    assert!(place.store.saved.lock().expect("nobody panicked").is_empty());
}

#[tokio::test]
async fn a_bad_file_says_what_why_and_what_to_try_and_stores_nothing() {
    let place = Place::new();
    let path = place.write("u.csv", "id,name\n1\n");
    let error = opened(&place, &csv_at(&path)).await.expect_err("a row is ragged");
    assert!(error.what().contains("u.csv"), "{error}");
    assert_eq!(error.because(), "line 2: 1 field, expected 2");
    assert!(error.hint().contains("--delimiter"), "{error}");
    assert_eq!(error.class(), ErrorClass::Permanent);
    let OpenSourceError::Index {
        error: IndexError::BadRows { faults, .. },
        ..
    } = error
    else {
        panic!("{error}")
    };
    assert_eq!(
        faults[0].kind,
        FaultKind::Ragged {
            expected: 2,
            actual: 1
        }
    );
    assert!(place.store.saved.lock().expect("nobody panicked").is_empty());
}

#[test]
fn a_file_that_is_written_to_during_its_pass_is_refused() {
    let place = Place::new();
    let path = place.write("u.csv", "id\n1\n");
    let mut writer = OpenOptions::new().append(true).open(&path).expect("it is there");
    let mut append = |_| writer.write_all(b"2\n").expect("it can be written");
    let never = AtomicBool::new(false);
    let error = index_file(&path, &csv(), &mut append, &never).expect_err("it grew");
    assert!(matches!(error, IndexError::ChangedMeanwhile), "{error:?}");
    let (indexed, parts) = index_file(&path, &csv(), &mut |_| {}, &never).expect("nobody writes now");
    assert_eq!(
        (indexed.rows, indexed.columns, indexed.stride, parts.len()),
        (2, vec!["id".to_owned()], 2, 1)
    );
}

#[tokio::test]
async fn the_example_users_are_200_good_rows() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/data/users.csv");
    let users = opened(&Place::new(), &csv_at(&path))
        .await
        .expect("the examples are good");
    assert_eq!(users.source.total().0, 200);
    let rows = rows(&*users.source).await;
    let note = |row: &serde_json::Value| row["note"].as_str().unwrap_or("").to_owned();
    assert!(
        rows.iter().any(|row| note(row).contains('\n')) && rows.iter().any(|row| note(row).contains(','))
    );
    let ndjson = path.with_extension("ndjson");
    let ndjson = spec(&json!({"kind": "ndjson", "path": ndjson}).to_string());
    assert_eq!(
        opened(&Place::new(), &ndjson)
            .await
            .expect("the examples are good")
            .source
            .total()
            .0,
        20
    );
}
