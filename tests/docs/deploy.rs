//! What is shipped for operators is what a machine takes: the unit passes systemd's own check, the manifests fit the
//! schemas of Kubernetes and Compose, their configuration is one that a node starts with, their times fit it, and
//! reasons not to start again are exit codes of the program.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::root;

const UNIT: &str = "deploy/windrow.service";
const STATEFUL_SET: &str = "deploy/kubernetes/statefulset.yaml";
const KUSTOMIZATION: &str = "deploy/kubernetes/kustomization.yaml";
const NODES: &str = "deploy/kubernetes/config.toml";
const COMPOSE: &str = "deploy/compose.yml";
/// Time of a shutdown after its drain, and for connections. Unit: seconds.
const AFTER_DRAIN: u64 = 10 + 10;

fn text(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|why| panic!("{file}: {why}"))
}

fn unit() -> String {
    text(UNIT)
}

fn value<'a>(unit: &'a str, key: &str) -> &'a str {
    unit.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
        .unwrap_or_else(|| panic!("no {key}"))
}

#[test]
fn systemd_takes_the_unit() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("windrow.service");
    // The check wants programs that are there.
    let text = unit().replace("/usr/local/bin/windrow", env!("CARGO_BIN_EXE_windrow"));
    assert_ne!(text, unit());
    std::fs::write(&path, text).unwrap();
    let checked = Command::new("systemd-analyze")
        .arg("verify")
        .arg("--man=no")
        .arg(&path)
        .output();
    let output = checked.expect("systemd-analyze is there: scripts/install-tools.sh installs it");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let ours: Vec<&str> = told
        .lines()
        .filter(|line| line.contains("windrow.service"))
        .collect();
    assert!(output.status.success() && ours.is_empty(), "{told}");
    std::fs::write(
        &path,
        unit()
            .replace("Type=notify", "Type=nothing")
            .replace("/usr/local/bin/windrow", "/nowhere"),
    )
    .unwrap();
    let broken = Command::new("systemd-analyze")
        .arg("verify")
        .arg("--man=no")
        .arg(&path)
        .output()
        .unwrap();
    assert!(!broken.stderr.is_empty(), "the check sees what is wrong");
}

#[test]
fn prometheus_takes_the_alerts() {
    let check = |path: &std::path::Path| {
        Command::new("promtool")
            .args(["check", "rules"])
            .arg(path)
            .output()
    };
    let output = check(&root().join("deploy/alerts.yml"));
    let output = output.expect("promtool is there: scripts/install-tools.sh installs it");
    let told =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let rules = std::fs::read_to_string(root().join("deploy/alerts.yml")).unwrap();
    let place = tempfile::tempdir().unwrap();
    let broken = place.path().join("alerts.yml");
    std::fs::write(&broken, rules.replace("< 0.2", "< < 0.2")).unwrap();
    assert!(
        !check(&broken).unwrap().status.success(),
        "the check sees what is wrong"
    );
}

#[test]
fn the_times_and_codes_of_the_unit_are_those_of_the_program() {
    let unit = unit();
    let defaults = windrow_config::Config::default();
    let stop: u64 = value(&unit, "TimeoutStopSec").parse().unwrap();
    let needed = defaults.node.drain_timeout.as_secs() + AFTER_DRAIN;
    assert!(
        stop > needed,
        "systemd would kill after {stop} s what may take {needed} s"
    );
    assert_eq!(value(&unit, "Type"), "notify");
    assert!(value(&unit, "ExecReload").contains("-HUP"));
    for code in value(&unit, "RestartPreventExitStatus").split(' ') {
        let known = windrow_cli::exit::Exit::ALL
            .iter()
            .any(|(exit, _)| (*exit as u8).to_string() == code);
        assert!(known, "{code} is no exit code");
    }
    assert_eq!(defaults.node.data_dir.to_str(), Some("/var/lib/windrow"));
    assert_eq!(value(&unit, "StateDirectory"), "windrow");
}

/// Runs a judge of target/python on a file; returns its verdict with its words.
fn judged(judge: &[&str], path: &Path) -> (bool, String) {
    let (tool, args) = judge.split_first().unwrap();
    let program = root().join("target/python/bin").join(tool);
    let output = Command::new(program).args(args).arg(path).output();
    let output = output.expect("scripts/install-tools.sh makes target/python");
    let told =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), told)
}

/// Asserts that a judge takes a file as it is, and refuses it with `wrong` in place of `right`.
fn takes(judge: &[&str], file: &str, (right, wrong): (&str, &str)) {
    let (is_sound, told) = judged(judge, &root().join(file));
    assert!(is_sound, "{file}: {told}");
    let (whole, place) = (text(file), tempfile::tempdir().unwrap());
    let broken = whole.replace(right, wrong);
    assert_ne!(broken, whole, "{file} has no {right}");
    let path = place.path().join(Path::new(file).file_name().unwrap());
    std::fs::write(&path, broken).unwrap();
    assert!(!judged(judge, &path).0, "{file}: the check sees {wrong}");
}

#[test]
fn kubernetes_takes_the_manifests() {
    let judge = ["kubernetes-validate", "--strict", "-k", "1.30"];
    takes(
        &judge,
        STATEFUL_SET,
        ("readOnlyRootFilesystem", "readOnlyRootFileSystem"),
    );
    takes(
        &judge,
        "deploy/kubernetes/services.yaml",
        ("clusterIP: None", "clusterIp: None"),
    );
    takes(
        &judge,
        "deploy/kubernetes/disruption.yaml",
        ("selector:", "selectors:"),
    );
}

#[test]
fn compose_takes_its_file() {
    let judge = ["check-jsonschema", "--builtin-schema", "vendor.compose-spec"];
    takes(&judge, COMPOSE, ("stop_grace_period", "stop_grace_periods"));
}

/// The judge of manifests doesn't know these two kinds.
#[test]
fn the_kustomization_names_what_is_there_and_what_is_mounted() {
    let (whole, set) = (text(KUSTOMIZATION), text(STATEFUL_SET));
    let files = root().join("deploy/kubernetes").read_dir().unwrap();
    let names = files.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    for name in names.filter(|name| !["kustomization.yaml", "secrets"].contains(&name.as_str())) {
        assert!(whole.contains(&format!("- {name}")), "{name} is not applied");
    }
    assert!(whole.contains(concat!("newTag: ", env!("CARGO_PKG_VERSION"))));
    for file in [COMPOSE, "docs/containers.md"] {
        let image = concat!("windrow:", env!("CARGO_PKG_VERSION"));
        assert!(text(file).contains(image), "{file} is of another version");
    }
    for (mark, used) in [("configMap: { name: ", "}"), ("secret: { secretName: ", ",")] {
        let name = set.split(mark).nth(1).and_then(|rest| rest.split(used).next());
        let name = name.unwrap_or_else(|| panic!("no {mark}")).trim();
        assert!(
            whole.contains(&format!("- name: {name}\n")),
            "nothing makes {name}"
        );
    }
    let nodes = text(NODES);
    let secrets: Vec<&str> = nodes.split("/run/secrets/windrow/").skip(1).collect();
    assert_eq!(secrets.len(), 3, "a key, a token and a password");
    for name in secrets.iter().map(|rest| rest.split('"').next().unwrap()) {
        assert!(
            whole.contains(&format!("- secrets/{name}\n")),
            "nothing makes {name}"
        );
    }
    let monitor = text("deploy/kubernetes/servicemonitor.yaml");
    let services = text("deploy/kubernetes/services.yaml");
    let labels = "app.kubernetes.io/component: api }";
    assert!(
        monitor.contains(labels) && services.matches(labels).count() == 1,
        "one Service is scraped"
    );
    assert!(monitor.contains("port: http\n") && services.contains("{ name: http,"));
}

/// Variables of the nodes in a manifest, as a container has them.
fn variables(file: &str) -> Vec<(String, String)> {
    let whole = text(file);
    let mut lines = whole.lines().map(str::trim);
    let mut found = Vec::new();
    while let Some(line) = lines.next() {
        let (name, value) = match line.strip_prefix("- name: WINDROW_") {
            // The value is in the next line; that of a field is the pod's name.
            Some(name) => (
                name,
                lines
                    .next()
                    .and_then(|next| next.strip_prefix("value: "))
                    .unwrap_or("windrow-0"),
            ),
            None => match line
                .strip_prefix("WINDROW_")
                .and_then(|rest| rest.split_once(": "))
            {
                Some(variable) => variable,
                None => continue,
            },
        };
        let value = value.trim_matches('"');
        let default = value.strip_prefix("${").and_then(|rest| rest.split_once(":-"));
        let value = default.map_or(value, |(_, default)| default.trim_end_matches('}'));
        let value = value
            .replace("$(WINDROW_NODE__ID)", "windrow-0")
            .replace("$(POD_NAMESPACE)", "windrow");
        found.push((format!("WINDROW_{name}"), value));
    }
    found
}

/// Checks a configuration as a node's start does, with the secrets that it names. Returns the exit code and the words.
fn checked(config: Option<&str>, variables: &[(String, String)]) -> (Option<i32>, String) {
    let place = tempfile::tempdir().unwrap();
    let inner = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let here = |text: &str| {
        text.replace("/run/secrets", &inner("secrets"))
            .replace("/var/lib/windrow", &inner("state"))
    };
    let digits = "A".repeat(43);
    let secrets = [
        ("key", format!("{digits}=")),
        ("admin.token", format!("wrk_{digits}")),
        ("db.password", "secret".to_owned()),
    ];
    for folder in ["secrets", "secrets/windrow"] {
        std::fs::create_dir_all(place.path().join(folder)).unwrap();
        for (name, secret) in &secrets {
            let path = place.path().join(folder).join(name);
            std::fs::write(&path, secret).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o440)).unwrap();
        }
    }
    let mut check = Command::new(env!("CARGO_BIN_EXE_windrow"));
    check
        .args(["config", "check"])
        .current_dir(place.path())
        .env_clear();
    check.envs(variables.iter().map(|(name, value)| (name, here(value))));
    if let Some(config) = config {
        let path = place.path().join("nodes.toml");
        std::fs::write(&path, here(config)).unwrap();
        check.arg(path);
    }
    let output = check.output().unwrap();
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

#[test]
fn a_node_starts_with_the_configuration_of_the_manifests() {
    let config = text(NODES);
    for (config, file) in [(Some(config.as_str()), STATEFUL_SET), (None, COMPOSE)] {
        let mut variables = variables(file);
        assert!(variables.len() >= 3, "{file}: variables are found: {variables:?}");
        for (name, _) in &variables {
            let is_key = windrow_config::keys().iter().any(|key| key.env() == *name);
            assert!(
                is_key || name == "WINDROW_TOKEN_FILE",
                "{file}: nothing reads {name}"
            );
        }
        let (code, told) = checked(config, &variables);
        assert_eq!(code, Some(0), "{file}: {told}");
        variables.push((
            "WINDROW_AUTH__KEY_FILE".to_owned(),
            "/run/secrets/none".to_owned(),
        ));
        let (code, told) = checked(config, &variables);
        assert!(
            code == Some(78) && told.contains("auth.key_file"),
            "{file}: the check sees a missing key: {told}"
        );
    }
}

/// The number behind a mark.
fn number(text: &str, mark: &str) -> u64 {
    let rest = text.split(mark).nth(1).unwrap_or_else(|| panic!("no {mark}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("no number behind {mark}"))
}

#[test]
fn containers_are_not_killed_while_they_drain() {
    let defaults = windrow_config::Config::default();
    let set = text(STATEFUL_SET);
    let needed =
        number(&set, "sleep: { seconds: ") + number(&text(NODES), "drain_timeout = \"") + AFTER_DRAIN;
    let grace = number(&set, "terminationGracePeriodSeconds: ");
    assert!(
        grace > needed,
        "killed after {grace} s, which may take {needed} s"
    );
    let needed = defaults.node.drain_timeout.as_secs() + AFTER_DRAIN;
    let grace = number(&text(COMPOSE), "stop_grace_period: ");
    assert!(
        grace > needed,
        "killed after {grace} s, which may take {needed} s"
    );
}
