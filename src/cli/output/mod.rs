//! Output for people: tables, cards, checks, the live bar.

pub mod body;
pub(crate) mod browser;
pub(crate) mod difference;
pub(crate) mod failure;
pub(crate) mod fold;
pub(crate) mod found;
pub(crate) mod judgement;
pub(crate) mod limits;
pub(crate) mod members;
pub(crate) mod safe;
pub(crate) mod screen;
mod shell_word;
pub mod table;
mod tty;
pub(crate) mod used;

pub(crate) use shell_word::shell_word;
