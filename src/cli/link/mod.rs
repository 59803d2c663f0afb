//! What every command has that talks to a node: its flags, where the node is and who calls, the open link, pages.

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
