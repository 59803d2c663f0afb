//! The program `windrow`; everything is in the library.

use std::process::ExitCode;

/// Gives memory back after a burst; that of the C library keeps it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    windrow_cli::main()
}
