//! State of a handler: as one sentence, over several runs, in the log, counted, and as other nodes see it.

pub mod elsewhere;
pub mod failed_calls;
pub mod journal;
pub mod log;
pub mod sight;
pub mod text;
