//! `--request`: any API, called for each row; what is wrong is told before anything leaves, and secrets are told nobody.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::support::{Place, assert_adds_up};

/// A request as the API saw it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

type Answer = dyn Fn(&Seen) -> (u16, String) + Send + Sync;

/// An API that knows nothing of Windrow, on a free port.
pub(crate) struct Api {
    pub(crate) origin: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Api {
    pub(crate) fn start(answer: impl Fn(&Seen) -> (u16, String) + Send + Sync + 'static) -> Api {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (kept, answer): (_, Arc<Answer>) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (kept, answer) = (kept.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &*answer, &kept));
            }
        });
        Api { origin, seen }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, answer: &Answer, kept: &Mutex<Vec<Seen>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while !head.ends_with("\r\n\r\n") {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let line = head.lines().next().unwrap().to_owned();
        let body = String::from_utf8(body).unwrap();
        let seen = Seen { line, head, body };
        let (status, reply) = answer(&seen);
        kept.lock().unwrap().push(seen);
        let reply = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{reply}",
            reply.len()
        );
        if reader.get_mut().write_all(reply.as_bytes()).is_err() {
            return;
        }
    }
}

const ORDERS: &str = "order_id,qty,note\n1001,3,\"say \"\"hi\"\"\"\n10/02,1,a&b\n1003,x,\n";

#[test]
fn each_row_makes_a_request_and_one_that_cannot_fails_alone() {
    let place = Place::new();
    place.write("orders.csv", ORDERS);
    place.write("vendor.token", "geheim-4711\n");
    let api = Api::start(|_| (201, r#"{"data":{"id":1}}"#.to_owned()));
    let request = format!("POST {}/v1/orders/{{order_id}}/ship?i={{index}}", api.origin);
    let words = [
        "run",
        "--csv",
        "orders.csv",
        "--request",
        &request,
        "--header",
        "Authorization: Bearer {secret.vendor}",
        "--secret",
        "vendor=@vendor.token",
        "--json",
        r#"{"qty": {qty:number}, "note": {note}}"#,
        "-o",
        "json",
    ];
    let done = place.windrow(&words).expect(8);
    let summary = done.json();
    assert_adds_up(&summary);
    assert_eq!(
        (&summary["counts"]["succeeded"], &summary["counts"]["failed"]),
        (&Value::from(2), &Value::from(1))
    );
    assert_eq!(summary["failures"][0]["code"], "TEMPLATE_VALUE", "{summary}");
    assert!(
        summary["failures"][0]
            .to_string()
            .contains(r#"\"qty\" in the item's data is not a number"#),
        "{summary}"
    );
    let mut seen = api.seen();
    seen.sort_by(|one, two| two.line.cmp(&one.line));
    let lines: Vec<&str> = seen.iter().map(|one| one.line.as_str()).collect();
    assert_eq!(
        lines,
        [
            "POST /v1/orders/1001/ship?i=0 HTTP/1.1",
            "POST /v1/orders/10%2F02/ship?i=1 HTTP/1.1"
        ]
    );
    assert_eq!(seen[0].body, r#"{"qty": 3, "note": "say \"hi\""}"#);
    assert!(
        seen[0].head.contains("authorization: Bearer geheim-4711\r\n"),
        "{}",
        seen[0].head
    );
    let again = place.windrow(&words).expect(8);
    assert_eq!(
        (api.seen().len(), again.json()["counts"].clone()),
        (2, summary["counts"].clone()),
        "it had finished"
    );
}

#[test]
fn a_template_that_fits_no_row_is_refused_before_anything_leaves() {
    let place = Place::new();
    place.write("orders.csv", ORDERS);
    place.write("orders.ndjson", "{\"order_id\":1,\"to\":{\"city\":\"Bonn\"}}\n");
    let api = Api::start(|_| (200, String::new()));
    let to = |path: &str| format!("POST {}/{path}", api.origin);
    let refused = |source: &[&str], request: &str, more: &[&str], texts: &[&str]| {
        let words = [&["run"][..], source, &["--request", request], more].concat();
        place.windrow(&words).refused(2, texts);
    };
    let csv = ["--csv", "orders.csv"];
    refused(
        &csv,
        &to("{orderid}"),
        &[],
        &["no column \"orderid\"", "order_id"],
    );
    refused(
        &["--ndjson", "orders.ndjson"],
        &to("{/to/city}/{order}"),
        &[],
        &["no column \"order\"", "order_id"],
    );
    refused(
        &["--total", "3"],
        &to("{id}"),
        &[],
        &["{id} is a column", "{index}"],
    );
    refused(
        &csv,
        &to("{order_id"),
        &[],
        &["--request: ", "part of no placeholder"],
    );
    refused(&csv, "POST http://{order_id}/", &[], &["host"]);
    refused(
        &csv,
        &to(""),
        &["--json", r#"{"a": {qty:number}"#],
        &["--json: ", "not JSON"],
    );
    refused(
        &csv,
        &to(""),
        &["--json", "{qty}", "--ok", "409", "--skip", "409"],
        &["status 409 has two meanings"],
    );
    refused(&csv, &to(""), &["--batch", "4"], &["--batch is 4", "--batch 1"]);
    refused(
        &csv,
        &to("{secret.x}"),
        &[],
        &["the secret \"x\" of {secret.x} is not set", "--secret"],
    );
    refused(&csv, &to("{param.x}"), &[], &["{param.x}"]);
    refused(&csv, &to(""), &["--secret-file", "s"], &["--secret NAME=@FILE"]);
    let words = ["run", "--csv", "orders.csv", "--json", "{}", "--url", &api.origin];
    place.windrow(&words).refused(2, &["--json applies to"]);
    assert!(api.seen().is_empty());
}

#[test]
fn a_trial_shows_what_leaves_and_what_comes_back_but_no_secret() {
    let place = Place::new();
    place.write("orders.csv", ORDERS);
    place.write("auth", "Bearer geheim-4711\n");
    let api = Api::start(|seen| {
        let status = if seen.line.contains("1001") { 200 } else { 409 };
        (status, seen.head.clone())
    });
    let request = format!("POST {}/{{order_id}}", api.origin);
    let words = [
        "try",
        "--csv",
        "orders.csv",
        "--items",
        "0..2",
        "--request",
        &request,
        "--header",
        "Authorization: @auth",
        "--form",
        "q={qty}",
        "--form",
        "n={note}",
    ];
    let done = place.windrow(&words).expect(0);
    for text in [
        "/10%2F02\n  authorization: ••••\n  content-type: application/x-www-form-urlencoded\n  idempotency-key: try-t0-1\n  \
         q=1&n=a%26b\n",
        "#0 ✓ succeeded \"POST /1001",
        "#1 ✗ failed HTTP_409 the API answered 409 Conflict",
        "requests: ok",
    ] {
        assert!(done.stdout.contains(text), "{text:?} is not in\n{}", done.stdout);
    }
    assert!(
        api.seen()[0].head.contains("authorization: Bearer geheim-4711"),
        "it was sent"
    );
    assert!(!format!("{done:?}").contains("geheim"), "{done:?}");
    place
        .windrow(&["try", "--request", &request])
        .refused(2, &["{order_id} is a column"]);
}

/// Whether any file below holds a text.
fn holds(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().flatten().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return holds(&path, text);
        }
        let bytes = if path.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        bytes.windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[test]
fn a_secret_that_the_api_says_back_is_in_no_file_and_no_line() {
    let place = Place::new();
    place.write("orders.csv", ORDERS);
    place.write("outside", "");
    let secrets = tempfile::tempdir().unwrap();
    let token = secrets.path().join("token");
    fs::write(&token, "geheim-4711").unwrap();
    let api = Api::start(|seen| {
        let status = if seen.line.contains("1001") { 200 } else { 418 };
        (status, format!("you sent {}", seen.head))
    });
    let request = format!("GET {}/{{order_id}}?k={{secret.t}}", api.origin);
    let secret = format!("t=@{}", token.display());
    let words = [
        "run",
        "--csv",
        "orders.csv",
        "--request",
        &request,
        "--secret",
        &secret,
        "--header",
        "x: {secret.t}",
        "-vv",
        "--failures-out",
        "failed.ndjson",
    ];
    let done = place.windrow(&words).expect(8);
    assert!(
        api.seen().len() >= 3,
        "what fails before the first success is tried again"
    );
    assert!(api.seen()[0].head.contains("x: geheim-4711"), "it was sent");
    assert!(
        place.read("failed.ndjson").contains("••••"),
        "{}",
        place.read("failed.ndjson")
    );
    assert!(!format!("{done:?}").contains("geheim"), "{done:?}");
    assert!(!holds(&place.path(""), "geheim"));
    assert!(holds(&place.path(""), "HTTP_418"), "the failures are stored");
}

#[test]
fn a_body_from_a_file_is_a_template() {
    let place = Place::new();
    place.write("orders.csv", ORDERS);
    place.write("body.xml", "<order id=\"{order_id}\">{{x}}</order>");
    place.write("body.json", r#"{"id": {order_id}}"#);
    let api = Api::start(|_| (200, String::new()));
    let request = format!("PUT {}/x", api.origin);
    for file in ["body.xml", "body.json"] {
        let words = [
            "run",
            "--csv",
            "orders.csv",
            "--request",
            &request,
            "--body-file",
            file,
            "--restart",
            "-q",
        ];
        place.windrow(&words).expect(0);
    }
    let bodies: Vec<String> = api.seen().into_iter().map(|seen| seen.body).collect();
    assert!(
        bodies.contains(&"<order id=\"1001\">{x}</order>".to_owned()),
        "{bodies:?}"
    );
    assert!(bodies.contains(&r#"{"id": "10/02"}"#.to_owned()), "{bodies:?}");
}

#[test]
fn an_api_that_is_not_there_costs_no_item() {
    let place = Place::new();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let request = format!("POST http://{nobody}/{{index}}");
    let words = [
        "run",
        "--total",
        "20",
        "--request",
        &request,
        "--first-contact",
        "2s",
        "-o",
        "json",
    ];
    let done = place.windrow(&words).expect(7);
    assert_eq!(done.json()["counts"]["failed"], 0, "{}", done.stdout);
    assert_eq!(
        done.json()["stop_reason"],
        "handler_unreachable",
        "{}",
        done.stdout
    );
}

#[test]
fn a_template_that_fits_no_row_stops_at_once_charges_nothing_and_goes_on_corrected() {
    let place = Place::new();
    let rows: String = (0..300).map(|row| format!("{row},n{row}\n")).collect();
    place.write("names.csv", &format!("id,name\n{rows}"));
    let api = Api::start(|_| (200, String::new()));
    let request = format!("POST {}/{{id}}", api.origin);
    let run = |json: &str, expected: i32| {
        let words = ["run", "--csv", "names.csv", "--request", &request, "--json", json];
        place.windrow(&words).expect(expected)
    };
    let stopped = run(r#"{"a": {name:number}}"#, 7);
    assert!(
        stopped
            .stderr
            .contains("no request could be made of any item so far")
            && stopped.stderr.contains("TEMPLATE_VALUE"),
        "{}",
        stopped.stderr
    );
    assert_eq!(api.seen().len(), 0);
    let done = run(r#"{"a": {name}}"#, 0);
    let told = "t1 was started with another handler (--request); this one processes the rest";
    assert!(done.stderr.contains(told), "{}", done.stderr);
    assert_eq!(api.seen().len(), 300);
    let words = ["run", "--csv", "names.csv", "--", "cat"];
    let again = place.windrow(&words).expect(4).stderr;
    assert!(
        again.contains("with another handler than this command's (--request)"),
        "{again}"
    );
}

#[test]
fn a_secret_file_that_isnt_there_is_refused_with_what_to_try() {
    let place = Place::new();
    let header = "authorization: Bearer {secret.tok}";
    let request = ["--request", "POST http://127.0.0.1:9/", "--header", header];
    let words = [
        &["run", "--total", "1"],
        &request[..],
        &["--secret", "tok=@missing"],
    ]
    .concat();
    let told = place.windrow(&words).expect(7).stderr;
    assert!(
        told.contains("try  name a readable file after --secret"),
        "{told}"
    );
}

#[test]
fn a_finished_job_with_another_handler_is_no_success_of_this_command() {
    let place = Place::new();
    let rows = place.write("rows.txt", "a\nb\nc\n");
    let run = |handler: &'static str, more: &[&str], expected: i32| {
        let words = [
            &["run", "--lines", &rows, "-o", "json"][..],
            more,
            &["--each", handler],
        ]
        .concat();
        place.windrow(&words).expect(expected)
    };
    let told = |body: &serde_json::Value| (body["ran"].as_bool(), body["handler_changed"].as_bool());
    assert_eq!(told(&run("true", &[], 0).json()), (Some(true), Some(false)));
    assert_eq!(told(&run("true", &[], 0).json()), (Some(false), Some(false)));
    let other = run("echo 1", &[], 4);
    assert_eq!(told(&other.json()), (Some(false), Some(true)));
    assert!(
        other.stderr.contains("--restart") && other.stderr.contains("--name NAME"),
        "{}",
        other.stderr
    );
    run("echo 1", &["--if-finished", "ok"], 0);
    let anew = run("echo 1", &["--if-finished", "restart"], 0);
    assert_eq!(told(&anew.json()), (Some(true), Some(false)));
}

#[test]
fn a_handler_that_mended_nothing_of_a_job_is_another_one_whatever_was_done_again() {
    let place = Place::new();
    let rows = place.write("rows.txt", "a\nb\nc\n");
    let run = |handler: &'static str, more: &[&str], expected: i32| {
        let words = [
            &["run", "--lines", &rows, "-o", "json"][..],
            more,
            &["--each", handler],
        ]
        .concat();
        place.windrow(&words).expect(expected)
    };
    run("sh -c 'exit 65'", &[], 8);
    run("true", &["--only-failed"], 0);
    let mended = run("true", &[], 0);
    assert_eq!(mended.json()["handler_changed"], false, "{}", mended.stderr);
    assert!(!mended.stderr.contains("another handler"), "{}", mended.stderr);
    let other = run("echo 1", &[], 4);
    assert_eq!(other.json()["handler_changed"], true, "{}", other.stderr);
    assert!(other.stderr.contains("with another handler than this command's"));
    run("echo 1", &["--if-finished", "ok"], 0);
}

/// Two experiments with the same number have nothing in common but that.
#[test]
fn a_number_of_items_for_another_handler_is_a_job_of_its_own_once_the_first_has_ended() {
    let place = Place::new();
    let run = |handler: &'static str, more: &[&str], expected: i32| {
        let words = [
            &["run", "--total", "3", "-o", "json"][..],
            more,
            &["--each", handler],
        ]
        .concat();
        let done = place.windrow(&words).expect(expected);
        let body = done.json();
        (
            body["name"].as_str().unwrap().to_owned(),
            body["ran"].as_bool(),
            done.stderr,
        )
    };
    let is = |(name, ran, _): (String, Option<bool>, String)| (name, ran.unwrap());
    assert_eq!(is(run("true", &[], 0)), ("total-3".to_owned(), true));
    let (name, ran, told) = run("echo 1", &[], 0);
    assert_eq!((name.as_str(), ran), ("total-3-2", Some(true)));
    assert!(
        told.contains("total-3 has finished with another handler; this one's job is total-3-2"),
        "{told}"
    );
    assert_eq!(
        is(run("echo 1", &[], 0)),
        ("total-3-2".to_owned(), false),
        "it is known again"
    );
    assert_eq!(is(run("true", &[], 0)), ("total-3".to_owned(), false));
    assert_eq!(
        is(run("echo 2", &["--name", "total-3"], 4)),
        ("total-3".to_owned(), false)
    );
    assert_eq!(is(run("echo 2", &["--restart"], 0)), ("total-3".to_owned(), true));
    let jobs = place.windrow(&["job", "list", "-o", "name"]).expect(0).stdout;
    let mut jobs: Vec<&str> = jobs.lines().collect();
    jobs.sort_unstable();
    assert_eq!(jobs, ["total-3", "total-3-2"]);
}

#[test]
fn a_number_of_items_of_which_some_failed_is_left_to_be_mended() {
    let place = Place::new();
    let run = |handler: &'static str, expected: i32| {
        place
            .windrow(&["run", "--total", "3", "--each", handler])
            .expect(expected)
    };
    run("sh -c 'test {index} = 1 || exit 65'", 8);
    let told = run("true", 4).stderr;
    assert!(told.contains("--only-failed retries its failures"), "{told}");
}

#[test]
fn what_a_placeholder_may_be_is_told_where_it_is_misspelt() {
    let place = Place::new();
    place.write("semi.csv", "id;name\n1;a\n");
    place.write("comma.csv", "id,name\n1,a\n");
    let refused = |file: &str, url: &str, json: &str, said: &str| {
        let words = ["run", "--csv", file, "--request", url, "--json", json];
        place.windrow(&words).refused(2, &[said]);
    };
    refused(
        "semi.csv",
        "POST http://127.0.0.1:1/{id}",
        "{}",
        "--delimiter ';'",
    );
    refused(
        "comma.csv",
        "POST http://127.0.0.1:1/",
        r#"{"a": {id:nubmer}}"#,
        "{id:number}",
    );
    refused(
        "comma.csv",
        "POST http://127.0.0.1:1/",
        "{idd}",
        "did you mean id?",
    );
}

#[test]
fn a_request_that_is_wrong_for_all_stops_before_it_burns_the_file() {
    let place = Place::new();
    let rows: String = (0..500).map(|row| format!("{row}\n")).collect();
    place.write("ids.csv", &format!("id\n{rows}"));
    let api = Api::start(|_| (422, "no such field: idd".to_owned()));
    let request = format!("POST {}/orders", api.origin);
    let words = [
        "run",
        "--csv",
        "ids.csv",
        "--request",
        &request,
        "--json",
        "{\"idd\": {id}}",
    ];
    let stopped = place.windrow(&words).expect(7);
    assert!(
        stopped.stderr.contains("HTTP_422") && stopped.stderr.contains("no such field"),
        "{}",
        stopped.stderr
    );
    let wrong = api.seen().len();
    assert!((10..200).contains(&wrong), "{wrong} calls");
    drop(api);
    // The corrected command goes on: nothing was charged, and nothing was given up.
    let api = Api::start(|_| (200, String::new()));
    let request = format!("POST {}/orders", api.origin);
    let words = [
        "run",
        "--csv",
        "ids.csv",
        "--request",
        &request,
        "--json",
        "{\"id\": {id}}",
        "-o",
        "json",
    ];
    let done = place.windrow(&words).expect(0);
    assert_eq!(done.json()["counts"]["succeeded"], 500, "{}", done.stdout);
}

#[test]
fn the_proxies_of_the_environment_are_gone_through_and_named() {
    let (place, api) = (Place::new(), Api::start(|_| (200, "\"direct\"".to_owned())));
    let proxy = Api::start(|seen| (200, format!("{{\"proxied\":{:?}}}", seen.line)));
    let run = |env: &[(&str, &str)], host: &str| {
        let request = format!("GET {}/x", host);
        let run = [
            "run",
            "--total",
            "1",
            "--restart",
            "-q",
            "--results-out",
            "-",
            "--first-contact",
            "1s",
            "--request",
            &request,
        ];
        place.windrow_with(&run, "", env)
    };
    let through = run(&[("http_proxy", &proxy.origin)], &api.origin).expect(0);
    assert!(
        through.stdout.contains(&format!("GET {}/x", api.origin)),
        "{}",
        through.stdout
    );
    let by_name = run(
        &[("HTTP_PROXY", &proxy.origin), ("no_proxy", "example")],
        "http://api.corp.example2",
    )
    .expect(0);
    assert!(by_name.stdout.contains("proxied"), "{}", by_name.stdout);
    let direct = run(
        &[("http_proxy", &proxy.origin), ("no_proxy", "127.0.0.0/8")],
        &api.origin,
    )
    .expect(0);
    assert!(direct.stdout.contains("direct"), "{}", direct.stdout);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let dead = run(&[("http_proxy", &format!("http://{nobody}"))], &api.origin);
    assert!(
        dead.stderr
            .contains(&format!("the proxy {nobody} (http_proxy)").replace("http://", "")),
        "{}",
        dead.stderr
    );
    // The client goes the same way.
    let server = ["task", "list", "--server", &api.origin, "--request-timeout", "1s"];
    let told = place.windrow_with(&server, "", &[("http_proxy", &format!("http://{nobody}"))]);
    assert!(told.stderr.contains("(http_proxy)"), "{}", told.stderr);
}
