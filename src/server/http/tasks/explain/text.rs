//! Plain-text form of an explanation for terminals.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use windrow_core::explain::{MISSING_MIN, rate_like, rate_text};

/// Share of the rate below which a cause is noise and not shown.
const SHOWN_MIN: f64 = 0.001;

/// Formats an explanation as text, ending with a line feed.
pub(crate) fn text(body: &api::Explanation) -> String {
    if is_over(body) {
        return format!(
            "{}; see windrow task report {} for its history\n",
            body.why, body.task
        );
    }
    // Nothing was measured if no reachable node runs the task.
    let is_known = !rests(body) && body.span_seconds > 0.0;
    let mut lines: Vec<String> = is_known.then(|| head(body)).into_iter().collect();
    for cause in body.causes.iter().filter(|cause| is_shown(body, cause)) {
        let share = cause
            .share
            .map_or_else(String::new, |share| format!("{:.0} %", share * 100.0));
        let line = format!(
            "  {:<18}{:>10}{share:>7}   {}",
            cause.title,
            rate_like(cause.rate, unit_of(body)),
            cause.text
        );
        lines.push(line.trim_end().to_owned());
    }
    for wait in &body.waits {
        let share = format!("{:.0} %", wait.share * 100.0);
        lines.push(format!("  {:<18}{share:>7} of the time", wait.title));
    }
    lines.extend(places(&body.shards));
    for silent in &body.unreachable {
        lines.push(format!(
            "not included: {}, which can't be reached: {}",
            silent.node, silent.why
        ));
    }
    lines.push(format!("why: {}", body.why));
    for (at, advice) in body.advice.iter().enumerate() {
        lines.push(format!(
            "{}{}",
            if at == 0 { "try: " } else { "     " },
            advised(&body.task, advice)
        ));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Lists the nodes of several shards, and the capacity these nodes lack.
fn places(shards: &[api::ExplainedShard]) -> Vec<String> {
    let mut lines = Vec::new();
    if shards.len() > 1 {
        let mut on: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for place in shards {
            on.entry(place.node.as_deref().unwrap_or_default())
                .or_default()
                .push(&place.shard);
        }
        // The empty name stands for shards without a node.
        on.remove("");
        let on: Vec<String> = on
            .iter()
            .map(|(node, has)| format!("{node} ({})", has.join(", ")))
            .collect();
        let waiting = shards
            .iter()
            .filter(|place| place.node.is_none() && place.state != "done");
        let waiting: Vec<String> = waiting
            .map(|place| format!("{} ({})", place.shard, place.state))
            .collect();
        let said = [("on", on), ("on no node", waiting)]
            .into_iter()
            .filter(|(_, which)| !which.is_empty());
        lines.extend(said.map(|(title, which)| format!("{title}: {}", which.join(", "))));
    }
    for place in shards {
        let Some(held) = &place.held_back else { continue };
        let node = place.node.as_deref().unwrap_or("its node");
        let (shard, rate, wanted) = (&place.shard, &held.rate, &held.wanted);
        lines.push(format!(
            "held back: {shard} on {node} has {rate} instead of {wanted}: {}",
            held.why
        ));
    }
    lines
}

/// Returns true if the task has ended for good, so that nothing needs explaining.
fn is_over(body: &api::Explanation) -> bool {
    ["finished", "cancelled"].contains(&body.status.as_str())
}

/// Returns true if the task isn't supposed to run, so that no rate is missed.
fn rests(body: &api::Explanation) -> bool {
    ["created", "stopped"].contains(&body.status.as_str())
}

fn is_shown(body: &api::Explanation, cause: &api::ExplainedCause) -> bool {
    let missing = body.target_rate.zip(body.missing_rate);
    if missing.is_some_and(|(target, missing)| missing < MISSING_MIN * target) {
        return false;
    }
    let says_something = |text: &str| text.contains(|digit: char| ('1'..='9').contains(&digit));
    let share = cause.share.map(|share| format!("{:.0}", share * 100.0));
    if !says_something(&rate_like(cause.rate, unit_of(body)))
        || share.is_some_and(|share| !says_something(&share))
    {
        return false;
    }
    let of_rate = body
        .target_rate
        .filter(|target| *target > 0.0)
        .map_or(1.0, |target| cause.rate / target);
    of_rate >= SHOWN_MIN
}

/// Returns the rate whose unit is used for all rates of the explanation.
fn unit_of(body: &api::Explanation) -> f64 {
    body.target_rate.unwrap_or(body.actual_rate).max(body.actual_rate)
}

fn head(body: &api::Explanation) -> String {
    let span = format!("(last {:.0} s)", body.span_seconds);
    let rate = |rate| rate_like(rate, unit_of(body));
    let actual = rate(body.actual_rate);
    match (body.target_rate, body.missing_rate) {
        (Some(target), Some(missing)) => {
            format!(
                "target {}   actual {actual}   below target {}   {span}",
                rate(target),
                rate(missing)
            )
        }
        _ => match body.rate.as_str() {
            auto if auto.starts_with("auto") => format!("rate {auto}   actual {actual}   {span}"),
            _ => format!("no rate limit   actual {actual}   {span}"),
        },
    }
}

fn advised(task: &str, advice: &api::ExplainedAdvice) -> String {
    let mut text = match &advice.change {
        Some(change) => {
            let predicted = advice
                .predicted_rate
                .map(|rate| format!("   (predicted {})", rate_text(rate)));
            format!(
                "{}{}   {}",
                command(task, change),
                predicted.unwrap_or_default(),
                advice.text
            )
        }
        None => match hint(task, advice) {
            Some(command) => format!("{} (`{command}`)", advice.text),
            None => advice.text.clone(),
        },
    };
    if let Some(hindrance) = &advice.hindrance {
        text.push_str("; ");
        text.push_str(hindrance);
    }
    text
}

/// Returns the command that an advice without a change of settings asks for.
fn hint(task: &str, advice: &api::ExplainedAdvice) -> Option<String> {
    let message = advice.text_message.as_ref()?;
    let arg = |name| message.args.get(name).and_then(Value::as_str).unwrap_or("NAME");
    Some(match message.code.as_str() {
        "advice.start_task" => format!("windrow task start {task}"),
        "advice.move_deadline" => format!("windrow task set {task} --deadline TIME"),
        "advice.recover_now" => format!("windrow task recover {task}"),
        "advice.see_report" => format!("windrow task report {task}"),
        "advice.decide_sooner" => format!("windrow task set {task} --judge-after 1m"),
        "advice.fix_handler" => format!("windrow biz edit {}", arg("business")),
        "advice.raise_limit" => format!("windrow limit set {}", arg("name")),
        "advice.start_handler" => "windrow biz edit".to_owned(),
        "advice.check_nodes" => "windrow cluster".to_owned(),
        _ => return None,
    })
}

/// Returns the CLI command that makes the change.
fn command(task: &str, change: &Map<String, Value>) -> String {
    let flags = change.iter().map(|(key, value)| match value {
        Value::String(text) if text.contains(' ') => format!(" --{} {text:?}", key.replace('_', "-")),
        Value::String(text) => format!(" --{} {text}", key.replace('_', "-")),
        other => format!(" --{} {other}", key.replace('_', "-")),
    });
    format!("windrow task set {task}{}", flags.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_named_by_node_and_those_without_room_apart() {
        let place = |no: u32, state: &str, node: Option<&str>| api::ExplainedShard {
            shard: format!("t3.{no}"),
            state: String::from(state),
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
        assert_eq!(
            places(&shards),
            ["on: n1 (t3.2), n2 (t3.0, t3.4)", "on no node: t3.3 (idle)"]
        );
        shards.truncate(1);
        assert_eq!(places(&shards), [""; 0], "one shard is where the task is");
        let (rate, wanted, why) = ("75/s".to_owned(), "150/s".to_owned(), "it needs 150/s".to_owned());
        shards[0].held_back = Some(api::ExplainedHeldBack {
            rate,
            wanted,
            for_seconds: 3.0,
            why,
        });
        assert_eq!(
            places(&shards),
            ["held back: t3.0 on n2 has 75/s instead of 150/s: it needs 150/s"]
        );
    }

    #[test]
    fn an_automatic_rate_is_no_missing_one() {
        let head = |rate: &str| {
            head(&api::Explanation {
                rate: rate.to_owned(),
                actual_rate: 38.2,
                span_seconds: 60.0,
                ..api::Explanation::default()
            })
        };
        assert_eq!(
            head("auto up to 500/s"),
            "rate auto up to 500/s   actual 38.2/s   (last 60 s)"
        );
        assert_eq!(head("unlimited"), "no rate limit   actual 38.2/s   (last 60 s)");
    }

    #[test]
    fn a_change_is_a_command_that_can_be_pasted() {
        let change = serde_json::json!({"window": 1500, "straggler_after": "100ms", "backoff": "1s..5s x2"});
        let change = change.as_object().expect("an object");
        assert_eq!(
            command("t1031", change),
            "windrow task set t1031 --backoff \"1s..5s x2\" --straggler-after 100ms --window 1500"
        );
    }
}
