//! `config.toml` is the defaults; every fault is found, at once, with where and what to try.

use std::path::PathBuf;

use super::*;
use crate::{AuthMode, StoreUrl};
use windrow_core::settings::RateLimit;

fn env(vars: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    vars.iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect::<Vec<_>>()
        .into_iter()
}

fn load_text(text: &str, vars: &[(&str, &str)]) -> Result<Config, Vec<Fault>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("windrow.toml");
    std::fs::write(&path, text).expect("the file can be written");
    load(Some(&path), env(vars))
}

fn faults_of(text: &str, vars: &[(&str, &str)]) -> Vec<Fault> {
    load_text(text, vars).expect_err("the configuration has faults")
}

/// The one fault of a text.
fn fault_of(text: &str) -> String {
    let faults = faults_of(text, &[]);
    assert_eq!(faults.len(), 1, "{faults:?}");
    faults[0].to_string()
}

#[test]
fn the_documented_configuration_is_the_default() {
    assert_eq!(load_text(&crate::documented(), &[]), Ok(Config::default()));
    assert_eq!(
        load(None, env(&[])),
        Ok(Config::default()),
        "no file is the default too"
    );
}

#[test]
fn the_environment_wins_over_the_file_and_speaks_text() {
    let text = "[node]\ncapacity_rate = \"300/s\"\nrun_tasks = true\n";
    let config = load_text(
        text,
        &[
            ("WINDROW_NODE__CAPACITY_RATE", "3k/s"),
            ("WINDROW_NODE__RUN_TASKS", "false"),
            ("WINDROW_NODE__POOLS", r#"["a", "b"]"#),
            ("WINDROW_STORE__MAX_CONNECTIONS", "32"),
            ("WINDROW_TASK_DEFAULTS__CONCURRENCY", "10_000"),
            ("WINDROW_TASK_DEFAULTS__PARKED_MAX", "5_000"),
            ("WINDROW_LOG__FILTER", "debug"),
            ("WINDROW_TASK_DEFAULTS__WINDOW", "auto"),
            (
                "WINDROW_HANDLER__COMMAND__COMMANDS",
                r#"{ push = { cmd = ["push"] } }"#,
            ),
            ("WINDROW_HOME", "/not/a/key"),
            ("PATH", "/bin"),
        ],
    );
    let config = config.unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!(
        config.node.capacity_rate,
        "3000/s".parse::<RateLimit>().expect("a rate")
    );
    assert!(!config.node.run_tasks);
    assert_eq!(config.node.pools, ["a", "b"]);
    assert_eq!(config.store.max_connections.get(), 32);
    assert_eq!(config.task_defaults.tuning.concurrency.to_string(), "10000");
    assert_eq!(config.task_defaults.tuning.parked_max, 5000);
    assert_eq!(config.command_handler.commands["push"].cmd, ["push"]);
}

#[test]
fn all_faults_are_reported_at_once_with_their_origin() {
    let text = "[node]\ncapacity_rate = \"fast\"\ndrain_timeot = \"5s\"\n[http]\nlisten = 7700\n[stor]\nurl = \"auto\"\n";
    let faults = faults_of(
        text,
        &[("WINDROW_AUTH__MODE", "nobody"), ("WINDROW_NODE__IDD", "n1")],
    );
    let keys: Vec<&str> = faults.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "node.capacity_rate",
            "http.listen",
            "auth.mode",
            "node.drain_timeot",
            "node.idd",
            "stor.url"
        ]
    );
    let lines: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert!(lines.iter().all(|line| !line.contains('\n')), "{lines:?}");
    assert!(
        lines[0].contains("windrow.toml): \"fast\" is not \"unlimited\", \"auto\" or a rate"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].contains("expected a string in quotes, not integer"),
        "{}",
        lines[1]
    );
    assert!(
        lines[2].starts_with("auth.mode (WINDROW_AUTH__MODE): \"nobody\" is not an authentication mode"),
        "{}",
        lines[2]
    );
    assert!(
        lines[3].ends_with("unknown key; try: did you mean node.drain_timeout?"),
        "{}",
        lines[3]
    );
    assert!(lines[4].ends_with("did you mean node.id?"), "{}", lines[4]);
    assert!(lines[5].ends_with("did you mean store.url?"), "{}", lines[5]);
}

#[test]
fn a_section_without_keys_is_known_or_a_fault() {
    assert_eq!(load_text("[handler.http]\n[node]\n", &[]), Ok(Config::default()));
    let fault = fault_of("[hander]\n");
    assert!(fault.contains("hander"), "{fault}");
}

#[test]
fn a_variable_with_one_underscore_too_few_is_not_passed_over() {
    let env = [
        ("WINDROW_STORE_URL", "postgres://db/windrow"),
        ("WINDROW_TOKEN_FILE", "t"),
        ("WINDROW_LOG", "info"),
    ];
    let faults = faults_of("", &env);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    assert!(
        faults[0].to_string().contains("WINDROW_STORE__URL"),
        "{}",
        faults[0]
    );
}

#[test]
fn a_bad_value_is_told_with_the_default() {
    let listen = fault_of("[http]\nlisten = \"here\"\n");
    assert!(listen.contains("the default is \"127.0.0.1:7700\""), "{listen}");
    let rate = fault_of("[task_defaults]\nrate = \"fast\"\n");
    assert!(rate.ends_with("; try: the default is \"100/s\""), "{rate}");
}

#[test]
fn a_key_in_the_wrong_place_is_recognised() {
    assert!(fault_of("lease_ttl = \"15s\"\n").ends_with("did you mean cluster.lease_ttl?"));
    assert!(fault_of("[node]\nrestore_scan = \"1s\"\n").ends_with("did you mean cluster.restore_scan?"));
    assert!(fault_of("node = 5\n").ends_with("this is a section, not a value; try: [node]"));
    assert!(fault_of("[qqq]\nzzz = 1\n").ends_with("`windrow config default` lists every key"));
    assert!(
        fault_of("[dashboard]\nlocale = \"en\"\n").ends_with("removed in an earlier version; try: remove it")
    );
    assert!(
        fault_of("[handler.command.commands.push]\ncmd = [\"x\"]\nworker = 2\n")
            .contains("unknown field `worker`")
    );
}

#[test]
fn a_file_that_is_not_toml_or_not_there_says_so() {
    let faults = faults_of("[node]\nid = \n", &[]);
    assert!(
        faults[0].to_string().contains("line 2 is not valid TOML"),
        "{}",
        faults[0]
    );
    let faults = load(Some(Path::new("/nowhere/windrow.toml")), env(&[])).expect_err("there is no such file");
    assert!(
        faults[0]
            .to_string()
            .starts_with("config (/nowhere/windrow.toml): can't read the file")
    );
}

#[test]
fn keys_are_compared_with_one_another() {
    for (text, expected) in [
        ("[cluster]\nlease_renew = \"4s\"", "cluster.lease_renew"),
        (
            "[cluster]\nlease_ttl = \"0s\"\nlease_renew = \"0s\"",
            "cluster.lease_ttl",
        ),
        (
            "[task_defaults]\nwindow = 10\nconcurrency = 20",
            "task_defaults.window",
        ),
        ("[task_defaults]\nwindow = 2_000_000", "task_defaults.window"),
        (
            "[task_defaults]\nbatch = 50\nconcurrency = 20",
            "task_defaults.concurrency",
        ),
        ("[task_defaults]\nbatch = 50\nburst = 20", "task_defaults.burst"),
        ("[task_defaults]\ntimeout = \"0s\"", "task_defaults.timeout"),
        (
            "[task_defaults]\ncheckpoint_interval = \"1000d\"",
            "task_defaults.checkpoint_interval",
        ),
        (
            "[task_defaults]\nordered = true\nbatch = 2",
            "task_defaults.batch",
        ),
        (
            "[task_defaults]\nordered = true\nshards = 2",
            "task_defaults.shards",
        ),
        ("[task_defaults]\nrate = \"unlimited\"", "task_defaults.rate"),
        ("[task_defaults]\nrate = \"2001/s\"", "task_defaults.rate"),
        (
            "[task_defaults]\nrate = \"auto up to 2001/s\"",
            "task_defaults.rate",
        ),
        ("[node]\ncapacity_rate = \"auto\"", "node.capacity_rate"),
        (
            "[task_defaults]\nmax_params = \"17 MiB\"",
            "task_defaults.max_params",
        ),
        (
            "[node]\nunlimited_reserves = \"2001/s\"",
            "node.unlimited_reserves",
        ),
        ("[node]\npools = []", "node.pools"),
        ("[data_log]\nmax_per_task = 0", "data_log.max_per_task"),
        (
            "[handler.command]\nmax_line = \"1023 B\"",
            "handler.command.max_line",
        ),
        ("[http]\ntls_cert_file = \"a.pem\"", "http.tls_key_file"),
        (
            "[handler.http]\nclient_cert_file = \"a.pem\"",
            "handler.http.client_key_file",
        ),
        (
            "[http]\nlisten = \"0.0.0.0:7700\"\n[auth]\nmode = \"off\"",
            "auth.mode",
        ),
        ("[http]\npublic_url = \"windrow\"", "http.public_url"),
        ("[auth]\nmode = \"proxy\"\nproxy_trust = []", "auth.proxy_trust"),
        (
            "[auth.proxy_roles]\nops = \"operator\"",
            "auth.proxy_groups_header",
        ),
        (
            "[auth]\nproxy_groups_header = \"X-Forwarded-Groups\"",
            "auth.proxy_roles",
        ),
        (
            "[auth]\nproxy_groups_claim = \"groups\"",
            "auth.proxy_groups_header",
        ),
        (
            "[auth]\nproxy_groups_header = \"G\"\nproxy_roles = { ops = \"root\" }",
            "auth.proxy_roles",
        ),
        (
            "[auth]\nproxy_default_role = \"business\"",
            "auth.proxy_default_role",
        ),
        ("[cluster]\nredis_url = \"redis://r\"", "cluster.redis_url"),
        (
            "[store]\nurl = \"mysql://db/w\"\n[cluster]\nredis_url = \"http://r\"",
            "cluster.redis_url",
        ),
        (
            "[store]\nurl = \"mysql://db/w\"\n[cluster]\nredis_url = \"redis://:pw@r\"",
            "cluster.redis_url",
        ),
        (
            "[handler.command.commands.push]\ncmd = []",
            "handler.command.commands.push.cmd",
        ),
        (
            "[handler.command.commands.push]\ncmd = [\"x\"]\neach = [\"x\"]",
            "handler.command.commands.push",
        ),
        (
            "[handler.command.commands.push]\neach = [\"x\", \"{\"]",
            "handler.command.commands.push.each",
        ),
        (
            "[handler.command.commands.push]\nshell = \" \"",
            "handler.command.commands.push.shell",
        ),
        (
            "[handler.command.commands.push]\neach = [\"x\"]\nworkers = 2",
            "handler.command.commands.push.workers",
        ),
        (
            "[handler.command.commands.push]\ncmd = [\"x\"]\ncwd = \"/\"",
            "handler.command.commands.push",
        ),
    ] {
        let faults = faults_of(text, &[]);
        assert!(
            faults.iter().any(|fault| fault.key == expected),
            "{text}: {faults:?}"
        );
    }
}

#[test]
fn a_fault_among_keys_says_where_its_key_stands() {
    let fault = fault_of("[cluster]\nlease_renew = \"4s\"");
    assert!(
        fault.starts_with("cluster.lease_renew (") && fault.contains("windrow.toml): must be at most"),
        "{fault}"
    );
    let faults = faults_of("", &[("WINDROW_CLUSTER__LEASE_TTL", "8s")]);
    assert!(
        faults[0]
            .to_string()
            .starts_with("cluster.lease_renew: must be at most"),
        "{}",
        faults[0]
    );
}

#[test]
fn a_password_in_a_url_is_refused_without_being_shown() {
    for text in [
        "[store]\nurl = \"postgres://w:s3cret@db/w\"",
        "[store]\nurl = \"mysql://w:s3cret@db/w\"",
    ] {
        let fault = fault_of(text);
        assert!(
            fault.contains("store.password_file") && !fault.contains("s3cret"),
            "{fault}"
        );
    }
}

#[test]
fn values_other_than_the_default_are_read() {
    let text = "[store]\nurl = \"sqlite:///tmp/w.db\"\n[auth]\nmode = \"off\"\n[task_defaults]\n\
                error_budget = \"10/s 1%\"\nerror_window = \"30s\"\nrate = \"unlimited\"\n[node]\nallow_unlimited = true\n\
                labels = { zone = \"a\" }\n[log]\nactor_tree = \"\"\n";
    let config = load_text(text, &[]).unwrap_or_else(|faults| panic!("{faults:?}"));
    assert_eq!(config.store.url, StoreUrl::Sqlite(PathBuf::from("/tmp/w.db")));
    assert_eq!(config.auth.mode, AuthMode::Off);
    assert_eq!(config.task_defaults.tuning.error_window.as_secs(), 30);
    assert_eq!(config.task_defaults.tuning.error_budget.to_string(), "10/s 1%");
    assert_eq!(config.node.labels["zone"], "a");
    assert!(!config.log.actor_tree.start);
}

#[test]
fn flags_that_break_a_rule_are_found_by_a_second_check() {
    let mut config = Config::default();
    assert_eq!(config.faults(), []);
    config.http.listen = "0.0.0.0:7700".parse().expect("an address");
    config.auth.mode = AuthMode::Off;
    assert_eq!(config.faults().len(), 1);
}
