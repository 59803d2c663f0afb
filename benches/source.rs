//! How fast a file is indexed and read back, beside the bare parsers. Run: `cargo bench --bench source`.
//!
//! `WINDROW_BENCH_ROWS` sets the number of rows (default 1,000,000).

#![allow(clippy::disallowed_methods, reason = "a benchmark measures real time")]
#![allow(
    unreachable_pub,
    dead_code,
    reason = "a benchmark exports nothing, and doesn't use all that is shared"
)]

#[path = "shared/smoke.rs"]
mod smoke;

use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use serde::de::IgnoredAny;
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::sources::source::Source;
use windrow_sources::{BlockIndex, CsvFormat, FileSource, Format, index_file};

fn main() {
    let rows = std::env::var("WINDROW_BENCH_ROWS")
        .ok()
        .and_then(|text| text.parse().ok());
    let rows = rows.unwrap_or_else(|| smoke::sized(1_000_000, 5_000));
    let dir = tempfile::tempdir().expect("a directory can be made");
    let plain = table(dir.path(), "plain", rows, "moved since 2026");
    let quoted = table(dir.path(), "quoted", rows, "\"moved, since 2026\"");
    let ndjson = dir.path().join("users.ndjson");
    write(&ndjson, rows, None, |n| {
        format!(
            "{{\"user_id\":\"u_{n}\",\"name\":\"陈静\",\"locale\":\"zh-CN\",\"device\":\"ios\",\"n\":{n}}}\n"
        )
    });
    for (name, csv) in [("csv", &plain), ("quoted csv", &quoted)] {
        let bare = measure(&format!("csv crate, {name}"), csv, || {
            let mut reader = csv::Reader::from_path(csv).expect("the file is there");
            let mut record = csv::ByteRecord::new();
            while reader.read_byte_record(&mut record).expect("it is good") {
                black_box(&record);
            }
            rows
        });
        let read = bench(name, csv, &Format::Csv(CsvFormat::default()), rows);
        println!(
            "{name} by blocks ÷ the csv crate = {:.2} (aim ≥ 0.7)",
            bare / read
        );
    }
    measure("lines found by memchr, bare", &ndjson, || lines_of(&ndjson));
    let bare = measure("lines read one by one, bare", &ndjson, || {
        let mut reader = BufReader::new(std::fs::File::open(&ndjson).expect("the file is there"));
        let (mut line, mut lines) = (Vec::new(), 0);
        while reader.read_until(b'\n', &mut line).expect("it is good") > 0 {
            black_box(&line);
            line.clear();
            lines += 1;
        }
        lines
    });
    measure("lines and serde_json, bare", &ndjson, || {
        let mut reader = BufReader::new(std::fs::File::open(&ndjson).expect("the file is there"));
        let mut line = String::new();
        while reader.read_line(&mut line).expect("it is good") > 0 {
            black_box(serde_json::from_str::<IgnoredAny>(&line).expect("it is JSON"));
            line.clear();
        }
        rows
    });
    let read = bench("ndjson", &ndjson, &Format::Ndjson, rows);
    println!(
        "ndjson by blocks ÷ lines read one by one = {:.2} (aim ≥ 0.7)",
        bare / read
    );
}

/// How many lines a file has, read by mebibytes.
fn lines_of(path: &Path) -> u64 {
    let mut file = std::fs::File::open(path).expect("the file is there");
    let mut buffer = vec![0; 1 << 20];
    let (mut held, mut lines) = (0, 0);
    loop {
        let read = file.read(&mut buffer[held..]).expect("it can be read");
        if read == 0 {
            return lines;
        }
        let mut start = 0;
        for end in memchr::memchr_iter(b'\n', &buffer[..held + read]) {
            black_box(&buffer[start..end]);
            (start, lines) = (end + 1, lines + 1);
        }
        buffer.copy_within(start..held + read, 0);
        held += read - start;
    }
}

/// A table whose last column is this in each row.
fn table(folder: &Path, name: &str, rows: u64, note: &str) -> PathBuf {
    let csv = folder.join(name).with_extension("csv");
    write(&csv, rows, Some("user_id,name,locale,device,note\n"), |n| {
        format!("u_{n},陈静,zh-CN,ios,{note}\n")
    });
    csv
}

/// How long its rows take to be read. Unit: seconds.
fn bench(name: &str, path: &Path, format: &Format, rows: u64) -> f64 {
    let mut indexed = None;
    measure(&format!("index {name}"), path, || {
        let pass = index_file(path, format, &mut |_| {}, &AtomicBool::new(false)).expect("the rows are good");
        indexed.insert(pass).0.rows
    });
    let (source, parts) = indexed.expect("it was just made");
    let index = BlockIndex::from_parts(&parts, source.rows, source.bytes).expect("it was just made");
    println!("{:28} {} blocks, {} parts", "", index.blocks().len(), parts.len());
    let source = FileSource::open(path, format.clone(), &source, index).expect("the file is there");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .expect("a runtime starts");
    measure(&format!("read {name} by blocks"), path, || {
        runtime.block_on(async {
            let mut at = ItemIndex(0);
            while at.0 < rows {
                at = black_box(source.read(at).await.expect("nothing changed")).end();
            }
            at.0
        })
    })
}

/// The best of three. Unit: seconds.
fn measure(name: &str, path: &Path, mut work: impl FnMut() -> u64) -> f64 {
    let bytes = path.metadata().expect("the file is there").len();
    let mut best = f64::MAX;
    let mut rows = 0;
    for _ in 0..3 {
        let begin = Instant::now();
        rows = work();
        best = best.min(begin.elapsed().as_secs_f64());
    }
    let (rows_per_s, mb_per_s) = (rows as f64 / best, bytes as f64 / best / 1e6);
    println!("{name:28} {rows} rows in {best:.3} s: {rows_per_s:>12.0} rows/s {mb_per_s:>8.0} MB/s");
    best
}

fn write(path: &Path, rows: u64, header: Option<&str>, row: impl Fn(u64) -> String) {
    let file = std::fs::File::create(path).expect("the directory is writable");
    let mut writer = std::io::BufWriter::new(file);
    writer
        .write_all(header.unwrap_or("").as_bytes())
        .expect("the disk has room");
    for n in 1..=rows {
        writer.write_all(row(n).as_bytes()).expect("the disk has room");
    }
    writer.flush().expect("the disk has room");
}
