//! The program `windrow`; all code is in the library.

use std::process::ExitCode;

/// Returns memory to the system after a burst, which the C library's allocator doesn't.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    windrow_cli::main()
}
