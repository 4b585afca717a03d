//! Sorts of keys of 16 bytes: a stable sort by the low words, and then a stable sort by the high words.
//!
//! ```text
//!   keys alone    low words with high words as values, then high words with low words as values
//!   with values   low words with indices, then gathered high words with indices; the indices gather the rest
//! ```

use super::sort::Sort;
use super::{Address, Arrays, Queue, align, bits, with_numbers};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::Operation;
use crate::{Error, SortKernel};
use kernels_gpu::kernels::words::{GatherWords, JoinWords, SplitWords, THREADS};
use kernels_gpu::key::Coding;

/// Bytes of a word.
const WORD: usize = size_of::<u64>();

/// A sort of keys of 16 bytes. Values begin as the keys' indices if it `indexes`.
#[derive(Clone, Copy)]
pub struct SortWide {
    pub kernel: SortKernel,
    pub coding: Coding<u128>,
    pub at: Arrays,
    pub indexes: bool,
}

/// Addresses of the parts of a workspace, and its end.
struct Parts {
    /// Words of each key.
    words: Address,
    /// More words of each key, or values.
    others: Address,
    /// The indices, if there are values. They are in the workspace unless they are the values.
    indices: Address,
    /// The workspace of a sort of words.
    sort: Address,
}

impl SortWide {
    /// Bytes of an index; 0 if keys are sorted alone.
    fn index_bytes(self) -> usize {
        index_bytes(self.at, self.indexes)
    }

    fn parts(self, workspace: Address) -> Parts {
        let room = |each: usize| align(self.at.len.saturating_mul(each)) as Address;
        let others = workspace.saturating_add(room(WORD));
        let own_indices = others.saturating_add(room(WORD));
        let (indices, sort) = if self.indexes {
            (self.at.values, own_indices)
        } else {
            (own_indices, own_indices.saturating_add(room(self.index_bytes())))
        };
        Parts { words: workspace, others, indices, sort }
    }

    /// The sort of `keys` by word 0, the low one, or 1, with `values`.
    fn sort_of(self, word: usize, keys: Address, values: Address) -> Sort {
        let (value_bytes, is_first) = (self.index_bytes(), word == 0);
        let coding = Coding { always: (self.coding.always >> (64 * word)) as u64, ..Coding::NONE };
        let at = match value_bytes {
            0 => Arrays { keys, values, len: self.at.len, value_bytes: WORD, count: 0 },
            value_bytes => Arrays { keys, values, len: self.at.len, value_bytes, count: 0 },
        };
        Sort::new(self.kernel, coding.into(), at, value_bytes > 0 && is_first)
    }

    /// Bytes of workspace, which begins at a multiple of 16.
    pub fn workspace_bytes(self) -> usize {
        let Parts { words, others, sort, .. } = self.parts(0);
        let of_sorts = [0, 1].map(|word| self.sort_of(word, words, others).workspace_bytes());
        (sort as usize).saturating_add(of_sorts[0].max(of_sorts[1]))
    }

    /// Queues the sort.
    ///
    /// # Safety
    /// The conditions of [`Operation::launch`] hold, for [`workspace_bytes`](Self::workspace_bytes).
    pub unsafe fn launch(self, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let parts = self.parts(workspace);
        // SAFETY: both functions have the conditions of this one.
        unsafe { if self.index_bytes() == 0 { self.sort_keys(queue, parts) } else { self.sort_indices(queue, parts) } }
    }

    unsafe fn sort_keys(self, queue: &dyn Queue, parts: Parts) -> Result<(), Error> {
        let (keys, n) = (self.at.keys as *mut u64, self.at.len);
        let (low, high) = (parts.words as *mut u64, parts.others as *mut u64);
        let split = SplitWords { keys: keys.cast_const(), n, low, high };
        // SAFETY: `low` and `high` have `n` words each, and `parts.sort` the workspace of either sort.
        unsafe {
            queue.launch(&bits(WORD), Shape::a_thread_each(n, THREADS), &split)?;
            self.sort_of(0, parts.words, parts.others).launch(queue, parts.sort)?;
            self.sort_of(1, parts.others, parts.words).launch(queue, parts.sort)?;
        }
        // SAFETY: the words are in order, and nothing else uses the keys.
        unsafe { self.join(queue, parts.words, parts.others) }
    }

    unsafe fn sort_indices(self, queue: &dyn Queue, parts: Parts) -> Result<(), Error> {
        let Arrays { keys, values, len: n, value_bytes, .. } = self.at;
        let (none, indices) = ((0, self.index_bytes()), (parts.indices, self.index_bytes()));
        // SAFETY: the keys have two words each, all arrays have `n` elements, and the indices are a permutation once
        // the first sort has made them. `parts.sort` is the workspace of either sort.
        unsafe {
            gather(queue, WORD, (keys, 2, 0), none, n, parts.words)?;
            self.sort_of(0, parts.words, parts.indices).launch(queue, parts.sort)?;
            gather(queue, WORD, (keys, 2, 1), indices, n, parts.words)?;
            self.sort_of(1, parts.words, parts.indices).launch(queue, parts.sort)?;
            gather(queue, WORD, (keys, 2, 0), indices, n, parts.others)?;
            self.join(queue, parts.others, parts.words)?;
            if self.indexes {
                return Ok(());
            }
            gather(queue, value_bytes, (values, 1, 0), indices, n, parts.others)?;
            queue.copy(parts.others, values, n * value_bytes)
        }
    }

    /// Queues the writing of keys from their words.
    ///
    /// # Safety
    /// There are `at.len` words at both addresses, and nothing else uses the keys.
    unsafe fn join(self, queue: &dyn Queue, low: Address, high: Address) -> Result<(), Error> {
        let (low, high, n) = (low as *const u64, high as *const u64, self.at.len);
        let join = JoinWords { low, high, n, keys: self.at.keys as *mut u64 };
        // SAFETY: this function requires the arrays, and the shape has a thread for each key.
        unsafe { queue.launch(&bits(WORD), Shape::a_thread_each(n, THREADS), &join) }
    }
}

/// Bytes of an index of the elements `at`, which moves them; 0 if there are no values. The indices are the values if
/// these begin as indices, which is `indexes`.
pub fn index_bytes(at: Arrays, indexes: bool) -> usize {
    match at.value_bytes {
        0 => 0,
        bytes if indexes => bytes,
        _ if at.len as u64 <= 1 << 32 => 4,
        _ => 8,
    }
}

/// Queues the gathering of `n` words of `bytes` bytes by indices, which have an address and a number of bytes. The
/// words are taken in order if the address is 0.
///
/// # Safety
/// There are `n` groups of `stride` words at `from`, of which word `first` is taken, `n` words at `to`, and `n` indices
/// below `n`.
pub unsafe fn gather(
    queue: &dyn Queue,
    bytes: usize,
    (from, stride, first): (Address, usize, usize),
    (indices, index_bytes): (Address, usize),
    n: usize,
    to: Address,
) -> Result<(), Error> {
    let suffix = format!("{}v{index_bytes}", bits(bytes));
    with_numbers!(bytes, W => with_numbers!(index_bytes, I => {
        let (from, indices, to) = (from as *const W, indices as *const I, to as *mut W);
        let words = GatherWords { from, stride, first, indices, n, to };
        // SAFETY: this function requires the arrays, and the shape has a thread for each word.
        unsafe { queue.launch(&suffix, Shape::a_thread_each(n, THREADS), &words) }
    }))
}
