//! Handler events of a task: the handler goes down or recovers, or an error code appears for the first time. Not each
//! failure.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::http::answer::Of;
use crate::http::tasks::view::handler::show_handler_down;
use crate::http::tasks::view::handler::show_last_error;
use crate::service::tasks::show::TaskPicture;

/// Time after which a code that wasn't seen counts as new again.
const FORGET_AFTER: Duration = Duration::from_secs(60);
/// Most codes remembered. A handler that invents codes beyond it gets events for them again.
const CODES_MAX: usize = 50;

/// Handler state as of the last event.
#[derive(Debug, Default)]
pub(super) struct HandlerNews {
    is_down: bool,
    codes: BTreeMap<String, Instant>,
}

impl HandlerNews {
    /// Returns the event to send, if anything is new.
    pub(super) fn look(&mut self, picture: &TaskPicture, now: Instant) -> Option<Value> {
        let state = &picture.handler.state;
        let is_down = state.outage.is_some();
        let is_turned = std::mem::replace(&mut self.is_down, is_down) != is_down;
        self.codes
            .retain(|_, seen| now.duration_since(*seen) < FORGET_AFTER);
        let code = state
            .error
            .as_ref()
            .filter(|_| picture.handler.text().is_some())
            .map(|error| &error.code);
        let is_new = code.is_some_and(|code| {
            let has_room = self.codes.len() < CODES_MAX || self.codes.contains_key(code.as_ref());
            if !has_room {
                self.codes.clear();
            }
            self.codes.insert(code.clone().into_owned(), now).is_none()
        });
        (is_turned || is_new).then(|| told(picture))
    }
}

/// Returns the handler state as shown in a task.
pub(super) fn state(picture: &TaskPicture) -> api::HandlerState {
    let (handler, stored) = (&picture.handler, &picture.task.status_text);
    let said = handler.text().filter(|_| stored.is_none());
    api::HandlerState {
        handler_down: show_handler_down(handler),
        last_error: show_last_error(handler),
        status_text_message: said.as_ref().map(api::Message::of),
        status_text: stored.clone().or_else(|| said.map(|said| said.to_string())),
    }
}

fn told(picture: &TaskPicture) -> Value {
    let told = api::HandlerEvent {
        id: picture.task.id.to_string(),
        handler: state(picture),
    };
    serde_json::to_value(told).unwrap_or_default()
}
