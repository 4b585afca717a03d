//! Memory that the control group of the process still allows.
//!
//! A group's usage counts everything it holds: anonymous memory, shared memory and the files of a tmpfs, kernel memory,
//! and the page cache. Before the kernel ends a process, it reclaims cached pages of files on disks, and reclaimable
//! slabs. It cannot reclaim the rest. The pages of a tmpfs are in the kernel's lists of anonymous pages, so it does not
//! reclaim them either:
//!
//! ```text
//!   limit  ├──────────────────────────────────────────────────────────────────────────┤
//!   usage  ├─ anonymous ─┼─ shared, tmpfs ─┼─ kernel ─┼─ cached files, slabs ─┤
//!                                                     ├──────── headroom ────────────┤
//! ```

use super::text;
use std::path::Path;

/// Where control groups are mounted.
const ROOT: &str = "/sys/fs/cgroup";

/// Bytes that a group's processes can still allocate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Headroom {
    /// Bytes that can be allocated without swapping.
    pub memory: u64,
    /// Further bytes that can be swapped. Groups of version 1 count memory and swap together, so this is 0 for them.
    pub swap: u64,
}

/// The headroom of this process's group and of the groups above it, or `None` if no group limits memory.
pub fn cgroup_headroom() -> Option<Headroom> {
    headroom_in(Path::new(ROOT), &text("/proc/self/cgroup")?)
}

/// [`cgroup_headroom`] for the text of /proc/self/cgroup, with the groups' files in folders below `root`.
fn headroom_in(root: &Path, groups: &str) -> Option<Headroom> {
    groups.lines().filter_map(|line| headroom_of_line(root, line)).reduce(least)
}

/// The headroom for one line of /proc/self/cgroup: `0::PATH` of version 2, `N:CONTROLLERS:PATH` of version 1.
fn headroom_of_line(root: &Path, line: &str) -> Option<Headroom> {
    let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
    let (root, headroom): (_, fn(&Path) -> Option<Headroom>) = match controllers {
        "" => (root.to_owned(), version_2),
        _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), version_1),
        _ => return None,
    };
    // Within a container, the path may be a path of the host. Then only the root of the hierarchy is visible.
    let group = root.join(path.trim_start_matches('/'));
    group.ancestors().take_while(|group| group.starts_with(&root)).filter_map(headroom).reduce(least)
}

fn least(a: Headroom, b: Headroom) -> Headroom {
    Headroom { memory: a.memory.min(b.memory), swap: a.swap.min(b.swap) }
}

fn version_2(group: &Path) -> Option<Headroom> {
    // The kernel throttles processes heavily above `memory.high`, and kills them above `memory.max`.
    let limit = ["memory.high", "memory.max"].into_iter().filter_map(|file| number(&group.join(file))).min()?;
    let used = number(&group.join("memory.current"))?;
    let reclaimable = stat(group, &["active_file", "inactive_file", "slab_reclaimable"]);
    let swap = number(&group.join("memory.swap.max"))
        .map_or(u64::MAX, |max| max.saturating_sub(number(&group.join("memory.swap.current")).unwrap_or(0)));
    Some(Headroom { memory: limit.saturating_sub(used.saturating_sub(reclaimable)), swap })
}

fn version_1(group: &Path) -> Option<Headroom> {
    let limit = number(&group.join("memory.limit_in_bytes"))?;
    let used = number(&group.join("memory.usage_in_bytes"))?;
    let reclaimable = stat(group, &["total_active_file", "total_inactive_file"]);
    Some(Headroom { memory: limit.saturating_sub(used.saturating_sub(reclaimable)), swap: 0 })
}

/// The number in a file, or `None` if there is no such file, or if it holds a word such as `max`. Version 1 has a
/// number close to 2^63 for no limit.
fn number(path: &Path) -> Option<u64> {
    text(path)?.trim().parse().ok().filter(|number| *number < 1 << 62)
}

/// The sum of the fields `names` of the group's memory.stat.
fn stat(group: &Path, names: &[&str]) -> u64 {
    let text = text(group.join("memory.stat")).unwrap_or_default();
    let fields = text.lines().filter_map(|line| line.split_once(' '));
    fields.filter(|(name, _)| names.contains(name)).filter_map(|(_, value)| value.trim().parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Creates the folder of a group with these files.
    fn group(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).unwrap();
        for (name, text) in files {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    fn memory(root: &Path, groups: &str) -> Option<u64> {
        headroom_in(root, groups).map(|headroom| headroom.memory)
    }

    #[test]
    fn shared_memory_is_used_and_the_page_cache_is_not() {
        let root = tempfile::tempdir().unwrap();
        let stat = "anon 1000\nfile 6000\nkernel 500\nshmem 2000\nactive_file 1500\ninactive_file 2500\n\
                    unevictable 300\nslab_reclaimable 200\nslab_unreclaimable 300\n";
        group(root.path(), &[("memory.max", "9000\n"), ("memory.current", "7500\n"), ("memory.stat", stat)]);
        assert_eq!(memory(root.path(), "0::/\n"), Some(9000 - (7500 - 4000 - 200)));

        let stat = "cache 1\nrss 1\nshmem 1\ntotal_cache 6000\ntotal_rss 1000\ntotal_shmem 2000\n\
                    total_active_file 1500\ntotal_inactive_file 2500\n";
        let files = [("memory.limit_in_bytes", "9000\n"), ("memory.usage_in_bytes", "7000\n"), ("memory.stat", stat)];
        group(&root.path().join("memory/old"), &files);
        assert_eq!(memory(root.path(), "5:cpu:/old\n4:memory:/old\n"), Some(9000 - 3000));
        assert_eq!(memory(root.path(), "4:hugetlb,memory:/old\n"), Some(9000 - 3000));
        assert_eq!(memory(root.path(), "4:cpu:/old\n"), None);
    }

    #[test]
    fn the_groups_above_limit_memory_too() {
        let root = tempfile::tempdir().unwrap();
        let (above, below) = (root.path().join("above"), root.path().join("above/below"));
        group(&below, &[("memory.max", "max\n"), ("memory.current", "100\n")]);
        assert_eq!(memory(root.path(), "0::/above/below\n"), None);
        group(&below, &[("memory.max", "9000\n")]);
        assert_eq!(memory(root.path(), "0::/above/below\n"), Some(8900));
        group(&above, &[("memory.max", "1000\n"), ("memory.current", "300\n")]);
        assert_eq!(memory(root.path(), "0::/above/below\n"), Some(700));
        // The host's path, where a container sees its own group as the root.
        group(root.path(), &[("memory.max", "500\n"), ("memory.current", "600\n")]);
        assert_eq!(memory(root.path(), "0::/docker/0123\n"), Some(0));
    }

    #[test]
    fn the_lower_one_of_two_limits_counts() {
        let root = tempfile::tempdir().unwrap();
        group(root.path(), &[("memory.high", "5000\n"), ("memory.max", "max\n"), ("memory.current", "1000\n")]);
        assert_eq!(memory(root.path(), "0::/\n"), Some(4000));
        group(root.path(), &[("memory.max", "3000\n")]);
        assert_eq!(memory(root.path(), "0::/\n"), Some(2000));
    }

    #[test]
    fn swap_is_what_the_group_may_still_swap() {
        let root = tempfile::tempdir().unwrap();
        let swap = || headroom_in(root.path(), "0::/\n").unwrap().swap;
        group(root.path(), &[("memory.max", "3000\n"), ("memory.current", "0\n")]);
        assert_eq!(swap(), u64::MAX);
        group(root.path(), &[("memory.swap.max", "50\n"), ("memory.swap.current", "20\n")]);
        assert_eq!(swap(), 30);
        group(root.path(), &[("memory.swap.max", "0\n")]);
        assert_eq!(swap(), 0);
    }

    #[test]
    fn the_groups_above_limit_swap_too() {
        let root = tempfile::tempdir().unwrap();
        let files = |swap| [("memory.max", "3000\n"), ("memory.current", "0\n"), ("memory.swap.max", swap)];
        for (above, below) in [("50\n", "20\n"), ("20\n", "50\n")] {
            group(root.path(), &files(above));
            group(&root.path().join("below"), &files(below));
            assert_eq!(headroom_in(root.path(), "0::/below\n").unwrap().swap, 20);
        }
    }
}
