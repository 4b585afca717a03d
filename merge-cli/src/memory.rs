//! Memory for keys and values: how much there is, how much may be used, and an error where there is not enough.

use crate::error::{Failure, Result};
use crate::report;
use bytemuck::Pod;
use std::fs;
use std::path::Path;
use std::str::FromStr;

/// Bytes of a large page on x86-64.
pub const LARGE_PAGE: usize = 2 << 20;
/// What to say where the system has refused.
const NONE_GIVEN: &str = "and the system gives none";

/// Bytes of memory that are worth a line of `--verbose`.
const LARGE: u128 = 1 << 20;
/// Percent of the memory that is available to use where nobody says how much.
const SHARE: u64 = 80;
/// The least that a sort can be told to do with.
const LEAST: u64 = 1 << 20;
/// What to take where the system does not tell what there is.
const UNKNOWN: u64 = 1 << 30;

/// `count` numbers, all zero. `what` is what they are for, in a message.
///
/// The system gives the pages when they are first written to, so this costs no time. That is also why asking for too
/// much seems to succeed and later kills the program, and why this looks at what there is first.
pub fn zeroed<T: Pod>(count: u64, what: &str) -> Result<Vec<T>> {
    let needed = u128::from(count) * size_of::<T>() as u128;
    check(needed, what)?;
    let count = usize::try_from(count).map_err(|_| too_much(needed, what, "which is too much"))?;
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| too_much(needed, what, NONE_GIVEN))
}

/// Makes room for `more` numbers at the end of `numbers`, and for as many as there are at least, if there has to be more.
pub fn reserve<T>(numbers: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    if numbers.capacity() - numbers.len() >= more {
        return Ok(());
    }
    let needed = more.max(numbers.len()) as u128 * size_of::<T>() as u128;
    check(needed, what)?;
    numbers.try_reserve(more).map_err(|_| too_much(needed, what, NONE_GIVEN))
}

/// An error if so many bytes are not there. `what` is what they are for.
pub fn check(needed: u128, what: &str) -> Result<()> {
    let Some(free) = obtainable() else { return Ok(()) };
    if needed > free.into() {
        return Err(too_much(needed, what, &format!("and {free} are available")));
    }
    if needed >= LARGE {
        report::verbose(format_args!("memory: {needed} bytes for {what}, of {free} available"));
    }
    Ok(())
}

fn too_much(needed: u128, what: &str, why: &str) -> Failure {
    Failure::new(format!("{what} takes {needed} bytes of memory, {why}"))
}

/// Has the system give pages of 2 MiB for `numbers` where it can: fewer to give one by one, and fewer addresses to look up
/// where places in them are visited in any order. Where it cannot, nothing changes.
pub fn prefer_large_pages<T: Pod>(numbers: &mut [T]) {
    let range = numbers.as_mut_ptr_range();
    let begin = range.start.addr().next_multiple_of(LARGE_PAGE);
    let end = range.end.addr() / LARGE_PAGE * LARGE_PAGE;
    if begin < end {
        let start = range.start.with_addr(begin).cast();
        // SAFETY: all of these pages belong to `numbers`, and what they hold stays as it is.
        let _ = unsafe { rustix::mm::madvise(start, end - begin, rustix::mm::Advice::LinuxHugepage) };
    }
}

/// Bytes that a program can get, with nothing else having to go but to a swap device, as far as the system tells.
fn obtainable() -> Option<u64> {
    Some(MemInfo::read()?.with_swap())
}

/// How much memory to use at most: a number of bytes, or a share of the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemorySize {
    Bytes(u64),
    Percent(f64),
}

impl FromStr for MemorySize {
    type Err = String;

    /// As sort(1) has it: `%`, `b` for bytes, and K, M, G, T, P, E for powers of 1024; a number alone is in units of 1024.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let expected = || "expected a size like 8G, 500M, 64K or 50%".to_owned();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..end].parse().map_err(|_| expected())?;
        let shift = match &text[end..] {
            "%" if number <= 100 => return Ok(Self::Percent(number as f64)),
            "%" => return Err("expected at most 100%".to_owned()),
            "b" => 0,
            "" | "k" | "K" => 10,
            "m" | "M" => 20,
            "g" | "G" => 30,
            "t" | "T" => 40,
            "p" | "P" => 50,
            "e" | "E" => 60,
            _ => return Err(expected()),
        };
        number.checked_mul(1 << shift).map(Self::Bytes).ok_or_else(|| "more than any machine has".to_owned())
    }
}

/// Bytes that keys, values and everything that grows with their number may take: what was asked for, but no more than is
/// available, or a share of that.
pub fn budget(asked: Option<MemorySize>) -> Result<u64> {
    let info = MemInfo::read();
    let available = info.map_or(UNKNOWN, |info| info.available.min(cgroup_room().unwrap_or(u64::MAX)));
    let bytes = match asked {
        None => return Ok((available / 100 * SHARE).max(LEAST)),
        Some(MemorySize::Bytes(bytes)) => bytes,
        Some(MemorySize::Percent(percent)) => (info.map_or(UNKNOWN, |info| info.total) as f64 * percent / 100.0) as u64,
    };
    if bytes < LEAST {
        return Err(Failure::new(format!("--memory: is {bytes} bytes, expected at least 1M, which is {LEAST}")));
    }
    Ok(bytes.min(available.max(LEAST)))
}

/// What the system says about its memory, in bytes.
#[derive(Clone, Copy, Debug)]
struct MemInfo {
    total: u64,
    available: u64,
    swap: u64,
}

impl MemInfo {
    fn read() -> Option<Self> {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name))?;
            let kilobytes = line.trim_start_matches(':').trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
            Some(kilobytes.saturating_mul(1024))
        };
        Some(Self {
            total: field("MemTotal")?,
            available: field("MemAvailable")?,
            swap: field("SwapFree").unwrap_or(0),
        })
    }

    fn with_swap(self) -> u64 {
        self.available.saturating_add(self.swap)
    }
}

/// Bytes that this process's control group leaves it, if it has one that limits memory.
fn cgroup_room() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    groups.lines().filter_map(|line| room_of_group(Path::new("/sys/fs/cgroup"), line)).min()
}

/// As [`cgroup_room`], of the group in one line of /proc/self/cgroup: `0::PATH` of version 2, `N:memory:PATH` of 1.
/// What the group's files take in the page cache counts as free: it goes as soon as memory is needed.
fn room_of_group(root: &Path, line: &str) -> Option<u64> {
    let (kind, path) = line.split_once(':')?.1.split_once(':')?;
    let (root, limit, used) = match kind {
        "" => (root.to_owned(), "memory.max", "anon "),
        "memory" => (root.join("memory"), "memory.limit_in_bytes", "total_rss "),
        _ => return None,
    };
    // A limit of a group above counts as well, and within a container only the root may be seen.
    let group = root.join(path.trim_start_matches('/'));
    let groups = group.ancestors().take_while(|group| group.starts_with(&root));
    let rooms = groups.filter_map(|group| {
        let limit: u64 = fs::read_to_string(group.join(limit)).ok()?.trim().parse().ok()?;
        let stat = fs::read_to_string(group.join("memory.stat")).ok()?;
        let used = stat.lines().find_map(|line| line.strip_prefix(used)?.trim().parse::<u64>().ok())?;
        Some(limit.saturating_sub(used))
    });
    rooms.min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_sort() {
        let bytes = |text: &str| match text.parse() {
            Ok(MemorySize::Bytes(bytes)) => bytes,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(bytes("8G"), 8 << 30);
        assert_eq!(bytes("500M"), 500 << 20);
        assert_eq!(bytes("64k"), 64 << 10);
        assert_eq!(bytes("3"), 3 << 10);
        assert_eq!(bytes("100b"), 100);
        assert_eq!("50%".parse(), Ok(MemorySize::Percent(50.0)));
        for text in ["", "G", "8GB", "-1", "1.5G", "101%", "99999999999E", "8 G", "10X"] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_budget_is_what_was_asked_for_within_what_there_is() {
        assert_eq!(budget(Some(MemorySize::Bytes(2 << 20))).unwrap(), 2 << 20);
        let available = budget(Some(MemorySize::Bytes(u64::MAX))).unwrap();
        assert!(available <= MemInfo::read().unwrap().total);
        assert!(budget(None).unwrap() <= available);
        let failure = budget(Some(MemorySize::Bytes(1000))).unwrap_err();
        assert_eq!(failure.message(), Some("--memory: is 1000 bytes, expected at least 1M, which is 1048576"));
    }

    #[test]
    fn a_control_group_leaves_its_limit_without_what_is_used() {
        let root = tempfile::tempdir().unwrap();
        let (above, group) = (root.path().join("above"), root.path().join("above/group"));
        fs::create_dir_all(&group).unwrap();
        fs::write(group.join("memory.max"), "max\n").unwrap();
        fs::write(group.join("memory.stat"), "anon 100\nfile 5000\n").unwrap();
        assert_eq!(room_of_group(root.path(), "0::/above/group"), None);
        fs::write(group.join("memory.max"), "9000\n").unwrap();
        assert_eq!(room_of_group(root.path(), "0::/above/group"), Some(8900));
        fs::write(above.join("memory.max"), "1000\n").unwrap();
        fs::write(above.join("memory.stat"), "anon 300\n").unwrap();
        assert_eq!(room_of_group(root.path(), "0::/above/group"), Some(700));

        let old = root.path().join("memory/group");
        fs::create_dir_all(&old).unwrap();
        fs::write(old.join("memory.limit_in_bytes"), "5000\n").unwrap();
        fs::write(old.join("memory.stat"), "rss 1\ntotal_rss 200\n").unwrap();
        assert_eq!(room_of_group(root.path(), "4:memory:/group"), Some(4800));
        assert_eq!(room_of_group(root.path(), "4:cpu:/group"), None);
    }
}
