//! Division of the memory of an external sort.

use super::error::TooLittleMemory;
use crate::engine::sort_bytes_on_gpu;

/// The number of chunks in use at once: one is read, one sorted, one written.
pub(super) const CHUNKS: usize = 3;
/// The greatest number of runs that an engine merges at once.
const MAX_FAN_IN: usize = 4096;
/// The number of runs to merge at once with little memory.
const SMALL_FAN_IN: usize = 16;
/// The number of bytes that is worth a read.
const EFFICIENT_READ: u64 = 256 << 10;
/// The part of a run's block that is reserved for keys of the block before: one in `HEAD`.
const HEAD: usize = 4;
/// The least number of keys of a block, so that it has a head.
const MIN_SLOT: usize = 2 * HEAD;
/// The least memory. With less, blocks are so short that their fixed cost dominates.
const LEAST_MEMORY: u64 = 16 << 10;

/// The sizes of a key and its payload, which determine the memory of a sort.
///
/// Memory is counted in bytes. A key and a payload without bytes count as 1 byte together. A result that exceeds its
/// type is the type's greatest value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a key.
    pub key: usize,
    /// Bytes of a key's payload.
    pub width: usize,
}

/// How payloads get into the order of the keys.
enum Movement {
    /// The engine moves them with their keys.
    WithKeys,
    /// [`gather`](crate::permutation::gather) moves them, after the engine has sorted their indices.
    ByIndex,
}

impl Shape {
    /// Bytes of memory for a sort of `count` keys at once: keys, payloads and scratch memory.
    pub fn in_memory(self, count: u64) -> u128 {
        let index = if u32::try_from(count).is_ok() { size_of::<u32>() } else { size_of::<u64>() };
        let (key, width, index) = (self.key as u128, self.width as u128, index as u128);
        let bytes = match self.movement() {
            Movement::WithKeys => 2 * (key + width).max(1),
            // The sort has freed its scratch memory when payloads are gathered.
            Movement::ByIndex => (2 * (key + index) + width).max(key + index + 2 * width),
        };
        u128::from(count).saturating_mul(bytes)
    }

    /// The greatest number of keys that `memory` bytes suffice to sort at once.
    pub fn most_in_memory(self, memory: u64) -> u64 {
        let bytes_per_key = |count: u64| self.in_memory(count) / u128::from(count);
        match (u128::from(memory) / bytes_per_key(1)) as u64 {
            keys if keys <= u32::MAX.into() => keys,
            _ => ((u128::from(memory) / bytes_per_key(1 << 33)) as u64).max(u32::MAX.into()),
        }
    }

    /// The greatest number of keys that a GPU with `memory` bytes can sort at once.
    pub fn most_on_gpu(self, memory: u64) -> u64 {
        let moved = match self.movement() {
            Movement::WithKeys => self.width,
            Movement::ByIndex => size_of::<u32>(),
        };
        // A fortieth more is for splits and counters.
        (u128::from(memory) * 40 / 41 / (sort_bytes_on_gpu(self.key, moved) as u128).max(1)) as u64
    }

    /// The least memory for a sort of more keys than fit in memory, or for a merge: 16 KiB, or more for large keys and
    /// payloads, because a few are always in memory. More memory means fewer passes.
    ///
    /// ```
    /// use merge_host::external::Shape;
    ///
    /// assert_eq!(Shape { key: 8, width: 8 }.least_memory(), 16 << 10);
    /// assert!(Shape { key: 8, width: 10_000 }.least_memory() > 640_000);
    /// ```
    pub fn least_memory(self) -> u64 {
        let of_few = self.bytes_per_chunk_key().max(self.bytes_per_slot_key()).saturating_mul(2 * MIN_SLOT as u64);
        of_few.max(LEAST_MEMORY)
    }

    /// The number of keys that are read and sorted at once if not all keys fit in memory. There are `memory` bytes of
    /// memory, and `gpu` bytes on a GPU if one sorts.
    ///
    /// # Errors
    /// [`TooLittleMemory`] if `memory` is less than [`least_memory`](Self::least_memory), or if the GPU has too little
    /// memory for a few keys.
    pub fn chunk(self, memory: u64, gpu: Option<u64>) -> Result<usize, TooLittleMemory> {
        self.check(memory)?;
        let most = gpu.map_or(u64::MAX, |bytes| self.most_on_gpu(bytes));
        if let Some(gpu) = gpu.filter(|_| most < MIN_SLOT as u64) {
            let needed = self.bytes_per_chunk_key().saturating_mul(MIN_SLOT as u64);
            return Err(TooLittleMemory { memory: gpu, needed, key: self.key, width: self.width });
        }
        Ok((memory / self.bytes_per_chunk_key()).min(most).min(u32::MAX.into()) as usize)
    }

    /// The greatest number of runs to merge at once with `memory` bytes of memory, and at most `limit`.
    ///
    /// A `limit` below 2 counts as 2. More runs are merged in several passes.
    ///
    /// # Errors
    /// [`TooLittleMemory`] if `memory` is less than [`least_memory`](Self::least_memory).
    pub fn fan_in(self, memory: u64, limit: Option<usize>) -> Result<usize, TooLittleMemory> {
        self.check(memory)?;
        let keys = self.slots(memory);
        let efficient = ((EFFICIENT_READ / self.times(1, 0)) as usize).max(MIN_SLOT);
        let most = (keys / efficient).max(SMALL_FAN_IN.min(keys / MIN_SLOT)).min(MAX_FAN_IN);
        // The least memory suffices for two runs.
        Ok(limit.unwrap_or(most).clamp(2, most.max(2)))
    }

    /// Bytes of `count` keys in the temporary file, if they do not fit in memory.
    pub fn spilled(self, count: u64) -> u128 {
        u128::from(count) * u128::from(self.times(1, 0))
    }

    /// Whether reading or writing `count` keys with their payloads takes less time than waking a thread to help.
    pub(super) fn is_little(self, count: usize) -> bool {
        self.times(1, 0).saturating_mul(count as u64) < EFFICIENT_READ
    }

    /// The number of keys of the block of each of `runs` runs.
    pub(super) fn slot(self, memory: u64, runs: usize) -> usize {
        self.slots(memory) / runs.max(2)
    }

    fn movement(self) -> Movement {
        match self.width {
            0 | 4 | 8 => Movement::WithKeys,
            _ => Movement::ByIndex,
        }
    }

    /// Bytes per key of a chunk: all chunks in use, and the scratch memory for one chunk.
    fn bytes_per_chunk_key(self) -> u64 {
        let indices = match self.movement() {
            Movement::WithKeys => 0,
            Movement::ByIndex => 2 * size_of::<u32>(),
        };
        // All chunks and the scratch memory contain keys and payloads.
        self.times(CHUNKS + 1, indices)
    }

    /// Bytes per key of a run in a merge: two blocks of the run, two blocks of the output, and the scratch memory.
    fn bytes_per_slot_key(self) -> u64 {
        // The scratch memory always has keys. With payloads there are three arrays of indices: before the merge, after
        // it, and in its scratch memory.
        let indices = if self.width == 0 { 0 } else { 3 * size_of::<u32>() };
        self.times(4, self.key.saturating_add(indices))
    }

    /// Bytes of `copies` keys with payloads, plus `more` bytes.
    fn times(self, copies: usize, more: usize) -> u64 {
        let each = (self.width as u64).saturating_add(self.key as u64).max(1);
        each.saturating_mul(copies as u64).saturating_add(more as u64)
    }

    /// The number of keys of all runs' blocks together. Their indices are numbers of 4 bytes.
    fn slots(self, memory: u64) -> usize {
        (memory / self.bytes_per_slot_key()).min(u32::MAX.into()) as usize
    }

    /// Checks that `memory` is at least the least memory.
    fn check(self, memory: u64) -> Result<(), TooLittleMemory> {
        let needed = self.least_memory();
        // Payloads that fit in no memory are an error with any memory.
        if memory >= needed && needed < u64::MAX {
            return Ok(());
        }
        Err(TooLittleMemory { memory, needed, key: self.key, width: self.width })
    }
}

/// The number of slots in a block of `slot` keys that are reserved for keys of the block before.
pub(super) fn head(slot: usize) -> usize {
    slot / HEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shapes() -> impl Iterator<Item = Shape> {
        [1, 2, 4, 8, 16].into_iter().flat_map(|key| [0, 1, 4, 8, 100].map(|width| Shape { key, width }))
    }

    #[test]
    fn no_part_takes_more_than_the_memory() {
        for shape in shapes() {
            for memory in [1 << 20, (100 << 20) + 12345, 8 << 30] {
                let most = shape.most_in_memory(memory);
                assert!(shape.in_memory(most) <= memory.into(), "{shape:?}");
                assert!(shape.in_memory(most + 1) > memory.into(), "{shape:?}");
                assert!(shape.chunk(memory, None).unwrap() as u64 * shape.bytes_per_chunk_key() <= memory);
                for limit in [None, Some(0), Some(2), Some(5000)] {
                    let runs = shape.fan_in(memory, limit).unwrap();
                    assert!((2..=4096).contains(&runs) && runs <= limit.unwrap_or(4096).max(2));
                    assert!((shape.slot(memory, runs) * runs) as u64 * shape.bytes_per_slot_key() <= memory);
                    assert!(shape.slot(memory, runs) >= MIN_SLOT && head(shape.slot(memory, runs)) > 0);
                }
            }
        }
    }

    #[test]
    fn memory_of_any_size_is_enough_or_an_error_that_says_how_much_is() {
        for shape in shapes() {
            for memory in (0..4000).chain([1 << 40, u64::MAX]) {
                let Err(error) = shape.chunk(memory, None).and(shape.fan_in(memory, None)) else { continue };
                assert!(error.needed > memory, "{error}");
                assert!(shape.chunk(error.needed, None).is_ok() && shape.fan_in(error.needed, None).is_ok());
            }
            assert!(shape.most_in_memory(u64::MAX) > 0);
            assert_eq!(shape.most_in_memory(0), 0);
        }
    }

    #[test]
    fn many_keys_need_large_indices() {
        let shape = Shape { key: 4, width: 1 };
        assert_eq!(shape.most_in_memory(17 << 31), 1 << 31);
        // More than 2^32 keys take 25 bytes each.
        assert_eq!(shape.most_in_memory(17 << 32), u32::MAX.into());
        assert_eq!(shape.most_in_memory(25 << 33), 1 << 33);
        assert_eq!(shape.in_memory(1 << 33), 25 << 33);
    }

    #[test]
    fn payloads_take_memory() {
        for (width, needed) in [(0, 16_000), (4, 24_000), (8, 32_000), (1, 25_000), (100, 212_000)] {
            assert_eq!(Shape { key: 8, width }.in_memory(1000), needed);
        }
    }

    #[test]
    fn a_chunk_fits_the_gpu() {
        let shape = Shape { key: 8, width: 8 };
        // 32 bytes for each key and its copy, with their values, and a fortieth for the rest of a workspace.
        assert_eq!(shape.chunk(1 << 30, Some(32_800)).unwrap(), 1000);
        assert_eq!(shape.most_on_gpu(32_800), 1000);
        assert_eq!(shape.most_on_gpu(32_799), 999);
        assert!(shape.most_on_gpu(u64::MAX) < u64::MAX / 32);
    }

    #[test]
    fn payloads_that_fill_the_memory_are_an_error() {
        let shape = Shape { key: 8, width: 1 << 20 };
        let error = shape.chunk(1 << 20, None).unwrap_err();
        assert_eq!((error.memory, error.key, error.width), (1 << 20, 8, 1 << 20));
        assert!(shape.fan_in(1 << 20, None).is_err());
        let absurd = Shape { key: 8, width: usize::MAX };
        assert!(absurd.chunk(u64::MAX, None).is_err() && absurd.fan_in(u64::MAX, None).is_err());
        assert_eq!((absurd.most_in_memory(u64::MAX), absurd.most_in_memory(1 << 40)), (0, 0));
        assert!(absurd.in_memory(u64::MAX) > u64::MAX.into());
    }
}
