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
