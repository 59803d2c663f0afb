//! Servers as people run them: with TLS and users, under Sentinels, as a cluster.

use rcgen::{CertifiedKey, generate_simple_self_signed};
use windrow_config::RedisUrl;
use windrow_store::redis::RedisOptions;

use crate::fixture::{eventually, options};
use crate::servers::{Redis, RedisOptions as Server, free_port};

/// The rights that the documentation names, and no others.
const RIGHTS: [&str; 13] = [
    "resetkeys",
    "~windrow:*",
    "&windrow:*",
    "+evalsha",
    "+eval",
    "+get",
    "+set",
    "+del",
    "+exists",
    "+info",
    "+publish",
    "+subscribe",
    "+ping",
];

/// A server with TLS whose user `windrow` has the rights of the documentation, and how a node reaches it.
pub fn secured() -> (Redis, RedisOptions) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
    let dir = tempfile::tempdir().expect("a directory").keep();
    let write = |name: &str, text: String| {
        let path = dir.join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let (cert, key) = (
        write("cert.pem", cert.pem()),
        write("key.pem", signing_key.serialize_pem()),
    );
    let port = free_port();
    let arguments = format!(
        "--tls-port {port} --tls-cert-file {0} --tls-key-file {1} --tls-ca-cert-file {0} --tls-auth-clients no",
        cert.display(),
        key.display()
    );
    let server = Redis::start_with(Server {
        arguments: words(&arguments),
        ..Server::default()
    });
    add_user(&server);
    let mut options = options(&format!("rediss://windrow@127.0.0.1:{port}"));
    options.password_file = Some(write("password", "wind-row\n".to_owned()));
    options.ca_file = Some(cert);
    (server, options)
}

/// Adds the user `windrow` with the rights of the documentation.
pub fn add_user(server: &Redis) {
    let mut command = vec!["ACL", "SETUSER", "windrow", "on", ">wind-row"];
    command.extend(RIGHTS);
    assert_eq!(server.cli(&command), "OK");
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Three Sentinels, a master and a replica.
pub struct Sentinels {
    pub master: Redis,
    pub replica: Redis,
    sentinels: Vec<Redis>,
}

impl Sentinels {
    pub async fn start() -> Sentinels {
        let master = Redis::start();
        let replica = Redis::start_with(Server {
            arguments: words(&format!("--replicaof 127.0.0.1 {}", master.port())),
            ..Server::default()
        });
        let file = format!(
            "sentinel monitor boss 127.0.0.1 {} 2\nsentinel down-after-milliseconds boss 1000\n\
             sentinel failover-timeout boss 6000\n",
            master.port()
        );
        let sentinel = |_| {
            let (arguments, file) = (words("--sentinel"), Some(file.clone()));
            Redis::start_with(Server {
                arguments,
                file,
                ..Server::default()
            })
        };
        let group = Sentinels {
            master,
            replica,
            sentinels: (0..3).map(sentinel).collect(),
        };
        eventually("the sentinels know each other and the replica", async || {
            group.sentinels.iter().all(|sentinel| {
                let said = sentinel.cli(&["SENTINEL", "master", "boss"]);
                let lines: Vec<&str> = said.lines().collect();
                let value = |key: &str| {
                    let at = lines.iter().position(|line| *line == key);
                    at.and_then(|at| lines.get(at + 1)).copied()
                };
                value("num-other-sentinels") == Some("2") && value("num-slaves") == Some("1")
            })
        })
        .await;
        eventually("the replica follows", async || {
            group
                .replica
                .cli(&["INFO", "replication"])
                .contains("master_link_status:up")
        })
        .await;
        group
    }

    pub fn url(&self) -> String {
        let ports: Vec<String> = self
            .sentinels
            .iter()
            .map(|sentinel| format!("127.0.0.1:{}", sentinel.port()))
            .collect();
        format!("redis-sentinel://{}/boss", ports.join(","))
    }
}

/// Three masters without replicas.
pub struct Cluster {
    pub servers: Vec<Redis>,
}

impl Cluster {
    pub async fn start() -> Cluster {
        let bus: Vec<u16> = (0..3).map(|_| free_port()).collect();
        let server = |bus: &u16| {
            let arguments = words(&format!(
                "--cluster-enabled yes --cluster-config-file nodes.conf --cluster-port {bus}"
            ));
            Redis::start_with(Server {
                arguments,
                ..Server::default()
            })
        };
        let cluster = Cluster {
            servers: bus.iter().map(server).collect(),
        };
        let slots = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];
        for ((server, bus), (first, last)) in cluster.servers.iter().zip(&bus).zip(slots) {
            server.cli(&["CLUSTER", "ADDSLOTSRANGE", first, last]);
            let (port, bus) = (server.port().to_string(), bus.to_string());
            cluster.servers[0].cli(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus]);
        }
        eventually("the cluster is up", async || {
            let up = |server: &Redis| {
                let info = server.cli(&["CLUSTER", "INFO"]);
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            };
            cluster.servers.iter().all(up)
        })
        .await;
        cluster
    }

    pub fn url(&self) -> String {
        let ports: Vec<String> = self
            .servers
            .iter()
            .map(|server| format!("127.0.0.1:{}", server.port()))
            .collect();
        format!("redis-cluster://{}", ports.join(","))
    }

    /// Each server by its own URL: every key is elsewhere for two of them.
    pub fn each(&self) -> impl Iterator<Item = RedisUrl> {
        let url = |server: &Redis| RedisUrl::parse(&format!("redis-cluster://127.0.0.1:{}", server.port()));
        self.servers.iter().map(move |server| url(server).expect("a URL"))
    }

    pub fn flush(&self) {
        self.servers
            .iter()
            .for_each(|server| drop(server.cli(&["FLUSHALL"])));
    }
}
