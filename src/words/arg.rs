//! Typed arguments of messages.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::format;
use crate::message::Message;

/// Value of one argument; its type decides how it is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Arg {
    /// Whole number, written with its thousands apart.
    Count(u64),
    /// Span of time, written by [`crate::span`].
    Span(Duration),
    /// Rate in items per second, written by [`crate::rate`].
    Rate(f64),
    /// Share of a whole, 0 to 1, written as a percentage.
    Share(f64),
    /// Text that is no language: a name, a code, a setting, the words of a vendor.
    Text(Cow<'static, str>),
    /// Message inside of another.
    Message(Message),
}

/// Whole number as an argument, from any width.
#[derive(Clone, Copy, Debug)]
pub struct Count(pub u64);

/// Items per second as an argument.
#[derive(Clone, Copy, Debug)]
pub struct Rate(pub f64);

/// Share of a whole as an argument, 0 to 1.
#[derive(Clone, Copy, Debug)]
pub struct Share(pub f64);

/// Text as an argument: a name, a code, a setting, the words of a vendor.
#[derive(Clone, Debug)]
pub struct Text(pub Cow<'static, str>);

macro_rules! from {
    ($into:ident: $($type:ty, $value:ident => $make:expr;)+) => {$(
        impl From<$type> for $into {
            fn from($value: $type) -> $into {
                $into($make)
            }
        }
    )+};
}

from! { Count:
    u64, number => number;
    u32, number => number.into();
    usize, number => number as u64;
}

from! { Rate:
    f64, per_second => per_second;
}

from! { Share:
    f64, share => share;
}

from! { Text:
    &str, text => Cow::Owned(text.to_owned());
    String, text => Cow::Owned(text);
    &String, text => Cow::Owned(text.clone());
    Cow<'static, str>, text => text;
}

impl From<Count> for Arg {
    fn from(count: Count) -> Arg {
        Arg::Count(count.0)
    }
}

impl From<Rate> for Arg {
    fn from(rate: Rate) -> Arg {
        Arg::Rate(rate.0)
    }
}

impl From<Share> for Arg {
    fn from(share: Share) -> Arg {
        Arg::Share(share.0)
    }
}

impl From<Text> for Arg {
    fn from(text: Text) -> Arg {
        Arg::Text(text.0)
    }
}

impl From<Duration> for Arg {
    fn from(span: Duration) -> Arg {
        Arg::Span(span)
    }
}

impl From<Message> for Arg {
    fn from(message: Message) -> Arg {
        Arg::Message(message)
    }
}

impl fmt::Display for Arg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arg::Count(number) => f.write_str(&format::count(*number)),
            Arg::Span(span) => f.write_str(&format::span(*span)),
            Arg::Rate(per_second) => f.write_str(&format::rate(*per_second)),
            Arg::Share(share) => f.write_str(&format::share(*share)),
            Arg::Text(text) => f.write_str(text),
            Arg::Message(message) => message.fmt(f),
        }
    }
}

/// A number, a text, `{"seconds": 2.5}`, `{"per_second": 12.5}`, `{"share": 0.42}`, or a message as
/// `{"code", "args", "text"}`.
impl Serialize for Arg {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let one = |serializer: S, name: &str, value: f64| {
            let mut map = serializer.serialize_map(Some(1))?;
            map.serialize_entry(name, &value)?;
            map.end()
        };
        match self {
            Arg::Count(number) => serializer.serialize_u64(*number),
            Arg::Text(text) => serializer.serialize_str(text),
            Arg::Message(message) => message.serialize(serializer),
            Arg::Span(span) => one(serializer, "seconds", span.as_secs_f64()),
            Arg::Rate(per_second) => one(serializer, "per_second", *per_second),
            Arg::Share(share) => one(serializer, "share", *share),
        }
    }
}
