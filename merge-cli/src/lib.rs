//! `gmerge` sorts and merges files of binary numbers, on an NVIDIA GPU or on all CPU cores.
//!
//! | module | what |
//! | --- | --- |
//! | `spec` | values that the command line is made of |
//! | `args` | the flags, as typed |
//! | `job` | the flags, decided |
//! | `plan` | in memory, in chunks, or streamed |
//! | `run` | doing the job |
//! | `coding` | keys as unsigned numbers, between reading and writing |
//! | `format`, `file` | headers; inputs and outputs |
//! | `records` | the order of records |
//! | `table` | tables of columns, in Arrow and Parquet files |
//! | `os`, `say` | the operating system; messages |
//! | `shared` | what `gmerge-mpi` has of this program |

mod args;
mod coding;
mod file;
mod format;
mod job;
mod os;
mod plan;
mod records;
mod run;
mod say;
pub mod shared;
mod spec;
mod table;

pub use os::allocator::Allocator;

use clap::{CommandFactory, Parser};
use job::Job;
use merge_host::{COSTS, CostModel};
use say::{Failure, progress, report};
use std::ffi::OsString;
use std::process::ExitCode;

// Keys in memory have the byte order of little-endian files.
const _: () = assert!(cfg!(target_endian = "little"), "gmerge supports little-endian machines only");

/// Runs the program with its command line.
pub fn main() -> ExitCode {
    end_at_panic();
    ExitCode::from(run(std::env::args_os()))
}

/// Runs the program and returns its exit status. The first argument is the program's name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let args: args::Args = match Parser::try_parse_from(arguments) {
        Ok(args) => args,
        Err(text) => return print(&text),
    };
    let result = run_checked(args);
    progress::finish();
    match result {
        Ok(()) => 0,
        Err(failure) => {
            if let Some(message) = failure.message() {
                os::allocator::begin_to_end();
                report::error(message);
                os::allocator::has_said_error();
            }
            failure.code()
        }
    }
}

fn run_checked(args: args::Args) -> Result<(), Failure> {
    os::limits::share_heap();
    os::signals::install()?;
    check_environment()?;
    let args::ReportArgs { quiet, verbose, progress } = args.report;
    report::start(quiet, verbose, progress);
    run::run(Job::new(args)?)
}

/// Refuses an environment variable with a value that would be ignored.
fn check_environment() -> Result<(), Failure> {
    let (name, values) = merge_host::VECTORS;
    match std::env::var_os(name) {
        Some(said) if values.iter().all(|value| said != *value) => {
            let said = said.display();
            Err(Failure::new(format!(
                "the environment variable {name} is '{said}', and not one of {}",
                values.join(", ")
            )))
        }
        _ => Ok(()),
    }?;
    match CostModel::of_environment() {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(format!("the environment variable {COSTS}: {error}"))),
    }
}

/// Prints help, the version or an error of the command line, and returns the exit status. Unlike clap, it fails if
/// standard output is closed.
fn print(text: &clap::Error) -> u8 {
    const WRONG: u8 = 2;
    if !text.use_stderr()
        && let Err(error) = os::standard::output()
    {
        report::error(&say::error::os_message(&error));
        return WRONG;
    }
    let _ = args::usage::print(text);
    u8::try_from(text.exit_code()).unwrap_or(WRONG)
}

/// The definition of the command line, built: commands have their full names and the global flags.
pub fn command() -> clap::Command {
    let mut command = args::Args::command();
    command.build();
    command
}

/// From now on, a panic of any thread ends the process with an ordinary error. A panic is a mistake in this program, or
/// a damaged table that a library does not check. Nothing is unwound: the program is built with `panic = "abort"`.
pub fn end_at_panic() {
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("panic");
        // The standard library panics if a new thread gets no memory for its signal stack.
        if message.starts_with("failed to allocate an alternative stack") {
            os::allocator::exhausted(format_args!("stack for a thread"));
        }
        let location = info.location().map(|at| format!(" at {}:{}", at.file(), at.line())).unwrap_or_default();
        let failure = table::damage().unwrap_or_else(|| Failure::new(format!("internal error{location}: {message}")));
        os::allocator::begin_to_end();
        progress::finish_soon();
        report::error(failure.message().unwrap_or_default());
        os::allocator::has_said_error();
        os::signals::quit(failure.code().into())
    }));
}
