//! Messages that explain a pace.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "explain";
    keeps_rate() "On target" "速率达标";
}
