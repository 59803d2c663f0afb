//! The tree as a field of a line of the log: a table below the line for people, and for machines (`{:#}`) the list that the
//! API has, as JSON. The log knows which of them reads it; whoever logs doesn't.

use std::fmt;

use serde_json::{Value, json};

use super::{ActorView, table};

/// Actors of a line; none where they are not wanted.
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

/// The members that an actor has in the API.
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
