//! Messages for people, as codes with typed arguments, and one form of numbers, sizes, rates and spans.
//!
//! A message is made where its fact is known and rendered at the edge: in English by its `Display`, in Chinese by the
//! dashboard from the templates that [`catalog`] lists. Nothing reads a rendered message: code that decides compares codes
//! or the facts themselves.
#![warn(missing_docs)]

mod arg;
mod format;
mod message;
mod template;

pub mod business;
pub mod engine;
pub mod explain;
pub mod handler;
pub mod request;
pub mod schedule;
pub mod settings;
pub mod store;
pub mod task;

pub use arg::{Arg, Count, Text};
pub use format::{bytes, count, counted, rate, share, span};
pub use message::{Form, Message};

/// Every form of every area, in the order of the source.
pub fn catalog() -> impl Iterator<Item = &'static Form> {
    [
        explain::FORMS,
        handler::FORMS,
        business::FORMS,
        engine::FORMS,
        request::FORMS,
        schedule::FORMS,
        settings::FORMS,
        store::FORMS,
        task::FORMS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

#[cfg(test)]
mod tests;
