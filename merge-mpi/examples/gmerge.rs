//! `gmerge` itself, with which the tests compare.

use std::process::ExitCode;

fn main() -> ExitCode {
    merge_cli::main()
}
