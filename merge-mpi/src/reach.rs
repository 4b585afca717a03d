//! Runs in the memory of other processes of this machine. A rank reads them without the help of those processes.
//!
//! ```text
//!   memory of rank 0   │ part 0 │ part 1 │ part 2 │
//!   memory of rank 1   │ part 0 │ part 1 │ part 2 │     rank 1 reads its part of each run, and merges what it has read
//!   memory of rank 2   │ part 0 │ part 1 │ part 2 │
//!                                   └─────────────────► part 1 of the output
//! ```
//!
//! There are no pieces and no messages, so no rank waits for another between the splits and the end. Linux permits such
//! reads among processes of one user (process_vm_readv(2)), unless it is configured to permit them for debuggers only.
//! Then the runs are sent.

use crate::exchange::{Exchange, Reduction};
use crate::run::Run;
use merge_cli::shared::{Failure, Result, Word, os_message};
use merge_host::external::Source;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::ops::Range;

/// Numbers that a rank sends about its run: see [`Reached`].
const NUMBERS: usize = 5;

/// A run in the memory of a process.
#[derive(Clone, Copy, Debug)]
pub struct Reached<W> {
    process: libc::pid_t,
    /// The address of the first key in that process.
    keys: u64,
    /// The address of the first payload.
    payload: u64,
    words: PhantomData<W>,
}

/// The runs of all ranks. `None` unless every rank can read the memory of every run, and all ranks `have_memory` for
/// windows.
///
/// A rank may read the returned runs until the next step of all ranks. Until then, no run changes.
pub fn reached<W: Word>(exchange: &impl Exchange, run: &Run<W>, have_memory: bool) -> Option<Vec<Reached<W>>> {
    if !exchange.is_one_machine() {
        return None;
    }
    // If ranks are in containers, the number of a process may name another process. The secret at this address
    // identifies the right process.
    let secret = Box::new(RandomState::new().hash_one(0));
    let (mut is_in_memory, mut own) = (true, [0; NUMBERS]);
    match run {
        Run::Memory { keys, payload } => {
            let addresses = [keys.as_ptr().addr(), payload.get().as_ptr().addr(), (&raw const *secret).addr()];
            let [keys, payload, known] = addresses.map(|address| address as u64);
            own = [u64::from(std::process::id()), keys, payload, known, *secret];
        }
        Run::Spilled(_) => is_in_memory = false,
    }
    let all = exchange.transpose(&own.repeat(exchange.size()));
    let runs: Vec<Reached<W>> = all
        .chunks(NUMBERS)
        .map(|of| Reached { process: of[0] as libc::pid_t, keys: of[1], payload: of[2], words: PhantomData })
        .collect();
    let is_there = |(run, of): (&Reached<W>, &[u64])| {
        let mut found = [0];
        read(run.process, of[3], bytemuck::bytes_of_mut(&mut found)).is_ok() && found[0] == of[4]
    };
    let is_reached = have_memory && is_in_memory && runs.iter().zip(all.chunks(NUMBERS)).all(is_there);
    let mut agreed = [u64::from(is_reached)];
    exchange.all_reduce(Reduction::Min, &mut agreed);
    (agreed[0] == 1).then_some(runs)
}

impl<W: Word> Reached<W> {
    /// The keys of a range of the run, with their payloads of `width` bytes.
    pub fn part(self, range: Range<u64>, width: usize) -> impl Source<W, Error = Failure> {
        Unread { run: self, range, width }
    }
}

/// The unread part of a run.
#[derive(Debug)]
struct Unread<W> {
    run: Reached<W>,
    range: Range<u64>,
    width: usize,
}

impl<W: Word> Source<W> for Unread<W> {
    type Error = Failure;

    fn len(&self) -> Option<u64> {
        Some(self.range.end - self.range.start)
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize> {
        let Self { run, range, width } = self;
        let count = (range.end - range.start).min(keys.len() as u64) as usize;
        let (keys, payload) = (bytemuck::cast_slice_mut(&mut keys[..count]), &mut payload[..count * *width]);
        let key = run.keys + range.start * W::SIZE as u64;
        let read = read(run.process, key, keys)
            .and_then(|()| read(run.process, run.payload + range.start * *width as u64, payload));
        read.map_err(|error| {
            let message = format!("cannot read the memory of process {}: {}", run.process, os_message(&error));
            Failure::new(message)
        })?;
        range.start += count as u64;
        Ok(count)
    }
}

/// Fills `bytes` from an address in the memory of a process.
fn read(process: libc::pid_t, address: u64, bytes: &mut [u8]) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &mut bytes[done..];
        let from = std::ptr::without_provenance_mut(address as usize + done);
        let local = libc::iovec { iov_base: rest.as_mut_ptr().cast(), iov_len: rest.len() };
        let remote = libc::iovec { iov_base: from, iov_len: rest.len() };
        // SAFETY: `local` is the address and the length of `rest`, which is borrowed exclusively, and the system writes
        // nowhere else. The system checks the remote address: memory that this process may not read is an error.
        match unsafe { libc::process_vm_readv(process, &local, 1, &remote, 1, 0) } {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count @ 1.. => done += count as usize,
            _ => match io::Error::last_os_error() {
                error if error.kind() == ErrorKind::Interrupted => {}
                error => return Err(error),
            },
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let (numbers, own) = ([1u64, 2, 3], std::process::id() as libc::pid_t);
        let mut found = [0u64; 3];
        let address = numbers.as_ptr().addr() as u64;
        read(own, address, bytemuck::cast_slice_mut(&mut found)).unwrap();
        assert_eq!(found, numbers);
        read(own, 0, &mut []).unwrap();
        assert_eq!(read(own, 16, &mut [0]).unwrap_err().raw_os_error(), Some(libc::EFAULT));
        assert_eq!(read(libc::pid_t::MAX, address, &mut [0]).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }
}
