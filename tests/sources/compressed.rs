//! Compressed sources are the rows that they unpack to, and are read from any row on; what ends early, is damaged, grows
//! without bound or asks for too much memory is refused, and leaves nothing behind.

use std::path::Path;

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::ErrorClass;
use windrow_engine::ports::sources::source::{Source, SourceError};
use windrow_sources::{
    Expansion, IndexError, OpenSourceError, OpenedSource, Opening, Packing, SourceSpec, UnpackFault, open,
    open_piped, unpacked_bytes,
};

use crate::common::{Place, row, rows, runtime};
use crate::packed::{ALL, pack, table};

fn spec(kind: &str, path: &Path) -> SourceSpec {
    SourceSpec::parse(&json!({"kind": kind, "path": path}).to_string()).expect("it is a description")
}

async fn opened(place: &Place, spec: &SourceSpec) -> Result<OpenedSource, OpenSourceError> {
    let spool = place.spool();
    open(spec, &place.opening(&spool)).await
}

async fn opened_within(
    place: &Place,
    spec: &SourceSpec,
    expansion: Expansion,
) -> Result<OpenedSource, OpenSourceError> {
    let spool = place.spool();
    let opening = Opening {
        expansion,
        ..place.opening(&spool)
    };
    open(spec, &opening).await
}

fn kept(place: &Place) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(place.spool()) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.expect("it can be listed").file_name());
    names.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// All rows as text, each block read once.
pub(crate) async fn all(source: &dyn Source) -> Vec<String> {
    let mut rows = Vec::new();
    while (rows.len() as u64) < source.total().0 {
        let chunk = source
            .read(ItemIndex(rows.len() as u64))
            .await
            .expect("nothing changed");
        let of_chunk = (chunk.first().0..chunk.end().0).filter_map(|at| chunk.row(ItemIndex(at)));
        rows.extend(of_chunk.map(str::to_owned));
    }
    rows
}

/// Why compressed bytes were refused.
#[track_caller]
fn fault(error: &OpenSourceError) -> (Packing, UnpackFault) {
    match error {
        OpenSourceError::Index {
            error: IndexError::Packed(error),
            ..
        } => (error.packing, error.kind.clone()),
        other => panic!("a fault of compressed bytes is expected, not {other}"),
    }
}

#[tokio::test]
async fn a_compressed_file_is_the_same_source_as_what_it_unpacks_to() {
    let place = Place::new();
    let text = table(10_000);
    let plain = place.write("u.csv", &text);
    let plain = opened(&place, &spec("csv", &plain))
        .await
        .expect("it is a source");
    let expected = all(&*plain.source).await;
    for packing in ALL {
        let (head, tail) = text.split_at(text.len() / 3);
        // Of two members, with one that is empty between them.
        let members = [head.as_bytes(), b"", tail.as_bytes()].map(|member| pack(packing, member));
        let path = place.write(&format!("u.csv.{}", packing.ending()), members.concat());
        let first = opened(&place, &spec("csv", &path)).await.expect("it is a source");
        assert_eq!(
            (first.packing, first.fresh, first.meaning),
            (Some(packing), true, plain.meaning)
        );
        assert_eq!(all(&*first.source).await, expected, "{packing}");
        let again = opened(&place, &spec("csv", &path)).await.expect("it is a source");
        assert_eq!((again.fresh, again.meaning), (false, plain.meaning), "{packing}");
        assert_eq!(
            row(&*again.source, 9_999).await,
            Ok(serde_json::from_str(&expected[9_999]).expect("it is JSON"))
        );
    }
}

#[tokio::test]
async fn what_a_file_is_tells_its_content_and_not_its_name() {
    let place = Place::new();
    let zstd = place.write("u.csv", pack(Packing::Zstd, b"\xef\xbb\xbfid\n1\n"));
    let opened_zstd = opened(&place, &spec("csv", &zstd)).await.expect("it is a source");
    assert_eq!(
        (opened_zstd.packing, opened_zstd.has_bom),
        (Some(Packing::Zstd), true)
    );
    assert_eq!(rows(&*opened_zstd.source).await, [json!({"id": "1"})]);
    let plain = place.write("u.csv.gz", "id\n1\n");
    let opened_plain = opened(&place, &spec("csv", &plain))
        .await
        .expect("it is a source");
    assert_eq!(opened_plain.packing, None);
    let twice = place.write("t.gz", pack(Packing::Gzip, &pack(Packing::Gzip, b"id\n1\n")));
    let error = opened(&place, &spec("csv", &twice))
        .await
        .expect_err("it is no text");
    assert!(error.because().contains("a gzip file, not text"), "{error}");
    let mut tar = vec![b'x'; 600];
    tar[257..262].copy_from_slice(b"ustar");
    let tar = place.write("t.tar.gz", pack(Packing::Gzip, &tar));
    let error = opened(&place, &spec("csv", &tar))
        .await
        .expect_err("it is no text");
    assert!(error.because().contains("a tar archive"), "{error}");
}

#[tokio::test]
async fn a_file_cut_at_any_byte_is_refused_and_leaves_nothing() {
    for packing in ALL {
        let place = Place::new();
        let whole = pack(packing, table(20).as_bytes());
        for end in 1..whole.len() {
            let path = place.write(&format!("u.csv.{}", packing.ending()), &whole[..end]);
            let error = opened(&place, &spec("csv", &path))
                .await
                .expect_err("it is cut off");
            assert_eq!(
                fault(&error),
                (packing, UnpackFault::Truncated),
                "{end} of {}: {error}",
                whole.len()
            );
            assert_eq!(error.class(), ErrorClass::Permanent);
        }
        assert_eq!(kept(&place), Vec::<String>::new());
        assert!(place.store.saved.lock().expect("nobody panicked").is_empty());
    }
}

#[tokio::test]
async fn a_second_member_that_is_cut_at_any_byte_is_refused() {
    for packing in ALL {
        let place = Place::new();
        let (first, second) = (pack(packing, b"id\n1\n2\n"), pack(packing, b"3\n4\n"));
        for end in 1..second.len() {
            let path = place.write("u", [&first[..], &second[..end]].concat());
            let error = opened(&place, &spec("csv", &path))
                .await
                .expect_err("it is cut off");
            assert_eq!(fault(&error).0, packing, "{end}: {error}");
        }
        let path = place.write("u", [&first[..], b"and more than a header has bytes"].concat());
        let error = opened(&place, &spec("csv", &path))
            .await
            .expect_err("something follows");
        assert!(
            matches!(fault(&error), (_, UnpackFault::Corrupt(_))),
            "{packing}: {error}"
        );
        assert_eq!(kept(&place), Vec::<String>::new());
    }
}

#[tokio::test]
async fn a_flipped_byte_is_told_or_changes_no_row() {
    for packing in ALL {
        let place = Place::new();
        let text = table(20);
        let plain = place.write("plain", &text);
        let plain = opened(&place, &spec("csv", &plain))
            .await
            .expect("it is a source");
        let whole = pack(packing, text.as_bytes());
        let mut told = 0;
        for at in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            let path = place.write("u", &damaged);
            match opened(&place, &spec("csv", &path)).await {
                Ok(opened) => assert_eq!(opened.meaning, plain.meaning, "{packing}: byte {at}"),
                Err(_) => told += 1,
            }
        }
        assert!(
            told * 10 > whole.len() * 8,
            "{packing}: {told} of {}",
            whole.len()
        );
    }
}

#[tokio::test]
async fn damage_behind_sound_rows_says_how_many_there_were() {
    let place = Place::new();
    let rows_sound = 40_000;
    let mut bytes = pack(Packing::Gzip, table(rows_sound).as_bytes());
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    let path = place.write("u.csv.gz", &bytes);
    let error = opened(&place, &spec("csv", &path))
        .await
        .expect_err("its checksum differs");
    let OpenSourceError::Index {
        error: IndexError::Packed(told),
        ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(told.rows > 20_000 && told.unpacked > 500_000, "{told:?}");
    assert!(
        error.to_string().contains("rows before that were valid"),
        "{error}"
    );
    assert!(error.hint().contains("gzip -t"), "{error}");
    assert_eq!(kept(&place), Vec::<String>::new());
}

#[tokio::test]
async fn what_grows_without_bound_is_refused_before_it_fills_the_disk() {
    let bomb = "x\n".repeat(150_000);
    let expansion = Expansion {
        free: 1 << 16,
        ratio: 50,
    };
    for packing in ALL {
        let place = Place::new();
        let path = place.write("bomb", pack(packing, bomb.as_bytes()));
        let error = opened_within(&place, &spec("lines", &path), expansion)
            .await
            .expect_err("it grows");
        assert_eq!(fault(&error), (packing, UnpackFault::Expansion(expansion)));
        assert!(error.because().contains("50 times"), "{error}");
        assert_eq!(kept(&place), Vec::<String>::new());
        // Unless it is small, however often that is.
        let path = place.write("small", pack(packing, "x\n".repeat(1000).as_bytes()));
        let small = Expansion {
            free: 1 << 20,
            ratio: 1,
        };
        opened_within(&place, &spec("lines", &path), small)
            .await
            .expect("it is small");
    }
}

#[tokio::test]
async fn zeros_are_no_rows_and_end_the_pass_at_once() {
    let place = Place::new();
    let before = unpacked_bytes();
    let path = place.write("zeros", pack(Packing::Zstd, &vec![0; 200 << 20]));
    let error = opened(&place, &spec("lines", &path))
        .await
        .expect_err("the row is too long");
    assert!(error.because().contains("longer than 1024 KiB"), "{error}");
    assert!(unpacked_bytes() - before < 8 << 20, "the rest is not looked at");
}

#[tokio::test]
async fn what_asks_for_more_memory_than_there_is_for_it_is_refused() {
    let place = Place::new();
    // A frame with a window of 256 MiB, and one of 128 MiB.
    for (exponent, fits) in [(18_u8, false), (17, true)] {
        let frame = [
            &[0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, 0x29, 0, 0][..],
            b"id\n1\n",
        ]
        .concat();
        let path = place.write("u.zst", frame);
        match opened(&place, &spec("csv", &path)).await {
            Ok(opened) => assert!(fits && opened.source.total().0 == 1),
            Err(error) => {
                assert!(!fits, "{error}");
                assert_eq!(fault(&error), (Packing::Zstd, UnpackFault::Memory(128)));
                assert!(error.hint().contains("--long=27"), "{error}");
            }
        }
    }
    // The size of the dictionary stands in the header of a block, which has a checksum of its own.
    let mut bytes = pack(Packing::Xz, b"id\n1\n");
    let end = 12 + (usize::from(bytes[12]) + 1) * 4;
    bytes[16] = 36;
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[12..end - 4]);
    bytes[end - 4..end].copy_from_slice(&crc.sum().to_le_bytes());
    let path = place.write("u.xz", bytes);
    let error = opened(&place, &spec("csv", &path))
        .await
        .expect_err("1 GiB is too much");
    assert_eq!(fault(&error), (Packing::Xz, UnpackFault::Memory(128)), "{error}");
}

#[tokio::test]
async fn a_changed_file_is_noticed_and_one_that_was_only_compressed_again_is_the_same() {
    let place = Place::new();
    let path = place.write("u.csv.zst", pack(Packing::Zstd, b"id\n1\n2\n"));
    let first = opened(&place, &spec("csv", &path)).await.expect("it is a source");
    let copies = kept(&place);
    assert_eq!(copies.len(), 1, "{copies:?}");
    place.write("u.csv.zst", pack(Packing::Gzip, b"id\n1\n2\n"));
    let again = opened(&place, &spec("csv", &path)).await.expect("it is a source");
    assert_eq!((again.fresh, again.meaning), (true, first.meaning));
    assert_eq!(kept(&place), copies);
    place.write("u.csv.zst", pack(Packing::Zstd, b"id\n1\n3\n"));
    let other = opened(&place, &spec("csv", &path)).await.expect("it is a source");
    assert_ne!(other.meaning, first.meaning);
    let now = kept(&place);
    assert!(now.len() == 1 && now != copies, "{now:?}");
    // Who began with the old content reads it to its end.
    assert_eq!(
        rows(&*first.source).await,
        [json!({"id": "1"}), json!({"id": "2"})]
    );
}

#[tokio::test]
async fn a_copy_that_is_gone_or_damaged_is_told_and_made_anew() {
    let place = Place::new();
    let path = place.write("u.csv.xz", pack(Packing::Xz, table(9000).as_bytes()));
    let first = opened(&place, &spec("csv", &path)).await.expect("it is a source");
    let copy = place.spool().join(&kept(&place)[0]);
    assert_eq!(
        zstd::decode_all(&*std::fs::read(&copy).expect("it is there")).expect("it is zstd"),
        table(9000).as_bytes(),
        "anybody can read it"
    );
    let mut bytes = std::fs::read(&copy).expect("it is there");
    bytes[100] ^= 1;
    std::fs::write(&copy, &bytes).expect("it is ours");
    let error = first
        .source
        .read(ItemIndex(0))
        .await
        .expect_err("the block differs");
    let SourceError::Changed(text) = &error else {
        panic!("{error:?}")
    };
    assert!(text.contains("u.csv.xz") && text.contains("unpacked-"), "{text}");
    std::fs::remove_file(&copy).expect("it is there");
    let again = opened(&place, &spec("csv", &path)).await.expect("it is a source");
    assert_eq!((again.fresh, again.meaning), (true, first.meaning));
    assert_eq!(
        again
            .source
            .read(ItemIndex(0))
            .await
            .expect("it is whole")
            .row(ItemIndex(0)),
        Some(r#"{"id":"0","name":"user 0"}"#)
    );
    // A copy that was cut off is none.
    std::fs::write(&copy, &bytes[..bytes.len() / 2]).expect("it is ours");
    assert!(
        opened(&place, &spec("csv", &path))
            .await
            .expect("it is a source")
            .fresh
    );
}

/// The row that is resumed at; `WINDROW_FAR_ROW=10000000` takes that one.
#[expect(
    clippy::disallowed_methods,
    reason = "a larger size comes from the environment"
)]
fn far_row() -> u64 {
    std::env::var("WINDROW_FAR_ROW").map_or(200_000, |text| text.parse().expect("a number"))
}

#[tokio::test]
async fn resuming_far_into_a_file_unpacks_next_to_nothing() {
    let place = Place::new();
    let at = far_row();
    let total = at / 2 * 3;
    let text = table(total);
    let path = place.write("u.csv.zst", pack(Packing::Zstd, text.as_bytes()));
    let first = opened(&place, &spec("csv", &path)).await.expect("it is a source");
    assert!(first.fresh && first.source.total().0 == total);
    drop(first);
    let before = unpacked_bytes();
    let again = opened(&place, &spec("csv", &path)).await.expect("it is a source");
    assert_eq!(
        row(&*again.source, at).await.expect("it is there")["id"],
        at.to_string()
    );
    let spent = unpacked_bytes() - before;
    println!("row {at} of {total}: {spent} of {} bytes", text.len());
    assert!(
        spent > 0 && spent * 50 < text.len() as u64,
        "{spent} of {} bytes",
        text.len()
    );
}

#[tokio::test]
async fn a_compressed_stream_is_kept_and_read_again_without_it() {
    for packing in ALL {
        let place = Place::new();
        let spool = place.spool();
        let piped = SourceSpec::parse(r#"{"kind":"csv","path":"-"}"#).expect("it is a description");
        let bytes = pack(packing, table(9000).as_bytes());
        let whole = std::io::Cursor::new(bytes.clone());
        let first = open_piped(&piped, &place.opening(&spool), whole)
            .await
            .expect("it is a source");
        assert_eq!((first.packing, first.fresh), (Some(packing), true));
        let stored = SourceSpec::parse(&first.spec.to_text()).expect("it was written by us");
        let again = open_piped(&stored, &place.opening(&spool), std::io::empty())
            .await
            .expect("it is a source");
        assert_eq!((again.fresh, again.meaning), (false, first.meaning));
        assert_eq!(all(&*again.source).await, all(&*first.source).await);
        // Also where nobody remembers it.
        place.store.saved.lock().expect("nobody panicked").clear();
        let anew = open_piped(&stored, &place.opening(&spool), std::io::empty())
            .await
            .expect("it is a source");
        assert_eq!((anew.fresh, anew.meaning), (true, first.meaning));
        assert_eq!(
            row(&*anew.source, 8_999).await.expect("it is there")["id"],
            "8999"
        );
        let names = kept(&place);
        let half = std::io::Cursor::new(bytes[..bytes.len() / 2].to_vec());
        let error = open_piped(&piped, &place.opening(&spool), half)
            .await
            .expect_err("it is cut off");
        assert_eq!(fault(&error), (packing, UnpackFault::Truncated));
        assert!(
            error.to_string().starts_with("standard input can't be used"),
            "{error}"
        );
        assert_eq!(kept(&place), names);
    }
}

/// A reader that fails in the middle.
struct Failing(std::io::Cursor<Vec<u8>>);

impl std::io::Read for Failing {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                "the line was cut",
            )),
            read => Ok(read),
        }
    }
}

#[tokio::test]
async fn a_stream_that_can_not_be_read_is_not_taken_for_damaged_data() {
    for packing in ALL {
        let place = Place::new();
        let spool = place.spool();
        let piped = SourceSpec::parse(r#"{"kind":"csv","path":"-"}"#).expect("it is a description");
        let bytes = pack(packing, table(9000).as_bytes());
        let broken = Failing(std::io::Cursor::new(bytes[..bytes.len() - 20].to_vec()));
        let error = open_piped(&piped, &place.opening(&spool), broken)
            .await
            .expect_err("it broke");
        assert!(error.because().contains("the line was cut"), "{packing}: {error}");
        assert_eq!(error.class(), ErrorClass::Transient, "{packing}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rows_are_those_of_a_naive_split_however_they_are_compressed(
        lines in vec("[ -~]{0,40}", 1..60),
        cuts in vec(any::<prop::sample::Index>(), 0..4),
        packing in prop::sample::select(ALL.to_vec()),
    ) {
        let text = lines.join("\n");
        let expected: Vec<_> = lines.iter().filter(|line| !line.is_empty()).map(|line| json!({"line": line})).collect();
        prop_assume!(!expected.is_empty());
        let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).collect();
        ends.extend([0, text.len()]);
        ends.sort_unstable();
        let members: Vec<u8> = ends.windows(2).flat_map(|w| pack(packing, &text.as_bytes()[w[0]..w[1]])).collect();
        let place = Place::new();
        let path = place.write("lines", members);
        let found = runtime().block_on(async {
            let opened = opened(&place, &spec("lines", &path)).await.expect("it is a source");
            rows(&*opened.source).await
        });
        prop_assert_eq!(found, expected);
    }
}
