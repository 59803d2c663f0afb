//! Shared code of commands that talk to a node: flags, address and token, connection, paging.

pub mod args;
mod ask;
pub mod change;
pub(crate) mod checks;
pub mod contexts;
pub(crate) mod document;
pub(crate) mod here;
mod look;
pub(crate) mod meant;
mod open;
mod pages;
pub mod reach;

pub use self::args::{CsvGuard, Form, Named, NamedWrite, Pages, Paging, Remote, View, Write, word};
pub use self::ask::Danger;
pub(crate) use self::ask::confirm;
pub use self::look::Look;
pub use self::open::Link;
pub use self::pages::Listed;
