//! Differences between the members that a file wants and those that a node has.

use serde_json::{Value, json};

use super::kinds::{Kind, Members, OF_CREATION};
use crate::output::body::shown;
use crate::output::difference::Difference;
use crate::output::table::clean;
use crate::output::table::times::parsed;
use windrow_core::text::cut;

/// Value of a secret that the node shows instead of it, and that keeps it.
pub(super) const MASK: &str = "***";
/// Members of which a business has one.
const HANDLERS: [&str; 3] = ["url", "command", "request"];
/// Longest value shown to people. Unit: characters.
const SHOWN_MAX: usize = 120;

/// Difference of a secret, whose values are never shown.
pub(super) fn secret() -> Difference {
    Difference {
        member: "secrets".to_owned(),
        from: json!(MASK),
        to: json!("another value"),
    }
}

/// Returns the wanted members that differ from the present ones, in the form of a change.
pub(super) fn differing(kind: &Kind, mut wanted: Members, is: &Members) -> Members {
    if kind.name == "business" {
        wanted.insert("archived".to_owned(), json!(false));
        if HANDLERS
            .iter()
            .any(|handler| wanted.get(*handler).is_some_and(|value| !value.is_null()))
        {
            HANDLERS.iter().for_each(|handler| {
                wanted.entry(*handler).or_insert(Value::Null);
            });
        }
    }
    let present = |name: &str| is.get(name).unwrap_or(&Value::Null);
    wanted.retain(|name, value| !OF_CREATION.contains(&name.as_str()) && !is_same(present(name), value));
    if kind.name == "task" {
        source(&mut wanted, present("source"));
    }
    if kind.merges {
        wanted
            .iter_mut()
            .for_each(|(name, value)| replace(value, present(name)));
    }
    wanted
}

/// Compares values; times are the same in any zone.
fn is_same(is: &Value, wanted: &Value) -> bool {
    let time = |value: &Value| parsed(value.as_str()?);
    is == wanted || time(wanted).is_some_and(|at| time(is) == Some(at))
}

/// Compares the source of a task with what the API shows of it. A range may get another end.
fn source(wanted: &mut Members, is: &Value) {
    let Some((Value::Object(source), Value::Object(is))) = wanted.get("source").map(|source| (source, is))
    else {
        return;
    };
    let differs = |name: &String, value: &Value| is.get(name).is_some_and(|is| is != value);
    let differing: Vec<&String> = source
        .iter()
        .filter(|(name, value)| differs(name, value))
        .map(|(name, _)| name)
        .collect();
    match differing.as_slice() {
        [] => {
            wanted.remove("source");
        }
        [total] if *total == "total" => {
            let total = source.get("total").cloned().unwrap_or_default();
            wanted.remove("source");
            wanted.insert("total".to_owned(), total);
        }
        _ => {}
    }
}

/// Makes a table replace the present one as a whole: members that it doesn't have become null.
fn replace(wanted: &mut Value, is: &Value) {
    if let (Value::Object(wanted), Value::Object(is)) = (wanted, is) {
        for (name, is) in is {
            replace(wanted.entry(name).or_insert(Value::Null), is);
        }
    }
}

/// Formats a value on one line.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => "–".to_owned(),
        value => cut(&clean(&shown(value)), SHOWN_MAX).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::KINDS;
    use super::*;

    fn kind(name: &str) -> &'static Kind {
        KINDS.iter().find(|kind| kind.name == name).expect("a kind")
    }

    fn members(value: Value) -> Members {
        serde_json::from_value(value).expect("an object")
    }

    fn change(name: &str, wanted: Value, is: Value) -> Value {
        Value::Object(differing(kind(name), members(wanted), &members(is)))
    }

    #[test]
    fn a_change_has_what_differs_and_a_table_as_a_whole() {
        let is = json!({"url": "http://a/", "defaults": {"rate": "1/s", "retry": {"max": 1}}, "pool": "p",
            "headers": {"a": "b"}, "archived": false});
        let wanted = json!({"command": "c", "defaults": {"retry": {}}, "pool": "p"});
        let expected =
            json!({"command": "c", "url": null, "defaults": {"rate": null, "retry": {"max": null}}});
        assert_eq!(change("business", wanted, is), expected);
    }

    #[test]
    fn what_a_task_has_only_at_its_creation_and_a_time_in_another_zone_are_no_change() {
        let is = json!({"source": {"type": "range", "total": 5}, "start_at": "2026-11-20T17:00:00.000Z"});
        let wanted = json!({"start": true, "start_at": "2026-11-20T18:00:00+01:00",
            "source": {"type": "range", "total": 5}});
        assert_eq!(change("task", wanted, is.clone()), json!({}));
        let wanted = json!({"source": {"type": "range", "total": 6}});
        assert_eq!(change("task", wanted, is.clone()), json!({"total": 6}));
        let wanted = json!({"source": {"type": "url", "url": "http://h/"}});
        assert_eq!(change("task", wanted.clone(), is), wanted);
    }
}
