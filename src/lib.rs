//! Windrow drives the N numbered items of a job through a handler at exactly the rate it was told, and goes on where it
//! was after a crash. This is Windrow in your own program; the program `windrow` does the same from a command line.
//!
//! ```
//! use windrow::{Job, Windrow};
//!
//! # async fn push(_: &str) -> Result<(), std::io::Error> { Ok(()) }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(&folder)?;
//! let windrow = Windrow::builder().store("progress").build().await?;
//! let job = Job::items(0..1000).rate("500/s").handler(async |item| push(&item.key).await);
//! let report = windrow.run(job).await?;
//! println!("{} done, {} failed", report.succeeded, report.failed);
//! windrow.close().await;
//! # assert_eq!((report.succeeded, report.is_finished()), (1000, true));
//! # Ok(())
//! # }
//! ```
//!
//! # A node of your own
//!
//! [`Builder::node`] makes what `windrow serve` is, an HTTP API with registered businesses, in your program: a business
//! names one of your handlers as its `command`.
//!
//! ```
//! use windrow::{Item, Windrow};
//!
//! # async fn push(_: &str) -> Result<(), std::io::Error> { Ok(()) }
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::env::set_current_dir(&folder)?;
//! let builder = Windrow::builder().store("node").node().listen("127.0.0.1:0");
//! let node = builder.handler("push", async |item: Item| push(&item.key).await).serve().await?;
//! println!("POST {}/v1/businesses {{\"name\": \"campaign\", \"command\": \"push\"}}", node.url());
//! # assert!(node.token_file().is_some());
//! node.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # What holds
//!
//! - A job is known by its [name](Job::name). The same job again goes on where it was: after a [stop](Running::stop), an
//!   error, a `kill -9`. One that has finished does nothing and reports how it ended.
//! - No item is lost. An item may be handed out again after a crash, always under the same [`Item::key`].
//! - A handler's `Err` and its panic are failed attempts: the item is tried again after a while, and failed after
//!   [`Job::max_attempts`]; [`Report::failures`] counts those by code.
//! - Progress is a folder with an SQLite database that one program holds at a time; it grows with failures, not with items.
//!
//! # Stability
//!
//! What this page names is the public surface: it follows semantic versioning. The crates `windrow-core`, `windrow-engine`
//! and so on are parts of the program, may change with each release, and are no surface.

#![warn(missing_docs)]

mod builder;
mod error;
mod job;
mod report;
mod running;
mod serving;

pub use builder::{Builder, Windrow};
pub use error::Error;
pub use job::Job;
pub use report::{End, Failures, Progress, Report};
pub use running::Running;
pub use serving::{Node, NodeBuilder};
pub use windrow_handlers::rust::{Batch, ItemCtx, ItemHandler, OwnedItem as Item, Results};
