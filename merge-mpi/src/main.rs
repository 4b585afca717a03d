//! `gmerge-mpi`: see the library of this package.

use std::process::ExitCode;

fn main() -> ExitCode {
    merge_mpi::main()
}
