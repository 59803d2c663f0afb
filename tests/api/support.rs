//! A real node in a place of its own, clients of its façade, and what is asked of them again and again.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{HeaderMap, Method, Request};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// Nothing in these tests takes as long, however loaded the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A running `windrow serve`; killed with the value.
pub(crate) struct Node {
    pub(crate) directory: Arc<tempfile::TempDir>,
    pub(crate) url: String,
    pub(crate) admin: Client,
    lines: watch::Receiver<Vec<String>>,
    pub(crate) child: Child,
}

/// How a node is made.
pub(crate) struct Recipe {
    directory: Arc<tempfile::TempDir>,
    config: String,
    environment: Vec<(String, String)>,
}

impl Recipe {
    /// A node on a free port with an empty store.
    pub(crate) fn new() -> Recipe {
        let directory = Arc::new(tempfile::tempdir().expect("a directory"));
        Recipe {
            directory,
            config: String::new(),
            environment: Vec::new(),
        }
    }

    /// With these lines at the end of its `config.toml`.
    pub(crate) fn config(mut self, text: &str) -> Recipe {
        self.config.push_str(text);
        self.config.push('\n');
        self
    }

    /// With this variable in its environment.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Recipe {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Starts it and waits until it listens.
    pub(crate) async fn start(&self) -> Node {
        let place = self.directory.path();
        let config = place.join("config.toml");
        std::fs::write(&config, &self.config).expect("a configuration");
        let mut command = Command::new(env!("CARGO_BIN_EXE_windrow"));
        command
            .arg("serve")
            .arg("--config")
            .arg(&config)
            .current_dir(place);
        command
            .env("HOME", place)
            .env_remove("WINDROW_LOG")
            .env_remove("NOTIFY_SOCKET");
        command.env("WINDROW_NODE__DATA_DIR", place.join("data"));
        command.env("WINDROW_HTTP__LISTEN", "127.0.0.1:0");
        command.env("WINDROW_AUTH__BOOTSTRAP_TOKEN_FILE", place.join("admin.token"));
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("windrow starts");
        let lines = listen(child.stderr.take().expect("piped"));
        let url = heard(lines.clone(), address_in).await;
        let token = std::fs::read_to_string(place.join("admin.token"));
        let is_open = self.config.contains("mode = \"off\"");
        assert!(is_open || token.is_ok(), "the bootstrap token");
        let admin = Client::new(&url, token.ok().as_deref().map(str::trim));
        Node {
            directory: self.directory.clone(),
            url,
            admin,
            lines,
            child,
        }
    }
}

/// The façade's address in what the node says.
fn address_in(line: &str) -> Option<String> {
    let at = line
        .find("http://127.0.0.1:")
        .or_else(|| line.find("https://127.0.0.1:"))?;
    let url: String = line[at..]
        .chars()
        .take_while(|c| !c.is_whitespace() && *c != '"' && *c != ',')
        .collect();
    Some(url.trim_end_matches('/').to_owned())
}

fn listen(stream: impl AsyncRead + Send + Unpin + 'static) -> watch::Receiver<Vec<String>> {
    let (sender, receiver) = watch::channel(Vec::new());
    tokio::spawn(async move {
        let mut lines = BufReader::new(stream).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            sender.send_modify(|all: &mut Vec<String>| all.push(line));
        }
    });
    receiver
}

async fn heard<T>(mut lines: watch::Receiver<Vec<String>>, wanted: impl Fn(&str) -> Option<T>) -> T {
    let search = async {
        loop {
            if let Some(found) = lines.borrow_and_update().iter().find_map(|line| wanted(line)) {
                return found;
            }
            if lines.changed().await.is_err() {
                panic!("the node ended:\n{}", lines.borrow().join("\n"));
            }
        }
    };
    match tokio::time::timeout(PATIENCE, search).await {
        Ok(found) => found,
        Err(_) => panic!("never said:\n{}", lines.borrow().join("\n")),
    }
}

impl Node {
    /// A default node.
    pub(crate) async fn start() -> Node {
        Recipe::new().start().await
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Everything that it wrote to standard error.
    pub(crate) fn said(&self) -> String {
        self.lines.borrow().join("\n")
    }

    /// Waits until it has written this.
    #[allow(dead_code, reason = "tests of nodes only need it")]
    pub(crate) async fn says(&self, text: &str) {
        heard(self.lines.clone(), |line| line.contains(text).then_some(())).await;
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let id = self
            .child
            .id()
            .and_then(|id| Pid::from_raw(id.cast_signed()))
            .expect("it lives");
        kill_process(id, signal).expect("the signal is sent");
    }

    /// Waits for its end and returns the exit code.
    pub(crate) async fn ended(mut self) -> Option<i32> {
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        status
            .expect("it ends in time")
            .expect("it can be waited for")
            .code()
    }

    /// SIGTERM, and its end.
    pub(crate) async fn stop(self) -> Option<i32> {
        self.signal(Signal::TERM);
        self.ended().await
    }

    /// A client with a new token of this role.
    pub(crate) async fn client(&self, role: &str, business: Option<&str>) -> Client {
        let name = business.map_or_else(|| role.to_owned(), |business| format!("{role}-{business}"));
        let mut body = json!({"name": name, "role": role});
        if let Some(business) = business {
            body["business"] = json!(business);
        }
        let made = self.admin.post("/v1/tokens", body).await.expect(201);
        Client::new(
            &self.url,
            Some(made["token"].as_str().expect("the token is shown once")),
        )
    }

    /// Registers a business at this URL; `more` is merged into the body.
    pub(crate) async fn business(&self, name: &str, url: &str, more: Value) -> Value {
        let mut body = json!({"name": name, "url": url});
        merge(&mut body, more);
        self.admin
            .post("/v1/businesses?check=skip", body)
            .await
            .expect(201)
    }

    /// Creates a task; `more` is merged into the body.
    pub(crate) async fn task(&self, business: &str, total: u64, more: Value) -> String {
        let mut body = json!({"business": business, "source": {"type": "range", "total": total}});
        merge(&mut body, more);
        let made = self.admin.post("/v1/tasks", body).await.expect(201);
        made["id"].as_str().expect("an id").to_owned()
    }

    /// Waits until the task fulfils a condition.
    pub(crate) async fn until(&self, task: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let view = self.admin.get(&format!("/v1/tasks/{task}")).await.expect(200);
            if fits(&view) {
                return view;
            }
            assert!(
                begun.elapsed() < PATIENCE,
                "{task} never was {what}: {view:#}\n{}",
                self.said()
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until the task has this status.
    pub(crate) async fn status(&self, task: &str, status: &str) -> Value {
        self.until(task, status, |view| view["status"] == status).await
    }
}

/// Lays `more` over `body`, member by member.
pub(crate) fn merge(body: &mut Value, more: Value) {
    let (Some(body), Value::Object(more)) = (body.as_object_mut(), more) else {
        return;
    };
    for (name, value) in more {
        match body.get_mut(&name) {
            Some(known) if known.is_object() && value.is_object() => merge(known, value),
            _ => {
                body.insert(name, value);
            }
        }
    }
}

/// Somebody who calls the façade.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) url: String,
    pub(crate) token: Option<String>,
    pub(crate) pool: Pool<HttpConnector, Full<Bytes>>,
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The body, after a check of the status.
    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Value {
        assert_eq!(self.status, status, "{}", self.text());
        self.json()
    }

    /// The problem, after a check of its status and kind.
    #[track_caller]
    pub(crate) fn problem(self, status: u16, slug: &str) -> Value {
        assert_eq!(
            self.header("content-type"),
            Some("application/problem+json"),
            "{}",
            self.text()
        );
        let problem = self.expect(status);
        let kind = problem["type"].as_str().expect("a type");
        assert!(kind.ends_with(&format!("/problems/{slug}")), "{problem:#}");
        for member in ["title", "detail", "request_id"] {
            assert!(
                problem[member].as_str().is_some_and(|text| !text.is_empty()),
                "{member}: {problem:#}"
            );
        }
        assert!(
            !problem["try"].as_array().expect("what to try").is_empty(),
            "{problem:#}"
        );
        problem
    }

    pub(crate) fn json(&self) -> Value {
        if self.body.is_empty() {
            return Value::Null;
        }
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(&self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .get(name)
            .map(|value| value.to_str().expect("printable"))
    }
}

impl Client {
    pub(crate) fn new(url: &str, token: Option<&str>) -> Client {
        // A node closes connections that say nothing for a while; a request on its way then would fail.
        let pool = Pool::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(Duration::from_secs(5))
            .build_http();
        Client {
            url: url.to_owned(),
            token: token.map(str::to_owned),
            pool,
        }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Method::GET, path, &[], Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.json(Method::POST, path, &[], body).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> Answer {
        self.json(Method::PATCH, path, &[], body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.send(Method::DELETE, path, &[], Bytes::new()).await
    }

    pub(crate) async fn json(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Answer {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.send(method, path, &all, Bytes::from(body.to_string())).await
    }

    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: Bytes,
    ) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(body)).expect("a request");
        let answer = tokio::time::timeout(PATIENCE, self.pool.request(request)).await;
        let answer = answer.expect("an answer in time").expect("an answer");
        let (head, body) = answer.into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        Answer {
            status: head.status.as_u16(),
            headers: head.headers,
            body,
        }
    }
}

/// Every file below a directory.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(files(&path))
        } else {
            found.push(path)
        }
    }
    found
}

/// The sum of all terms of a task's counts.
pub(crate) fn sum(view: &Value) -> u64 {
    let counts = view["counts"].as_object().expect("counts");
    counts.values().map(|term| term.as_u64().expect("a number")).sum()
}
