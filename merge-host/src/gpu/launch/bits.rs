//! Sorts by some bits of the keys' ordered bits.
//!
//! ```text
//!   keys alone    the extracted bits are sorted, with the keys as their values
//!   with values   the extracted bits are sorted with indices, which gather keys and values
//! ```

use super::sort::Sort;
use super::words::{gather, index_bytes};
use super::{Address, Arrays, Queue, align, bits, with_numbers};
use crate::gpu::kernels::Shape;
use crate::gpu::operation::{KeyCoding, OnNumbers, Operation};
use crate::key::sealed::GpuBits;
use crate::{Error, SortKernel};
use kernels_gpu::kernels::extract_bits::{ExtractBits, THREADS};
use kernels_gpu::key::Coding;

/// The sort of `at` by the bits `begin..end` of the keys' ordered bits. Values begin as the keys' indices if it
/// `indexes`.
#[derive(Clone, Copy)]
pub struct SortByBits {
    pub kernel: SortKernel,
    pub coding: KeyCoding,
    pub at: Arrays,
    pub indexes: bool,
    /// `begin`, and then `end`, which is at least `begin` and at most the number of bits of a key.
    pub bits: (u32, u32),
}

/// Addresses of the parts of a workspace.
struct Parts {
    /// The extracted bits.
    codes: Address,
    /// The indices of the keys, unless keys are sorted alone or the values are the indices.
    indices: Address,
    /// Gathered keys or values.
    gathered: Address,
    /// The workspace of the sort of codes.
    sort: Address,
}

impl SortByBits {
    /// Bytes of an index; 0 if keys are sorted alone.
    fn index_bytes(&self) -> usize {
        index_bytes(self.at, self.indexes)
    }

    fn parts(&self, workspace: Address) -> Parts {
        let after = |at: Address, each: usize| at.saturating_add(align(self.at.len.saturating_mul(each)) as Address);
        let own = after(workspace, 8);
        match self.at.value_bytes {
            0 => Parts { codes: workspace, indices: 0, gathered: 0, sort: own },
            _ if self.indexes => {
                Parts { codes: workspace, indices: self.at.values, gathered: own, sort: after(own, 8) }
            }
            _ => {
                let gathered = after(own, self.index_bytes());
                Parts { codes: workspace, indices: own, gathered, sort: after(gathered, 8) }
            }
        }
    }

    /// The sort of codes of `code_bytes` bytes. Keys with bits `B` alone are its values.
    fn of_codes<B>(&self, code_bytes: usize, parts: &Parts) -> Sort {
        let (is_alone, len) = (self.at.value_bytes == 0, self.at.len);
        let (values, value_bytes) =
            if is_alone { (self.at.keys, size_of::<B>()) } else { (parts.indices, self.index_bytes()) };
        let coding = with_numbers!(code_bytes, C => Coding::<C>::NONE.into());
        let at = Arrays { keys: parts.codes, values, len, value_bytes, count: 0 };
        Sort { bits: self.bits.1 - self.bits.0, ..Sort::new(self.kernel, coding, at, !is_alone) }
    }

    /// Queues the extraction of bits to codes of `code_bytes` bytes.
    ///
    /// # Safety
    /// `codes` has a code for each key, and nothing else uses the codes.
    unsafe fn extract<B: GpuBits>(
        &self,
        coding: Coding<B>,
        queue: &dyn Queue,
        code_bytes: usize,
        codes: Address,
    ) -> Result<(), Error> {
        let (begin, end) = self.bits;
        let (keys, n) = (self.at.keys as *const B, self.at.len);
        // A range without bits has no first bit.
        let shift = begin.min(8 * size_of::<B>() as u32 - 1);
        let mask = u64::MAX.checked_shr(64 - (end - begin)).unwrap_or(0);
        let shape = Shape::a_thread_each(n, THREADS);
        let suffix = format!("{}v{code_bytes}", bits(size_of::<B>()));
        with_numbers!(code_bytes, C => {
            let extract = ExtractBits { keys, n, shift, mask, to: codes as *mut C, coding };
            // SAFETY: this function requires the codes, and the shape has a thread for each key.
            unsafe { queue.launch(&suffix, shape, &extract) }
        })
    }
}

impl OnNumbers for SortByBits {
    /// Enough for any bits.
    fn workspace_bytes_of<B: GpuBits>(&self) -> usize {
        let parts = self.parts(0);
        let sorts = [4, size_of::<B>()].map(|bytes| self.of_codes::<B>(bytes, &parts).workspace_bytes());
        (parts.sort as usize).saturating_add(sorts[0].max(sorts[1]))
    }

    unsafe fn queue<B: GpuBits>(&self, coding: Coding<B>, queue: &dyn Queue, workspace: Address) -> Result<(), Error> {
        let (parts, Arrays { keys, values, len, value_bytes, .. }) = (self.parts(workspace), self.at);
        let code_bytes = if self.bits.1 - self.bits.0 <= 32 { 4 } else { 8 };
        // SAFETY: the workspace has codes of up to 8 bytes, and the workspace of their sort.
        unsafe {
            self.extract(coding, queue, code_bytes, parts.codes)?;
            self.of_codes::<B>(code_bytes, &parts).launch(queue, parts.sort)?;
        }
        if value_bytes == 0 {
            return Ok(());
        }
        let indices = (parts.indices, self.index_bytes());
        // SAFETY: the sort has made a permutation of the indices. `parts.gathered` has 8 bytes for each key.
        unsafe {
            gather(queue, size_of::<B>(), (keys, 1, 0), indices, len, parts.gathered)?;
            queue.copy(parts.gathered, keys, len * size_of::<B>())?;
            if self.indexes {
                return Ok(());
            }
            gather(queue, value_bytes, (values, 1, 0), indices, len, parts.gathered)?;
            queue.copy(parts.gathered, values, len * value_bytes)
        }
    }
}
