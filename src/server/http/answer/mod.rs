//! Forms of answers: pages, CSV, exports, times, what every answer carries.

pub(crate) mod export;
pub(crate) mod held;
pub(crate) mod html;
pub mod page;
pub(crate) mod response;
pub mod result_rows;
pub mod sample;
pub(crate) mod silent;
pub mod time;

/// Translation of a thing into the form in which it is sent. The forms belong to another crate, so they can't have methods here.
pub(crate) trait Of<T> {
    /// The form of a thing.
    fn of(thing: T) -> Self;
}
