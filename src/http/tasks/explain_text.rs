//! An explanation as a terminal shows it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::explain::{AdviceJson, ExplanationJson};
use super::shards::PlaceJson;
use crate::domain::explain::rate_text;

/// A part of what is missing below this is not shown: it would be 0.0.
const SHOWN_MIN: f64 = 0.0005;

/// The text, with a line feed at its end.
pub(super) fn text(body: &ExplanationJson) -> String {
    let mut lines = vec![head(body)];
    for cause in body.causes.iter().filter(|cause| cause.share.is_none_or(|share| share.abs() >= SHOWN_MIN)) {
        let share = cause.share.map_or_else(String::new, |share| format!("{:.0} %", share * 100.0));
        let line = format!("  {:<18}{:>10}{share:>7}   {}", cause.title, rate_text(cause.rate), cause.text);
        lines.push(line.trim_end().to_owned());
    }
    for wait in &body.waits {
        let share = format!("{:.0} %", wait.share * 100.0);
        lines.push(format!("  {:<18}{share:>7} of the time", wait.title));
    }
    lines.extend(places(&body.shards));
    for silent in &body.unreachable {
        lines.push(format!("without {}, which can't be asked: {}", silent.node, silent.why));
    }
    lines.push(format!("why: {}", body.why));
    for (at, advice) in body.advice.iter().enumerate() {
        lines.push(format!("{}{}", if at == 0 { "try: " } else { "     " }, advised(&body.task, advice)));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Which of several shards stand where, and what their nodes have no room for.
fn places(shards: &[PlaceJson]) -> Vec<String> {
    let mut lines = Vec::new();
    if shards.len() > 1 {
        let mut on: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for place in shards {
            on.entry(place.node.as_deref().unwrap_or_default()).or_default().push(&place.shard);
        }
        // No name is empty.
        on.remove("");
        let on: Vec<String> = on.iter().map(|(node, has)| format!("{node} ({})", has.join(", "))).collect();
        let waiting = shards.iter().filter(|place| place.node.is_none() && place.state != "done");
        let waiting: Vec<String> =
            waiting.map(|place| format!("{} ({})", place.shard, place.state)).collect();
        let said = [("on", on), ("on no node", waiting)].into_iter().filter(|(_, which)| !which.is_empty());
        lines.extend(said.map(|(title, which)| format!("{title}: {}", which.join(", "))));
    }
    for place in shards {
        let Some(held) = &place.held_back else { continue };
        let node = place.node.as_deref().unwrap_or("its node");
        let (shard, rate, wanted) = (&place.shard, &held.rate, &held.wanted);
        lines.push(format!("held back: {shard} on {node} has {rate} instead of {wanted}: {}", held.why));
    }
    lines
}

fn head(body: &ExplanationJson) -> String {
    let span = format!("(last {:.0} s)", body.span_seconds);
    let actual = rate_text(body.actual_rate);
    match (body.target_rate, body.missing_rate) {
        (Some(target), Some(missing)) => {
            format!(
                "target {}   actual {actual}   missing {}   {span}",
                rate_text(target),
                rate_text(missing)
            )
        }
        _ => format!("no rate limit   actual {actual}   {span}"),
    }
}

fn advised(task: &str, advice: &AdviceJson) -> String {
    let mut text = match &advice.change {
        Some(change) => {
            let predicted = advice.predicted_rate.map(|rate| format!("   (predicted {})", rate_text(rate)));
            format!("{}{}   {}", command(task, change), predicted.unwrap_or_default(), advice.text)
        }
        None => advice.text.clone(),
    };
    if let Some(hindrance) = &advice.hindrance {
        text.push_str("; ");
        text.push_str(hindrance);
    }
    text
}

/// The command that makes the change.
fn command(task: &str, change: &Map<String, Value>) -> String {
    let retry = change.get("retry").and_then(Value::as_object).into_iter().flatten();
    let flags = change.iter().filter(|(_, value)| !value.is_object()).chain(retry);
    let flags = flags.map(|(key, value)| match value {
        Value::String(text) if text.contains(' ') => format!(" --{} {text:?}", key.replace('_', "-")),
        Value::String(text) => format!(" --{} {text}", key.replace('_', "-")),
        other => format!(" --{} {other}", key.replace('_', "-")),
    });
    format!("windrow task set {task}{}", flags.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::tasks::shards::HeldBackJson;

    #[test]
    fn shards_are_named_by_node_and_those_without_room_apart() {
        let place = |no: u32, state, node: Option<&str>| PlaceJson {
            shard: format!("t3.{no}"),
            state,
            node: node.map(str::to_owned),
            held_back: None,
        };
        let mut shards = vec![
            place(0, "running", Some("n2")),
            place(1, "done", None),
            place(2, "running", Some("n1")),
            place(3, "idle", None),
            place(4, "running", Some("n2")),
        ];
        assert_eq!(places(&shards), ["on: n1 (t3.2), n2 (t3.0, t3.4)", "on no node: t3.3 (idle)"]);
        shards.truncate(1);
        assert_eq!(places(&shards), [""; 0], "one shard is where the task is");
        let (rate, wanted, why) = ("75/s".to_owned(), "150/s".to_owned(), "it needs 150/s".to_owned());
        shards[0].held_back = Some(HeldBackJson { rate, wanted, for_seconds: 3.0, why });
        assert_eq!(places(&shards), ["held back: t3.0 on n2 has 75/s instead of 150/s: it needs 150/s"]);
    }

    #[test]
    fn a_change_is_a_command_that_can_be_pasted() {
        let change = serde_json::json!({"window": 1500, "straggler_after": "100ms", "retry": {"backoff": "1s..5s x2"}});
        let change = change.as_object().expect("an object");
        assert_eq!(
            command("t1031", change),
            "windrow task set t1031 --straggler-after 100ms --window 1500 --backoff \"1s..5s x2\""
        );
    }
}
