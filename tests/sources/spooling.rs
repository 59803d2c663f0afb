//! Piped input is kept under its content's name and is a file from then on.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use serde_json::json;
use windrow_sources::{
    IndexProgress, IndexWatch, Input, OpenSourceError, OpenedSource, Opening, SourceSpec, open_piped,
};

use crate::common::{Place, rows, runtime};

fn piped_csv() -> SourceSpec {
    SourceSpec::parse(r#"{"kind":"csv","path":"-"}"#).expect("it is a description")
}

async fn open(place: &Place, spec: &SourceSpec, text: &'static str) -> Result<OpenedSource, OpenSourceError> {
    let spool = place.spool();
    open_piped(spec, &place.opening(&spool), text.as_bytes()).await
}

fn spooled(place: &Place) -> Vec<String> {
    // It is made by what is worth to be kept.
    let Ok(entries) = std::fs::read_dir(place.spool()) else {
        return Vec::new();
    };
    entries
        .map(|entry| {
            entry
                .expect("it can be listed")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

#[tokio::test]
async fn piped_rows_are_kept_and_read_back_from_the_file() {
    let place = Place::new();
    let opened = open(&place, &piped_csv(), "id\n1\n2\n")
        .await
        .expect("the rows are good");
    assert!(opened.fresh);
    assert_eq!(
        rows(&*opened.source).await,
        [json!({"id": "1"}), json!({"id": "2"})]
    );
    let SourceSpec::File {
        input: Input::Spooled(name),
        ..
    } = &opened.spec
    else {
        panic!("{:?}", opened.spec)
    };
    assert_eq!(spooled(&place), std::slice::from_ref(name));
    let path = place.spool().join(name);
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "id\n1\n2\n");
    let mode = path.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "items may be personal data");
}

#[tokio::test]
async fn a_task_resumes_from_the_spooled_file_without_input_and_without_a_pass() {
    let place = Place::new();
    let first = open(&place, &piped_csv(), "id\n1\n2\n")
        .await
        .expect("the rows are good");
    let stored = SourceSpec::parse(&first.spec.to_text()).expect("it was written by us");
    let again = open(&place, &stored, "").await.expect("it is a source");
    assert_eq!((again.fresh, again.meaning), (false, first.meaning));
    assert_eq!(rows(&*again.source).await.len(), 2);
}

#[tokio::test]
async fn the_same_input_is_the_same_source_and_other_input_another() {
    let place = Place::new();
    let first = open(&place, &piped_csv(), "id\n1\n")
        .await
        .expect("the rows are good");
    let again = open(&place, &piped_csv(), "id\n1\n")
        .await
        .expect("the rows are good");
    assert_eq!(
        (again.meaning, again.spec.to_text()),
        (first.meaning, first.spec.to_text())
    );
    assert_eq!(rows(&*first.source).await, rows(&*again.source).await);
    let other = open(&place, &piped_csv(), "id\n2\n")
        .await
        .expect("the rows are good");
    assert_ne!(other.meaning, first.meaning);
    assert_eq!(spooled(&place).len(), 2);
    let path = place.write("same.csv", "id\n1\n");
    let file =
        SourceSpec::parse(&json!({"kind": "csv", "path": path}).to_string()).expect("it is a description");
    assert_eq!(
        open(&place, &file, "").await.expect("it is a source").meaning,
        first.meaning
    );
}

#[tokio::test]
async fn bad_input_leaves_no_file_behind() {
    let place = Place::new();
    let error = open(&place, &piped_csv(), "id,name\n1\n")
        .await
        .expect_err("a row is ragged");
    assert!(
        error
            .to_string()
            .starts_with("standard input can't be used as items: line 2"),
        "{error}"
    );
    assert_eq!(spooled(&place), Vec::<String>::new());
    assert!(place.store.saved.lock().expect("nobody panicked").is_empty());
}

/// Some rows, then a failure.
struct Breaking(bool);

impl Read for Breaking {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if std::mem::replace(&mut self.0, true) {
            return Err(io::Error::other("the pipe broke"));
        }
        buffer[..5].copy_from_slice(b"id\n1\n");
        Ok(5)
    }
}

#[tokio::test]
async fn input_that_breaks_off_is_an_error_and_leaves_no_file_behind() {
    let place = Place::new();
    let spool = place.spool();
    let error = open_piped(&piped_csv(), &place.opening(&spool), Breaking(false))
        .await
        .expect_err("it broke");
    assert!(error.because().contains("the pipe broke"), "{error}");
    assert_eq!(spooled(&place), Vec::<String>::new());
}

#[test]
fn a_pass_that_nobody_waits_for_ends_and_leaves_nothing_behind() {
    let place = Place::new();
    let spool = place.spool();
    let has_begun = Arc::new(tokio::sync::Notify::new());
    let begun = Arc::clone(&has_begun);
    let progress = move |_: IndexProgress| begun.notify_one();
    let watch = IndexWatch {
        progress: Arc::new(progress),
        ..IndexWatch::default()
    };
    let opening = Opening {
        watch,
        ..place.opening(&spool)
    };
    let (spec, endless) = (piped_csv(), b"id\n1\n".chain(io::repeat(b'\n')));
    let runtime = runtime();
    runtime.block_on(async {
        tokio::select! {
            opened = open_piped(&spec, &opening, endless) => panic!("it has no end: {opened:?}"),
            () = has_begun.notified() => {}
        }
    });
    // Waits for the blocking threads, which end because the pass was cancelled.
    drop(runtime);
    assert_eq!(spooled(&place), Vec::<String>::new());
    assert!(place.store.saved.lock().expect("nobody panicked").is_empty());
}

#[tokio::test]
async fn leftovers_of_a_crash_are_removed() {
    let place = Place::new();
    std::fs::create_dir(place.spool()).expect("the directory is writable");
    std::fs::write(place.spool().join("incoming-0-0"), "half").expect("the directory is writable");
    open(&place, &piped_csv(), "id\n1\n")
        .await
        .expect("the rows are good");
    assert_eq!(spooled(&place).len(), 1);
}

#[tokio::test]
async fn a_spool_that_can_not_be_written_is_named() {
    let place = Place::new();
    let spool = place.write("file", "in the way");
    let error = open_piped(&piped_csv(), &place.opening(&spool), &b"id\n1\n"[..])
        .await
        .expect_err("no directory");
    assert!(
        matches!(&error, OpenSourceError::Spool { path, .. } if *path == spool),
        "{error}"
    );
    assert!(error.hint().contains("state directory"), "{error}");
}

#[tokio::test]
async fn a_stored_name_can_not_leave_the_spool() {
    for text in [
        r#"{"kind":"csv","spooled":"../u.csv"}"#,
        r#"{"kind":"csv","spooled":"/etc/passwd"}"#,
    ] {
        assert!(SourceSpec::parse(text).is_err(), "{text}");
    }
}
