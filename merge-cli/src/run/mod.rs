//! Doing the jobs, one kind a file.

mod batch;
mod check;
mod checksum;
mod documents;
pub mod engine;
mod generate;
pub mod generator;
mod in_memory;
mod info;
mod merge;
pub mod order;
mod records;
mod runs;
mod search;
mod segments;
mod sets;
mod sort;
pub mod spilled;
mod tables;
mod top;
mod verify;
mod written;

use crate::coding::with_word;
use crate::file::Writer;
use crate::file::output::commit;
use crate::job::Job;
use crate::say::Result;
use crate::say::stats::{Phase, Stats};

/// Does a job.
pub fn run(job: Job) -> Result<()> {
    match job {
        Job::Sort(job) => with_word!(job.items.word_type().size(), W => sort::run::<W>(job)),
        Job::Segments(job) => with_word!(job.key_type.size(), W => segments::run::<W>(job)),
        Job::Tables(job) => tables::run(job),
        Job::Merge(job) => with_word!(job.items.word_type().size(), W => merge::run::<W>(job)),
        Job::Batch(job) => with_word!(job.key_type.size(), W => batch::run::<W>(job)),
        Job::Set(job) => with_word!(job.items.word_type().size(), W => sets::run::<W>(job)),
        Job::Check(job) => with_word!(job.key_type.size(), W => check::keys::<W>(job)),
        Job::CheckRecords(job) => check::records(job),
        Job::CheckTable(job) => tables::check(job),
        Job::LookUp(job) => search::look_up(job),
        Job::Search(job) => with_word!(job.key_type.size(), W => search::run::<W>(job)),
        Job::Generate(job) => with_word!(job.generator.key_type().size(), W => generate::run::<W>(job)),
        Job::Info => info::run(),
        Job::Completions(shell) => documents::completions(shell),
        Job::Man(folder) => documents::man(folder.as_deref()),
    }
}

/// Makes the outputs of a job permanent, and prints its statistics.
fn finish(outputs: impl IntoIterator<Item = Writer>, mut stats: Stats) -> Result<()> {
    stats.time(Phase::Write, || commit(outputs))?;
    stats.print();
    Ok(())
}
