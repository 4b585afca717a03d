//! Memory for keys and payloads: allocation with an error where there is too little, and the budget of a run.

use super::cgroup::{Headroom, cgroup_headroom};
use super::limits::mappable;
use super::text;
use crate::say::error::{Failure, Result};
use crate::say::report;
use crate::spec::MemorySize;
use bytemuck::Pod;
use bytemuck::allocation::try_zeroed_vec;
use merge_host::allocation;

/// Bytes of a large page on x86-64.
pub const LARGE_PAGE: usize = 2 << 20;

/// Allocations from this size on, in bytes, are compared with the available memory and reported by `--verbose`.
const LARGE: u128 = 1 << 20;
/// Percent of the available memory that a run uses without `--memory`.
const DEFAULT_PERCENT: u64 = 80;
/// Maximum percentage of the available memory that a run uses, even if `--memory` allows more: the program itself, the
/// system's buffers and page tables take memory, too.
const MOST_PERCENT: u64 = 95;
/// Up to this many available bytes, budgets leave no more memory than glibc's allocator keeps.
#[cfg(target_env = "gnu")]
const LITTLE: u64 = 2 << 30;
/// Allocations from this size on, in bytes, are then returned to the system as soon as they are freed.
#[cfg(target_env = "gnu")]
const RETURNED: i32 = 128 << 10;
/// The least budget, in bytes.
const LEAST: u64 = 1 << 20;
/// Bytes of memory to assume where the system reports none.
const UNKNOWN: u64 = 1 << 30;

/// Returns `count` zeros. Messages name them `purpose`.
///
/// The system provides a page at the first write to it, so the allocation takes no time. For the same reason, an
/// allocation beyond the memory would succeed, and the system would kill the program later. So the size is first
/// compared with the available memory.
pub fn zeroed<T: Pod>(count: u64, purpose: &str) -> Result<Vec<T>> {
    let needed = u128::from(count) * size_of::<T>() as u128;
    check(needed, purpose)?;
    let count = usize::try_from(count).map_err(|_| too_much(needed, purpose, "more than this machine can address"))?;
    allocation::handled(|| try_zeroed_vec(count)).map_err(|()| refused(needed, purpose))
}

/// An error if `needed` bytes are more than the system can provide. Messages name them `purpose`.
pub fn check(needed: u128, purpose: &str) -> Result<()> {
    if needed < LARGE {
        return Ok(());
    }
    let Some(available) = obtainable() else { return Ok(()) };
    if needed > available.into() {
        return Err(too_much(needed, purpose, &format!("and {available} are available")));
    }
    report::verbose(format_args!("memory: {needed} bytes for {purpose}, of {available} available"));
    Ok(())
}

fn refused(needed: u128, purpose: &str) -> Failure {
    too_much(needed, purpose, "and the system gives none")
}

fn too_much(needed: u128, purpose: &str, why: &str) -> Failure {
    Failure::new(format!("{purpose} takes {needed} bytes of memory, {why}"))
}

/// Requests pages of 2 MiB for `numbers`: they cause fewer page faults, and fewer misses of the TLB in random access.
/// Where the system has no such pages, nothing changes.
pub fn prefer_large_pages<T: Pod>(numbers: &mut [T]) {
    let range = numbers.as_mut_ptr_range();
    let begin = range.start.addr().next_multiple_of(LARGE_PAGE);
    let end = range.end.addr() / LARGE_PAGE * LARGE_PAGE;
    if begin < end {
        let start = range.start.with_addr(begin).cast();
        // SAFETY: range.start <= begin < end <= range.end, so that all pages from begin to end belong to `numbers`,
        // which is borrowed exclusively. This advice does not change the contents of pages.
        let _ = unsafe { rustix::mm::madvise(start, end - begin, rustix::mm::Advice::LinuxHugepage) };
    }
}

/// Reserves memory for `more` additional items of `items`. Messages name the memory `purpose`.
pub fn reserve<T: Pod>(items: &mut Vec<T>, more: usize, purpose: &str) -> Result<()> {
    let needed = more as u128 * size_of::<T>() as u128;
    check(needed, purpose)?;
    allocation::handled(|| items.try_reserve_exact(more)).map_err(|_| refused(needed, purpose))
}

/// Bytes of memory that the system can still provide, including swap, or `None` if it does not report them.
pub fn obtainable() -> Option<u64> {
    Machine::read().map(|machine| machine.obtainable)
}

/// The budget of a run, in bytes: memory for keys, payloads and everything that grows with their number. It is the size
/// in `--memory`, limited by the available memory. Without `--memory` it is most of the available memory.
///
/// Where `ulimit -v` limits memory, threads reduce the budget: start them first.
///
/// Files in memory (on a tmpfs: see [`disk::is_in_memory`](super::disk::is_in_memory)) use the same memory, but
/// `--memory` cannot make them smaller. `files` is the number of bytes that a run writes to such files. It is
/// subtracted from the available memory, and not from the size in `--memory`. A planner calls this function in two
/// cases:
///
/// 1. In memory, a run takes `needed` bytes, in a sort twice the bytes of its keys. Its output takes `files` bytes if
///    it is in memory. The run is possible if `needed + files <= budget(asked, 0)`. So a sort to /dev/shm is planned
///    with three times the bytes of its keys.
/// 2. In chunks, a run has `budget(asked, files)` bytes. `files` is the sum of the bytes of the output and of the
///    temporary file, as far as they are in memory.
///
/// Inputs in memory are not part of `files`, because their memory is already unavailable.
///
/// # Errors
/// If the size in `--memory` is less than 1 MiB.
pub fn budget(asked: Option<MemorySize>, files: u64) -> Result<u64> {
    let unknown = Machine { total: UNKNOWN, available: UNKNOWN, obtainable: UNKNOWN };
    Machine::read().unwrap_or(unknown).budget(asked, files)
}

/// Bytes of memory to leave for files in memory that will take `least` to `most` bytes: `most` if that is available or
/// exact. Otherwise 1 / `parts` of the available memory is left for keys.
pub fn for_files(least: u64, most: u64, parts: u64) -> u64 {
    let available = Machine::read().map_or(UNKNOWN, |machine| machine.available);
    if least == most || most <= available { most } else { least.max(available - available / parts) }
}

/// If `bytes`, the memory that may be used, are few, makes the allocator return freed memory to the system at once. By
/// default glibc keeps 64 MiB and more, which may be a quarter of the memory of the keys. In return, the system has to
/// provide more pages.
pub fn return_freed(bytes: u64) {
    #[cfg(target_env = "gnu")]
    if bytes < LITTLE {
        // SAFETY: mallopt(3) changes a parameter of the allocator. It is thread-safe.
        let _ = unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, RETURNED) };
    }
}

/// Returns memory that the allocator keeps to the system: blocks between others that are in use, too.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim(3) has no other arguments than the bytes to keep. It is thread-safe.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// The memory of a machine, or of the part of it that this process may use, in bytes.
#[derive(Clone, Copy, Debug)]
struct Machine {
    /// All memory of the machine.
    total: u64,
    /// Memory that can be allocated without swapping.
    available: u64,
    /// Memory that can be allocated, including swap.
    obtainable: u64,
}

impl Machine {
    /// Reads the memory of the machine, and sets the allocator for it. Every plan reads it before its large
    /// allocations.
    fn read() -> Option<Self> {
        let machine = Self::parse(&text("/proc/meminfo")?)?;
        let machine = machine.within(cgroup_headroom()).mapping(mappable());
        return_freed(machine.available);
        Some(machine)
    }

    /// The machine in the text of /proc/meminfo. `MemAvailable` is free memory plus the reclaimable part of the page
    /// cache and slabs. It includes neither shared memory nor the files of a tmpfs.
    fn parse(meminfo: &str) -> Option<Self> {
        let field = |name: &str| {
            let field = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix("kB"))?;
            Some(field.trim().parse::<u64>().ok()?.saturating_mul(1024))
        };
        let (total, available) = (field("MemTotal:")?, field("MemAvailable:")?);
        Some(Self { total, available, obtainable: available.saturating_add(field("SwapFree:").unwrap_or(0)) })
    }

    /// The part of the machine that a control group leaves.
    fn within(self, group: Option<Headroom>) -> Self {
        let Some(Headroom { memory, swap }) = group else { return self };
        Self {
            total: self.total,
            available: self.available.min(memory),
            obtainable: self.obtainable.min(memory.saturating_add(swap)),
        }
    }

    /// The part of the machine for a process that can map `bytes` more. Half of these bytes are for the data, as in
    /// sort(1). Stacks of threads and arenas of the allocator are mapped, too.
    fn mapping(self, bytes: Option<u64>) -> Self {
        let Some(bytes) = bytes else { return self };
        Self { available: self.available.min(bytes / 2), obtainable: self.obtainable.min(bytes), ..self }
    }

    /// [`budget`] on this machine.
    fn budget(self, asked: Option<MemorySize>, files: u64) -> Result<u64> {
        let left = self.available.saturating_sub(files);
        let percent = |percent: u64| left / 100 * percent;
        let bytes = match asked.map(|size| size.bytes(self.total)) {
            None => percent(DEFAULT_PERCENT),
            Some(bytes @ LEAST..) => bytes.min(percent(MOST_PERCENT)),
            Some(bytes) => {
                let message = format!("--memory: is {bytes} bytes, expected at least 1M, which is {LEAST}");
                return Err(Failure::new(message));
            }
        };
        Ok(bytes.max(LEAST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;
    const MACHINE: Machine = Machine { total: 100 * GIB, available: 50 * GIB, obtainable: 60 * GIB };

    fn budget_of(machine: Machine, asked: Option<MemorySize>, files: u64) -> u64 {
        machine.budget(asked, files).unwrap()
    }

    #[test]
    fn the_budget_is_what_was_asked_for_within_what_is_available() {
        let bytes = |bytes| Some(MemorySize::Bytes(bytes));
        assert_eq!(budget_of(MACHINE, None, 0), 50 * GIB / 100 * 80);
        assert_eq!(budget_of(MACHINE, bytes(2 << 20), 0), 2 << 20);
        assert_eq!(budget_of(MACHINE, Some(MemorySize::Percent(10)), 0), 10 * GIB);
        assert_eq!(budget_of(MACHINE, bytes(u64::MAX), 0), 50 * GIB / 100 * 95);
        assert_eq!(budget_of(MACHINE, Some(MemorySize::Percent(100)), 0), 50 * GIB / 100 * 95);
        let failure = MACHINE.budget(bytes(1000), 0).unwrap_err();
        assert_eq!(failure.message(), Some("--memory: is 1000 bytes, expected at least 1M, which is 1048576"));
        let here = budget(bytes(u64::MAX), 0).unwrap();
        assert!(budget(None, 0).unwrap() <= here);
    }

    #[test]
    fn files_in_memory_leave_less_of_it() {
        let asked = Some(MemorySize::Bytes(8 * GIB));
        assert_eq!(budget_of(MACHINE, None, 20 * GIB), 30 * GIB / 100 * 80);
        assert_eq!(budget_of(MACHINE, asked, 20 * GIB), 8 * GIB);
        assert_eq!(budget_of(MACHINE, asked, 46 * GIB), 4 * GIB / 100 * 95);
        assert_eq!(budget_of(MACHINE, asked, 60 * GIB), LEAST);
        assert_eq!(budget_of(MACHINE, None, u64::MAX), LEAST);
    }

    #[test]
    fn files_of_unknown_size_count_with_the_most_that_there_can_be() {
        assert_eq!([for_files(0, 0, 2), for_files(7, 7, 2), for_files(0, 7, 2)], [0, 7, 7]);
        assert_eq!(for_files(u64::MAX, u64::MAX, 2), u64::MAX);
        assert_eq!(for_files(u64::MAX - 1, u64::MAX, 2), u64::MAX - 1);
        let total = Machine::read().map_or(UNKNOWN, |machine| machine.total);
        for parts in [2, 8] {
            let left = for_files(0, u64::MAX, parts);
            assert!(left > 0 && left <= total - total / parts, "{left}");
        }
    }

    #[test]
    fn shared_memory_is_not_available() {
        let meminfo = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    300 kB\n\
                       Cached:          700 kB\nSwapCached:        0 kB\nShmem:           500 kB\n\
                       SwapTotal:        90 kB\nSwapFree:         50 kB\n";
        let machine = Machine::parse(meminfo).unwrap();
        let found = [machine.total, machine.available, machine.obtainable].map(|bytes| bytes >> 10);
        assert_eq!(found, [1000, 300, 350]);
        assert!(Machine::parse("MemTotal: 1000 kB\n").is_none());
    }

    #[test]
    fn a_group_and_a_limit_of_the_process_leave_less() {
        let group = |memory, swap| MACHINE.within(Some(Headroom { memory, swap }));
        assert_eq!(group(4 * GIB, 0).available, 4 * GIB);
        assert_eq!(group(4 * GIB, 0).obtainable, 4 * GIB);
        assert_eq!(group(4 * GIB, GIB).obtainable, 5 * GIB);
        assert_eq!(group(90 * GIB, u64::MAX).available, 50 * GIB);
        assert_eq!(group(90 * GIB, u64::MAX).obtainable, 60 * GIB);
        let limited = MACHINE.mapping(Some(GIB));
        assert_eq!((limited.available, limited.obtainable), (GIB / 2, GIB));
        assert_eq!(MACHINE.mapping(None).available, MACHINE.available);
    }

    #[test]
    fn more_than_there_is_is_an_error_that_says_what_for() {
        let failure = zeroed::<u64>(1 << 50, "the test").unwrap_err();
        assert!(failure.message().unwrap().starts_with("the test takes 9007199254740992 bytes of memory, and "));
        assert_eq!(zeroed::<u32>(3, "the test").unwrap(), [0; 3]);
    }
}
