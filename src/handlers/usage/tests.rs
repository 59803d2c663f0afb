use std::time::Duration;

use bytes::Bytes;
use hyper::header::{HeaderMap, HeaderValue};

use super::*;
use std::sync::Arc;
use windrow_core::ids::{Attempt, ItemIndex, Moment};
use windrow_core::items::run::IndexRun;
use windrow_core::items::verdict::Dispatch;
use windrow_engine::ports::handling::handler::{CallItems, CallRows, Told};
use windrow_engine::ports::sources::source::RowChunk;

fn metering(json: &str) -> Meterings {
    serde_json::from_str::<Metering>(json).expect("a metering").into()
}

/// Tokens that nobody described.
fn tokens() -> Meterings {
    metering(r#"{"limits":["90k tokens/min"]}"#)
}

fn answer(status: u16, body: &str) -> Answer {
    Answer {
        status: StatusCode::from_u16(status).expect("a status"),
        headers: HeaderMap::from_iter([(
            hyper::header::HeaderName::from_static("x-cost"),
            HeaderValue::from_static("0.0021"),
        )]),
        body: Bytes::from(body.to_owned()),
    }
}

/// A call of items from 0 on with these rows.
fn call(rows: &[&str]) -> Call {
    let mut ends = Vec::new();
    for row in rows {
        ends.push(ends.last().copied().unwrap_or(0) + row.len() as u32);
    }
    let chunk = RowChunk::new(ItemIndex(0), Bytes::from(rows.concat()), ends);
    Call {
        items: CallItems::One(Dispatch {
            run: IndexRun::new(ItemIndex(0), rows.len() as u32).expect("items"),
            attempt: Attempt::FIRST,
        }),
        rows: CallRows {
            chunks: vec![Arc::new(chunk)],
            positions: None,
        },
        gate_time: Moment::default(),
        timeout: Duration::from_secs(1),
    }
}

fn told(reader: &UseReader, rows: &[&str], answer: &Answer) -> Reply {
    let used = Used {
        call: &call(rows),
        request_bytes: 40,
        answer,
        result: Some(&Pointer::default()),
    };
    reader.tell(Reply::AllOk, used)
}

fn read(reader: &UseReader, rows: &[&str], answer: &Answer) -> Vec<Option<String>> {
    match told(reader, rows, answer) {
        Reply::Told(told) => told
            .used
            .iter()
            .map(|amount| amount.map(|amount| amount.to_string()))
            .collect(),
        _ => Vec::new(),
    }
}

fn of_service(json: &str) -> UseReader {
    UseReader::of_service(&metering(json)).expect("something is counted")
}

fn some(texts: &[&str]) -> Vec<Option<String>> {
    texts.iter().map(|text| Some((*text).to_owned())).collect()
}

#[test]
fn nothing_is_read_if_responses_say_nothing_that_is_counted() {
    for text in [
        "{}",
        r#"{"limits":["300/min","20 at once"]}"#,
        r#"{"limits":["5 eur"],"cost":["eur = 0.01"]}"#,
    ] {
        assert!(UseReader::of_service(&metering(text)).is_none(), "{text}");
    }
    let header = of_service(r#"{"cost_from":["eur = {answer.header.X-Cost}"]}"#);
    assert!(!header.reads_body(StatusCode::OK));
    let body = of_service(r#"{"cost_from":["tokens = {answer./n}"]}"#);
    for (status, reads) in [
        (200, true),
        (204, true),
        (400, true),
        (429, false),
        (502, false),
        (504, false),
        (500, false),
    ] {
        let code = StatusCode::from_u16(status).expect("a status");
        assert_eq!(body.reads_body(code), reads, "{status}");
    }
}

#[test]
fn each_source_is_read_and_one_that_is_missing_leaves_only_its_meter_unknown() {
    let reader = of_service(
        r#"{"cost_from":["a = {answer./usage/n} + 4*{answer./usage/list/1}","b = {answer.header.x-cost}",
        "c = {request:bytes} + {prompt:chars}","d = {answer./usage/none}"]}"#,
    );
    let body = r#"{"usage":{"n":12.000000001,"list":[0,"5"],"none":null}}"#;
    let mut expected = some(&["32.000000001", "0.0021", "44"]);
    expected.push(None);
    assert_eq!(
        read(&reader, &[r#"{"prompt":"häuf"}"#], &answer(200, body)),
        expected
    );
    for body in [
        "",
        "<html>",
        "[]",
        r#"{"usage":{"n":"many"}}"#,
        r#"{"usage":{"n":-1,"list":[0,0]}}"#,
    ] {
        let found = read(&reader, &["{}"], &answer(200, body));
        assert_eq!(found, [None, Some("0.0021".to_owned()), None, None], "{body}");
    }
}

#[test]
fn a_fault_of_the_request_has_a_use_and_a_refusal_has_none() {
    let reader = of_service(r#"{"cost_from":["tokens = {answer./n}"]}"#);
    for status in [200, 201, 400, 422] {
        assert_eq!(
            read(&reader, &["{}"], &answer(status, r#"{"n":7}"#)),
            some(&["7"]),
            "{status}"
        );
    }
    for status in [429, 500, 502, 503, 504] {
        let reply = told(&reader, &["{}"], &answer(status, r#"{"n":7}"#));
        assert_eq!(reply, Reply::AllOk, "{status}");
    }
}

#[test]
fn columns_are_added_up_over_the_items_of_a_call_and_its_response_counts_once() {
    let reader = of_service(
        r#"{"cost_from":["a = {n:number}","b = {answer./n}","c = {n:number} + {answer./n}","d = 3"]}"#,
    );
    let found = read(
        &reader,
        &[r#"{"n":1}"#, r#"{"n":"2.5"}"#],
        &answer(200, r#"{"n":7}"#),
    );
    let (three, seven) = (Some("3".to_owned()), Some("7".to_owned()));
    assert_eq!(found, [Some("3.5".to_owned()), seven, None, three]);
    assert_eq!(
        read(&reader, &[r#"{"n":1}"#], &answer(200, r#"{"n":7}"#))[2],
        Some("8".to_owned())
    );
}

#[test]
fn the_first_usual_place_with_a_number_is_kept_and_named_once() {
    for (body, tokens, place) in [
        (
            r#"{"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":9}}"#,
            "9",
            "{answer./usage/total_tokens}",
        ),
        (
            r#"{"usage":{"input_tokens":3,"output_tokens":4}}"#,
            "7",
            "{answer./usage/input_tokens} + {answer./usage/output_tokens}",
        ),
        (
            r#"{"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
            "7",
            "{answer./usage/prompt_tokens} + {answer./usage/completion_tokens}",
        ),
        (
            r#"{"usageMetadata":{"totalTokenCount":11}}"#,
            "11",
            "{answer./usageMetadata/totalTokenCount}",
        ),
    ] {
        let reader = UseReader::of_service(&self::tokens()).expect("tokens have usual places");
        for nothing in ["", "{}", r#"{"usage":{"input_tokens":3}}"#] {
            assert_eq!(read(&reader, &["{}"], &answer(200, nothing)), [None], "{nothing}");
        }
        let place_of = |reply| match reply {
            Reply::Told(told) => {
                let Told { place, .. } = *told;
                place.map(|(unit, place)| format!("{unit} = {place}"))
            }
            _ => None,
        };
        let named = place_of(told(&reader, &["{}"], &answer(200, body)));
        assert_eq!(named, Some(format!("tokens = {place}")));
        assert_eq!(place_of(told(&reader, &["{}"], &answer(200, body))), None, "once");
        assert_eq!(read(&reader, &["{}"], &answer(200, body)), some(&[tokens]));
        let elsewhere = r#"{"usage":{"total_tokens":1},"usageMetadata":{"totalTokenCount":1}}"#;
        let is_there = place.contains("total_tokens") || place.contains("usageMetadata");
        let found = read(&reader, &["{}"], &answer(200, elsewhere));
        assert_eq!(found[0].is_some(), is_there, "{place} is kept");
    }
}

#[test]
fn a_result_names_its_costs_and_those_of_a_batch_are_added_up() {
    let both = metering(r#"{"limits":["9k tokens/s","5 eur"],"cost":["eur = 0.01"]}"#);
    let reader = UseReader::of_handler(&both).expect("results may name costs");
    let two = ["{}", "{}"];
    for (rows, body, eur, tokens) in [
        (
            &two[..1],
            r#"{"result":"ok","costs":{"tokens":12,"eur":3.1e-3,"sheep":1}}"#,
            Some("0.0031"),
            Some("12"),
        ),
        (
            &two[..1],
            r#"{"result":"ok","costs":{"tokens":-1,"eur":"much"}}"#,
            None,
            None,
        ),
        (&two[..1], r#"{"result":"ok","costs":[12]}"#, None, None),
        (&two[..1], "", None, None),
        (
            &two[..],
            r#"{"results":[{"index":0,"result":"ok","costs":{"tokens":2}},{"index":1,"result":"fail","costs":{"tokens":3}}],"costs":{"eur":1}}"#,
            Some("1"),
            Some("5"),
        ),
        (
            &two[..],
            r#"{"results":[{"index":0,"costs":{"tokens":2}}],"default":"ok"}"#,
            None,
            Some("2"),
        ),
        (
            &two[..1],
            r#"{"result":"ok","usage":{"total_tokens":8}}"#,
            None,
            Some("8"),
        ),
        (
            &two[..1],
            r#"{"result":"ok","usage":{"total_tokens":8},"costs":{"tokens":12}}"#,
            None,
            Some("12"),
        ),
    ] {
        let expected = [eur.map(str::to_owned), tokens.map(str::to_owned)];
        assert_eq!(read(&reader, rows, &answer(200, body)), expected, "{body}");
    }
    let named = metering(r#"{"cost_from":["tokens = {answer./n}"]}"#);
    let reader = UseReader::of_handler(&named).expect("an expression");
    let body = r#"{"n":3,"costs":{"tokens":12}}"#;
    assert_eq!(
        read(&reader, &["{}"], &answer(200, body)),
        some(&["3"]),
        "what people say counts"
    );
}

#[test]
fn the_costs_of_a_workers_lines_are_added_up_by_meter() {
    let both = metering(r#"{"limits":["9k tokens/s","5 eur"],"cost":["eur = 0.01"]}"#);
    let costs = LineCosts::of(&both).expect("results may name costs");
    let lines = [
        r#"{"type":"result","id":1,"result":"ok","costs":{"tokens":2}}"#,
        r#"{"type":"result","id":2,"result":"ok","costs":{"tokens":3,"eur":1}}"#,
        "ok",
    ];
    let used = sum(lines.iter().map(|line| costs.read(line.as_bytes())));
    assert_eq!(used, [Some(Amount::units(1)), Some(Amount::units(5))]);
    assert!(LineCosts::of(&metering(r#"{"limits":["300/min"]}"#)).is_none());
    assert!(sum(std::iter::empty()).is_empty());
}
