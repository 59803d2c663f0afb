//! Messages about how a handler fares.

use std::time::Duration as Span;

use crate::message::messages;
use crate::{Count, Message, Text};

messages! { "handler";
    down(lasting: Span) "handler down for {lasting}" "处理器已不可用 {lasting}";
}
