//! Tree as a field of a log line: a table below the line for people, and for machines (`{:#}`) the list of the API as
//! JSON. The log knows which of them reads it; the code that logs doesn't.

use std::fmt;

use serde_json::{Value, json};

use super::{ActorView, table};

/// Actors to show with a log line, or `None` if not wanted.
pub(crate) struct Logged(pub(super) Option<Vec<ActorView>>);

impl fmt::Display for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(actors) = &self.0 else { return Ok(()) };
        if f.alternate() {
            return write!(f, "{}", actors.iter().map(value).collect::<Value>());
        }
        table::render(actors)
            .lines()
            .try_for_each(|line| write!(f, "\n  {line}"))
    }
}

/// Returns an actor with the members it has in the API.
fn value(actor: &ActorView) -> Value {
    json!({
        "path": actor.path,
        "kind": actor.kind.as_str(),
        "state": actor.activity.as_str(),
        "uptime_seconds": actor.uptime.as_secs_f64(),
        "restarts": actor.restarts,
        "mailbox": actor.mailbox,
        "last_handled_seconds": actor.last_handled.as_secs_f64(),
        "text": actor.text,
    })
}
