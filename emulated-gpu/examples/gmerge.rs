//! `gmerge`, for tests of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    merge_cli::main()
}
