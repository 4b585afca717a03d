//! Work on groups of adjacent equal keys, such as keys that a sort by their first bits has left in any order.

use super::memory::push;
use super::run::RunMut;
use crate::Error;
use crate::parallel::{self, Threads};

/// Calls `work` with each group of at least two adjacent keys that `is_same` finds equal.
///
/// The second argument of `work` is the number of threads that it may use: all for a group that is longer than the
/// share of a thread, and otherwise 1. A share has `block` keys or more.
pub(super) fn for_each_group<K: Send, V: Send>(
    mut run: RunMut<K, V>,
    block: usize,
    threads: usize,
    is_same: impl Fn(&K, &K) -> bool + Sync,
    work: impl Fn(RunMut<K, V>, usize) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let length = parallel::share_length_for(threads, run.keys.len(), block);
    let (mut shares, mut large) = (Vec::new(), Vec::new());
    while let Some(last) = run.keys.get(length - 1) {
        let is_in_group = |key: &&K| is_same(last, key);
        let before = run.keys[..length - 1].iter().rev().take_while(is_in_group).count();
        let after = run.keys[length..].iter().take_while(is_in_group).count();
        // The share ends with the group of its last key, or before that group if the group is larger than a share.
        let is_large = threads > 1 && before + 1 + after > length;
        let end = if is_large { length - 1 - before } else { length + after };
        let share;
        (share, run) = run.split_at(end);
        push(&mut shares, share)?;
        if is_large {
            let group;
            (group, run) = run.split_at(before + 1 + after);
            push(&mut large, group)?;
        }
    }
    push(&mut shares, run)?;
    parallel::try_for_each_on(Threads::OfPool(threads), shares, |mut share: RunMut<K, V>| {
        let mut begin = 0;
        while let Some(same) = share.keys[begin..].windows(2).position(|pair| is_same(&pair[0], &pair[1])) {
            begin += same;
            let first = &share.keys[begin];
            let count = share.keys[begin..].iter().take_while(|key| is_same(first, key)).count();
            work(share.part(begin..begin + count), 1)?;
            begin += count;
        }
        Ok(())
    })?;
    large.into_iter().try_for_each(|group| work(group, threads))
}
