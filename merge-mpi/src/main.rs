//! `gmerge-mpi`: see the library of this package.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: merge_cli::Allocator = merge_cli::Allocator;

fn main() -> ExitCode {
    merge_mpi::main()
}
