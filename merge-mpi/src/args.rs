//! The command line, and the common start of all commands.

use crate::agree::internal_error;
use crate::engine::Place;
use crate::exchange::{Exchange, Mpi};
use crate::job::{self, Ranks};
use crate::{agree::agree, check};
use clap::{Parser, Subcommand};
use merge_cli::shared::{self, CheckFlags, Failure, Result, SortFlags, report, usage};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

/// Exit code of an error.
const ERROR: u8 = 2;

/// Sorts files of binary numbers on several machines, each rank on a GPU or on its share of the CPU cores
///
/// Files, flags, messages and output are the same as with gmerge. Start it by mpirun or srun.
#[derive(Debug, Parser)]
#[command(
    name = "gmerge-mpi",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  mpirun -n 4 gmerge-mpi sort keys.u32 -o sorted.u32
  mpirun -n 4 gmerge-mpi sort '/local/keys.{rank}.u32' -o '/local/sorted.{rank}.u32' --parts
  mpirun -n 4 gmerge-mpi check sorted.u32

Exit codes: 0 done, 1 `check` found a key out of order, 2 error, 128 + n ended by signal n."
)]
struct Args {
    #[command(subcommand)]
    command: Command,
    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Print decisions, their reasons and the times of all phases
    #[arg(short, long, global = true)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Sort one or more files into one, or into one for each rank
    ///
    /// Each rank reads an even slice of the inputs, or a file of its own, and writes an even part of the output. The
    /// sort is stable, with --reverse too.
    Sort {
        #[command(flatten)]
        flags: SortFlags,
        /// Write a file for each rank: `{rank}` in the name of OUT stands for its number
        ///
        /// All files are complete before the first file replaces an old one.
        #[arg(long)]
        parts: bool,
    },
    /// Check whether a file is sorted, as `gmerge check` does
    Check {
        #[command(flatten)]
        flags: CheckFlags,
    },
}

/// Runs the program with its command line.
pub fn main() -> ExitCode {
    // Help and mistakes of the command line need no other rank. One rank prints them.
    let args = Args::try_parse();
    // SAFETY: `main` has started no thread yet, so that this is the only thread.
    let Some(mpi) = (unsafe { Mpi::start() }) else {
        report::error("MPI has been started already");
        return ExitCode::from(ERROR);
    };
    let args = match args {
        Ok(args) => args,
        Err(text) => {
            if mpi.rank() == 0 {
                report::set_name("gmerge-mpi".to_owned());
                let _ = usage::print(&text);
            }
            return ExitCode::from(text.exit_code() as u8);
        }
    };
    let name = match mpi.size() {
        1 => "gmerge-mpi".to_owned(),
        _ => format!("gmerge-mpi: rank {} on {}", mpi.rank(), mpi.machine()),
    };
    // Only rank 0 prints decisions, which are the same on all ranks.
    let verbose = args.verbose && mpi.rank() == 0;
    // A panic becomes a failure, and its message is printed later.
    std::panic::set_hook(Box::new(|_| {}));
    match catch_unwind(AssertUnwindSafe(|| run(args, &mpi, name, verbose))) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            tell(&failure);
            ExitCode::from(failure.code())
        }
        Err(panic) => {
            // The other ranks may be in any step.
            tell(&internal_error(&*panic));
            mpi.abort(ERROR)
        }
    }
}

fn tell(failure: &Failure) {
    if let Some(message) = failure.message() {
        report::error(message);
    }
}

fn run(args: Args, mpi: &Mpi, name: String, verbose: bool) -> Result<()> {
    agree(mpi, shared::begin(name, args.quiet, verbose))?;
    let place = Place { rank: mpi.local_rank(), size: mpi.local_size() };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let ranks = Ranks { exchange: mpi, place, threads: (cores / mpi.sharing_cores()).max(1) };
    match args.command {
        Command::Sort { flags, parts } => job::run(ranks, flags, parts),
        Command::Check { flags } => check::run(ranks, flags),
    }
}
