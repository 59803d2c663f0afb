//! Errors of starting a job or a node.

use std::path::PathBuf;

use windrow_engine::ports::StoreError;
use windrow_node::serve::ServeError;
use windrow_node::sources::OpenSourceError;
use windrow_node::{LockError, StartError};
use windrow_server::service::{JobError, ServiceError};

/// Error of running a job or serving a node. Earlier progress is never lost.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder for progress can't be used; another program may hold it.
    #[error("progress can't be saved in {}: {cause}", folder.display())]
    Folder {
        /// Path of the folder.
        folder: PathBuf,
        /// Error of locking it.
        cause: Box<LockError>,
    },
    /// The database in the folder failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Threads can't be started.
    #[error("threads can't be started: {0}")]
    Threads(#[from] std::io::Error),
    /// The node can't serve.
    #[error(transparent)]
    Serve(Box<ServeError>),
    /// The configuration of a node has faults.
    #[error("{}", .0.join("; "))]
    Config(Vec<String>),
    /// The actors failed to start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// A setting of the job is invalid, or contradicts another one.
    #[error("{0}")]
    Setting(String),
    /// The job has no handler.
    #[error("the job has no handler; set one with Job::handler")]
    NoHandler,
    /// The items can't be read.
    #[error("{}: {}; {}", .0.what(), .0.because(), .0.hint())]
    Items(Box<OpenSourceError>),
    /// The name belongs to a job over other items, or the job can't be started.
    #[error(transparent)]
    Job(#[from] JobError),
    /// The outputs of the job can't be read.
    #[error(transparent)]
    Outputs(#[from] Box<ServiceError>),
    /// The actors ended before the job was done.
    #[error("windrow ended before the job; saved progress is safe, run it again")]
    Ended,
}

impl From<ServeError> for Error {
    fn from(error: ServeError) -> Error {
        Error::Serve(Box::new(error))
    }
}
