//! Items from where people have them: lines of text, compressed files, files that match a pattern.

use super::support::{Gate, Place, assert_adds_up};

const WELL: &str = r#"{"result":"ok"}"#;
/// A worker that keeps what it got.
const KEEP: &str = "while read -r l; do echo \"$l\" >> got; echo ok; done";

/// The data of the items that a worker kept, without the lines that are none.
fn got(place: &Place) -> Vec<serde_json::Value> {
    let lines = place.read("got");
    let lines = lines
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    lines
        .filter(|line| line["type"] == "item")
        .map(|line| line["data"].clone())
        .collect()
}

#[test]
fn lines_of_text_are_items() {
    let place = Place::new();
    let file = place.write("urls.txt", "http://a/\r\n\n  b \n\"c\"\n");
    let done = place
        .windrow(&["run", "--lines", &file, "-o", "json", "--", "sh", "-c", KEEP])
        .expect(0);
    assert_adds_up(&done.json());
    assert!(
        done.stderr.contains("item 0: {\"line\":\"http://a/\"}"),
        "{}",
        done.stderr
    );
    let lines: Vec<_> = got(&place).into_iter().map(|data| data["line"].clone()).collect();
    assert_eq!(lines, ["http://a/", "  b ", "\"c\""]);

    let tried = place.windrow(&[
        "try",
        "--lines",
        &file,
        "--items",
        "1",
        "--",
        "sh",
        "-c",
        "while read -r l; do echo ok; done",
    ]);
    assert!(tried.expect(0).stdout.contains("#1"));
    let piped = [
        "run",
        "--lines",
        "-",
        "-o",
        "json",
        "--",
        "sh",
        "-c",
        "while read -r l; do echo ok; done",
    ];
    let done = place.windrow_with(&piped, "x\ny\n", &[]).expect(0);
    assert_eq!(done.json()["counts"]["succeeded"], 2);
}

#[test]
fn a_line_that_is_no_text_ends_the_job_before_it_begins() {
    let place = Place::new();
    std::fs::write(place.path("bad.txt"), b"a\nb\xff\n").unwrap();
    let run = ["run", "--lines", "bad.txt", "--", "sh", "-c", KEEP];
    place.windrow(&run).refused(
        7,
        &[
            "bad.txt can't be used as items",
            "line 2: not valid UTF-8",
            "iconv",
        ],
    );
    assert!(!place.path("got").exists(), "nothing was called");
}

#[test]
fn lines_go_on_after_a_kill_where_they_were() {
    let (place, gate) = (Place::new(), Gate::open());
    let file = place.write("urls.txt", "a\nb\nc\nd\n");
    let worker = gate.worker();
    let mut run = vec!["run", "--lines", &file, "--concurrency", "1", "--"];
    run.extend(worker.iter().map(String::as_str));
    let job = place.start(&run);
    let mut first = gate.accept();
    for index in 0..2 {
        assert_eq!(first.next(), Some(index));
        first.answer(WELL);
    }
    assert_eq!(first.next(), Some(2));
    job.signal(rustix::process::Signal::KILL);
    assert_eq!(job.end().code, None);
    let again = place.start(&run);
    let mut indexes = gate.accept().serve();
    assert_eq!(again.end().code, Some(0));
    indexes.dedup();
    assert_eq!(indexes.last(), Some(&3), "{indexes:?}");
    assert!(indexes.contains(&2), "{indexes:?}");
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn compressed_files_and_streams_are_items() {
    let place = Place::new();
    std::fs::write(place.path("u.csv.gz"), [gzip("id\n1\n"), gzip("2\n")].concat()).unwrap();
    std::fs::write(
        place.path("u.ndjson"),
        zstd::encode_all(&b"{\"id\":1}\n{\"id\":2}\n{\"id\":3}\n"[..], 3).unwrap(),
    )
    .unwrap();
    let run = ["run", "--csv", "u.csv.gz", "-o", "json", "--", "sh", "-c", KEEP];
    let done = place.windrow(&run).expect(0);
    assert_eq!(done.json()["counts"]["succeeded"], 2);
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);
    assert_eq!(
        got(&place),
        [serde_json::json!({"id": "1"}), serde_json::json!({"id": "2"})]
    );
    place.windrow(&run).expect(0);
    assert_eq!(got(&place).len(), 2, "it is done");

    let told = place
        .windrow(&["run", "--ndjson", "u.ndjson", "--", "sh", "-c", KEEP])
        .expect(0);
    assert!(
        told.stderr
            .contains("u.ndjson contains zstd data despite its name"),
        "{}",
        told.stderr
    );
    let tried = place
        .windrow(&["try", "--csv", "u.csv.gz", "--items", "1", "--", "sh", "-c", KEEP])
        .expect(0);
    assert!(tried.stdout.contains("#1"), "{}", tried.stdout);
    assert_eq!(got(&place).last(), Some(&serde_json::json!({"id": "2"})));

    let script = format!(
        "exec {} run --csv - -o json -- sh -c '{KEEP}' < u.csv.gz",
        env!("CARGO_BIN_EXE_windrow")
    );
    let piped = place.start_shell(&script).end().expect(0);
    assert_eq!(piped.json()["counts"]["succeeded"], 2);

    let changed = [gzip("id\n1\n"), gzip("3\n")].concat();
    std::fs::write(place.path("u.csv.gz"), changed).unwrap();
    place.windrow(&run).refused(7, &["2 other items", "--restart"]);
}

#[test]
fn a_compressed_file_that_is_cut_off_is_never_a_short_job() {
    let place = Place::new();
    let whole = gzip("id\n1\n2\n");
    std::fs::write(place.path("u.csv.gz"), &whole[..whole.len() - 3]).unwrap();
    place
        .windrow(&["run", "--csv", "u.csv.gz", "--", "sh", "-c", KEEP])
        .refused(
            7,
            &[
                "u.csv.gz can't be used as items",
                "its gzip data is truncated after",
                "copy it again",
            ],
        );
    assert!(!place.path("got").exists(), "nothing was called");
}

#[test]
fn a_compressed_job_goes_on_after_a_kill_where_it_was() {
    let (place, gate) = (Place::new(), Gate::open());
    let rows: String = (0..50).map(|row| format!("{row}\n")).collect();
    std::fs::write(
        place.path("u.csv.zst"),
        zstd::encode_all(format!("id\n{rows}").as_bytes(), 3).unwrap(),
    )
    .unwrap();
    let worker = gate.worker();
    let mut run = vec!["run", "--csv", "u.csv.zst", "--concurrency", "1", "--"];
    run.extend(worker.iter().map(String::as_str));
    let mut done = 0;
    for _ in 0..3 {
        let job = place.start(&run);
        let mut worker = gate.accept();
        let first = worker.next().unwrap();
        assert!(first <= done, "{first} came after {done} were done");
        for index in first + 1..=first + 10 {
            worker.answer(WELL);
            assert_eq!(worker.next(), Some(index));
        }
        done = done.max(first + 10);
        job.signal(rustix::process::Signal::KILL);
        assert_eq!(job.end().code, None);
    }
    let again = place.start(&run);
    let indexes = gate.accept().serve();
    assert_eq!(again.end().code, Some(0));
    assert!(indexes.first().is_some_and(|first| *first <= done), "{indexes:?}");
    assert_eq!(indexes.last(), Some(&49));
}

/// A file that may not grow is as good as a full disk, and needs no privileges.
#[test]
fn a_disk_that_is_full_while_a_file_is_unpacked_is_told_and_leaves_nothing_half() {
    let place = Place::new();
    let mut seed = 1_u64;
    let rows: String = std::iter::repeat_with(|| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        format!("{seed:x}\n")
    })
    .take(200_000)
    .collect();
    std::fs::write(place.path("u.txt.gz"), gzip(&rows)).unwrap();
    let program = env!("CARGO_BIN_EXE_windrow");
    let script = format!(
        "trap '' XFSZ; ulimit -f 2000; exec {program} run --lines u.txt.gz --state state -- sh -c '{KEEP}'"
    );
    let full = place.start_shell(&script).end();
    full.refused(
        1,
        &["u.txt.gz can't be stored in", "File too large", "free space"],
    );
    let kept = std::fs::read_dir(place.path("state/spool")).unwrap().count();
    assert_eq!(kept, 0, "nothing half is left");
    assert!(!place.path("got").exists(), "nothing was called");
}

#[test]
fn files_that_match_a_pattern_are_items_and_stay_those_of_the_first_start() {
    let (place, gate) = (Place::new(), Gate::open());
    std::fs::create_dir(place.path("in")).unwrap();
    for name in ["b.png", "a.png", "c.png", "x.txt"] {
        place.write(&format!("in/{name}"), name);
    }
    let worker = gate.worker();
    let mut run = vec!["run", "--glob", "in/*.png", "--concurrency", "1", "--"];
    run.extend(worker.iter().map(String::as_str));
    let job = place.start(&run);
    let mut first = gate.accept();
    assert_eq!(first.next(), Some(0));
    first.answer(WELL);
    assert_eq!(first.next(), Some(1));
    job.signal(rustix::process::Signal::KILL);
    assert_eq!(job.end().code, None);

    // One that comes before all others, and one less.
    place.write("in/0.png", "");
    std::fs::remove_file(place.path("in/c.png")).unwrap();
    let same = ["run", "--glob", "in/*.png", "-o", "json", "--", "sh", "-c", KEEP];
    let done = place.windrow(&same).expect(0);
    assert_eq!(
        (&done.json()["total"], &done.json()["counts"]["succeeded"]),
        (&3.into(), &3.into())
    );
    assert!(
        done.stderr.contains("listed at the first start"),
        "{}",
        done.stderr
    );
    let last = serde_json::json!({"path": "in/c.png", "name": "c.png", "stem": "c", "ext": "png", "dir": "in", "bytes": 5});
    assert_eq!(got(&place).last(), Some(&last));

    std::fs::remove_file(place.path("got")).unwrap();
    let anew = ["run", "--glob", "in/*.png", "--restart", "--", "sh", "-c", KEEP];
    place.windrow(&anew).expect(0);
    let names: Vec<_> = got(&place).into_iter().map(|data| data["name"].clone()).collect();
    assert_eq!(names, ["0.png", "a.png", "b.png"]);
    let tried = place
        .windrow(&["try", "--glob", "in/*.txt", "--", "sh", "-c", KEEP])
        .expect(0);
    assert!(tried.stdout.contains("#0"), "{}", tried.stdout);
    assert_eq!(got(&place).last().unwrap()["path"], "in/x.txt");
}

#[test]
fn a_source_without_items_is_nothing_to_do_and_leaves_an_empty_file() {
    let place = Place::new();
    place.write("header.csv", "a,b\n");
    place.write("empty.ndjson", "");
    place.write("blank.txt", "\n\n");
    for source in [
        ["--csv", "header.csv"],
        ["--ndjson", "empty.ndjson"],
        ["--lines", "blank.txt"],
        ["--glob", "in/*.png"],
        ["--total", "0"],
    ] {
        let run = |more: &[&'static str]| {
            let begin = [
                "run",
                source[0],
                source[1],
                "--results-out",
                "out",
                "--failures-out",
                "dead",
            ];
            place.windrow(&[&begin, more, &["--", "sh", "-c", "touch ran"]].concat())
        };
        let done = run(&[]).expect(0);
        assert!(
            done.stderr.contains("nothing to do"),
            "{source:?}: {}",
            done.stderr
        );
        for file in ["out", "dead"] {
            assert_eq!(
                std::fs::read(place.path(file)).expect("it was promised"),
                b"",
                "{source:?}"
            );
            std::fs::remove_file(place.path(file)).expect("it is there");
        }
        run(&["--if-empty", "error"]).refused(7, &[]);
        // The place is its home too, where the state of all jobs is.
        let names: Vec<String> = place
            .names()
            .into_iter()
            .filter(|name| !name.starts_with('.'))
            .collect();
        assert_eq!(names, ["blank.txt", "empty.ndjson", "header.csv"], "{source:?}");
    }
    // Nothing was begun: the items of the next day are no other items of the same job.
    place.write("header.csv", "a,b\n1,2\n");
    place
        .windrow(&["run", "--csv", "header.csv", "--each", "true"])
        .expect(0);
    // But items that vanish under a job are missed.
    place.write("header.csv", "a,b\n");
    place
        .windrow(&["run", "--csv", "header.csv", "--each", "true"])
        .refused(7, &["was started with 1 item", "--name"]);
}

#[test]
fn a_pattern_without_files_is_refused_where_items_are_wanted() {
    let place = Place::new();
    let run = |pattern| {
        place.windrow(&[
            "run",
            "--if-empty",
            "error",
            "--glob",
            pattern,
            "--",
            "sh",
            "-c",
            KEEP,
        ])
    };
    run("in/*.png").refused(
        7,
        &[
            "there are no files",
            "no file matches in/*.png",
            "** also matches",
        ],
    );
    run("in/{a").refused(7, &["the pattern in/{a is invalid", "use shell syntax"]);
    place
        .windrow(&["task", "create", "push", "--glob", "in/*.png"])
        .expect(2);
}
