//! Sorts, merges and checks of tables.

mod check;
mod merge;
mod sort;
mod verify;

pub use check::check;

use super::finish;
use crate::job::{TableTask, Tables};
use crate::os::{disk, memory, threads};
use crate::plan::Destination;
use crate::say::error::{Failure, Result};
use crate::say::stats::Phase;
use crate::table::{Dictionaries, Limits, Reader, Runs, TableKey, share};
use verify::{Sum, verify};

/// Batches that are read at once take this part of the memory. [`Runs`] divide the rest.
const PARTS: u64 = 8;
/// Up to this many bytes of memory, freed memory is returned at once: what the allocator keeps would be a large part.
const LITTLE: u64 = 256 << 20;

/// Bytes that a part of a table may take beside the memory.
const SPARE: u64 = 16 << 20;

/// A sort or a merge of tables, with the runs so far.
struct Working<'a> {
    key: &'a TableKey,
    dictionaries: Dictionaries,
    limits: Limits,
    /// Bytes of memory.
    memory: u64,
    /// The checksum of what was read or written.
    sum: &'a Sum,
    runs: Runs,
}

/// Sorts or merges tables.
pub fn run(job: Tables) -> Result<()> {
    let Tables { task, readers, length, key, dictionaries, limits, output, verify: is_verified, resources, stats } =
        job;
    let mut stats = stats;
    threads::start(resources.threads, threads::useful(length))?;
    output.output.check_space(0)?;
    let destination = Destination::of_keys(output.output.folder(), 0).or_up_to(None);
    let memory = memory::budget(resources.memory, destination.in_memory())?;
    if memory < LITTLE {
        memory::return_freed(memory);
    }
    if !resources.folders.is_empty() {
        disk::temporary_folders(&resources.folders)?;
    }
    let memory = memory - if let TableTask::Sort = task { held(&readers, memory)? } else { 0 };
    let runs = Runs::new(resources.folders, &dictionaries, limits, memory, resources.fan_in);
    let (sum, format) = (Sum::new(is_verified, limits), output.format);
    let mut working = Working { key: &key, dictionaries, limits, memory, sum: &sum, runs };
    let mut writer = output.writer(share(memory));
    let writer = match task {
        TableTask::Sort => {
            sort::sort(readers, &mut working, &mut stats)?;
            memory::trim();
            let Working { dictionaries, runs, .. } = working;
            stats.time(Phase::Write, || {
                runs.merge(&mut |chunk, order| {
                    sum.add_written(chunk, order);
                    writer.write(chunk, order, &dictionaries)
                })?;
                writer.finish(dictionaries.schema())
            })?
        }
        TableTask::Merge { assume_sorted } => {
            let merging = merge::Options { assume_sorted, fan_in: resources.fan_in };
            merge::merge(readers, working, merging, writer, &mut stats)?
        }
    };
    if is_verified {
        stats.time(Phase::Check, || verify(&writer, format, &key, &sum, memory / PARTS))?;
    }
    finish([writer], stats)
}

/// Bytes of the memory that the largest part of a table takes while it is sorted.
///
/// # Errors
/// If that is more than half of the memory.
fn held(readers: &[Reader], memory: u64) -> Result<u64> {
    // The memory may become half as much.
    let part = memory / PARTS / 2;
    let largest = readers.iter().max_by_key(|reader| reader.largest_part(part));
    let Some((reader, bytes)) = largest.map(|reader| (reader, reader.largest_part(part))) else { return Ok(0) };
    let held = bytes.saturating_sub(SPARE);
    if held > memory / 2 {
        let least = (2 * held).div_ceil(1 << 20);
        let message = format!("{bytes} bytes of it are read at once, which takes --memory {least}M or more");
        return Err(Failure::file(reader.path(), message));
    }
    Ok(held)
}
