//! `windrow config`.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::program::Person;

#[tokio::test]
async fn every_key_tells_where_it_comes_from() {
    let person = Person::new().env("WINDROW_NODE__RUN_TASKS", "false");
    person.write(
        "w.toml",
        "[node]\ncapacity_rate = \"3000/s\"\n[handler.command]\nenabled = true\n[handler.command.commands.push]\n\
         cmd = [\"x\"]\nenv = { TOKEN = \"hush\" }\n",
    );
    let table = person
        .windrow("config show w.toml --origin")
        .await
        .expect(0)
        .stdout;
    let line = |key: &str| {
        let line = table
            .lines()
            .find(|line| line.starts_with(&format!("{key} ")))
            .unwrap();
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        line("node.capacity_rate"),
        ["node.capacity_rate", "3000/s", "w.toml"]
    );
    assert_eq!(
        line("node.run_tasks"),
        ["node.run_tasks", "false", "WINDROW_NODE__RUN_TASKS"]
    );
    assert_eq!(
        line("task_defaults.rate"),
        ["task_defaults.rate", "100/s", "default"]
    );
    assert!(!table.contains("hush"), "{table}");
    let body = person
        .windrow("config show w.toml -o json")
        .await
        .expect(0)
        .json();
    let keys = body["items"].as_array().unwrap();
    let rate = json!({"key": "node.capacity_rate", "value": "3000/s", "origin": "w.toml"});
    assert!(keys.contains(&rate) && keys.len() > 80, "{body}");
    let names = person
        .windrow("config show w.toml -o name")
        .await
        .expect(0)
        .stdout;
    assert_eq!(names.lines().count(), keys.len());
}

#[tokio::test]
async fn the_file_that_a_node_would_read_is_checked_and_shown() {
    // The default is a place for root.
    let person = Person::new().env("WINDROW_NODE__DATA_DIR", "data");
    person.windrow("config check").await.expect(0);
    person.write("config.toml", "[node]\ncapacity_rate = \"3000/s\"\n");
    assert!(
        person
            .windrow("config check")
            .await
            .expect(0)
            .stdout
            .starts_with("config.toml is valid\n")
    );
    assert!(
        person
            .windrow("config show")
            .await
            .expect(0)
            .stdout
            .contains("node.capacity_rate = \"3000/s\"\n")
    );
    person.write("config.toml", "[node]\ncapacity = \"3000/s\"\nid = 7\n");
    for words in ["config check", "config show", "config show --origin"] {
        person
            .windrow(words)
            .await
            .refused(78, &["node.capacity", "node.id"]);
    }
}

/// Files that a start refuses, each with the key that names it.
fn unusable(person: &Person) -> Vec<(&'static str, String, &'static str)> {
    let place = |name: &str| person.path(name).display().to_string();
    for (name, text, mode) in [
        (
            "open.key",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
            0o644,
        ),
        (
            "good.key",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n",
            0o600,
        ),
        ("short.key", "c2hvcnQ=\n", 0o600),
        ("token", "no token at all\n", 0o600),
        ("open.password", "hush\n", 0o644),
        ("empty.password", "", 0o600),
        ("no.pem", "no certificate\n", 0o600),
    ] {
        person.write(name, text);
        std::fs::set_permissions(person.path(name), Permissions::from_mode(mode)).unwrap();
    }
    let of = |section: &str, key: &str, name: &str| format!("[{section}]\n{key} = \"{}\"\n", place(name));
    let password = |name: &str| {
        let store = of("store", "password_file", name);
        of("auth", "key_file", "good.key") + &store + "url = \"postgres://windrow@127.0.0.1/windrow\"\n"
    };
    let tls = of("http", "tls_cert_file", "no.pem") + &format!("tls_key_file = \"{}\"\n", place("no.pem"));
    vec![
        (
            "auth.key_file",
            of("auth", "key_file", "open.key"),
            "other users can read or change",
        ),
        (
            "auth.key_file",
            of("auth", "key_file", "short.key"),
            "not 32 bytes",
        ),
        (
            "auth.key_file",
            of("auth", "key_file", "none.key"),
            "No such file",
        ),
        (
            "auth.bootstrap_token_file",
            of("auth", "bootstrap_token_file", "token"),
            "contains no token",
        ),
        (
            "store.password_file",
            password("open.password"),
            "other users can read or change",
        ),
        (
            "store.password_file",
            password("empty.password"),
            "no password on its first line",
        ),
        ("http.tls_cert_file", tls, "can't use "),
        (
            "cluster.ca_file",
            of("cluster", "ca_file", "no.pem"),
            "cluster.ca_file",
        ),
        (
            "node.data_dir",
            of("node", "data_dir", "no.pem/data"),
            "not a directory",
        ),
        (
            "node.id",
            "[node]\nid = \"a name\"\n".to_owned(),
            "not a valid node name",
        ),
        (
            "http.listen",
            "[http]\nlisten = \"203.0.113.7:7800\"\n".to_owned(),
            "can't listen on",
        ),
    ]
}

#[tokio::test]
async fn a_check_finds_what_a_start_refuses() {
    let person = Person::new();
    let data = person.path("data").display().to_string();
    for (key, config, why) in unusable(&person) {
        let place = if key == "node.data_dir" {
            String::new()
        } else {
            format!("data_dir = \"{data}\"\n")
        };
        let node = if config.contains("[node]") {
            place
        } else {
            format!("[node]\n{place}")
        };
        person.write("w.toml", &format!("{config}{node}"));
        let checked = person
            .windrow("config check w.toml")
            .await
            .refused(78, &[key, why]);
        let started = person.windrow("serve --config w.toml").await;
        assert!(
            started.code.is_some_and(|code| code != 0),
            "{config}: {started:?}"
        );
        let what = checked
            .stderr
            .lines()
            .find(|line| line.contains(why))
            .expect("said")
            .to_owned();
        assert!(started.stderr.contains(why), "{what}\n{}", started.stderr);
    }
    assert!(!person.path("data").exists(), "nothing was made");
}

#[tokio::test]
async fn a_check_tells_all_at_once_and_leaves_what_runs_alone() {
    let person = Person::new();
    person.write("open.key", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n");
    std::fs::set_permissions(person.path("open.key"), Permissions::from_mode(0o666)).unwrap();
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = held.local_addr().unwrap();
    let data = person.path("data").display().to_string();
    let config = format!("[http]\nlisten = \"{listen}\"\n[node]\nid = \"n1\"\ndata_dir = \"{data}\"\n");
    person.write("w.toml", &config);
    let sound = person.windrow("config check w.toml").await.expect(0).stdout;
    assert!(sound.contains(&format!("{listen} (http); in use now")), "{sound}");
    assert!(!person.path("data").exists(), "a check makes nothing");
    let token = format!("{data}/admin.token");
    let named = format!("{config}[auth]\nbootstrap_token_file = \"{token}\"\n");
    person.write("w.toml", &named);
    let sound = person.windrow("config check w.toml").await.expect(0).stdout;
    assert_eq!(sound.matches(&token).count(), 1, "{sound}");
    let key = person.path("open.key").display().to_string();
    let wrong = config.replace("\"n1\"", "\"a name\"") + &format!("[auth]\nkey_file = \"{key}\"\n");
    person.write("w.toml", &wrong);
    person
        .windrow("config check w.toml")
        .await
        .refused(78, &["node.id: ", "auth.key_file: "]);
}
