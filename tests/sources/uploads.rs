//! Uploads over a database file: taken in bit by bit, read back through parts, refused and forgotten.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use sha2::{Digest, Sha256};
use windrow_core::ids::WallMs;
use windrow_engine::ports::StoreError;
use windrow_engine::ports::sources::resolver::Sender;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::sources::uploads::{PART_BYTES, UploadId, UploadState, UploadStore};
use windrow_sources::{CsvFormat, Format, ReceiveError, UploadSource, receive};
use windrow_store::sql::Store;

use crate::common::{csv, file_source, row, rows};

const NOW: WallMs = WallMs(1_790_000_000_000);
const NO_LIMIT: u64 = u64::MAX;

struct Place {
    _dir: tempfile::TempDir,
    store: Arc<Store>,
    uploads: Arc<dyn UploadStore>,
}

async fn place() -> Place {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let store = Arc::new(
        Store::open(&dir.path().join("windrow.db"))
            .await
            .expect("it opens"),
    );
    Place {
        _dir: dir,
        uploads: store.clone(),
        store,
    }
}

impl Place {
    /// Sends bytes in pieces of `piece` bytes.
    async fn send(
        &self,
        bytes: &[u8],
        format: &Format,
        piece: usize,
        limit: u64,
    ) -> Result<UploadId, ReceiveError> {
        let pieces: Vec<Result<Bytes, String>> = bytes
            .chunks(piece)
            .map(|piece| Ok(Bytes::copy_from_slice(piece)))
            .collect();
        let sender = Sender {
            by: "ada",
            bytes_max: limit,
            quota: None,
        };
        receive(
            &self.uploads,
            self.store.as_ref(),
            format,
            &sender,
            NOW,
            stream::iter(pieces),
        )
        .await
    }

    async fn source(&self, id: UploadId, format: &Format) -> UploadSource {
        let opened = UploadSource::open(self.uploads.clone(), self.store.as_ref(), id, format).await;
        opened.expect("the upload is ready")
    }
}

/// Rows whose second field is quoted, full of line ends, delimiters and quotes, and so long that every border of a part
/// lies within one.
fn wide_csv(bytes: usize) -> Vec<u8> {
    let mut text = b"id,note\n".to_vec();
    let mut number = 0;
    while text.len() < bytes {
        text.extend_from_slice(format!("{number},\"").as_bytes());
        for line in 0..20_000 {
            text.extend_from_slice(format!("l{line}, \"\"q\"\"\n").as_bytes());
        }
        text.extend_from_slice(b"end\"\n");
        number += 1;
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_across_the_borders_of_parts_and_pieces_read_back() {
    let place = place().await;
    let text = wide_csv(PART_BYTES + 100_000);
    for piece in [65_537, usize::MAX] {
        let id = place
            .send(&text, &csv(), piece, NO_LIMIT)
            .await
            .expect("the rows are good");
        let upload = place
            .uploads
            .upload(id)
            .await
            .expect("readable")
            .expect("it is there");
        assert_eq!(
            (upload.state, upload.bytes, upload.parts),
            (UploadState::Ready, text.len() as u64, 2)
        );
        let sha256: String = Sha256::digest(&text)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(upload.sha256, Some(sha256));
        let source = place.source(id, &csv()).await;
        let dir = tempfile::tempdir().expect("a directory can be made");
        let file = file_source(dir.path(), &text, &csv(), windrow_sources::BlockLimits::default());
        assert_eq!(source.total(), file.total());
        assert_eq!(rows(&source).await, rows(&file).await);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_small_upload_in_single_bytes_shows_columns_and_a_sample() {
    let place = place().await;
    let text = b"\xef\xbb\xbfid;name\r\n1;\"a;b\"\r\n2;\xe4\xb8\xad\r\n3;c\r\n4;d";
    let format = Format::Csv(CsvFormat {
        delimiter: ';',
        ..CsvFormat::default()
    });
    let id = place
        .send(text, &format, 1, NO_LIMIT)
        .await
        .expect("the rows are good");
    let upload = place
        .uploads
        .upload(id)
        .await
        .expect("readable")
        .expect("it is there");
    let sample: serde_json::Value = serde_json::from_str(&upload.sample.expect("ready")).expect("it is JSON");
    let expected = serde_json::json!([{"id":"1","name":"a;b"},{"id":"2","name":"中"},{"id":"3","name":"c"}]);
    assert_eq!(sample, expected);
    let source = place.source(id, &format).await;
    assert_eq!(source.indexed().columns, ["id", "name"]);
    assert_eq!(
        row(&source, 3).await,
        Ok(serde_json::json!({"id":"4","name":"d"}))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_uploads_name_the_line_and_leave_nothing() {
    let place = place().await;
    let ragged = place
        .send(b"a,b\n1,2\n3\n4,5\n", &csv(), 3, NO_LIMIT)
        .await
        .expect_err("a row is ragged");
    assert!(
        ragged.to_string().contains("line 3: 1 field, expected 2"),
        "{ragged}"
    );
    // Found early, while most of it was not sent yet.
    let mut long = b"a,b\n1\n".repeat(20);
    long.extend(vec![b'x'; 3 * PART_BYTES]);
    let error = place
        .send(&long, &csv(), 10_000, NO_LIMIT)
        .await
        .expect_err("a row is ragged");
    assert!(matches!(error, ReceiveError::Rows(_)), "{error}");
    let large = place
        .send(&wide_csv(PART_BYTES), &csv(), 65_536, PART_BYTES as u64 / 2)
        .await;
    assert!(matches!(large, Err(ReceiveError::TooLarge(_))), "{large:?}");
    let empty = place
        .send(b"", &Format::Ndjson, 1, NO_LIMIT)
        .await
        .expect_err("nothing is no source");
    assert!(matches!(empty, ReceiveError::Rows(_)), "{empty}");
    let broken = stream::iter([Ok(Bytes::from_static(b"1\n2\n")), Err("reset".to_owned())]);
    let sender = Sender {
        by: "ada",
        bytes_max: NO_LIMIT,
        quota: None,
    };
    let broken = receive(
        &place.uploads,
        place.store.as_ref(),
        &Format::Ndjson,
        &sender,
        NOW,
        broken,
    )
    .await;
    assert!(
        matches!(broken, Err(ReceiveError::Broken(_))),
        "half a body is no source: {broken:?}"
    );
    for id in 1..=5 {
        assert_eq!(place.uploads.upload(UploadId(id)).await, Ok(None), "u{id}");
        assert_eq!(
            place.uploads.upload_part(UploadId(id), 0).await,
            Ok(None),
            "u{id}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_stores_no_more_than_their_quota() {
    let place = place().await;
    let store = place.store.as_ref();
    let send = async |by: &str, bytes: &[u8]| {
        let sender = Sender {
            by,
            bytes_max: NO_LIMIT,
            quota: Some(10),
        };
        let body = stream::iter([Ok(Bytes::copy_from_slice(bytes))]);
        receive(&place.uploads, store, &Format::Ndjson, &sender, NOW, body).await
    };
    let first = send("ada", b"1\n2\n3\n").await.expect("six of ten");
    assert!(matches!(
        send("ada", b"1\n2\n3\n").await,
        Err(ReceiveError::OverQuota {
            stored: 12,
            quota: 10
        })
    ));
    assert_eq!(
        place.uploads.stored_by("ada").await,
        Ok(6),
        "nothing of it is left"
    );
    send("ada", b"1\n2\n").await.expect("ten of ten");
    let full = send("ada", b"1\n").await.expect_err("full");
    assert!(full.to_string().contains("http.upload_quota"), "{full}");
    send("bob", b"1\n").await.expect("another has their own");
    let most = async |prefix, limit| place.uploads.stored_most(prefix, limit).await.expect("read");
    assert_eq!(most("", 2).await, [("ada".to_owned(), 10), ("bob".to_owned(), 2)]);
    assert_eq!((most("", 1).await.len(), most("b", 9).await.len()), (1, 1));
    place.uploads.discard(first).await.expect("removed");
    send("ada", b"1\n").await.expect("there is room again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_task_takes_is_removed_when_it_is_old() {
    let place = place().await;
    let (kept, unused) = (
        place
            .send(b"1\n2\n", &Format::Ndjson, 9, NO_LIMIT)
            .await
            .expect("the rows are good"),
        place
            .send(b"1\n2\n", &Format::Ndjson, 9, NO_LIMIT)
            .await
            .expect("the rows are good"),
    );
    let open = place
        .uploads
        .begin("csv", "{}", "ada", NOW)
        .await
        .expect("writable");
    place
        .uploads
        .append(open, 0, b"half")
        .await
        .expect("it is the next part");
    place
        .uploads
        .append(open, 0, b"half")
        .await
        .expect("a repeat is a success");
    assert!(matches!(
        place.uploads.append(open, 0, b"other").await,
        Err(StoreError::Refused(_))
    ));
    assert!(matches!(
        place.uploads.append(open, 2, b"gap").await,
        Err(StoreError::Refused(_))
    ));
    assert!(matches!(
        place.uploads.append(kept, 1, b"more").await,
        Err(StoreError::Refused(_))
    ));
    assert!(matches!(
        place.uploads.take(open, NOW).await,
        Err(StoreError::Refused(_))
    ));
    place
        .uploads
        .take(kept, WallMs(NOW.0 + 5))
        .await
        .expect("it is ready");
    assert_eq!(
        place.uploads.expire_uploads(NOW).await,
        Ok(0),
        "not older than that"
    );
    assert_eq!(place.uploads.expire_uploads(WallMs(NOW.0 + 1)).await, Ok(2));
    assert_eq!(place.uploads.upload(unused).await, Ok(None));
    assert_eq!(place.uploads.upload_part(open, 0).await, Ok(None));
    place
        .uploads
        .discard(kept)
        .await
        .expect("a taken one is left as it is");
    assert_eq!(
        row(&place.source(kept, &Format::Ndjson).await, 1).await,
        Ok(serde_json::json!(2))
    );
    assert_eq!(
        place.uploads.expire_uploads(WallMs(NOW.0 + 5)).await,
        Ok(0),
        "taken then: a task may come"
    );
    assert_eq!(
        place.uploads.expire_uploads(WallMs(NOW.0 + 6)).await,
        Ok(1),
        "the task was never made"
    );
    assert_eq!(place.uploads.upload(kept).await, Ok(None));
}
