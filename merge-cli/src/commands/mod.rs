//! The commands, one a file.

mod batch;
mod check;
mod generate;
mod info;
mod merge;
mod pair;
mod sort;
mod sort_segments;
mod sort_values;
pub mod values;

use crate::args::{Args, Command};
use crate::error::Result;

/// Does what the command line asks for.
pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Sort(args) => sort::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Batch(args) => batch::run(args),
        Command::Check(args) => check::run(args),
        Command::Gen(args) => generate::run(args),
        Command::Info => info::run(),
    }
}
