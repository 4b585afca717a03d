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
//! A part is merged piece by piece: while a piece is merged, the next ones are copied. Merging a piece takes less time than copying one, so that
//! all takes little more time than the copies. Pieces are copied by the GPUs' copy engines, since a kernel that reads another GPU's memory reads
//! it a sixth slower.

use super::merge::{self, merge, merge_pairs};
use super::{Address, Arrays, Entry, PERSISTENT_BLOCKS, Queue, align, bits, suffix, with_numbers};
use crate::gpu::kernels::Shape;
use crate::splits::{Search, SortedRuns, exact_splits};
use crate::{Error, GpuKey, Key, MergeKernel, Word};
use kernels_gpu::kernels::count_below::{COUNT_BELOW, CountBelow, SEARCH_WORDS, THREADS};
use kernels_gpu::kernels::sort::indices::SetIndices;
use kernels_gpu::key::{Coding, Key as Kernels};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::Range;

/// Pieces that a part is merged in, at most: a copy takes some time to begin, and the last piece is merged when all has been copied.
const MOST_PIECES: usize = 12;

/// Bytes of keys and values of a piece, at least, unless the part has fewer.
const LEAST_PIECE_BYTES: usize = 32 << 20;

/// Pieces that are copied before the first of them has been merged.
const SLOTS: usize = 3;

/// Bits that a round of searches finds.
const BITS: u32 = 6;

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

    /// Adds the writing of words to the queue of launches.
    ///
    /// # Safety
    /// The words from `to` on are in the memory of this member, and nothing else uses them.
    unsafe fn write(&self, to: Address, words: &[u64]) -> Result<(), Error>;

    /// Waits for the launches so far, and reads words.
    ///
    /// # Safety
    /// The words from `from` on are in the memory of this member, and nothing else writes them.
    unsafe fn read(&self, from: Address, words: &mut [u64]) -> Result<(), Error>;
}

/// How a part of `len` keys is merged, and what the member needs for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::gpu) struct ExchangePlan {
    members: usize,
    len: usize,
    /// The most keys of a piece.
    piece: usize,
    key_bytes: usize,
    value_bytes: usize,
    least_piece_bytes: usize,
}

/// Where the parts of a member's workspace begin, in bytes, and where it ends.
struct Layout {
    /// Searches, one after the other.
    searches: usize,
    /// Splits of a merge.
    splits: usize,
    /// Slots for what is copied, and for two merges of runs that are not the last: first all keys, and then all values.
    keys: usize,
    values: usize,
    end: usize,
}

impl ExchangePlan {
    /// For a part of `len` keys of type `K` with values of `value_bytes` bytes, or 0, in a group of so many members.
    pub(in crate::gpu) const fn of<K>(members: usize, len: usize, value_bytes: usize) -> Self {
        Self::with_pieces::<K>(members, len, value_bytes, LEAST_PIECE_BYTES)
    }

    /// The same with pieces of at least that many bytes.
    pub(super) const fn with_pieces<K>(
        members: usize,
        len: usize,
        value_bytes: usize,
        least_piece_bytes: usize,
    ) -> Self {
        let key_bytes = size_of::<K>();
        let pieces = len.saturating_mul(key_bytes + value_bytes) / least_piece_bytes;
        let pieces = if pieces < 1 {
            1
        } else if pieces > MOST_PIECES {
            MOST_PIECES
        } else {
            pieces
        };
        Self { members, len, piece: len.div_ceil(pieces), key_bytes, value_bytes, least_piece_bytes }
    }

    /// The number of pieces.
    fn pieces(self) -> usize {
        if self.len == 0 { 0 } else { self.len.div_ceil(self.piece) }
    }

    /// Slots for pieces.
    fn slots(self) -> usize {
        // Two more for merges of more than two runs, which are merged two by two.
        SLOTS.min(self.pieces()) + if self.members > 2 { 2 } else { 0 }
    }

    fn layout<K: GpuKey>(self) -> Layout {
        let searches = self.most_ranks() * ((1 << BITS) - 1) * SEARCH_WORDS * size_of::<u64>();
        let split_bytes = match self.value_bytes {
            0 => merge::workspace_bytes::<K>(MergeKernel::Auto, self.piece),
            _ => merge::pairs_workspace_bytes::<K>(self.piece),
        };
        let splits = align(searches);
        let keys = splits + align(split_bytes);
        let values = keys + self.slots() * align(self.piece * self.key_bytes);
        let end = values + self.slots() * align(self.piece * self.value_bytes);
        Layout { searches: 0, splits, keys, values, end }
    }

    /// Ranks that are searched for, at most: the ends of all pieces of all members.
    fn most_ranks(self) -> usize {
        self.members * MOST_PIECES + 1
    }

    /// Bytes of workspace, beginning at a multiple of 16.
    pub(in crate::gpu) fn workspace_bytes<K: GpuKey>(self) -> usize {
        self.layout::<K>().end
    }

    /// Keys of piece `i`.
    pub(super) fn range(self, i: usize) -> Range<usize> {
        (i * self.piece).min(self.len)..((i + 1) * self.piece).min(self.len)
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

/// Queues the numbering of `n` values of `value_bytes` bytes at `to`: the first one becomes `first`, the next one `first + 1` and so on.
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

/// The entry points that an exchange of keys of type `K` may launch, with values of `value_bytes` bytes, or 0.
pub(in crate::gpu) fn entries<K: GpuKey>(value_bytes: usize) -> Vec<Entry> {
    let mut entries = match value_bytes {
        0 => merge::entries_of_kernel::<K>(MergeKernel::Auto),
        _ => merge::entries::<K>(value_bytes),
    };
    entries.push((COUNT_BELOW.name, suffix::<K>(0)));
    entries
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

/// Queues the exchange of the members' runs, which are ascending: the parts together are their merge, one after the other. Of equal keys, those
/// of earlier members come first. Waits until the runs have been sorted, since their splits have to be known here.
///
/// Later launches of each member wait for what it gets, and for what the others get from it.
///
/// # Safety
/// All arrays of a member are in its memory, apart from each other, and what writes its run is on its queue before. Nothing else uses them until
/// the exchange has ended. Runs and parts have as many keys in all.
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
    let mut begin = 0;
    for plan in plans {
        ranks.extend((0..plan.pieces()).map(|piece| (begin + plan.range(piece).end) as u64));
        begin += plan.len;
    }
    let mut runs = GroupRuns::<K, M>::new(members, shares, plans);
    let splits = exact_splits(&mut runs, &ranks, BITS)?;
    let split = |rank: usize| &splits[rank * members.len()..][..members.len()];
    // For each member, the number of its first piece among all.
    let firsts: Vec<usize> = plans
        .iter()
        .scan(0, |next, plan| {
            *next += plan.pieces();
            Some(*next - plan.pieces())
        })
        .collect();
    // For each member, the ends of the merges that read the slots.
    let mut merged: Vec<VecDeque<M::Event>> = members.iter().map(|_| VecDeque::new()).collect();
    for piece in 0..plans.iter().map(|plan| plan.pieces()).max().unwrap_or(0) {
        for (m, (member, (share, plan))) in members.iter().zip(shares.iter().zip(plans)).enumerate() {
            if piece >= plan.pieces() {
                continue;
            }
            let (from, to) = (split(firsts[m] + piece), split(firsts[m] + piece + 1));
            let range = plan.range(piece);
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
                // SAFETY: the part lies inside the run of the other member. The parts of a piece have as many keys as the piece, and so
                // does the slot, of which each takes some; what was in the slot has been merged.
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
            // SAFETY: the caller's promise; the parts are in the run, which nothing writes, and in a slot, which is written again after this.
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
/// The arrays are in the GPU's memory and apart from each other, and are used by nothing else; runs and `out` have as many keys.
unsafe fn merge_piece<K: GpuKey>(
    queue: &impl Queue,
    plan: ExchangePlan,
    workspace: Address,
    parts: &[Arrays],
    out: Arrays,
) -> Result<(), Error> {
    let splits = workspace + plan.layout::<K>().splits as Address;
    // SAFETY: the caller's promise.
    let merge_two = |a: Arrays, b: Arrays, out: Arrays| unsafe {
        match out.value_bytes {
            0 => merge::<K>(queue, MergeKernel::Auto, a, b, out.keys, splits),
            _ if out.len == 0 => Ok(()),
            _ => merge_pairs::<K>(queue, a, b, out, splits),
        }
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
struct GroupRuns<'a, K, M> {
    members: &'a [M],
    shares: &'a [Share],
    /// Where the searches of each member are.
    searches: Vec<Address>,
    words: Vec<Vec<u64>>,
    keys: PhantomData<K>,
}

impl<'a, K: GpuKey, M: Member> GroupRuns<'a, K, M> {
    fn new(members: &'a [M], shares: &'a [Share], plans: &[ExchangePlan]) -> Self {
        let at = |(share, plan): (&Share, &ExchangePlan)| share.workspace + plan.layout::<K>().searches as Address;
        let searches = shares.iter().zip(plans).map(at).collect();
        Self { members, shares, searches, words: vec![vec![]; members.len()], keys: PhantomData }
    }
}

impl<K: GpuKey, M: Member> SortedRuns for GroupRuns<'_, K, M> {
    type Word = <K as Key>::Bits;
    type Error = Error;

    fn lengths(&self) -> impl ExactSizeIterator<Item = usize> {
        self.shares.iter().map(|share| share.run.len)
    }

    fn search(&mut self, searches: &mut [Search<Self::Word>]) -> Result<(), Error> {
        self.words.iter_mut().for_each(Vec::clear);
        for Search { run, window, key } in &*searches {
            self.words[*run].extend([window.start as u64, window.end as u64, register(*key)]);
        }
        for (((member, share), &at), words) in self.members.iter().zip(self.shares).zip(&self.searches).zip(&self.words)
        {
            let count = words.len() / SEARCH_WORDS;
            let shape = Shape { blocks: count.div_ceil(THREADS as usize), threads: THREADS, shared_bytes: 0 };
            let (keys, n) = (share.run.keys as *const <K as Kernels>::Bits, share.run.len);
            let coding = Coding::of::<K>(false);
            let launch = CountBelow { keys, n, searches: at as *mut u64, count, coding };
            // SAFETY: the workspace has capacity for the searches, which nothing else uses. Their windows are inside the run.
            unsafe {
                member.write(at, words)?;
                member.with_queue(|queue| queue.launch(&suffix::<K>(0), shape, &launch))?;
            }
        }
        for ((member, &at), words) in self.members.iter().zip(&self.searches).zip(&mut self.words) {
            // SAFETY: the words that have just been written.
            unsafe { member.read(at, words)? };
        }
        let mut answers: Vec<_> = self.words.iter().map(|words| words.chunks_exact(SEARCH_WORDS)).collect();
        for search in searches {
            let answer = answers[search.run].next().expect("there is an answer for each search");
            search.window.start = answer[0] as usize;
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
