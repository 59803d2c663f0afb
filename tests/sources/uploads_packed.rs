//! Compressed uploads over a database file: unpacked on the way in, read back block by block, refused without a trace.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt as _, stream};
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use windrow_core::ids::WallMs;
use windrow_engine::ports::sources::resolver::Sender;
use windrow_engine::ports::sources::source::Source;
use windrow_engine::ports::sources::uploads::{PART_BYTES, UploadId, UploadStore};
use windrow_sources::{
    BlockLimits, Format, IndexError, Packing, ReceiveError, UnpackFault, UploadSource, receive,
};
use windrow_store::sql::Store;

use crate::common::{csv, file_source, row};
use crate::compressed::all;
use crate::packed::{ALL, pack, table};

const NOW: WallMs = WallMs(1_790_000_000_000);

struct Place {
    dir: tempfile::TempDir,
    store: Arc<Store>,
    uploads: Arc<dyn UploadStore>,
}

async fn place() -> Place {
    let dir = tempfile::tempdir().expect("a directory can be made");
    let store = Store::open(&dir.path().join("windrow.db")).await;
    let store = Arc::new(store.expect("it opens"));
    let uploads = store.clone();
    Place { dir, store, uploads }
}

type Piece = Result<Bytes, String>;

fn pieces(bytes: &[u8], size: usize) -> Vec<Piece> {
    let piece = |piece: &[u8]| Ok(Bytes::copy_from_slice(piece));
    bytes.chunks(size).map(piece).collect()
}

impl Place {
    async fn send(
        &self,
        body: impl futures_util::Stream<Item = Piece> + Send + Unpin,
        format: &Format,
        bytes_max: u64,
    ) -> Result<UploadId, ReceiveError> {
        let sender = Sender {
            by: "ada",
            bytes_max,
            quota: None,
        };
        receive(&self.uploads, self.store.as_ref(), format, &sender, NOW, body).await
    }

    async fn source(&self, id: UploadId) -> UploadSource {
        let opened = UploadSource::open(self.uploads.clone(), self.store.as_ref(), id, &csv()).await;
        opened.expect("the upload is ready")
    }

    /// That nothing is left of the uploads there have been.
    async fn is_empty(&self) {
        for id in 1..=20 {
            assert_eq!(self.uploads.upload(UploadId(id)).await, Ok(None), "u{id}");
            let part = self.uploads.upload_part(UploadId(id), 0).await;
            assert_eq!(part, Ok(None), "u{id}");
        }
        assert_eq!(self.uploads.stored_by("ada").await, Ok(0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compressed_upload_has_the_rows_that_it_unpacks_to_and_is_kept_compressed() {
    let place = place().await;
    let text = table(9_000);
    let file = file_source(place.dir.path(), text.as_bytes(), &csv(), BlockLimits::default());
    let expected = all(&file).await;
    for packing in ALL {
        let packed = pack(packing, text.as_bytes());
        for size in [97, usize::MAX] {
            let body = stream::iter(pieces(&packed, size));
            let sent = place.send(body, &csv(), u64::MAX).await;
            let id = sent.unwrap_or_else(|error| panic!("{packing} in {size}: {error}"));
            let upload = place.uploads.upload(id).await.expect("readable").expect("there");
            let sha256 = Sha256::digest(&packed)
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(upload.sha256, Some(sha256), "of what was sent");
            assert!(
                upload.bytes < text.len() as u64 / 2,
                "{packing}: {} bytes",
                upload.bytes
            );
            let source = place.source(id).await;
            assert_eq!(source.columns(), ["id", "name"]);
            // As a run that goes on in the middle.
            let last = row(&source, 8_999).await.expect("it is there");
            assert_eq!(last["id"], "8999");
            assert!(all(&source).await == expected, "{packing} in {size}");
        }
    }
}

/// Text that hardly gets shorter, so that blocks and the table of blocks lie across parts.
fn noise(bytes: usize) -> Vec<u8> {
    let (mut text, mut seed) = (b"id,name\n".to_vec(), 1_u64);
    while text.len() < bytes {
        for _ in 0..16 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            text.extend(format!("{:016x}", seed ^ (seed >> 29)).bytes());
        }
        text.extend(b",x\n");
    }
    text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocks_that_lie_across_parts_read_back() {
    let place = place().await;
    let text = noise(2 * PART_BYTES + PART_BYTES / 2);
    let packed = pack(Packing::Zstd, &text);
    let sent = place
        .send(stream::iter(pieces(&packed, 65_537)), &csv(), u64::MAX)
        .await;
    let id = sent.expect("the rows are good");
    let upload = place.uploads.upload(id).await.expect("readable").expect("there");
    assert!(upload.parts >= 2, "{} parts", upload.parts);
    let file = file_source(place.dir.path(), &text, &csv(), BlockLimits::default());
    assert!(all(&place.source(id).await).await == all(&file).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_can_not_be_unpacked_is_told_and_leaves_nothing() {
    let place = place().await;
    let text = table(5_000);
    for packing in ALL {
        let packed = pack(packing, text.as_bytes());
        let mut damaged = packed.clone();
        // Where each format has a checksum, or what leads to one.
        for from_end in [3, 6] {
            let at = damaged.len() - from_end;
            damaged[at] ^= 0xa5;
        }
        let trailed = [packed.clone(), b"rest".to_vec()].concat();
        for (what, bytes) in [
            ("cut", &packed[..packed.len() - 9]),
            ("damaged", &damaged),
            ("trailed", &trailed),
        ] {
            let error = place
                .send(stream::iter(pieces(bytes, 4096)), &csv(), u64::MAX)
                .await;
            let error = error.expect_err("it is no source");
            let ReceiveError::Rows(IndexError::Packed(error)) = error else {
                panic!("{packing} {what}: {error}");
            };
            // A decoder may take damage for an early end.
            let is_cut = matches!(error.kind, UnpackFault::Truncated);
            assert!(what != "cut" || is_cut, "{packing}: {error}");
        }
        let broken = pieces(&packed[..packed.len() / 2], 999)
            .into_iter()
            .chain([Err("reset".to_owned())]);
        let broken = place.send(stream::iter(broken), &csv(), u64::MAX).await;
        assert!(
            matches!(broken, Err(ReceiveError::Broken(_))),
            "{packing}: {broken:?}"
        );
    }
    place.is_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_out_is_held_against_the_limit_of_uploads_and_bad_rows_are_named() {
    let place = place().await;
    let text = "id,name\n".to_owned() + &"1,aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n".repeat(100_000);
    let packed = pack(Packing::Gzip, text.as_bytes());
    let most = packed.len() as u64 * 10;
    let long = place
        .send(stream::iter(pieces(&packed, 4096)), &csv(), most)
        .await;
    assert!(
        matches!(long, Err(ReceiveError::UnpacksTooLarge(at)) if at == most),
        "{long:?}"
    );
    let sent = place.send(stream::iter(pieces(&packed, 4096)), &csv(), 99).await;
    assert!(matches!(sent, Err(ReceiveError::TooLarge(99))), "{sent:?}");
    let ragged = pack(Packing::Xz, b"a,b\n1,2\n3\n4,5\n");
    let ragged = place
        .send(stream::iter(pieces(&ragged, 7)), &csv(), u64::MAX)
        .await;
    let ragged = ragged.expect_err("a row is ragged").to_string();
    assert!(ragged.contains("line 3: 1 field, expected 2"), "{ragged}");
    let twice = pack(Packing::Gzip, &pack(Packing::Gzip, text.as_bytes()));
    let twice = place
        .send(stream::iter(pieces(&twice, 4096)), &csv(), u64::MAX)
        .await;
    assert!(twice.expect_err("no rows").to_string().contains("gzip"));
    place.is_empty().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn senders_that_are_slow_hold_up_nobody_and_end_with_their_connection() {
    let place = place().await;
    let (packed, format) = (pack(Packing::Gzip, table(30_000).as_bytes()), csv());
    // More than there are turns: each has sent the half of it, and then nothing.
    let arrived = Semaphore::new(0);
    let half = || {
        let silence = async {
            arrived.add_permits(1);
            std::future::pending::<Piece>().await
        };
        Box::pin(stream::iter(pieces(&packed[..packed.len() / 2], 4096)).chain(stream::once(silence)))
    };
    let slow = (0..5).map(|_| place.send(half(), &format, u64::MAX));
    let others = async {
        arrived
            .acquire_many(5)
            .await
            .expect("it is never closed")
            .forget();
        for bytes in [packed.as_slice(), b"id,name\n1,a\n"] {
            let sent = place.send(stream::iter(pieces(bytes, 4096)), &format, u64::MAX);
            sent.await.expect("there is a turn for it");
        }
    };
    tokio::select! {
        ended = join_all(slow) => panic!("half a body is none: {ended:?}"),
        done = tokio::time::timeout(Duration::from_secs(100), others) => done.expect("nobody holds them up"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_takes_more_memory_than_one_of_many_may_have_is_refused() {
    let place = place().await;
    // Frames with windows of 32 and 64 MiB.
    for (exponent, fits) in [(15_u8, true), (16, false)] {
        let head = [0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, 0x29, 0, 0];
        let frame = [&head[..], b"id\n1\n"].concat();
        match place
            .send(stream::iter(pieces(&frame, 4096)), &csv(), u64::MAX)
            .await
        {
            Ok(_) => assert!(fits),
            Err(ReceiveError::Rows(IndexError::Packed(error))) => {
                assert!(!fits && error.kind == UnpackFault::Memory(32), "{error}");
            }
            Err(other) => panic!("{other}"),
        }
    }
}
