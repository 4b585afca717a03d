//! Resource limits of this process, as in setrlimit(2).

use super::text;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs;

/// File descriptors that a run needs in addition to its inputs and to descriptors that are already open. They are for
/// outputs, a temporary file, and files in /proc that are read once.
const OTHER_FILES: u64 = 16;
/// File descriptors for the driver of a GPU, if the limit allows them as well.
const DRIVER_FILES: u64 = 64;
/// Assumed number of open file descriptors where /proc is not readable.
const OPEN_FILES: usize = 8;

/// Raises the limit of open files for `wanted` inputs, as far as the hard limit allows. Returns the number of inputs
/// that can be open at once, at most `wanted`. It may be less than two. Then opening a file fails with the system's
/// message.
pub fn open_files(wanted: usize) -> usize {
    let open = fs::read_dir("/proc/self/fd").map_or(OPEN_FILES, Iterator::count) as u64;
    let (taken, wanted) = (open + OTHER_FILES, wanted as u64);
    let limit = getrlimit(Resource::Nofile);
    let raised = raised(&limit, taken + wanted + DRIVER_FILES);
    let soft = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => raised.current,
        Err(_) => limit.current,
    };
    soft.map_or(wanted, |soft| soft.saturating_sub(taken).min(wanted)) as usize
}

/// The limit with its soft limit raised to `needed`, at most to its hard limit.
fn raised(limit: &Rlimit, needed: u64) -> Rlimit {
    let soft = limit.current.map(|soft| soft.max(limit.maximum.map_or(needed, |hard| hard.min(needed))));
    Rlimit { current: soft, maximum: limit.maximum }
}

/// Bytes of memory that this process can still map, if `ulimit -v` or `ulimit -d` limits them.
pub fn mappable() -> Option<u64> {
    let limits = [Resource::As, Resource::Data].map(|resource| getrlimit(resource).current);
    if limits == [None, None] {
        return None;
    }
    left_of(limits, &text("/proc/self/status")?)
}

/// Makes all threads allocate from one heap if `ulimit -v` limits the memory that can be mapped. Otherwise glibc
/// reserves up to 128 MiB for the heap of each thread at its first allocation, and no address space remains for the
/// keys.
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    if getrlimit(Resource::As).current.is_some() {
        // SAFETY: mallopt(3) changes a parameter of the allocator. It is thread-safe.
        let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    }
}

/// The unused part of the limits of address space and of data, in bytes: the lesser of both. `status` is the text of
/// /proc/self/status.
fn left_of(limits: [Option<u64>; 2], status: &str) -> Option<u64> {
    let used = |name: &str| {
        let field = status.lines().find_map(|line| line.strip_prefix(name)?.strip_suffix("kB"))?;
        Some(field.trim().parse::<u64>().ok()? * 1024)
    };
    let left = |limit: Option<u64>, name: &str| Some(limit?.saturating_sub(used(name)?));
    [left(limits[0], "VmSize:"), left(limits[1], "VmData:")].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(soft: u64, hard: u64) -> Rlimit {
        Rlimit { current: Some(soft), maximum: Some(hard) }
    }

    #[test]
    fn a_soft_limit_is_raised_as_far_as_needed_and_allowed() {
        assert_eq!(raised(&limit(64, 4096), 300), limit(300, 4096));
        assert_eq!(raised(&limit(64, 128), 300), limit(128, 128));
        assert_eq!(raised(&limit(1024, 4096), 300), limit(1024, 4096));
        let open = Rlimit { current: Some(64), maximum: None };
        assert_eq!(raised(&open, 300), Rlimit { current: Some(300), maximum: None });
        let unlimited = Rlimit { current: None, maximum: None };
        assert_eq!(raised(&unlimited, 300), unlimited);
    }

    #[test]
    fn files_that_the_limit_allows_can_all_be_opened() {
        assert_eq!(open_files(10), 10);
        let allowed = open_files(usize::MAX / 2) as u64;
        assert!(getrlimit(Resource::Nofile).current.is_none_or(|soft| allowed + OTHER_FILES < soft));
    }

    #[test]
    fn what_is_mapped_already_is_taken_off_the_limit() {
        let status = "VmPeak:\t    9000 kB\nVmSize:\t     300 kB\nVmData:\t     100 kB\n";
        assert_eq!(left_of([Some(1000 << 10), None], status), Some(700 << 10));
        assert_eq!(left_of([None, Some(1000 << 10)], status), Some(900 << 10));
        assert_eq!(left_of([Some(1000 << 10), Some(1000 << 10)], status), Some(700 << 10));
        assert_eq!(left_of([Some(1000), None], status), Some(0));
        assert_eq!(left_of([None, None], status), None);
        assert_eq!(left_of([Some(1000), None], ""), None);
    }
}
