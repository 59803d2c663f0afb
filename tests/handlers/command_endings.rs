//! After the end nothing of a worker is alive, however the end came.

use std::time::{Duration, Instant};

use serde_json::json;
use windrow_engine::ports::handling::handler::Reply;

use crate::command_support::{Setup, gone, is_alive, message_of, scratch};

#[tokio::test]
async fn closing_ends_the_worker_and_its_children() {
    let rig = Setup::script(1).open();
    let worker = rig.worker_pid(0).await;
    let child: i32 = message_of(&rig.item(1, json!({"do": "child"})).await)
        .parse()
        .expect("a process id");
    assert!(is_alive(worker) && is_alive(child));
    rig.close().await;
    assert!(!is_alive(worker), "the worker was reaped");
    gone(child).await;
    rig.close().await;
}

#[tokio::test]
async fn dropping_the_handler_kills_the_worker_and_its_children() {
    let rig = Setup::script(1).open();
    let worker = rig.worker_pid(0).await;
    let child: i32 = message_of(&rig.item(1, json!({"do": "child"})).await)
        .parse()
        .expect("a process id");
    drop(rig);
    gone(worker).await;
    gone(child).await;
}

#[tokio::test]
async fn a_crash_ends_the_children_too() {
    let rig = Setup::script(1).open();
    let child: i32 = message_of(&rig.item(0, json!({"do": "child"})).await)
        .parse()
        .expect("a process id");
    rig.item(1, json!({"do": "die"})).await;
    gone(child).await;
    rig.close().await;
}

#[tokio::test]
async fn a_worker_that_ignores_every_plea_is_killed_with_its_children() {
    let rig = Setup::shell("stubborn.sh", &[]).open();
    assert_eq!(rig.item(0, json!({})).await, Reply::AllOk);
    let line = rig.log.wait_for("child ").await;
    let pids: Vec<i32> = line
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect();
    assert_eq!(pids.len(), 2, "{line}");
    let begun = Instant::now();
    rig.close().await;
    assert!(
        begun.elapsed() >= Duration::from_millis(900),
        "it had its grace, and after SIGTERM again"
    );
    for pid in pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn a_starting_worker_can_be_closed() {
    let rig = Setup::script(1).workers(3).open();
    rig.close().await;
    let rig = Setup::new(&["sleep", "1000"]).open();
    rig.close().await;
}

#[tokio::test]
async fn live_workers_are_on_disk_and_those_of_a_killed_parent_are_ended_by_the_next() {
    let (_dir, path) = scratch();
    let file = path("workers");
    let setup = || Setup::script(1).with(|settings| settings.leftovers = Some(file.clone()));
    let first = setup().open();
    let worker = first.worker_pid(0).await;
    let written = std::fs::read_to_string(&file).expect("the file is there");
    assert!(written.contains(&format!("{worker} ")), "{written}");
    // What a parent killed with -9 leaves: the file, and a worker that does not notice the end of its stdin.
    let mut orphan = std::process::Command::new("sleep");
    std::os::unix::process::CommandExt::process_group(&mut orphan, 0);
    let mut orphan = orphan.arg("1000").spawn().expect("sleep starts");
    let pid = i32::try_from(orphan.id()).expect("process ids fit");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let started = stat
        .rsplit_once(')')
        .and_then(|(_, rest)| rest.split_whitespace().nth(19))
        .expect("a start time");
    let boot = written.lines().next().expect("the boot");
    first.close().await;
    let left = std::fs::read_to_string(&file).expect("the file is there");
    assert!(
        !left.contains(&format!("{worker} ")),
        "a worker that ended is forgotten: {left}"
    );
    std::fs::write(&file, format!("{boot}\n{pid} {started}\n")).expect("written");
    let second = setup().open();
    let status = orphan.wait().expect("it was ended");
    assert!(!status.success());
    assert_eq!(second.item(0, json!({})).await, Reply::AllOk);
    second.close().await;
}
