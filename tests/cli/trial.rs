//! `windrow try`: verdicts are shown, nothing is kept, a handler that breaks the contract is told so.

use rustix::process::Signal;

use super::support::{Business, Gate, Place, repository};

#[test]
fn verdicts_of_a_worker_are_shown_and_nothing_is_kept() {
    let place = Place::new();
    let worker = repository("tests/fixtures/workers/every_tenth.py");
    let done = place
        .windrow(&["try", "--items", "2..6", "--", "python3", &worker])
        .expect(0);
    for text in [
        "#2 ✓ succeeded",
        "#3 ✗ failed NO_USER user 3 is unknown",
        "#5 – skipped",
        "contract: ok",
    ] {
        assert!(done.stdout.contains(text), "{text:?} is not in\n{}", done.stdout);
    }
    assert_eq!(place.names(), [""; 0]);
}

/// A node with a certificate of its own stands in for a handler that has one: what it answers isn't the point.
#[test]
fn an_authority_of_ones_own_is_trusted_by_try_and_run() {
    let place = Place::new();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let cert = place.write("ca.pem", &made.cert.pem());
    let key = place.write("key.pem", &made.signing_key.serialize_pem());
    let tls = format!("[http]\ntls_cert_file = {cert:?}\ntls_key_file = {key:?}\n");
    place.write("config.toml", &tls);
    let mut node = place.start(&["serve", "--data-dir", "data", "--listen", "127.0.0.1:0"]);
    let line = node.wait_for("listens on https://");
    let address = line.split("https://").nth(1).unwrap().split('"').next().unwrap();
    let url = format!("https://{address}/nowhere");
    let refused = |words: &[&str]| {
        let done = place.windrow(words);
        (done.stdout + &done.stderr).contains("certificate is refused")
    };
    let job = [
        "run",
        "--total",
        "1",
        "--restart",
        "--max-attempts",
        "1",
        "--first-contact",
        "5s",
        "--url",
        &url,
    ];
    for command in [&["try", "--items", "0", "--url", &url][..], &job] {
        assert!(refused(command), "{command:?}");
        for trust in [&["--handler-ca-file", &cert][..], &["--insecure-skip-verify"]] {
            assert!(!refused(&[command, trust].concat()), "{command:?} {trust:?}");
        }
    }
    place
        .windrow(&["try", "--handler-ca-file", &cert, "--", "cat"])
        .refused(2, &["--handler-ca-file", "apply to URLs"]);
    let again = place.windrow(&[
        "run",
        "--total",
        "2",
        "--url",
        &url,
        "--handler-ca-file",
        &cert,
        "--name",
        "kept",
    ]);
    assert_ne!(again.code, Some(0), "it is no handler");
    assert!(!refused(&["run", "--resume", "kept"]), "it is kept with the job");
}

#[test]
fn a_url_gets_the_data_of_the_template() {
    let place = Place::new();
    let business = Business::answering("204 No Content", "");
    place
        .windrow(&[
            "try",
            &business.url,
            "--items",
            "0,7",
            "--data",
            r#"{"user":"u{index}"}"#,
        ])
        .expect(0);
    let users: Vec<String> = business
        .calls()
        .iter()
        .map(|call| call["item"]["data"]["user"].to_string())
        .collect();
    assert_eq!(users, [r#""u0""#, r#""u7""#]);
}

#[test]
fn a_url_gets_the_rows_of_a_file() {
    let place = Place::new();
    let business = Business::answering("204 No Content", "");
    place.write("users.csv", "user\nu1\nu2\nu3\n");
    place
        .windrow(&[
            "try",
            &business.url,
            "--items",
            "1..3",
            "--csv",
            "users.csv",
            "--batch",
            "2",
        ])
        .expect(0);
    let calls = business.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0]["items"][1]["data"]["user"], "u3");
    let refused = place.windrow(&["try", &business.url, "--items", "9", "--csv", "users.csv"]);
    refused.refused(7, &["no item 9", "3 items"]);
}

#[test]
fn without_a_choice_as_many_items_are_called_as_there_are() {
    let place = Place::new();
    for (rows, wanted) in [(1, 1), (2, 2), (5, 3)] {
        let business = Business::answering("204 No Content", "");
        let text: String = (0..rows)
            .map(|row| format!("{{\"user\":\"u{row}\"}}\n"))
            .collect();
        place.write("users.ndjson", &text);
        place
            .windrow(&["try", &business.url, "--ndjson", "users.ndjson"])
            .expect(0);
        assert_eq!(business.calls().len(), wanted, "{rows} rows");
        let chosen = place.windrow(&[
            "try",
            &business.url,
            "--ndjson",
            "users.ndjson",
            "--items",
            "0..6",
        ]);
        chosen.refused(7, &[&format!("no item {rows}")]);
    }
}

#[test]
fn a_handler_that_breaks_the_contract_is_told_so() {
    let place = Place::new();
    let page = Business::answering("200 OK", "<html>please sign in</html>");
    place
        .windrow(&["try", &page.url, "--items", "0"])
        .refused(11, &["violates the contract"]);
    let missing = Business::answering("404 Not Found", "");
    place
        .windrow(&["try", &missing.url, "--items", "0"])
        .refused(11, &["404"]);
    let silent = [
        "try",
        "--items",
        "0",
        "--call-timeout",
        "300ms",
        "--",
        "sh",
        "-c",
        "cat > /dev/null",
    ];
    place
        .windrow(&silent)
        .refused(11, &["no call got a response", "flush"]);
    let closed = ["try", "http://127.0.0.1:1/", "--items", "0"];
    place
        .windrow(&closed)
        .refused(7, &["no call got a response", "Connection refused"]);
}

#[test]
fn a_worker_that_prints_what_is_no_answer_is_not_called_slow() {
    let place = Place::new();
    let worker = "while read -r line; do echo fail BAD no such user; done";
    let done = place
        .windrow(&["try", "--items", "0..2", "--", "sh", "-c", worker])
        .expect(11);
    assert!(
        done.stdout.contains(r#""result":"fail","code":"#),
        "{}",
        done.stdout
    );
    assert!(
        done.stderr.contains("which is not an answer") && !done.stderr.contains("long after its timeout"),
        "{}",
        done.stderr
    );
    // The sentence is for whoever waits: no time, no place in the code.
    let said = done.stderr.lines().find(|line| line.contains("WARN"));
    let said = said.expect("a warning").trim_start();
    assert!(said.starts_with("WARN worker 1 printed line "), "{said}");
}

#[test]
fn an_item_that_asks_for_it_is_tried_again() {
    let place = Place::new();
    let script = r#"n=0; while read -r l; do case $l in *'"type":"item"'*) n=$((n+1));
        if [ $n = 1 ]; then echo '{"type":"result","id":'"$(echo "$l" | sed 's/.*"id":\([0-9]*\).*/\1/')"',"result":"retry","retry_after":"10ms","code":"BUSY"}'; else echo ok; fi;; esac; done"#;
    let done = place
        .windrow(&[
            "try",
            "--items",
            "0",
            "--max-attempts",
            "3",
            "--",
            "sh",
            "-c",
            script,
        ])
        .expect(0);
    for text in ["#0 ↻ retry BUSY", "(after 10ms)", "#0 ✓ succeeded (attempt 2)"] {
        assert!(done.stdout.contains(text), "{text:?} is not in\n{}", done.stdout);
    }
}

#[test]
fn a_command_that_is_not_there_is_refused() {
    Place::new()
        .windrow(&["try", "--", "windrow-no-such-command"])
        .refused(7, &["command not found"]);
    Place::new()
        .windrow(&["try", "--cmd", "windrow-no-such-command -u"])
        .refused(7, &["command not found"]);
}

#[test]
fn ctrl_c_says_what_it_waits_for_and_a_second_one_does_not_wait() {
    let (place, gate) = (Place::new(), Gate::open());
    let worker = gate.worker();
    let words: Vec<&str> = ["try", "--"]
        .into_iter()
        .chain(worker.iter().map(String::as_str))
        .collect();
    let mut tried = place.start(&words);
    let mut worker = gate.accept();
    assert_eq!(worker.next(), Some(0));
    tried.signal(Signal::INT);
    tried.wait_for("interrupted: ");
    tried.signal(Signal::INT);
    tried.end().expect(130);
    assert_eq!(worker.next(), None, "the worker is gone");
}
