//! Three nodes, a database server, Redis and a business, and everything that can be done to them.

use std::path::Path;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::api;
use crate::audit::Audit;
use crate::business::Business;
use crate::evidence::{Command, Effect, Harm, Order, now, say};
use crate::node::{Faults, Node, PATIENCE};
use crate::proxy::{Proxy, Weather};
use crate::servers::{Redis, free_port};
use crate::settings::{Settings, StoreKind};
use crate::store::Database;

/// A link of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    Database,
    Redis,
    Business,
}

impl Link {
    fn harm(self) -> Harm {
        match self {
            Link::Database => Harm::Database,
            Link::Redis => Harm::Redis,
            Link::Business => Harm::Business,
        }
    }
}

/// See the module. Every method that starts a process blocks, so that the process belongs to the test's own thread.
pub(crate) struct Cluster {
    pub(crate) settings: Settings,
    pub(crate) nodes: Vec<Node>,
    pub(crate) database: Database,
    pub(crate) redis: Option<Redis>,
    /// Killed and not yet started again.
    pub(crate) is_redis_down: bool,
    pub(crate) business: Business,
    pub(crate) audit: Audit,
    pub(crate) faults: Faults,
    pub(crate) commands: Vec<Command>,
    pub(crate) effects: Vec<Effect>,
    /// Everything of the nodes; removed with the value.
    _place: tempfile::TempDir,
}

impl Cluster {
    /// Starts everything and waits until all nodes are ready.
    pub(crate) async fn start(settings: &Settings) -> Cluster {
        let begun = Instant::now();
        let kept = tempfile::Builder::new()
            .prefix("windrow-chaos")
            .tempdir()
            .expect("a directory");
        let place = kept.path().to_owned();
        let business = Business::start().await;
        let database = Database::start(settings);
        let redis = settings.has_redis.then(Redis::start);
        secret(&place.join("key"), "d2luZHJvdyBjaGFvcyB0ZXN0IGtleSAzMiBieXRlcyE=");
        secret(&place.join("password"), database.password());
        let mut nodes = Vec::new();
        for number in 1..=settings.nodes {
            let name = format!("n{number}");
            let own = place.join(&name);
            std::fs::create_dir_all(&own).expect("a directory");
            database.create_user(&name);
            let to_database = match database.port() {
                Some(port) => Some(Proxy::start(port).await),
                None => None,
            };
            let to_redis = match &redis {
                Some(redis) => Some(Proxy::start(redis.port()).await),
                None => None,
            };
            let to_business = Proxy::start(business.port()).await;
            let node = Node::new(&name, own, free_port(), to_database, to_redis, to_business);
            let config = config(settings, &node, &place);
            std::fs::write(node.place.join("config.toml"), config).expect("a configuration");
            nodes.push(node);
        }
        // The first one makes the tables.
        for node in &mut nodes {
            node.spawn();
            node.is_ready().await;
        }
        let audit = Audit::install(&database.audit_url(&nodes[0])).await;
        eprintln!("  {settings} in {} after {:?}", place.display(), begun.elapsed());
        Cluster {
            settings: settings.clone(),
            nodes,
            database,
            redis,
            is_redis_down: false,
            business,
            audit,
            faults: Faults::default(),
            commands: Vec::new(),
            effects: Vec::new(),
            _place: kept,
        }
    }

    /// The proxies of a kind of link: of one node, or of all.
    pub(crate) fn links(&self, link: Link, node: Option<usize>) -> Vec<&Proxy> {
        let of = |node: usize| match link {
            Link::Database => self.nodes[node].database.as_ref(),
            Link::Redis => self.nodes[node].redis.as_ref(),
            Link::Business => Some(&self.nodes[node].business),
        };
        (0..self.nodes.len())
            .filter(|at| node.is_none_or(|node| node == *at))
            .filter_map(of)
            .collect()
    }

    /// Every present connection of all nodes falls silent for good; the number is the fault's.
    pub(crate) fn strand(&mut self, name: &str, link: Link) -> usize {
        let fault = self.faults.begin(&format!("{name} vanish"), link.harm());
        for proxy in self.links(link, None) {
            proxy.strand();
        }
        fault
    }

    /// Sets the weather of links; the number is the fault's.
    pub(crate) fn weather(&mut self, name: &str, link: Link, node: Option<usize>, weather: Weather) -> usize {
        let harm = link.harm();
        let of = node.map_or_else(|| "all".to_owned(), |node| self.nodes[node].name.clone());
        let fault = self.faults.begin(&format!("{name} ({of})"), harm);
        for proxy in self.links(link, node) {
            proxy.set(weather);
        }
        fault
    }

    /// Perfect weather again.
    pub(crate) fn clear(&mut self, fault: usize, link: Link, node: Option<usize>) {
        for proxy in self.links(link, node) {
            proxy.heal();
        }
        self.faults.end(fault);
    }

    /// `kill -9` of a node.
    pub(crate) fn kill(&mut self, node: usize) {
        let name = format!("kill -9 {}", self.nodes[node].name);
        self.nodes[node].kill();
        self.nodes[node].trouble = Some(self.faults.begin(&name, Harm::Node));
    }

    /// SIGSTOP of a node.
    pub(crate) fn pause(&mut self, node: usize) {
        let name = format!("SIGSTOP {}", self.nodes[node].name);
        self.nodes[node].signal(Signal::STOP);
        self.nodes[node].trouble = Some(self.faults.begin(&name, Harm::Node));
    }

    /// SIGCONT of a node.
    pub(crate) fn resume(&mut self, node: usize) {
        self.nodes[node].signal(Signal::CONT);
        self.end_trouble(node);
    }

    /// SIGTERM of a node, to its end.
    pub(crate) async fn terminate(&mut self, node: usize) {
        let name = format!("SIGTERM {}", self.nodes[node].name);
        let fault = self.faults.begin(&name, Harm::Node);
        self.nodes[node].trouble = Some(fault);
        let code = self.nodes[node].terminate().await;
        assert_eq!(code, Some(0), "{}", self.nodes[node].said());
    }

    /// Starts a node that was killed or ended.
    pub(crate) async fn restart(&mut self, node: usize) {
        if !self.nodes[node].is_alive() {
            self.nodes[node].spawn();
        }
        self.nodes[node].is_ready().await;
        self.end_trouble(node);
    }

    fn end_trouble(&mut self, node: usize) {
        if let Some(fault) = self.nodes[node].trouble.take() {
            self.faults.end(fault);
        }
    }

    /// Everything is well again: servers and nodes run, and all links are perfect.
    pub(crate) async fn heal(&mut self) {
        self.database.heal();
        if let Some(redis) = &mut self.redis {
            if std::mem::take(&mut self.is_redis_down) {
                redis.restart()
            } else {
                redis.signal("CONT")
            }
        }
        for link in [Link::Database, Link::Redis, Link::Business] {
            for proxy in self.links(link, None) {
                proxy.heal();
            }
        }
        self.business.becomes(crate::script::Mood::default());
        for node in 0..self.nodes.len() {
            if self.nodes[node].is_alive() {
                self.nodes[node].signal(Signal::CONT);
            }
        }
        for node in 0..self.nodes.len() {
            self.restart(node).await;
        }
        self.faults.end_all();
    }

    /// Asks a node; any, one after the other, where none is named.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> (usize, u16, Value) {
        let begun = Instant::now();
        let mut last = String::new();
        while begun.elapsed() < PATIENCE {
            for (at, node) in self.nodes.iter().enumerate() {
                match api::call(node.port, method, path, key, body).await {
                    Ok((status, answer)) if status < 500 => return (at, status, answer),
                    other => last = format!("{}: {other:?}", node.name),
                }
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("nobody answers {method} {path}: {last}");
    }

    /// A task that isn't there yet.
    pub(crate) async fn create(&self, body: &Value, key: &str) -> i64 {
        let (_, status, made) = self.ask("POST", "/v1/tasks", Some(key), body).await;
        assert_eq!(status, 201, "{made:#}");
        crate::business::task_number(made["id"].as_str().expect("an id"))
    }

    /// Gives an order until somebody acknowledges it. What can't be done (any more) is no promise.
    pub(crate) async fn order(&mut self, task: i64, order: Order) {
        let (method, path, body) = match order {
            Order::Start => ("POST", format!("/v1/tasks/t{task}/start"), json!({})),
            Order::Stop => ("POST", format!("/v1/tasks/t{task}/stop"), json!({})),
            Order::Finish => ("POST", format!("/v1/tasks/t{task}/finish"), json!({})),
            Order::Rate(rate) => (
                "PATCH",
                format!("/v1/tasks/t{task}"),
                json!({"rate": format!("{rate}/s")}),
            ),
        };
        let sent = now();
        let (at, status, answer) = self.ask(method, &path, None, &body).await;
        let node = self.nodes[at].name.clone();
        say(&format!("{order:?} by {node}: {status}"));
        if status < 300 {
            self.commands.push(Command {
                sent,
                acked: now(),
                task,
                node,
                order,
            });
        } else {
            assert_eq!(status, 409, "{answer:#}");
        }
    }

    /// The node that delivered last, as a place in the list.
    pub(crate) fn owner(&self) -> usize {
        let record = self.business.record();
        let last = record.deliveries.last().map(|delivery| delivery.node.clone());
        self.nodes
            .iter()
            .position(|node| Some(&node.name) == last.as_ref())
            .unwrap_or(0)
    }
}

/// A file that only its owner may read, as nodes demand.
fn secret(path: &Path, text: &str) {
    use std::os::unix::fs::OpenOptionsExt;
    let file = std::fs::File::options()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(path);
    file.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
        .expect("a secret");
}

fn config(settings: &Settings, node: &Node, place: &Path) -> String {
    let port = node.database.as_ref().map(Proxy::port);
    let store = match (settings.store, port) {
        (StoreKind::Postgres, Some(port)) => format!("postgres://{}@127.0.0.1:{port}/windrow", node.name),
        (StoreKind::Mariadb, Some(port)) => format!("mysql://{}@127.0.0.1:{port}/windrow", node.name),
        _ => "auto".to_owned(),
    };
    let secret = match settings.store {
        StoreKind::Sqlite => String::new(),
        _ => format!(
            "password_file = {:?}\nmigrate_on_start = true",
            place.join("password")
        ),
    };
    let key = match settings.store {
        StoreKind::Sqlite => String::new(),
        _ => format!("key_file = {:?}", place.join("key")),
    };
    let redis = node.redis.as_ref().map_or(String::new(), |proxy| {
        format!("redis_url = \"redis://127.0.0.1:{}\"", proxy.port())
    });
    format!(
        "[node]\nid = {:?}\ndata_dir = {:?}\ncapacity_rate = \"10k/s\"\ndrain_timeout = \"10s\"\n\
         [http]\nlisten = \"127.0.0.1:{}\"\n\
         [auth]\nmode = \"off\"\n{key}\n\
         [store]\nurl = {store:?}\n{secret}\n\
         [cluster]\n{redis}\nlease_ttl = \"{}ms\"\nlease_renew = \"{}ms\"\nrestore_scan = \"300ms\"\n\
         restore_max = 1000\nrestore_backoff = \"500ms..2s x2\"\n\
         [handler.http]\nproxy = \"http://127.0.0.1:{}\"\nconnect_timeout = \"1s\"\n\
         [log]\nformat = \"logfmt\"\nactor_tree = \"\"\n",
        node.name,
        node.place.join("data"),
        node.port,
        settings.ttl.as_millis(),
        settings.ttl.as_millis() / 5,
        node.business.port(),
    )
}
