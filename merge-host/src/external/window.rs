//! Windows of runs: how many keys can be merged if only a part of each run is in memory.
//!
//! Every run has a window in memory. No key behind a window is less than the window's last key, and nothing else is
//! known of the keys behind it. So the least of the last keys is the bound: all keys up to it can go to the output.
//!
//! ```text
//!            window          not in memory yet
//!   run 0  │ 1 3 5 9      │ ? ? ? …     last key 9
//!   run 1  │ 2 4 7        │ ? ? …       last key 7: the bound
//!   run 2  │ 5 7 7 8      │             all in memory, so no bound
//!
//!   run 0    1 3 5┊9
//!   run 1    2 4 7┊
//!   run 2    5┊7 7 8
//! ```
//!
//! Ties: equal keys keep the order of their runs. There may be more sevens behind run 1's window, which precede the
//! sevens of run 2 and follow the sevens of run 0. So keys that equal the bound are merged now if their run is not
//! behind the run that gives the bound. Equal keys of later runs have to wait. If several runs end with the bound, the
//! first of the runs gives it: its sevens behind the window precede all sevens of later runs. That run's window is used
//! up. So every round makes progress, even if a run is not sorted.

use crate::Word;

/// The keys of a run that are in memory.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a, W> {
    /// The keys, ascending.
    pub keys: &'a [W],
    /// Whether the run has more keys, which are not in memory. If so, `keys` is not empty.
    pub continues: bool,
}

/// The number of keys of each window that can be merged now: at least one key in all if there are any. There is one
/// window for each run. Takes logarithmic time for each window.
///
/// ```
/// use merge_host::external::window::{Window, splits};
///
/// let a = Window { keys: &[1u32, 5, 9], continues: true };
/// let b = Window { keys: &[2, 4, 6], continues: true };
/// // What follows the 6 may be less than the 9.
/// assert_eq!(splits(&[a, b]), [2, 3]);
/// ```
pub fn splits<W: Word>(windows: &[Window<W>]) -> Vec<usize> {
    let lasts = windows.iter().enumerate().filter(|(_, window)| window.continues);
    let lasts = lasts.filter_map(|(run, window)| Some((window.keys.last()?, run)));
    let Some((bound, bounding)) = lasts.min() else {
        return windows.iter().map(|window| window.keys.len()).collect();
    };
    let split = |(run, window): (usize, &Window<W>)| {
        if run == bounding {
            return window.keys.len();
        }
        window.keys.partition_point(|key| key < bound || (key == bound && run < bounding))
    };
    windows.iter().enumerate().map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn splits_of<const N: usize>(windows: [(&[u32], bool); N]) -> Vec<usize> {
        splits(&windows.map(|(keys, continues)| Window { keys, continues }))
    }

    #[test]
    fn the_least_last_key_is_the_bound() {
        assert_eq!(splits_of([(&[1, 3, 5, 9], true), (&[2, 4, 7], true), (&[5, 7, 7, 8], false)]), [3, 3, 1]);
    }

    #[test]
    fn a_run_that_is_all_in_memory_gives_no_bound() {
        assert_eq!(splits_of([(&[1, 2], false), (&[], false), (&[8, 9], true)]), [2, 0, 2]);
        assert_eq!(splits_of([(&[1, 2], false), (&[3], false)]), [2, 1]);
    }

    #[test]
    fn keys_that_equal_the_bound_wait_in_later_runs_only() {
        let sevens: (&[u32], bool) = (&[7, 7], true);
        assert_eq!(splits_of([sevens, sevens, sevens]), [2, 0, 0]);
        assert_eq!(splits_of([(&[7, 7, 8], true), sevens, (&[6, 7], false)]), [2, 2, 1]);
    }

    #[test]
    fn a_run_that_is_not_sorted_makes_progress() {
        assert_eq!(splits_of([(&[5, 1], true), (&[2, 3], true)]), [2, 0]);
    }
}
