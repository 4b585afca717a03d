//! The exchange of a group of GPUs: each member has a sorted run, and gets its part of the merge of all runs.
//!
//! ```text
//!   run of member 0   ├──────┼────┼────┼──────┤    exact splits: the ends of all pieces of all parts
//!   run of member 1   ├───┼──────┼───┼────────┤
//!                      part 0    ┆    part 1
//!
//!   member 0, copies  │ piece 0 │ piece 1 │ …      from the runs of the others, over the link between GPUs
//!   member 0, merges            │ piece 0 │ …      from its own run and what has been copied
//! ```
//!
//! A part is merged piece by piece: while a piece is merged, the next pieces are copied. Merging a piece takes less
//! time than copying it, so the exchange takes little more time than the copies. The GPUs' copy engines copy the
//! pieces, because a kernel reads another GPU's memory a sixth slower.

use super::merge::{Merge, bytes_of_workspace};
use super::{Address, Arrays, PERSISTENT_BLOCKS, Queue, align, bits, suffix, with_numbers};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers, Record, with_coding};
use crate::key::sealed::GpuBits;
use crate::splits::{Search, SortedRuns, ordered_splits};
use crate::{Error, MergeKernel};
use kernels_gpu::kernels::count_below::{CountBelow, SEARCH_WORDS, THREADS};
use kernels_gpu::kernels::sort::indices::SetIndices;
use kernels_gpu::key::{Bits, Coding};
use std::collections::VecDeque;
use std::ops::Range;

/// Most whole pieces of a part: a copy takes some time to begin.
const WHOLE_PIECES: usize = 8;

/// Number of times that the last whole piece is halved: 1/2, 1/4, 1/4. The last piece is merged after all copies, when
/// nothing else is under way.
const HALVINGS: usize = 2;

/// Most pieces of a part.
const MOST_PIECES: usize = WHOLE_PIECES + HALVINGS;

/// Fewest bytes of keys and values of a piece, unless the part has fewer.
const LEAST_PIECE_BYTES: usize = 32 << 20;

/// Slots for copied pieces: this many pieces are copied before the first of the slots has been merged. Merging a piece
/// takes about half as long as copying it.
const SLOTS: usize = 2;

/// Bits that a round of searches finds: it has 2^`BITS` − 1 searches for each rank in each run.
const BITS: u32 = 5;

/// Threads of a block that numbers values.
const NUMBERING_THREADS: u32 = 256;

/// A GPU of a group, with a queue of launches and a queue of copies to its memory.
pub trait Member {
    /// A point in one of its queues.
    type Event;

    /// Calls `work` with the queue of launches.
    fn with_queue(&self, work: impl FnOnce(&dyn Queue) -> Result<(), Error>) -> Result<(), Error>;

    /// Queues a copy of `bytes` bytes from `from`, in the memory of `other`, to `to`, in the memory of this member.
    ///
    /// # Safety
    /// Both ranges are in these memories. Until the copy has ended, nothing else uses the range at `to`, and nothing
    /// writes the range at `from`.
    unsafe fn copy(&self, other: &Self, from: Address, to: Address, bytes: usize) -> Result<(), Error>;

    /// The end of the copies that are queued so far.
    fn copied(&self) -> Result<Self::Event, Error>;

    /// The end of the launches that are queued so far.
    fn launched(&self) -> Result<Self::Event, Error>;

    /// Makes later launches wait for an event of any member.
    fn launch_after(&self, event: Self::Event) -> Result<(), Error>;

    /// Makes later copies wait for an event.
    fn copy_after(&self, event: Self::Event) -> Result<(), Error>;

    /// Host memory that launches of this member also use, with capacity for the searches of an exchange
    /// ([`search_words`]).
    type Searches<'a>: Searches
    where
        Self: 'a;

    /// The memory for searches. Nothing else uses it until the result is dropped.
    fn searches(&self) -> Self::Searches<'_>;

    /// Waits for the launches that are queued so far.
    fn wait(&self) -> Result<(), Error>;
}

/// Host memory that a GPU also uses.
pub trait Searches {
    /// The address that a GPU uses.
    fn address(&self) -> Address;

    /// Writes the first words. No launch uses them meanwhile.
    fn write(&mut self, words: &[u64]);

    /// Reads the first `words.len()` words. The launches that write them have ended.
    fn read(&self, words: &mut [u64]);
}

/// Most words of the searches of an exchange between `members` members.
pub const fn search_words(members: usize) -> usize {
    // The ends of all pieces of all members, and the start.
    let ranks = members * MOST_PIECES + 1;
    ranks * ((1 << BITS) - 1) * SEARCH_WORDS
}

/// How a part of `len` keys is merged, and the memory that the member needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangePlan {
    members: usize,
    len: usize,
    /// Keys of a whole piece.
    piece: usize,
    key_bytes: usize,
    value_bytes: usize,
}

/// Offsets of the parts of a member's workspace, in bytes, and its end.
struct Layout {
    /// Slots for copied pieces, and two for merges of runs that are not the last. The splits of a merge are before the
    /// slots.
    keys: usize,
    values: usize,
    end: usize,
}

impl ExchangePlan {
    /// The plan for a part of `len` keys with bits `B` and values of `value_bytes` bytes, or 0, in a group of
    /// `members`.
    pub const fn of<B>(members: usize, len: usize, value_bytes: usize) -> Self {
        Self::with_pieces::<B>(members, len, value_bytes, LEAST_PIECE_BYTES)
    }

    /// [`of`](Self::of) with whole pieces of at least `least_bytes` bytes.
    pub const fn with_pieces<B>(members: usize, len: usize, value_bytes: usize, least_bytes: usize) -> Self {
        let key_bytes = size_of::<B>();
        let pieces = match len.saturating_mul(key_bytes + value_bytes) / least_bytes {
            0 => 1,
            WHOLE_PIECES.. => WHOLE_PIECES,
            pieces => pieces,
        };
        Self { members, len, piece: len.div_ceil(pieces), key_bytes, value_bytes }
    }

    /// The ends of the pieces.
    pub fn ends(self) -> Vec<usize> {
        let mut ends: Vec<usize> = (1..).map(|i| i * self.piece).take_while(|&end| end < self.len).collect();
        if !ends.is_empty() {
            // There are several pieces, and the last one is halved.
            let begin = ends[ends.len() - 1];
            let left = |halvings: usize| (self.len - begin) >> halvings;
            ends.extend((1..=HALVINGS).map(|halvings| self.len - left(halvings)));
        }
        ends.extend((self.len > 0).then_some(self.len));
        ends.dedup();
        ends
    }

    fn slots(self) -> usize {
        slots(self.members)
    }

    fn layout<B: Bits>(self) -> Layout {
        let keys = align(bytes_of_workspace::<B>(MergeKernel::Auto, self.piece, self.value_bytes));
        let values = keys + self.slots() * align(self.piece * self.key_bytes);
        let end = values + self.slots() * align(self.piece * self.value_bytes);
        Layout { keys, values, end }
    }

    /// Bytes of workspace, beginning at a multiple of 16.
    pub fn workspace_bytes<B: Bits>(self) -> usize {
        self.layout::<B>().end
    }

    /// The slot of this index, for `len` keys.
    fn slot<B: Bits>(self, workspace: Address, slot: usize, len: usize) -> Arrays {
        let layout = self.layout::<B>();
        Arrays {
            keys: workspace + (layout.keys + slot * align(self.piece * self.key_bytes)) as Address,
            values: workspace + (layout.values + slot * align(self.piece * self.value_bytes)) as Address,
            len,
            value_bytes: self.value_bytes,
            count: 0,
        }
    }
}

/// Slots of each of `members`: `SLOTS` for pieces, and two more for merges of more than two runs, which are merged two
/// by two.
const fn slots(members: usize) -> usize {
    match members {
        1 => 0,
        2 => SLOTS,
        _ => SLOTS + 2,
    }
}

/// The bytes for keys, values and a copy of both, of `bytes` bytes of the members' memory. The rest is enough for the
/// exchange of large parts.
pub(in crate::gpu) const fn bytes_beside_slots(members: usize, bytes: u64) -> u64 {
    // A slot has a whole piece, which is 1 / `WHOLE_PIECES` of a part.
    let (array_and_copy, slots) = (2 * WHOLE_PIECES as u64, slots(members) as u64);
    bytes / (array_and_copy + slots) * array_and_copy
}

/// Queues the numbering of `n` values of `value_bytes` bytes at `to`: value `i` becomes `first + i`.
///
/// # Safety
/// The values are in the GPU's memory, and nothing else uses them until the launch has ended.
pub(in crate::gpu) unsafe fn number(
    queue: &dyn Queue,
    to: Address,
    n: usize,
    value_bytes: usize,
    first: usize,
) -> Result<(), Error> {
    let shape = queue.persistent(PERSISTENT_BLOCKS, NUMBERING_THREADS, 0);
    let (order, merges) = (std::ptr::null_mut(), 1);
    with_numbers!(value_bytes, I => {
        let launch = SetIndices { to: to as *mut I, n, first, order, merges };
        // SAFETY: `to` holds `n` values of the width of `I`, and the kernel writes only values with an index below `n`.
        unsafe { queue.launch(&bits(value_bytes), shape, &launch) }
    })
}

/// Queues `count` searches in a run.
///
/// # Safety
/// The run has `run.len` keys in the GPU's memory. The searches, [`SEARCH_WORDS`] words each, are in memory that the
/// GPU uses. Their windows are inside the run. Nothing else uses the searches until the launch has ended.
unsafe fn count_below<B: Bits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    run: Arrays,
    searches: Address,
    count: usize,
) -> Result<(), Error> {
    let shape = Shape::a_thread_each(count, THREADS);
    let (keys, n) = (run.keys as *const B, run.len);
    let searches = searches as *mut u64;
    // SAFETY: `blocks * THREADS` is at least `count`, so each search has a thread. `# Safety` covers the run, the
    // searches and their windows.
    unsafe { queue.launch(&suffix::<B>(0), shape, &CountBelow { keys, n, searches, count, coding }) }
}

/// Adds the entry points of an exchange: searches, the numbering of values, and merges of all sizes.
pub(in crate::gpu) fn record(record: &Record, coding: KeyCoding, value_bytes: usize) -> Result<(), Error> {
    let run = Record::arrays(1, value_bytes);
    for len in [10, 10_000, 100_000_000] {
        let (a, out) = (Record::arrays(len, value_bytes), Record::arrays(2 * len, value_bytes));
        record.add(&Merge { kernel: MergeKernel::Auto, coding, a, b: a, out })?;
    }
    // SAFETY: a `Record` only notes entry points, so no array is accessed.
    unsafe {
        with_coding!(coding, coding => count_below(record, coding, run, run.keys, 1), else Ok(()))?;
        if value_bytes > 0 { number(record, run.values, 1, value_bytes, 0) } else { Ok(()) }
    }
}

/// A member's input and output in an exchange.
#[derive(Clone, Copy)]
pub struct Share {
    /// Its run.
    pub run: Arrays,
    /// Its part of the merge.
    pub part: Arrays,
    /// Its workspace, of [`ExchangePlan::workspace_bytes`].
    pub workspace: Address,
}

/// Queues the exchange of the members' ascending runs. The parts, one after the other, are the merge of all runs. Of
/// equal keys, keys of earlier members come first. Waits until the runs have been sorted, because the host needs their
/// splits.
///
/// If a run is not ascending, the parts hold any of the runs' keys in any order.
///
/// Later launches of each member wait for the copies to it, and for the copies that others make from it.
///
/// # Safety
/// All arrays of a member are in its memory and do not overlap, and the work that writes its run is on its queue
/// already. Nothing else uses the arrays until the exchange has ended. Runs and parts have the same number of keys in
/// all.
pub(in crate::gpu) unsafe fn exchange<B: GpuBits, M: Member>(
    coding: Coding<B>,
    members: &[M],
    shares: &[Share],
) -> Result<(), Error> {
    let plan = |share: &Share| ExchangePlan::of::<B>(members.len(), share.part.len, share.part.value_bytes);
    let plans: Vec<_> = shares.iter().map(plan).collect();
    // SAFETY: this function requires the conditions of `exchange_by_plans`, and each plan is made for the member's
    // part, as the workspace is.
    unsafe { exchange_by_plans(coding, members, shares, &plans) }
}

/// `exchange` by the given plans, one for each member.
///
/// # Safety
/// The conditions of `exchange` hold, with workspaces for these plans.
pub unsafe fn exchange_by_plans<B: GpuBits, M: Member>(
    coding: Coding<B>,
    members: &[M],
    shares: &[Share],
    plans: &[ExchangePlan],
) -> Result<(), Error> {
    let mut ranks = vec![0];
    // For each member, the pieces of its part, and the number of its first piece among all pieces.
    let mut pieces: Vec<(Vec<Range<usize>>, usize)> = vec![];
    let mut begin = 0;
    for plan in plans {
        let (first, ends) = (ranks.len() - 1, plan.ends());
        ranks.extend(ends.iter().map(|end| (begin + end) as u64));
        pieces.push(([0].iter().chain(&ends).zip(&ends).map(|(&begin, &end)| begin..end).collect(), first));
        begin += plan.len;
    }
    let mut runs = GroupRuns::new(coding, members, shares);
    let splits = ordered_splits(&mut runs, &ranks, BITS)?;
    let split = |rank: usize| &splits[rank * members.len()..][..members.len()];
    // For each member, the ends of the merges that read its slots, the oldest first.
    let mut merged: Vec<VecDeque<M::Event>> = members.iter().map(|_| VecDeque::new()).collect();
    for piece in 0..MOST_PIECES {
        for (m, (member, (share, plan))) in members.iter().zip(shares.iter().zip(plans)).enumerate() {
            let (pieces, first) = &pieces[m];
            let Some(range) = pieces.get(piece) else { continue };
            let (from, to) = (split(first + piece), split(first + piece + 1));
            if merged[m].len() == SLOTS
                && let Some(event) = merged[m].pop_front()
            {
                member.copy_after(event)?;
            }
            let slot = plan.slot::<B>(share.workspace, piece % SLOTS, range.len());
            // SAFETY: the splits are inside the runs, and the sources of a piece have `range.len()` keys in all, as the
            // slot has. If the slot was in use, `copy_after` waits for the merge of its old piece.
            let parts = unsafe { copy_piece::<B, M>(members, shares, m, [from, to], slot)? };
            member.launch_after(member.copied()?)?;
            let out = share.part.part::<B>(range.start, range.len());
            // SAFETY: `parts` are in this member's run, which nothing writes, and in a slot, which is written again
            // only after this merge. They and `out` have `range.len()` keys. The workspace is made for `plan`.
            member.with_queue(|queue| unsafe { merge_piece(queue, coding, *plan, share.workspace, &parts, out) })?;
            merged[m].push_back(member.launched()?);
        }
    }
    for (m, member) in members.iter().enumerate() {
        let others = members.iter().enumerate().filter(|(other, _)| *other != m);
        others.map(|(_, other)| other).try_for_each(|other| member.launch_after(other.copied()?))?;
    }
    Ok(())
}

/// Queues the copies of a piece to a slot of member `m`: of the keys from index `from[i]` to index `to[i]` of the run
/// of each other member `i`. Returns the runs of the piece in the order of the members. The member's own keys stay in
/// its run.
///
/// # Safety
/// `from[i]..to[i]` is inside the run of member `i`. All these ranges together have at most the keys of the slot.
/// Nothing else uses the slot until the copies have ended.
unsafe fn copy_piece<B: GpuBits, M: Member>(
    members: &[M],
    shares: &[Share],
    m: usize,
    [from, to]: [&[usize]; 2],
    mut slot: Arrays,
) -> Result<Vec<Arrays>, Error> {
    let mut parts = Vec::with_capacity(members.len());
    for (other, (&from, &to)) in from.iter().zip(to).enumerate() {
        let source = shares[other].run.part::<B>(from, to - from);
        if other == m || source.len == 0 {
            parts.push(source);
            continue;
        }
        // SAFETY: the source lies inside the run of `other`, and takes keys of its own from the slot, which has enough.
        unsafe {
            members[m].copy(&members[other], source.keys, slot.keys, source.len * size_of::<B>())?;
            if source.value_bytes > 0 {
                members[m].copy(&members[other], source.values, slot.values, source.len * source.value_bytes)?;
            }
        }
        parts.push(slot.part::<B>(0, source.len));
        slot = slot.part::<B>(source.len, slot.len - source.len);
    }
    Ok(parts)
}

/// Queues the merge of the runs of a piece, two runs at a time.
///
/// # Safety
/// The arrays are in the GPU's memory and do not overlap, and nothing else uses them. `parts` and `out` have the same
/// number of keys. The workspace is made for `plan`.
unsafe fn merge_piece<B: GpuBits>(
    queue: &dyn Queue,
    coding: Coding<B>,
    plan: ExchangePlan,
    workspace: Address,
    parts: &[Arrays],
    out: Arrays,
) -> Result<(), Error> {
    let merge_two = |a: Arrays, b: Arrays, out: Arrays| {
        if out.len == 0 {
            return Ok(());
        }
        let merge = Merge { kernel: MergeKernel::Auto, coding: coding.into(), a, b, out };
        // SAFETY: `out` has `a.len + b.len` keys, does not overlap `a` or `b`, and has at most a piece. The splits at
        // the start of the plan's workspace are enough for a piece.
        unsafe { merge.queue(coding, queue, workspace) }
    };
    let mut runs: Vec<Arrays> = parts.iter().copied().filter(|part| part.len > 0).collect();
    let mut level = 0;
    while runs.len() > 2 {
        // Levels alternate between the last two slots.
        let mut to = plan.slot::<B>(workspace, plan.slots() - 2 + level % 2, out.len);
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        for siblings in runs.chunks(2) {
            let (a, b) = (siblings[0], siblings.get(1).copied().unwrap_or(Arrays { len: 0, ..siblings[0] }));
            let len = a.len + b.len;
            let here = to.part::<B>(0, len);
            merge_two(a, b, here)?;
            merged.push(here);
            to = to.part::<B>(len, to.len - len);
        }
        (runs, level) = (merged, level + 1);
    }
    let none = Arrays { len: 0, ..out };
    let run = |i: usize| runs.get(i).copied().unwrap_or(none);
    merge_two(run(0), run(1), out)
}

/// The runs of a group. The members count the keys below a bound.
struct GroupRuns<'a, B, M: Member + 'a> {
    coding: Coding<B>,
    members: &'a [M],
    shares: &'a [Share],
    /// Each member's memory for searches, and the words that are written to it.
    searches: Vec<(M::Searches<'a>, Vec<u64>)>,
}

impl<'a, B: GpuBits, M: Member> GroupRuns<'a, B, M> {
    fn new(coding: Coding<B>, members: &'a [M], shares: &'a [Share]) -> Self {
        let searches = members.iter().map(|member| (member.searches(), vec![])).collect();
        Self { coding, members, shares, searches }
    }
}

impl<B: GpuBits, M: Member> SortedRuns for GroupRuns<'_, B, M> {
    type Word = B;
    type Error = Error;

    fn lengths(&self) -> impl ExactSizeIterator<Item = usize> {
        self.shares.iter().map(|share| share.run.len)
    }

    fn search(&mut self, searches: &mut [Search<Self::Word>]) -> Result<(), Error> {
        let (runs, coding) = (self.members.len(), self.coding);
        for (run, ((member, share), (memory, words))) in
            self.members.iter().zip(self.shares).zip(&mut self.searches).enumerate()
        {
            words.clear();
            for Search { window, key, .. } in searches.iter().skip(run).step_by(runs) {
                words.extend([window.start as u64, window.end as u64, key.to_register()]);
            }
            memory.write(words);
            let count = words.len() / SEARCH_WORDS;
            let searches = memory.address();
            // SAFETY: `write` has put `count` searches into the memory, and their windows are inside the run. `memory`
            // keeps others from using it until the answers have been read.
            member.with_queue(|queue| unsafe { count_below(queue, coding, share.run, searches, count) })?;
        }
        for (run, (member, (memory, words))) in self.members.iter().zip(&mut self.searches).enumerate() {
            member.wait()?;
            memory.read(words);
            let of_run = searches.iter_mut().skip(run).step_by(runs);
            for (search, answer) in of_run.zip(words.chunks_exact(SEARCH_WORDS)) {
                search.window.start = answer[0] as usize;
            }
        }
        Ok(())
    }

    fn bounds(&mut self, _: &[Range<usize>]) -> Result<Option<(Self::Word, Self::Word)>, Error> {
        // Reading the bounds takes as long as a round of searches.
        Ok(Some((B::MIN, B::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sort takes its keys and values twice, and a hundredth more. The rest of the memory is enough for the exchange.
    #[test]
    fn memory_of_a_sort_leaves_the_slots_of_its_exchange() {
        fn check<B: Bits>(members: usize, value_bytes: usize) {
            let each: u64 = 64 << 30;
            let each_bytes = (size_of::<B>() + value_bytes) as u64;
            let to_sort = bytes_beside_slots(members, each * members as u64);
            let part = to_sort * 20 / 41 / each_bytes / members as u64;
            let exchange = ExchangePlan::of::<B>(members, part as usize, value_bytes).workspace_bytes::<B>() as u64;
            let needed = part * each_bytes * 101 / 50 + exchange;
            // Two slots are 1/4 of a part, and four slots are 1/2. A fiftieth of the memory is not used.
            assert!(
                (each / 50 * 49..=each).contains(&needed),
                "{members}, {each_bytes}, {value_bytes}: {needed} of {each}"
            );
        }
        for members in [1, 2, 3, 8] {
            for value_bytes in [0, 4, 8] {
                check::<u32>(members, value_bytes);
                check::<u64>(members, value_bytes);
            }
        }
        assert_eq!(
            (bytes_beside_slots(1, 1600), bytes_beside_slots(2, 1800), bytes_beside_slots(3, 4000)),
            (1600, 1600, 3200)
        );
    }
}
