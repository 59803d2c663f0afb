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

pub mod advice;
pub mod alert;
pub mod business;
pub mod capacity;
pub mod cause;
pub mod checkpoint;
pub mod engine;
pub mod execution;
pub mod explain;
pub mod handler;
pub mod life;
pub mod list;
pub mod meter;
pub mod request;
pub mod schedule;
pub mod settings;
pub mod status;
pub mod store;
pub mod task;

pub use arg::{Arg, Count, Rate, Share, Text};
pub use format::{amount, bytes, count, counted, rate, share, span};
pub use message::{Form, Message};

/// Every form of every area, in the order of the source.
pub fn catalog() -> impl Iterator<Item = &'static Form> {
    let areas = [
        advice::FORMS,
        alert::FORMS,
        business::FORMS,
        capacity::FORMS,
        cause::FORMS,
        checkpoint::FORMS,
        engine::FORMS,
        execution::FORMS,
        explain::FORMS,
        handler::FORMS,
        life::FORMS,
        list::FORMS,
        meter::FORMS,
        request::FORMS,
        schedule::FORMS,
        settings::FORMS,
        status::FORMS,
        store::FORMS,
        task::FORMS,
    ];
    areas.into_iter().flatten().copied()
}

#[cfg(test)]
mod tests;
