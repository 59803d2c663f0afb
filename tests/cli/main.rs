//! The program as people and scripts use it: real processes, real signals, exit codes, standard output and error.

mod failures;
mod interrupt;
mod refusals;
mod runs;
mod support;
mod topics;
mod trial;
