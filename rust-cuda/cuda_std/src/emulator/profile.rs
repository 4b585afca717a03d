//! Bank conflicts and uncoalesced accesses, for each source line.
//!
//! A GPU serves the lanes of a warp together. Lanes of the emulator run one after the other, so that their accesses are
//! collected until all lanes of the warp are aligned again, and matched then; see [`Profile`].

use super::{
    MAX_BLOCK_THREADS,
    fault::{Access, Location, Space},
    shadow::WARP,
};
use core::{
    cmp::Reverse,
    fmt::{self, Display, Formatter},
    mem::take,
    panic::Location as Caller,
};
use std::{collections::HashMap, vec::Vec};

/// The memory accesses of launches, for each source line, as requests of warps: what
/// [`Emulator::profile`](super::Emulator::profile) returns.
///
/// A *request* is the access of a warp: of its lanes that execute a line together. It needs a number of *units*, and
/// would need fewer, the *ideal*, with better addresses:
///
/// - Shared memory has 32 banks of 4 bytes. One wavefront serves one word of each bank, so that lanes conflict if they
///   access different words of a bank. Atomic updates of the same word conflict, too. An access of 8 bytes is served
///   for each half of a warp. The ideal is one wavefront, or one for each half.
/// - Global memory is read and written in sectors of 32 bytes. The ideal is the number of sectors that the requested
///   bytes would fill. Bytes that several lanes request count once.
///
/// Which lanes execute a line together is an approximation. The n-th executions of a line by all lanes of a warp are
/// one request. Each lane counts its executions from the last point where the whole warp was aligned: a barrier, or a
/// warp operation of all lanes. Lanes of [`next_if`](crate::Shared::next_if) and [`push_if`](crate::Shared::push_if)
/// without an access count their executions, too. On x86-64, a line that is compiled several times counts apart in each
/// place, as in an unrolled loop or an inlined function.
///
/// A GPU may execute lanes separately that are one request here, such as lanes that leave a loop at different times. It
/// may also execute a line in a branch of a loop for lanes that are in different requests here.
///
/// Caches and prefetches have no model. A line that waits for another block has as many requests as the interleaving
/// gives it.
///
/// As text it is a table for each memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// A row for each line and kind of access: first those of shared memory, by descending excess.
    pub rows: Vec<Row>,
}

/// The accesses of one kind at one place in the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The line and the column.
    pub location: Location,
    /// The memory.
    pub space: Space,
    /// Whether the accesses are reads, writes or updates.
    pub access: Access,
    /// Bytes of a lane's access.
    pub size: usize,
    /// Accesses of warps.
    pub requests: u64,
    /// Wavefronts of shared memory, or sectors of global memory.
    pub units: u64,
    /// The least number of units for the same bytes.
    pub ideal: u64,
}

impl Row {
    /// The units beyond the ideal.
    pub fn excess(&self) -> u64 {
        self.units - self.ideal
    }
}

impl Display for Profile {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (space, units) in [(Space::Shared, "wavefronts"), (Space::Global, "sectors")] {
            let rows = || self.rows.iter().filter(|row| row.space == space);
            if rows().next().is_none() {
                continue;
            }
            let sum = |of: fn(&Row) -> u64| rows().map(of).sum::<u64>();
            writeln!(f, "{:>12}{units:>12}{:>12}{:>12}  of {space}", "excess", "ideal", "requests")?;
            for row in rows() {
                let Row { location, access, size, requests, units, ideal, .. } = row;
                write!(f, "{:>12}{units:>12}{ideal:>12}{requests:>12}  ", row.excess())?;
                writeln!(f, "{access} {size} bytes at {location}")?;
            }
            let (excess, ideal) = (sum(Row::excess), sum(|row| row.ideal));
            writeln!(f, "{excess:>12}{:>12}{ideal:>12}{:>12}  in total", excess + ideal, sum(|row| row.requests))?;
        }
        Ok(())
    }
}

/// A place in a kernel's code.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Code {
    pub location: &'static Caller<'static>,
    /// An address in the code. It tells accesses with the same location apart, such as those of a search and of a loop
    /// in functions with `#[track_caller]`. 0 where it is unknown.
    address: usize,
}

impl Code {
    /// The place in the function into which the calling function is inlined.
    #[inline(always)]
    #[track_caller]
    pub(super) fn here() -> Self {
        let address;
        // SAFETY: the instruction writes one register.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            core::arch::asm!("lea {}, [rip]", out(reg) address, options(nomem, nostack, preserves_flags));
        }
        #[cfg(not(target_arch = "x86_64"))]
        {
            address = 0;
        }
        Self { location: Caller::caller(), address }
    }
}

/// The place and the kind of an access.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Site {
    pub code: Code,
    pub space: Space,
    pub access: Access,
    pub size: usize,
}

/// The position of a lane.
#[derive(Clone, Copy)]
pub(super) struct Lane {
    /// The place of its block, and its linear index in the block.
    pub place: (usize, usize),
    /// A number that changes when all lanes of the warp are aligned.
    pub interval: (u32, u32),
}

/// A lane's execution of an access.
struct Execution {
    /// The number of its site.
    site: u32,
    lane: u8,
    /// Whether the lane accesses memory.
    is_active: bool,
    address: usize,
}

/// The executions of a warp's lanes in one interval.
#[derive(Default)]
struct Trace {
    interval: (u32, u32),
    executions: Vec<Execution>,
}

#[derive(Clone, Copy, Default)]
struct Counts {
    requests: u64,
    units: u64,
    ideal: u64,
}

/// The counts of a profile that is being made.
#[derive(Default)]
pub(super) struct Profiler {
    /// The numbers of sites.
    numbers: HashMap<Site, u32>,
    counts: Vec<(Site, Counts)>,
    /// For each place of a block, the traces of as many warps as a block can have.
    traces: Vec<Trace>,
}

impl Profiler {
    /// Records that a lane executes an access, to `address` unless its condition is false.
    pub(super) fn note(&mut self, lane: Lane, site: Site, address: Option<usize>) {
        let (place, thread) = lane.place;
        let at = place * (MAX_BLOCK_THREADS as usize / WARP) + thread / WARP;
        if at >= self.traces.len() {
            self.traces.resize_with(at + 1, Trace::default);
        }
        if self.traces[at].interval != lane.interval {
            self.count(at);
            self.traces[at].interval = lane.interval;
        }
        let site = *self.numbers.entry(site).or_insert_with(|| {
            self.counts.push((site, Counts::default()));
            self.counts.len() as u32 - 1
        });
        let (lane, is_active, address) = ((thread % WARP) as u8, address.is_some(), address.unwrap_or(0));
        self.traces[at].executions.push(Execution { site, lane, is_active, address });
    }

    /// Counts what has not been counted yet, at the end of a launch.
    pub(super) fn finish(&mut self) {
        (0..self.traces.len()).for_each(|at| self.count(at));
    }

    /// Counts the requests of a trace, and empties it.
    fn count(&mut self, at: usize) {
        let mut executions = take(&mut self.traces[at].executions);
        // The executions of each lane stay in their order.
        executions.sort_by_key(|execution| (execution.site, execution.lane));
        for of_site in executions.chunk_by(|a, b| a.site == b.site) {
            let (site, counts) = &mut self.counts[of_site[0].site as usize];
            let lanes: Vec<_> = of_site.chunk_by(|a, b| a.lane == b.lane).collect();
            let most = lanes.iter().map(|lane| lane.len()).max().unwrap_or(0);
            for turn in 0..most {
                let executed = lanes.iter().filter_map(|lane| lane.get(turn)).filter(|lane| lane.is_active);
                counts.add(site, executed.map(|lane| (usize::from(lane.lane), lane.address)).collect());
            }
        }
        executions.clear();
        self.traces[at].executions = executions;
    }

    pub(super) fn profile(&self) -> Profile {
        let key = |site: &Site| (site.code.location, site.space == Space::Global, site.access as u8, site.size);
        let mut counts: Vec<_> = self.counts.iter().filter(|(_, counts)| counts.requests > 0).collect();
        counts.sort_by_key(|(site, _)| key(site));
        let of_line = |of_line: &[&(Site, Counts)]| {
            let Site { code, space, access, size } = of_line[0].0;
            let sum = |of: fn(&Counts) -> u64| of_line.iter().map(|(_, counts)| of(counts)).sum();
            let [requests, units, ideal] =
                [sum(|counts| counts.requests), sum(|counts| counts.units), sum(|counts| counts.ideal)];
            Row { location: code.location.into(), space, access, size, requests, units, ideal }
        };
        let mut rows: Vec<Row> = counts.chunk_by(|a, b| key(&a.0) == key(&b.0)).map(of_line).collect();
        // Lines of equal excess stay in their order.
        rows.sort_by_key(|row| (row.space == Space::Global, Reverse(row.excess())));
        Profile { rows }
    }
}

impl Counts {
    /// Adds the request of these lanes, in ascending order, to these addresses.
    fn add(&mut self, site: &Site, lanes: Vec<(usize, usize)>) {
        if lanes.is_empty() {
            return;
        }
        let (units, ideal) = match site.space {
            Space::Shared => wavefronts(&lanes, site),
            Space::Global => sectors(&lanes, site.size),
        };
        self.requests += 1;
        self.units += units;
        self.ideal += ideal;
    }
}

/// Banks of shared memory, and bytes of a word of a bank.
const BANKS: usize = 32;
const BANK_BYTES: usize = 4;

/// The wavefronts of a request, and their least number.
fn wavefronts(lanes: &[(usize, usize)], site: &Site) -> (u64, u64) {
    let (mut units, mut ideal) = (0, 0);
    // All banks together have this many lanes' bytes.
    let at_once = BANKS * BANK_BYTES / site.size.max(BANK_BYTES);
    for lanes in lanes.chunk_by(|a, b| a.0 / at_once == b.0 / at_once) {
        let words = |&(_, address): &(usize, usize)| address / BANK_BYTES..(address + site.size).div_ceil(BANK_BYTES);
        let mut words: Vec<usize> = lanes.iter().flat_map(words).collect();
        if site.access != Access::Update {
            words.sort_unstable();
            words.dedup();
        }
        let mut of_bank = [0; BANKS];
        words.into_iter().for_each(|word| of_bank[word % BANKS] += 1);
        units += of_bank.into_iter().max().unwrap_or(0);
        ideal += 1;
    }
    (units, ideal)
}

/// The sectors of a request, and their least number. An access is within one sector, because its address is a multiple
/// of its size.
fn sectors(lanes: &[(usize, usize)], size: usize) -> (u64, u64) {
    const SECTOR: usize = 32;
    let mut addresses: Vec<usize> = lanes.iter().map(|&(_, address)| address).collect();
    addresses.sort_unstable();
    addresses.dedup();
    let ideal = (addresses.len() * size).div_ceil(SECTOR);
    addresses.dedup_by_key(|address| *address / SECTOR);
    (addresses.len() as u64, ideal as u64)
}
