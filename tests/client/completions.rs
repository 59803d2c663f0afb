//! Completions as shells ask for them. bash, zsh and fish are needed: `scripts/install-tools.sh` installs them.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::business::{Act, Business};
use crate::program::{Done, Person, Running};
use crate::support::{Node, PATIENCE};

/// What bash does when Tab is pressed after `windrow task show t`.
const BASH: &str = "source <(windrow completions bash)
    COMP_WORDS=(windrow task show t) COMP_CWORD=3 COMP_TYPE=9
    _clap_complete_windrow windrow t show
    printf '%s\\n' \"${COMPREPLY[@]}\"";

async fn node_with_tasks() -> (Business, Node) {
    let business = Business::start(|_| Act::ok()).await;
    let node = Node::start().await;
    node.business("push", &business.url(), json!({})).await;
    node.task("push", 10, json!({"name": "black-friday"})).await;
    node.task("push", 5, json!({})).await;
    (business, node)
}

/// Runs a script in a shell that finds `windrow`.
async fn shell(person: &Person, program: &str, words: &[&str]) -> Done {
    let windrow = Path::new(env!("CARGO_BIN_EXE_windrow")).parent().unwrap();
    let path = format!("{}:{}", windrow.display(), std::env::var("PATH").unwrap());
    let mut command = person.command(program, words);
    command.env("PATH", &path);
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    assert!(
        is_there,
        "{program} is missing; scripts/install-tools.sh installs it"
    );
    let done = Running::of(command).ended().await;
    assert_eq!(done.code, Some(0), "{done:?}");
    done
}

/// The same again until it offers this: a busy node may need longer than somebody who presses Tab waits.
async fn offered(person: &Person, program: &str, words: &[&str], wanted: &str) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let done = shell(person, program, words).await;
        let lines: Vec<String> = done.stdout.lines().map(str::to_owned).collect();
        if lines.iter().any(|line| line.starts_with(wanted)) {
            return lines;
        }
        assert!(begun.elapsed() < PATIENCE, "{wanted} is never offered: {done:?}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn scripts_load_in_bash_zsh_and_fish() {
    let person = Person::new();
    let bash = "source <(windrow completions bash); complete -p windrow";
    let loaded = shell(&person, "bash", &["--norc", "-c", bash]).await;
    assert!(loaded.stdout.contains("_clap_complete_windrow"), "{loaded:?}");
    let zsh = "autoload -U compinit; compinit -u -d $HOME/dump; source <(windrow completions zsh); \
               print -r -- ${_comps[windrow]}";
    let loaded = shell(&person, "zsh", &["-f", "-c", zsh]).await;
    assert!(loaded.stdout.contains("windrow"), "{loaded:?}");
    let fish = "windrow completions fish | source; complete -c windrow";
    let loaded = shell(&person, "fish", &["--no-config", "-c", fish]).await;
    assert!(loaded.stdout.contains("WINDROW_COMPLETE"), "{loaded:?}");
    for other in ["elvish", "powershell"] {
        person.windrow(&format!("completions {other}")).await.expect(0);
    }
}

#[tokio::test]
async fn tab_offers_the_tasks_of_the_node() {
    let (_business, node) = node_with_tasks().await;
    let person = Person::admin(&node);
    assert_eq!(
        offered(&person, "bash", &["--norc", "-c", BASH], "t").await,
        ["t2", "t1"]
    );
    let named = BASH
        .replace("show t)", "show push/)")
        .replace("windrow t show", "windrow push/ show");
    assert_eq!(
        offered(&person, "bash", &["--norc", "-c", &named], "push").await,
        ["push/black-friday"]
    );
    let fish = "windrow completions fish | source; complete -C 'windrow task show t'";
    let lines = offered(&person, "fish", &["--no-config", "-c", fish], "t1").await;
    assert!(
        lines.iter().any(|line| line.starts_with("t1\tpush/black-friday")),
        "{lines:?}"
    );
    let kept: Vec<_> = std::fs::read_dir(person.path(".cache/windrow/completions"))
        .unwrap()
        .collect();
    assert!(!kept.is_empty());
    for file in kept {
        assert_eq!(
            file.unwrap().metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
    }
}

#[tokio::test]
async fn tab_offers_businesses_nodes_and_contexts() {
    let (_business, node) = node_with_tasks().await;
    let person = Person::admin(&node);
    person
        .windrow(&format!("ctx add home --server {}", node.url))
        .await
        .expect(0);
    let fish = |line: &str| format!("windrow completions fish | source; complete -C '{line}'");
    for (line, wanted) in [
        ("windrow task list --business p", "push"),
        ("windrow ctx use h", "home"),
        ("windrow task list --context h", "home"),
        ("windrow task w", "watch"),
        ("windrow task wait --for r", "running"),
    ] {
        offered(&person, "fish", &["--no-config", "-c", &fish(line)], wanted).await;
    }
}

#[tokio::test]
async fn tab_offers_what_a_run_needs_without_a_node() {
    let person = Person::new();
    let worker = "while read line; do case $line in *item*) echo ok ;; esac; done";
    person
        .run(
            &[
                "run", "--total", "1", "--name", "nightly", "--", "sh", "-c", worker,
            ],
            "",
        )
        .await
        .expect(0);
    let failed = ["run", "--csv", "nowhere.csv", "--name", "never", "--each", "true"];
    person.run(&failed, "").await.expect(7);
    person.write("handler.py", "");
    person.write("items.json", "[]");
    let fish = |line: &str| format!("windrow completions fish | source; complete -C '{line}'");
    for (line, wanted) in [
        ("windrow run --resume n", "nightly"),
        ("windrow run --total 1 -- python3 hand", "handler.py"),
        ("windrow try -- python3 hand", "handler.py"),
        ("windrow try -- hand", "handler.py"),
        ("windrow try -- pytho", "python3"),
        ("windrow task create push --items @ite", "@items.json"),
        ("windrow task set t1 --params @./ite", "@./items.json"),
        ("windrow api POST /v1/tasks -d @ite", "@items.json"),
        ("windrow help exit", "exit-codes"),
    ] {
        offered(&person, "fish", &["--no-config", "-c", &fish(line)], wanted).await;
    }
    let jobs = offered(
        &person,
        "fish",
        &["--no-config", "-c", &fish("windrow run --resume ")],
        "nightly",
    )
    .await;
    assert_eq!(jobs, ["nightly"], "what never began can't be resumed");
}

#[tokio::test]
async fn tab_offers_what_the_verb_can_be_done_to() {
    let (_business, node) = node_with_tasks().await;
    let person = Person::admin(&node);
    person.windrow("task cancel t1 --yes").await.expect(0);
    person
        .run(&["run", "--name", "over", "--total", "1", "--each", "true"], "")
        .await
        .expect(0);
    let going = [
        "run", "--name", "going", "--total", "2", "--rate", "1/h", "--each", "true",
    ];
    let mut going = person.start(&going);
    going.tells("running").await;
    let fish = |line: &str| format!("windrow completions fish | source; complete -C '{line}'");
    for (line, wanted, other) in [
        ("windrow task start ", "t2", "t1"),
        ("windrow task delete ", "t1", "t2"),
        ("windrow job stop ", "going", "over"),
    ] {
        let lines = offered(&person, "fish", &["--no-config", "-c", &fish(line)], wanted).await;
        assert!(
            !lines.iter().any(|line| line.starts_with(other)),
            "{line}: {lines:?}"
        );
    }
}

#[tokio::test]
async fn a_line_about_another_node_is_answered_by_that_one() {
    let (_business, node) = node_with_tasks().await;
    let token = node.admin.token.clone().unwrap();
    let person = Person::new()
        .env("WINDROW_SERVER", "http://127.0.0.1:1")
        .env("WINDROW_TOKEN", &token);
    let line = format!("windrow task show --server {} t", node.url);
    let fish = format!("windrow completions fish | source; complete -C '{line}'");
    offered(&person, "fish", &["--no-config", "-c", &fish], "t1").await;
}

#[tokio::test]
async fn where_nobody_answers_nothing_is_said() {
    let person = Person::new().env("WINDROW_SERVER", "http://127.0.0.1:1");
    let done = shell(&person, "bash", &["--norc", "-c", BASH]).await;
    assert_eq!((done.stdout.trim(), done.stderr.as_str()), ("", ""));
    let broken = Person::new();
    std::fs::create_dir_all(broken.path(".config/windrow")).unwrap();
    broken.write(".config/windrow/contexts.toml", "nonsense");
    let done = shell(&broken, "bash", &["--norc", "-c", BASH]).await;
    assert_eq!((done.stdout.trim(), done.stderr.as_str()), ("", ""));
}
