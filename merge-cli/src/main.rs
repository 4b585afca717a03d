//! `gmerge` sorts and merges files of binary numbers, on an NVIDIA GPU or on all CPU cores.

mod args;
mod commands;
mod engine;
mod error;
mod external;
mod format;
mod generate;
mod input;
mod key_type;
mod memory;
mod offsets;
mod order;
mod output;
mod progress;
mod records;
mod report;
mod room;
mod signals;
mod space;
mod stats;
mod unique;
mod verify;

use clap::Parser;
use std::process::ExitCode;

// Keys are read from files as they lie in memory.
const _: () = assert!(cfg!(target_endian = "little"), "gmerge takes the machine for little endian");

fn main() -> ExitCode {
    let args = args::Args::parse();
    let result = error::catch_bugs(|| {
        signals::install().map_err(|e| error::Failure::new(format!("cannot handle signals: {e}")))?;
        report::start(&args.report);
        commands::run(&args)
    });
    progress::finish();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            if let Some(message) = failure.message() {
                error::report(message);
            }
            ExitCode::from(failure.code())
        }
    }
}
