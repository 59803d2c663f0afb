//! What is shipped for operators is what a machine takes: the unit passes systemd's own check, its times fit the
//! configuration's defaults, and its reasons not to start again are exit codes of the program.

use std::process::Command;

use super::root;

const UNIT: &str = "deploy/windrow.service";

fn unit() -> String {
    std::fs::read_to_string(root().join(UNIT)).unwrap()
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
    // The drain, what ends after it, and connections.
    let needed = defaults.node.drain_timeout.as_secs() + 10 + 10;
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
