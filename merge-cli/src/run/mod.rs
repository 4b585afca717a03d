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
mod segments;
mod sets;
mod sort;
mod spilled;
mod top;
mod verify;

use crate::job::Job;
use crate::say::Result;

/// Does a job.
pub fn run(job: Job) -> Result<()> {
    match job {
        Job::Sort(job) => sort::run(job),
        Job::Segments(job) => segments::run(job),
        Job::Top(job) => top::run(job),
        Job::SortRecords(job) => records::sort(job),
        Job::Merge(job) => merge::run(job),
        Job::Batch(job) => batch::run(job),
        Job::Set(job) => sets::run(job),
        Job::Check(job) => check::keys(job),
        Job::CheckRecords(job) => check::records(job),
        Job::Generate(job) => generate::run(job),
        Job::Info => info::run(),
        Job::Completions(shell) => documents::completions(shell),
        Job::Man(folder) => documents::man(folder.as_deref()),
    }
}
