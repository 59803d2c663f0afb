//! Messages that join others.

use crate::message::messages;
use crate::{Message, Text};

messages! { "list";
    both(first: Message, then: Message) "{first}; {then}" "{first}；{then}";
    titled(title: Message, detail: Message) "{title}: {detail}" "{title}：{detail}";
    quoted(text: Text) "{text}" "{text}";
}

/// Joins messages into one; `None` if there are none.
pub fn all(messages: impl IntoIterator<Item = Message>) -> Option<Message> {
    messages.into_iter().reduce(both)
}

/// Writes messages in English, one after the other.
pub fn text<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    let all: Vec<String> = messages.into_iter().map(ToString::to_string).collect();
    all.join("; ")
}
