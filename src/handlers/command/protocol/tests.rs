//! Each line of the protocol, as it is written and as it is read.

use std::sync::Arc;

use serde_json::Value;

use super::*;
use windrow_core::ids::{Epoch, RunNo, ShardId, StoreId, TaskId};
use windrow_core::items::trace::Sampling;
use windrow_engine::ports::handling::handler::Mode;
use windrow_engine::ports::ownership::gate::Gate;

fn run() -> RunContext {
    RunContext {
        shard: ShardId {
            task: TaskId(42),
            no: 1,
        },
        task_name: Some("black \"friday\"".to_owned()),
        task_revision: 4,
        business: "push".to_owned(),
        params: Some(serde_json::value::RawValue::from_string("{\n\"a\":1}".to_owned()).expect("JSON")),
        run: RunNo(3),
        epoch: Epoch(9),
        store: StoreId("k7f3q2".to_owned()),
        keys_of: None,
        is_proven: false,
        keeps_results: false,
        mode: Mode::Live,
        sampling: Sampling::default(),
        metering: Arc::default(),
        gate: Arc::new(Gate::always_open()),
    }
}

fn json(line: &str) -> Value {
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    assert!(line.ends_with('\n'));
    serde_json::from_str(line).expect("a line is JSON")
}

#[test]
fn hello_names_the_run_and_fits_one_line() {
    let hello = json(&hello(&run(), 16, Some(Duration::from_secs(5))));
    assert_eq!(hello["type"], "hello");
    assert_eq!(hello["task"]["name"], "black \"friday\"");
    assert_eq!(hello["task"]["params"]["a"], 1);
    assert_eq!(
        (&hello["shard"], &hello["run"], &hello["epoch"]),
        (&1.into(), &3.into(), &9.into())
    );
    assert_eq!(
        (&hello["max_in_flight"], &hello["heartbeat"]),
        (&16.into(), &"5s".into())
    );
}

#[test]
fn an_item_carries_its_data_unparsed_and_on_one_line() {
    let (key_head, traces) = (run().item_key_head(), run().traces());
    let call = CallText::new(1_795_194_131_500_123, Duration::from_secs(3), (&key_head, traces));
    let item = ItemLine {
        id: 17,
        index: ItemIndex(3817),
        attempt: Attempt::new(2),
        data: Some("{\"a\":\r\n1.50}"),
    };
    let line = call.item(&item);
    assert!(line.contains("1.50"), "numbers are not rewritten: {line}");
    let item = json(&line);
    assert_eq!(item["key"], "k7f3q2-t42-3817");
    assert_eq!(item["gate_time"], "2026-11-20T17:02:11.500123Z");
    assert_eq!((&item["timeout"], &item["attempt"]), (&"3s".into(), &2.into()));
    let parent = traces.id(ItemIndex(3817)).parent(Attempt::new(2));
    assert_eq!(item["traceparent"].as_str().map(str::as_bytes), Some(&parent[..]));
}

#[test]
fn an_item_without_data_has_no_data_member() {
    let call = CallText::new(0, Duration::from_millis(1500), ("k-t1-", run().traces()));
    let item = ItemLine {
        id: 1,
        index: ItemIndex(0),
        attempt: Attempt::FIRST,
        data: None,
    };
    assert_eq!(json(&call.item(&item)).get("data"), None);
    assert_eq!(json(&call.item(&item))["timeout"], "1s 500ms");
}

#[test]
fn lines_of_a_worker_are_told_apart() {
    let kinds: [(&str, Said); 15] = [
        ("ok", Said::Word(r#"{"result":"ok"}"#)),
        (" skip ", Said::Word(r#"{"result":"skip"}"#)),
        ("", Said::Nothing),
        (
            r#"{"type":"ready","protocol":1,"concurrency":8,"name":"x"}"#,
            Said::Ready { concurrency: 8 },
        ),
        (
            r#"{"type":"ready","concurrency":0}"#,
            Said::Ready { concurrency: 1 },
        ),
        (
            r#"{"type":"result","id":17,"result":"ok"}"#,
            Said::Result { id: Some(17) },
        ),
        (r#"{"id":17,"result":"ok"}"#, Said::Result { id: Some(17) }),
        (
            r#"{"type":"result","id":null,"result":"ok"}"#,
            Said::Result { id: None },
        ),
        (r#"{"type":"log","message":"x"}"#, Said::Log),
        (
            r#"{"type":"command","command":"stop","reason":"x"}"#,
            Said::Command,
        ),
        (r#"{"type":"pong","n":4}"#, Said::Pong),
        (r#"{"type":"bye"}"#, Said::Bye),
        (r#"{"type":"hello","protocol":1}"#, Said::Echo),
        (r#"{"type":"item","id":1,"index":0}"#, Said::Echo),
        (r#"{"type":"of the future"}"#, Said::Nothing),
    ];
    for (line, said) in kinds {
        assert_eq!(read(line.as_bytes()), said, "{line}");
    }
    let garbage: [&[u8]; 6] = [
        b"done",
        b"OK",
        b"{",
        b"[1]",
        br#"{"type":"ready","protocol":2}"#,
        b"{\"type\":\"result\",\"id\":\"x\"}",
    ];
    for line in garbage {
        assert!(
            matches!(read(line), Said::Garbage(_)),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
}

#[test]
fn a_word_with_a_reason_is_told_how_reasons_are_given() {
    for (line, word) in [(&b"fail BAD no such user"[..], "fail"), (b"retry later", "retry")] {
        let Said::Garbage(why) = read(line) else {
            panic!("a word stands alone")
        };
        let form = format!("\"result\":\"{word}\",\"code\":");
        assert!(why.contains(&form), "{why}");
    }
    assert!(matches!(read(b"okay then"), Said::Garbage(why) if why.contains("neither a JSON object")));
}
