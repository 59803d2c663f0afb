//! Windrow sends the N numbered items of a job to a handler at exactly the given rate, and resumes after a crash.
//! This crate runs it inside your own program; the program `windrow` does the same from the command line.
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
//! A handler answers `Ok(())`, or an [`Answer`]: an output, nothing to do, a failure for good, another attempt later.
//! [`Job::rows`] takes a `Vec` or an iterator, [`Job::stream`] a stream; [`Running::outputs`] reads the outputs back.
//!
//! ```
//! use windrow::{Answer, Job, Windrow};
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let windrow = Windrow::builder().store(folder.path()).build().await?;
//! let job = Job::rows(["one", "three"]).keep_results().handler(async |item| {
//!     let word: String = item.json()?;
//!     Ok::<_, windrow::Cause>(Answer::output(&word.len()))
//! });
//! let running = windrow.start(job).await?;
//! running.wait().await?;
//! let (mut outputs, mut lengths) = (running.outputs().await?, Vec::new());
//! while let Some(output) = outputs.next().await? {
//!     lengths.push(output.json::<usize>()?);
//! }
//! assert_eq!(lengths, [3, 5]);
//! # drop(running);
//! windrow.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Embedding a node
//!
//! [`Builder::node`] runs what `windrow serve` runs, an HTTP API with registered businesses, inside your program. A
//! business names one of your handlers as its `command`.
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
//! # Guarantees
//!
//! - A job is identified by its [name](Job::name). Running the same job again resumes it: after a
//!   [stop](Running::stop), an error, or a `kill -9`. A finished job does nothing and reports its result.
//! - No item is lost. After a crash an item may be sent again, always with the same [`Item::key`].
//! - A handler's `Err` or panic is a failed attempt: the item is retried after a while, and fails after
//!   [`Job::max_attempts`]. [`Report::failures`] counts failures by code.
//! - Progress is a folder with an SQLite database, held by one program at a time. It grows with failures, not with
//!   items.
//!
//! # Stability
//!
//! The items on this page are the public API and follow semantic versioning. The crates `windrow-core`,
//! `windrow-engine` and so on are internal and may change with each release.

#![warn(missing_docs)]

mod builder;
mod error;
mod job;
mod outputs;
mod report;
mod running;
mod serving;

pub use builder::{Builder, Windrow};
pub use error::Error;
pub use job::Job;
pub use outputs::{Output, Outputs};
pub use report::{End, Failures, Progress, Report};
pub use running::Running;
pub use serving::{Node, NodeBuilder};
pub use windrow_core::ids::{Attempt, ItemCount, ItemIndex};
pub use windrow_core::settings::Rate;
pub use windrow_handlers::answer::Answer;
pub use windrow_handlers::rust::{
    Batch, Cause, Failure, HandlerCommand, ItemCtx, ItemHandler, ItemVerdict, LogLevel, Outcome,
    OwnedItem as Item, Results, RetryAdvice,
};
