//! Who answers the hello how: every kind of worker works, and no answer ever reaches the wrong item.

use std::time::Duration;

use serde_json::json;
use windrow_engine::ports::handling::handler::Reply;

use crate::command_support::{Setup, charged, gone, message_of, rejected, scratch};

#[tokio::test]
async fn a_worker_that_announces_is_given_so_many_items() {
    let rig = Setup::python("echo.py", &["8"]).open();
    rig.slots_where(|slots| slots == 8).await;
    assert_eq!(rig.batch(0, &vec![json!({}); 8]).await, Reply::AllOk);
    rig.close().await;
}

#[tokio::test]
async fn slots_add_up_over_the_workers() {
    let rig = Setup::python("echo.py", &["3"]).workers(2).open();
    rig.slots_where(|slots| slots == 6).await;
    rig.close().await;
    rig.slots_where(|slots| slots == 0).await;
}

#[tokio::test]
async fn a_worker_that_skips_the_hello_gets_one_item_at_a_time() {
    let rig = Setup::python("silent.py", &[]).open();
    for index in 0..5 {
        assert_eq!(rig.item(index, json!({"user": index})).await, Reply::AllOk);
    }
    rig.slots_where(|slots| slots == 1).await;
    rig.close().await;
}

#[tokio::test]
async fn the_laziest_worker_works() {
    let rig = Setup::shell("lazy.sh", &[]).open();
    for index in 0..5 {
        assert_eq!(rig.item(index, json!({"user": index})).await, Reply::AllOk);
        rig.log.wait_for(&format!("{{\"user\":{index}}}")).await;
    }
    rig.close().await;
    let lines = rig.log.lines();
    assert!(
        !rig.log.contains("cancel") && !rig.log.contains("shutdown"),
        "it would answer those too: {lines:?}"
    );
}

/// The bare word that answers the hello comes late; were it taken for the answer to the first item, that item
/// would count as done before it was begun.
#[tokio::test]
async fn a_late_answer_to_the_hello_is_never_taken_for_one_to_an_item() {
    let (_dir, path) = scratch();
    let go = path("go");
    let rig = Setup::shell("lazy_slow.sh", &[go.to_str().expect("UTF-8")]).open();
    let busy = tokio::time::timeout(Duration::from_millis(600), rig.slots_at_least(1)).await;
    assert!(busy.is_err(), "a worker that is busy with the hello gets no item");
    std::fs::write(&go, "").expect("written");
    for index in 0..3 {
        assert_eq!(rig.item(index, json!({"user": index})).await, Reply::AllOk);
        // stderr is written before the answer; were answers off by one, the line would not be there yet.
        rig.log.wait_for(&format!("{{\"user\":{index}}}")).await;
        assert!(!rig.log.contains(&format!("{{\"user\":{}}}", index + 1)));
    }
    rig.close().await;
}

#[tokio::test]
async fn a_shell_worker_that_answers_items_only_works() {
    let rig = Setup::shell("picky.sh", &[]).open();
    for index in 0..3 {
        assert_eq!(rig.item(index, json!({"user": index})).await, Reply::AllOk);
        rig.log
            .wait_for(&format!("did {{\"type\":\"item\",\"id\":{}", index + 1))
            .await;
    }
    rig.close().await;
}

#[tokio::test]
async fn the_shipped_examples_work() {
    let examples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/handlers");
    for (interpreter, file) in [("python3", "worker.py"), ("sh", "worker.sh")] {
        let rig = Setup::new(&[interpreter, examples.join(file).to_str().expect("UTF-8")]).open();
        for index in 0..3 {
            assert_eq!(
                rig.item(index, json!({"user_id": "u1"})).await,
                Reply::AllOk,
                "{file}"
            );
        }
        rig.log.wait_for("u1").await;
        rig.close().await;
        assert!(!rig.log.contains("Traceback"), "{:?}", rig.log.lines());
    }
}

#[tokio::test]
async fn an_idle_worker_that_skips_the_hello_leaves_calmly() {
    let rig = Setup::python("silent.py", &[]).open();
    rig.slots_at_least(1).await;
    rig.close().await;
    assert!(!rig.log.contains("Traceback"), "{:?}", rig.log.lines());
}

#[tokio::test]
async fn a_worker_that_never_reads_is_told_so() {
    let setup =
        Setup::new(&["sleep", "1000"]).with(|settings| settings.startup_timeout = Duration::from_millis(100));
    let rig = setup.open();
    let reply = rig.item(0, json!({})).await;
    let failure = rejected(&reply).unwrap_or_else(|| panic!("{reply:?}"));
    assert!(
        failure.message.contains("did not read its input within 100ms"),
        "{}",
        failure.message
    );
    rig.close().await;
}

#[tokio::test]
async fn a_worker_that_never_flushes_is_asked_whether_it_does() {
    let setup = Setup::python("no_flush.py", &[]).timeout(Duration::from_millis(300));
    // Somebody may have told every python of this machine to flush.
    let buffered = ("PYTHONUNBUFFERED".into(), "".into());
    let rig = setup
        .with(|settings| settings.environment.variables.push(buffered))
        .open();
    let failure = charged(&rig.item(0, json!({})).await);
    assert_eq!(failure.code, "TIMEOUT");
    assert!(
        failure.message.contains("did you flush stdout? (python3 -u)"),
        "{}",
        failure.message
    );
    rig.close().await;
}

#[tokio::test]
async fn a_worker_that_answers_twice_is_replaced() {
    let rig = Setup::script(1).open();
    let pid = rig.worker_pid(0).await;
    let twice = json!({"do": "say", "lines": ["{\"result\":\"ok\"}"]});
    let reply = rig.item(1, twice.clone()).await;
    assert_eq!(reply, Reply::AllOk);
    // The second answer names the id of an item that is answered: harmless. A bare one is not.
    let surplus = json!({"do": "say", "lines": ["ok", "ok"]});
    assert_eq!(rig.item(2, surplus).await, Reply::AllOk);
    gone(pid).await;
    rig.log.wait_for("though no item was outstanding").await;
    assert_ne!(rig.worker_pid(3).await, pid);
    rig.close().await;
}

#[tokio::test]
async fn workers_that_answer_twice_again_and_again_are_rejected() {
    let rig = Setup::script(1).open();
    for index in 0..3 {
        let pid = rig.worker_pid(10 * index).await;
        assert_eq!(
            rig.item(10 * index + 1, json!({"do": "say", "lines": ["ok", "ok"]}))
                .await,
            Reply::AllOk
        );
        gone(pid).await;
    }
    for index in 100..103 {
        let reply = rig.item(index, json!({})).await;
        let failure = rejected(&reply).unwrap_or_else(|| panic!("{reply:?}"));
        assert!(
            failure.message.contains("answer each line exactly once"),
            "{}",
            failure.message
        );
    }
    rig.close().await;
}

#[tokio::test]
async fn workers_find_the_run_in_their_environment() {
    let rig = Setup::script(1)
        .with(|settings| settings.environment.variables.push(("MINE".into(), "yes".into())))
        .open();
    let expected = [
        ("WINDROW_TASK", "t42"),
        ("WINDROW_RUN", "3"),
        ("WINDROW_EPOCH", "7"),
        ("WINDROW_MODE", "live"),
        ("MINE", "yes"),
    ];
    for (index, (name, value)) in expected.into_iter().enumerate() {
        let reply = rig.item(index as u64, json!({"do": "env", "name": name})).await;
        assert_eq!(message_of(&reply), value, "{name}");
    }
    rig.close().await;
}
