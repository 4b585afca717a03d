//! The commands, one a file.

mod batch;
mod check;
mod documents;
mod files0;
mod generate;
mod info;
mod merge;
mod merge_through;
mod pair;
mod records;
mod records_external;
mod set_operations;
mod set_through;
mod sort;
mod sort_segments;
mod sort_through;
mod sort_values;
mod top;
pub mod values;

use crate::args::{Args, Command};
use crate::error::Result;
use merge_host::SetOperation;

/// Does what the command line asks for.
pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Sort(args) if args.merge => merge::run(&merge::of_sort(args)),
        Command::Sort(args) if args.only_check || args.only_check_silently => check::run_for_sort(args),
        Command::Sort(args) if args.top.is_some() => top::run(args),
        Command::Sort(args) => sort::run(args),
        Command::Merge(args) => merge::run(args),
        Command::Batch(args) => batch::run(args),
        Command::Union(args) => set_operations::run(SetOperation::Union, args),
        Command::Intersect(args) => set_operations::run(SetOperation::Intersection, args),
        Command::Difference(args) => set_operations::run(SetOperation::Difference, args),
        Command::SymmetricDifference(args) => set_operations::run(SetOperation::SymmetricDifference, args),
        Command::Check(args) => check::run(args),
        Command::Gen(args) => generate::run(args),
        Command::Info => info::run(),
        Command::Completions(args) => documents::completions(args),
        Command::Man(args) => documents::man(args),
    }
}
