//! The program `windrow`; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    windrow::cli::main()
}
