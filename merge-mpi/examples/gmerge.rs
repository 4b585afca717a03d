//! `gmerge` itself, for the tests to compare with.

use std::process::ExitCode;

fn main() -> ExitCode {
    merge_cli::main()
}
