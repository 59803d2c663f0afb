//! What stands beside Windrow in the whole-program bench: `wrk`, hyper's connections, a loop over pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::handshake;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::{IN_FLIGHT, process, timed};

/// Unit of both: seconds.
#[derive(Clone, Copy)]
pub struct Spent {
    pub wall: f64,
    pub cpu: f64,
}

/// The processor time of all children that have ended, in ticks of 10 ms. Unit: seconds.
pub fn cpu_of_children() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // From the third field on: `cutime` and `cstime` are the 16th and the 17th of all.
    let ticks: u64 = fields[13..15]
        .iter()
        .map(|text| text.parse::<u64>().unwrap())
        .sum();
    ticks as f64 / 100.0
}

pub fn is_there(program: &str) -> bool {
    let tried = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok()
}

/// A request of Windrow's, to be repeated by others.
pub struct Captured {
    headers: Vec<(String, String)>,
    body: String,
    directory: PathBuf,
}

impl Captured {
    /// The last one that the server remembers.
    pub fn of(server: &process::Running, directory: &Path) -> Captured {
        let mut stream = BlockingStream::connect(&server.address).unwrap();
        let request = format!(
            "GET /last HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
            server.address
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let own = ["host", "content-length", "date", "connection"];
        let headers = head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(": "))
            .filter(|(name, _)| !own.contains(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        Captured {
            headers,
            body: body.to_owned(),
            directory: directory.to_owned(),
        }
    }

    /// This program as a client that has connections and nothing else.
    pub fn bare(&self, url: &str, calls: u64) -> Command {
        let file = self.directory.join("request.json");
        let told = serde_json::json!({"url": url, "headers": self.headers, "body": self.body});
        std::fs::write(&file, told.to_string()).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("bare").arg(file).arg(calls.to_string());
        command
    }

    /// What `wrk` says of so many seconds: its calls, and the time for them.
    pub fn wrk(&self, url: &str, seconds: u64) -> (u64, Spent) {
        let script = self.directory.join("post.lua");
        let mut lua = format!("wrk.method = \"POST\"\nwrk.body = {:?}\n", self.body);
        for (name, value) in &self.headers {
            lua += &format!("wrk.headers[{name:?}] = {value:?}\n");
        }
        std::fs::write(&script, lua).unwrap();
        let (said, cpu) = (self.directory.join("wrk.txt"), cpu_of_children());
        let output = Command::new("wrk")
            .args(["-t1", &format!("-c{IN_FLIGHT}"), &format!("-d{seconds}s"), "-s"])
            .arg(&script)
            .arg(url)
            .output()
            .unwrap();
        std::fs::write(said, &output.stdout).unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = |what: &str| text.lines().find(|line| line.contains(what)).map(str::trim);
        let per_second = line("Requests/sec:").and_then(|line| line.split_whitespace().nth(1));
        let calls = line(" requests in ").and_then(|line| line.split(' ').next());
        let (per_second, calls): (f64, f64) = (
            per_second.unwrap().parse().unwrap(),
            calls.unwrap().parse().unwrap(),
        );
        assert!(line("Non-2xx").is_none(), "{text}");
        let spent = Spent {
            wall: calls / per_second,
            cpu: cpu_of_children() - cpu,
        };
        (calls as u64, spent)
    }
}

#[derive(serde::Deserialize)]
struct Told {
    url: String,
    headers: Vec<(String, String)>,
    body: String,
}

/// `bare FILE CALLS`: 64 of hyper's connections on one thread, each read and written by the loop that uses it.
pub fn bare(arguments: &[String]) {
    let told: Told = serde_json::from_slice(&std::fs::read(&arguments[0]).unwrap()).unwrap();
    let calls: usize = arguments[1].parse().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let connections: FuturesUnordered<_> = (0..IN_FLIGHT)
            .map(|_| connection(&told, calls / IN_FLIGHT))
            .collect();
        connections.collect::<Vec<()>>().await;
    });
}

async fn connection(told: &Told, calls: usize) {
    let uri: hyper::Uri = told.url.parse().unwrap();
    let authority = uri.authority().unwrap().as_str().to_owned();
    let stream = TcpStream::connect(&authority).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut sender, driver) = handshake(TokioIo::new(stream)).await.unwrap();
    let body = Bytes::from(told.body.clone());
    let asks = async move {
        for _ in 0..calls {
            let mut request =
                Request::post(uri.path_and_query().unwrap().as_str()).header("host", &authority);
            for (name, value) in &told.headers {
                request = request.header(name, value);
            }
            let answer = sender
                .send_request(request.body(Full::new(body.clone())).unwrap())
                .await;
            let answer = answer.unwrap();
            assert!(answer.status().is_success());
            answer.into_body().collect().await.unwrap();
            sender.ready().await.unwrap();
        }
    };
    // The connection ends when nobody asks any more.
    let ((), ended) = tokio::join!(asks, driver);
    ended.unwrap();
}

/// A worker that takes 64 items at a time and answers each with `ok`, as soon as it was read.
const WORKER: &str = r#"
#include <stdio.h>
int main(void) {
    static char line[1 << 16];
    static char out[1 << 16];
    setvbuf(stdout, out, _IOFBF, sizeof out);
    if (!fgets(line, sizeof line, stdin)) return 1;
    fputs("{\"type\":\"ready\",\"protocol\":1,\"concurrency\":64}\n", stdout);
    fflush(stdout);
    while (fgets(line, sizeof line, stdin)) {
        fputs("ok\n", stdout);
        fflush(stdout);
    }
    return 0;
}
"#;

/// The worker's program; none without a compiler.
pub fn compiled_worker(directory: &Path) -> Option<PathBuf> {
    if !is_there("cc") {
        return None;
    }
    let (source, program) = (directory.join("worker.c"), directory.join("worker"));
    std::fs::write(&source, WORKER).unwrap();
    timed(Command::new("cc").arg("-O2").arg("-o").arg(&program).arg(&source));
    Some(program)
}

/// `pipe WORKER LINES`: keeps 64 lines unanswered, and writes as many new ones at once as were answered.
pub fn pipe(arguments: &[String]) {
    let lines: usize = arguments[1].parse().unwrap();
    let mut child = Command::new(&arguments[0])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut answers, mut ready) = (BufReader::new(stdout), String::new());
    stdin.write_all(b"{\"type\":\"hello\"}\n").unwrap();
    answers.read_line(&mut ready).unwrap();
    let (mut sent, mut answered) = (0, 0);
    while answered < lines {
        let each = |at| format!("{{\"index\":{at},\"attempt\":1,\"key\":\"k7f3q2-t1-{at}\"}}\n");
        let upto = lines.min(answered + IN_FLIGHT);
        let text: String = (sent..upto).map(each).collect();
        sent = upto;
        stdin.write_all(text.as_bytes()).unwrap();
        let some = answers.fill_buf().unwrap();
        let (ends, len) = (some.iter().filter(|byte| **byte == b'\n').count(), some.len());
        assert!(len > 0, "the worker ended");
        answers.consume(len);
        answered += ends;
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
