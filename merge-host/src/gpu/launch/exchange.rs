//! The exchange of a group of GPUs: each member has a sorted run, and gets its part of the merge of all.
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
//! A part is merged piece by piece: while a piece is merged, the next ones are copied. Merging a piece takes less time
//! than copying one, so that all takes little more time than the copies. Pieces are copied by the GPUs' copy engines,
//! since a kernel that reads another GPU's memory reads it a sixth slower.

use super::merge::{Merge, bytes_of_workspace};
use super::{Address, Arrays, PERSISTENT_BLOCKS, Queue, align, bits, suffix, with_numbers};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{Operation, Record};
use crate::splits::{Search, SortedRuns, ordered_splits};
use crate::{Error, GpuKey, Key, MergeKernel, Word};
use kernels_gpu::kernels::count_below::{CountBelow, SEARCH_WORDS, THREADS};
use kernels_gpu::kernels::sort::indices::SetIndices;
use kernels_gpu::key::{Coding, Key as Kernels};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;

/// A whole piece is this fraction of a part, at least: a copy takes some time to begin.
const WHOLE_PIECES: usize = 8;

/// The last whole piece is halved so many times: 1/2, 1/4, 1/4. The last piece is merged when all has been copied,
/// while nothing else is done.
const HALVINGS: usize = 2;

/// Pieces that a part is merged in, at most.
const MOST_PIECES: usize = WHOLE_PIECES + HALVINGS;

/// Bytes of keys and values of a piece, at least, unless the part has fewer.
const LEAST_PIECE_BYTES: usize = 32 << 20;

/// Pieces that are copied before the first of them has been merged. To merge a piece takes about half as long as to
/// copy it.
const SLOTS: usize = 2;

/// Bits that a round of searches finds.
const BITS: u32 = 5;

/// Threads of a block that numbers values.
const NUMBERING_THREADS: u32 = 256;

/// A GPU of a group, with a queue of launches, and one of copies to it beside that.
pub(in crate::gpu) trait Member {
    /// Where its launches go.
    type Queue<'a>: Queue
    where
        Self: 'a;
    /// A point in one of its queues.
    type Event;

    /// Calls `work` with the queue of launches.
    fn with_queue<T>(&self, work: impl FnOnce(&Self::Queue<'_>) -> Result<T, Error>) -> Result<T, Error>;

    /// Adds a copy of `bytes` bytes at `from`, in the memory of `other`, to `to`, in the memory of this member.
    ///
    /// # Safety
    /// Both are in these memories, and nothing else uses the one or writes the other until the copy has ended.
    unsafe fn copy(&self, other: &Self, from: Address, to: Address, bytes: usize) -> Result<(), Error>;

    /// The end of the copies so far.
    fn copied(&self) -> Result<Self::Event, Error>;

    /// The end of the launches so far.
    fn launched(&self) -> Result<Self::Event, Error>;

    /// Lets later launches wait for an event, also of another member.
    fn launch_after(&self, event: Self::Event) -> Result<(), Error>;

    /// Lets later copies wait for an event.
    fn copy_after(&self, event: Self::Event) -> Result<(), Error>;

    /// Memory of the host that launches of this member use as well, with capacity for the searches of an exchange
    /// ([`search_words`]).
    type Searches<'a>: Searches
    where
        Self: 'a;

    /// The memory for searches, which nothing else uses until the result is dropped.
    fn searches(&self) -> Self::Searches<'_>;

    /// Waits for the launches so far.
    fn wait(&self) -> Result<(), Error>;
}

/// Memory of the host that a GPU uses as well.
pub(in crate::gpu) trait Searches {
    /// Where a GPU finds it.
    fn address(&self) -> Address;

    /// Writes the first words, while no launch uses them.
    fn write(&mut self, words: &[u64]);

    /// Reads as many words, when the launches that write them have ended.
    fn read(&self, words: &mut [u64]);
}

/// Words of the searches of an exchange between `members` members, at most.
pub(in crate::gpu) const fn search_words(members: usize) -> usize {
    // The ends of all pieces of all members, and the start.
    let ranks = members * MOST_PIECES + 1;
    ranks * ((1 << BITS) - 1) * SEARCH_WORDS
}

/// How a part of `len` keys is merged, and what the member needs for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct ExchangePlan {
    members: usize,
    len: usize,
    /// Keys of a whole piece.
    piece: usize,
    key_bytes: usize,
    value_bytes: usize,
}

/// Where the parts of a member's workspace begin, in bytes, and where it ends.
struct Layout {
    /// Slots for what is copied, and for two merges of runs that are not the last. The splits of a merge are before
    /// them.
    keys: usize,
    values: usize,
    end: usize,
}

impl ExchangePlan {
    /// For a part of `len` keys of type `K` with values of `value_bytes` bytes, or 0, in a group of so many members.
    pub(in crate::gpu) const fn of<K>(members: usize, len: usize, value_bytes: usize) -> Self {
        Self::with_pieces::<K>(members, len, value_bytes, LEAST_PIECE_BYTES)
    }

    /// The same with whole pieces of at least that many bytes.
    pub(super) const fn with_pieces<K>(members: usize, len: usize, value_bytes: usize, least_bytes: usize) -> Self {
        let key_bytes = size_of::<K>();
        let pieces = match len.saturating_mul(key_bytes + value_bytes) / least_bytes {
            0 => 1,
            WHOLE_PIECES.. => WHOLE_PIECES,
            pieces => pieces,
        };
        Self { members, len, piece: len.div_ceil(pieces), key_bytes, value_bytes }
    }

    /// The ends of the pieces.
    pub(super) fn ends(self) -> Vec<usize> {
        let mut ends: Vec<usize> = (1..).map(|i| i * self.piece).take_while(|&end| end < self.len).collect();
        if !ends.is_empty() {
            // There are several, of which the last one is halved.
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

    fn layout<K: GpuKey>(self) -> Layout {
        let keys = align(bytes_of_workspace::<K>(MergeKernel::Auto, self.piece, self.value_bytes));
        let values = keys + self.slots() * align(self.piece * self.key_bytes);
        let end = values + self.slots() * align(self.piece * self.value_bytes);
        Layout { keys, values, end }
    }

    /// Bytes of workspace, beginning at a multiple of 16.
    pub(in crate::gpu) fn workspace_bytes<K: GpuKey>(self) -> usize {
        self.layout::<K>().end
    }

    /// A slot, for `len` keys.
    fn slot<K: GpuKey>(self, workspace: Address, slot: usize, len: usize) -> Arrays {
        let layout = self.layout::<K>();
        Arrays {
            keys: workspace + (layout.keys + slot * align(self.piece * self.key_bytes)) as Address,
            values: workspace + (layout.values + slot * align(self.piece * self.value_bytes)) as Address,
            len,
            value_bytes: self.value_bytes,
        }
    }
}

/// Slots of each of `members`: those for pieces, and two more for merges of more than two runs, which are merged two by
/// two.
const fn slots(members: usize) -> usize {
    match members {
        1 => 0,
        2 => SLOTS,
        _ => SLOTS + 2,
    }
}

/// Of `bytes` bytes of the memory of `members`, those that are left for keys and values and as much again, if all the
/// rest is for the exchange of large parts.
pub(in crate::gpu) const fn bytes_beside_slots(members: usize, bytes: u64) -> u64 {
    // A slot has a whole piece.
    let (array_and_copy, slots) = (2 * WHOLE_PIECES as u64, slots(members) as u64);
    bytes / (array_and_copy + slots) * array_and_copy
}

/// Queues the numbering of `n` values of `value_bytes` bytes at `to`: the first one becomes `first`, the next one
/// `first + 1` and so on.
///
/// # Safety
/// The values are in the GPU's memory, and nothing else uses them until then.
pub(in crate::gpu) unsafe fn number(
    queue: &impl Queue,
    to: Address,
    n: usize,
    value_bytes: usize,
    first: usize,
) -> Result<(), Error> {
    let shape = queue.persistent(PERSISTENT_BLOCKS, NUMBERING_THREADS, 0);
    let (order, merges) = (std::ptr::null_mut(), 1);
    with_numbers!(value_bytes, I => {
        let launch = SetIndices { to: to as *mut I, n, first, order, merges };
        // SAFETY: the caller's promise.
        unsafe { queue.launch(&bits(value_bytes), shape, &launch) }
    })
}

/// Queues `count` searches in a run.
///
/// # Safety
/// The run and the searches, [`SEARCH_WORDS`] each, are in memory that the GPU uses; windows are inside the run;
/// nothing else uses the searches until they have ended.
unsafe fn count_below<K: GpuKey>(
    queue: &impl Queue,
    run: Arrays,
    searches: Address,
    count: usize,
) -> Result<(), Error> {
    let shape = Shape { blocks: count.div_ceil(THREADS as usize), threads: THREADS, shared_bytes: 0 };
    let (keys, n) = (run.keys as *const <K as Kernels>::Bits, run.len);
    let (searches, coding) = (searches as *mut u64, Coding::of::<K>(false));
    // SAFETY: there is a thread for each search, and the caller's run and searches.
    unsafe { queue.launch(&suffix::<K>(0), shape, &CountBelow { keys, n, searches, count, coding }) }
}

/// Adds what an exchange launches: searches, the numbering of values, and merges of all sizes.
pub(in crate::gpu) fn record<K: GpuKey>(record: &Record, value_bytes: usize) -> Result<(), Error> {
    let run = Record::arrays(1, value_bytes);
    for len in [10, 10_000, 100_000_000] {
        let (a, out) = (Record::arrays(len, value_bytes), Record::arrays(2 * len, value_bytes));
        record.add::<K>(&Merge { kernel: MergeKernel::Auto, a, b: a, out })?;
    }
    // SAFETY: nothing is launched.
    unsafe {
        count_below::<K>(record, run, run.keys, 1)?;
        if value_bytes > 0 { number(record, run.values, 1, value_bytes, 0) } else { Ok(()) }
    }
}

/// What a member has, and what it gets.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Share {
    /// Its run.
    pub(in crate::gpu) run: Arrays,
    /// Its part of the merge.
    pub(in crate::gpu) part: Arrays,
    /// Its workspace, of [`ExchangePlan::workspace_bytes`].
    pub(in crate::gpu) workspace: Address,
}

/// Queues the exchange of the members' runs, which are ascending: the parts together are their merge, one after the
/// other. Of equal keys, those of earlier members come first. Waits until the runs have been sorted, since their splits
/// have to be known here.
///
/// If a run is not ascending, the parts hold any of the runs' keys in any order.
///
/// Later launches of each member wait for what it gets, and for what the others get from it.
///
/// # Safety
/// All arrays of a member are in its memory, apart from each other, and what writes its run is on its queue before.
/// Nothing else uses them until the exchange has ended. Runs and parts have as many keys in all.
pub(in crate::gpu) unsafe fn exchange<K: GpuKey, M: Member>(members: &[M], shares: &[Share]) -> Result<(), Error> {
    let plan = |share: &Share| ExchangePlan::of::<K>(members.len(), share.part.len, share.part.value_bytes);
    let plans: Vec<_> = shares.iter().map(plan).collect();
    // SAFETY: the caller's promise.
    unsafe { exchange_by_plans::<K, M>(members, shares, &plans) }
}

/// [`exchange`] by these plans, one for each member.
///
/// # Safety
/// As for [`exchange`], with workspaces for these plans.
pub(super) unsafe fn exchange_by_plans<K: GpuKey, M: Member>(
    members: &[M],
    shares: &[Share],
    plans: &[ExchangePlan],
) -> Result<(), Error> {
    let mut ranks = vec![0];
    // For each member, the pieces of its part, and the number of the first of them among all.
    let mut pieces: Vec<(Vec<Range<usize>>, usize)> = vec![];
    let mut begin = 0;
    for plan in plans {
        let (first, ends) = (ranks.len() - 1, plan.ends());
        ranks.extend(ends.iter().map(|end| (begin + end) as u64));
        pieces.push(([0].iter().chain(&ends).zip(&ends).map(|(&begin, &end)| begin..end).collect(), first));
        begin += plan.len;
    }
    let mut runs = GroupRuns::<K, M>::new(members, shares);
    let splits = ordered_splits(&mut runs, &ranks, BITS)?;
    let split = |rank: usize| &splits[rank * members.len()..][..members.len()];
    // For each member, the ends of the merges that read the slots.
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
            let mut slot = plan.slot::<K>(share.workspace, piece % SLOTS, range.len());
            let mut parts = Vec::with_capacity(members.len());
            for (other, (&from, &to)) in from.iter().zip(to).enumerate() {
                let source = shares[other].run.part::<K>(from, to - from);
                if other == m || source.len == 0 {
                    parts.push(source);
                    continue;
                }
                // SAFETY: the part lies inside the run of the other member. The parts of a piece have as many keys as
                // the piece, and so does the slot, of which each takes some; what was in the slot has been merged.
                unsafe {
                    member.copy(&members[other], source.keys, slot.keys, source.len * size_of::<K>())?;
                    if source.value_bytes > 0 {
                        member.copy(&members[other], source.values, slot.values, source.len * source.value_bytes)?;
                    }
                }
                let taken = slot.part::<K>(0, source.len);
                slot = slot.part::<K>(source.len, slot.len - source.len);
                parts.push(taken);
            }
            member.launch_after(member.copied()?)?;
            let out = share.part.part::<K>(range.start, range.len());
            // SAFETY: the caller's promise; the parts are in the run, which nothing writes, and in a slot, which is
            // written again after this.
            member.with_queue(|queue| unsafe { merge_piece::<K>(queue, *plan, share.workspace, &parts, out) })?;
            merged[m].push_back(member.launched()?);
        }
    }
    for (m, member) in members.iter().enumerate() {
        let others = members.iter().enumerate().filter(|(other, _)| *other != m);
        others.map(|(_, other)| other).try_for_each(|other| member.launch_after(other.copied()?))?;
    }
    Ok(())
}

/// Queues the merge of the runs of a piece, by merges of two.
///
/// # Safety
/// The arrays are in the GPU's memory and apart from each other, and are used by nothing else; runs and `out` have as
/// many keys.
unsafe fn merge_piece<K: GpuKey>(
    queue: &impl Queue,
    plan: ExchangePlan,
    workspace: Address,
    parts: &[Arrays],
    out: Arrays,
) -> Result<(), Error> {
    let merge_two = |a: Arrays, b: Arrays, out: Arrays| {
        if out.len == 0 {
            return Ok(());
        }
        let merge = Merge { kernel: MergeKernel::Auto, a, b, out };
        // SAFETY: the caller's arrays, of which `out` has as many keys as `a` and `b`, and the plan's workspace.
        unsafe { Operation::<K>::launch(&merge, queue, workspace) }
    };
    let mut runs: Vec<Arrays> = parts.iter().copied().filter(|part| part.len > 0).collect();
    let mut level = 0;
    while runs.len() > 2 {
        // Levels alternate between the last two slots.
        let mut to = plan.slot::<K>(workspace, plan.slots() - 2 + level % 2, out.len);
        let mut merged = Vec::with_capacity(runs.len().div_ceil(2));
        for siblings in runs.chunks(2) {
            let (a, b) = (siblings[0], siblings.get(1).copied().unwrap_or(Arrays { len: 0, ..siblings[0] }));
            let len = a.len + b.len;
            let here = to.part::<K>(0, len);
            merge_two(a, b, here)?;
            merged.push(here);
            to = to.part::<K>(len, to.len - len);
        }
        (runs, level) = (merged, level + 1);
    }
    let none = Arrays { len: 0, ..out };
    let run = |i: usize| runs.get(i).copied().unwrap_or(none);
    merge_two(run(0), run(1), out)
}

/// The runs of a group, of which the members count the keys.
struct GroupRuns<'a, K, M: Member + 'a> {
    members: &'a [M],
    shares: &'a [Share],
    /// Each member's memory for searches, and what is written there.
    searches: Vec<(M::Searches<'a>, Vec<u64>)>,
    keys: PhantomData<K>,
}

impl<'a, K: GpuKey, M: Member> GroupRuns<'a, K, M> {
    fn new(members: &'a [M], shares: &'a [Share]) -> Self {
        let searches = members.iter().map(|member| (member.searches(), vec![])).collect();
        Self { members, shares, searches, keys: PhantomData }
    }
}

impl<K: GpuKey, M: Member> SortedRuns for GroupRuns<'_, K, M> {
    type Word = <K as Key>::Bits;
    type Error = Error;

    fn lengths(&self) -> impl ExactSizeIterator<Item = usize> {
        self.shares.iter().map(|share| share.run.len)
    }

    fn search(&mut self, searches: &mut [Search<Self::Word>]) -> Result<(), Error> {
        let runs = self.members.len();
        for (run, ((member, share), (memory, words))) in
            self.members.iter().zip(self.shares).zip(&mut self.searches).enumerate()
        {
            words.clear();
            for Search { window, key, .. } in searches.iter().skip(run).step_by(runs) {
                words.extend([window.start as u64, window.end as u64, register(*key)]);
            }
            memory.write(words);
            let count = words.len() / SEARCH_WORDS;
            let searches = memory.address();
            // SAFETY: the memory has the searches, whose windows are inside the run, and nothing else uses it.
            member.with_queue(|queue| unsafe { count_below::<K>(queue, share.run, searches, count) })?;
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
        // To read them takes as long as a round of searches.
        let least = <Self::Word as bytemuck::Zeroable>::zeroed();
        Ok(Some((least, !least)))
    }
}

/// A key's ordered bits, of 4 or 8 bytes.
fn register<W: Word>(key: W) -> u64 {
    let mut bytes = [0; 8];
    bytes[..size_of::<W>()].copy_from_slice(bytemuck::bytes_of(&key));
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sort takes its keys and values twice, and a hundredth more. What it may take leaves memory for the exchange.
    #[test]
    fn memory_of_a_sort_leaves_the_slots_of_its_exchange() {
        fn check<K: GpuKey>(members: usize, value_bytes: usize) {
            let each: u64 = 64 << 30;
            let each_bytes = (size_of::<K>() + value_bytes) as u64;
            let to_sort = bytes_beside_slots(members, each * members as u64);
            let part = to_sort * 20 / 41 / each_bytes / members as u64;
            let exchange = ExchangePlan::of::<K>(members, part as usize, value_bytes).workspace_bytes::<K>() as u64;
            let needed = part * each_bytes * 101 / 50 + exchange;
            // Two slots are 1/4 of a part, and four 1/2. A fiftieth is not used.
            assert!(
                (each / 50 * 49..=each).contains(&needed),
                "{members}, {}, {value_bytes}: {needed} of {each}",
                <K as Key>::NAME
            );
        }
        for members in [1, 2, 3, 8] {
            for value_bytes in [0, 4, 8] {
                check::<f32>(members, value_bytes);
                check::<u64>(members, value_bytes);
            }
        }
        assert_eq!(
            (bytes_beside_slots(1, 1600), bytes_beside_slots(2, 1800), bytes_beside_slots(3, 4000)),
            (1600, 1600, 3200)
        );
    }
}
