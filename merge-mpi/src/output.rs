//! An output file that all ranks write, or a file for each rank.

use crate::agree::step;
use crate::exchange::Exchange;
use merge_cli::shared::{Failure, Identity, KeyRegion, Location, Output, Result, SharedWriter, Word};
use merge_host::parallel;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Bytes that a thread writes at once.
const BLOCK: usize = 1 << 20;

/// The items of a file that a rank writes: keys, values or records.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// The index of the first item in the file.
    pub first: u64,
    /// The number of items that the rank writes.
    pub count: u64,
    /// The number of items of the file.
    pub all: u64,
}

/// The owner of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Each rank has its own file.
    Each,
    /// Rank 0 creates the file.
    First {
        /// Whether all ranks are on the machine of rank 0.
        on_one_machine: bool,
    },
}

/// Creates the temporary file of an output, or opens the temporary file of rank 0.
///
/// # Errors
/// If a rank cannot create or open the file.
pub fn open(exchange: &impl Exchange, output: Output, window: Window, owner: Owner) -> Result<SharedWriter> {
    let Owner::First { on_one_machine } = owner else {
        return step(exchange, || create(output, window, true));
    };
    let (mut own, mut others) = if exchange.rank() == 0 { (Some(output), None) } else { (None, Some(output)) };
    let created = step(exchange, || own.take().map(|output| create(output, window, on_one_machine)).transpose())?;
    let location = step(exchange, || created.as_ref().map_or(Ok(None), SharedWriter::location))?;
    let location = exchange.broadcast(location.as_ref().map(encode).unwrap_or_default());
    let opened = step(exchange, || {
        let open = |output: Output| output.open_shared(&decode(&location)?, window.all, on_one_machine);
        others.take().map(open).transpose()
    })?;
    // Each rank has created or opened the file.
    created.or(opened).ok_or_else(|| Failure::new("the output was not opened"))
}

/// A location as a message: device, inode and path.
fn encode(location: &Location) -> Vec<u8> {
    let Location { path, file: Identity { device, inode } } = location;
    [&device.to_le_bytes()[..], &inode.to_le_bytes(), path.as_os_str().as_bytes()].concat()
}

/// Decodes a location: the inverse of [`encode`].
fn decode(message: &[u8]) -> Result<Location> {
    let (numbers, path) = message.split_at_checked(2 * size_of::<u64>()).unwrap_or_default();
    let [device, inode] = bytemuck::pod_collect_to_vec::<u8, u64>(numbers)[..] else {
        return Err(Failure::new("rank 0 has not told where the output is"));
    };
    let path = PathBuf::from(OsString::from_vec(path.to_vec()));
    Ok(Location { path, file: Identity { device, inode } })
}

fn create(output: Output, window: Window, is_local: bool) -> Result<SharedWriter> {
    output.check_space(u128::from(window.all) * output.size() as u128)?;
    output.create_shared(window.all, is_local)
}

/// Writes encoded keys, or the bytes of values or records, from index `begin` of the region on, with all threads.
///
/// # Errors
/// The error of the system.
pub fn write<W: Word>(region: &KeyRegion, begin: u64, items: &[W]) -> Result<()> {
    let block = BLOCK / W::SIZE;
    let blocks = items.chunks(block).zip((begin..).step_by(block));
    parallel::try_for_each(blocks, |(items, begin)| region.write(begin, items))
}
