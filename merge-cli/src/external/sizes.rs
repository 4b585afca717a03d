//! How the memory that a sort may use is shared out.

use super::block::Along;
use crate::error::{Failure, Result};

/// Blocks of input that are on their way at once: one is read, one sorted, one written.
pub const CHUNKS: usize = 3;
/// The most runs that the library merges at once.
const MOST_RUNS: usize = 4096;
/// Runs to merge at once however little memory there is.
const FEW_RUNS: usize = 16;
/// Bytes that are worth a read.
const GOOD_READ: u64 = 256 << 10;
/// Of a block that a run is read to, one part in so many is room for what is left of the block before.
const HEAD: usize = 4;
/// The fewest keys of a block, so that it has a head.
const LEAST_SLOT: usize = 2 * HEAD;

/// What a sort handles: the bytes of a key, and what goes along with it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub key: usize,
    pub along: Along,
}

impl Shape {
    /// Bytes of memory to sort so many keys at once: they, what goes along, and the sort's scratch memory.
    pub fn in_memory(self, count: u64) -> u128 {
        let key = self.key;
        let bytes = match self.along {
            Along::Nothing => 2 * key,
            // The sorted keys are a third copy.
            Along::Places => 3 * key + 2 * size_of::<u64>(),
            Along::Values(width @ (4 | 8)) => 2 * (key + width),
            Along::Values(_) | Along::Origin(_) => {
                let width = self.along.width();
                let place = if u32::try_from(count).is_ok() { 4 } else { 8 };
                (2 * (key + place) + width).max(key + place + 2 * width)
            }
        };
        u128::from(count) * bytes as u128
    }

    /// The most keys that can be sorted at once in so many bytes.
    pub fn most_in_memory(self, memory: u64) -> u64 {
        // With places of 8 bytes, which are needed where there are many.
        let bytes = self.in_memory(1).max(self.in_memory(u64::MAX) / u128::from(u64::MAX)) as u64;
        memory / bytes
    }

    /// Bytes of a GPU's memory to sort a key.
    fn on_gpu(self) -> u64 {
        let value = match self.along {
            Along::Nothing => 0,
            Along::Values(width @ (4 | 8)) => width,
            Along::Values(_) | Along::Origin(_) => 4,
            Along::Places => 8,
        };
        2 * (self.key + value) as u64
    }

    /// The most keys that can be sorted at once by a GPU with so many bytes of memory.
    pub fn most_on_gpu(self, memory: u64) -> u64 {
        memory / self.on_gpu()
    }

    /// Bytes for each key of a chunk: all chunks on their way, and the scratch memory for one.
    fn of_chunk(self) -> u64 {
        let (key, width) = (self.key, self.along.width());
        let scratch = match self.along {
            Along::Nothing | Along::Values(4 | 8) | Along::Places => key + width,
            Along::Values(_) | Along::Origin(_) => key + 2 * size_of::<u32>() + width,
        };
        (CHUNKS * (key + width) + scratch) as u64
    }

    /// Bytes for each key of a run in a merge: two blocks to read to, two of the output, and what the merge needs.
    fn of_slot(self) -> u64 {
        let (key, width) = (self.key, self.along.width());
        // The places of the values before and after the merge, and in its scratch memory.
        let places = if width == 0 { 0 } else { 3 * size_of::<u32>() };
        (4 * (key + width) + key + places) as u64
    }

    /// Keys of a chunk, with so many bytes of memory, and so many of a GPU's.
    pub fn chunk(self, memory: u64, gpu: Option<u64>) -> Result<usize> {
        let most = gpu.map_or(u64::MAX, |bytes| self.most_on_gpu(bytes)).min(u32::MAX.into());
        let keys = (memory / self.of_chunk()).min(most) as usize;
        if keys < LEAST_SLOT { Err(self.too_little(memory)) } else { Ok(keys) }
    }

    /// The most runs to merge at once.
    pub fn fan_in(self, memory: u64, batch_size: Option<usize>) -> Result<usize> {
        let keys = self.slots(memory);
        let good = (GOOD_READ as usize / (self.key + self.along.width())).max(LEAST_SLOT);
        let most = (keys / good).max(FEW_RUNS.min(keys / LEAST_SLOT)).min(MOST_RUNS);
        if most < 2 {
            return Err(self.too_little(memory));
        }
        Ok(batch_size.unwrap_or(most).min(most))
    }

    /// Keys of the block that each of so many runs is read to.
    pub fn slot(self, memory: u64, runs: usize) -> usize {
        self.slots(memory) / runs.max(2)
    }

    /// Keys of all runs' blocks together. Their places are numbers of 4 bytes.
    fn slots(self, memory: u64) -> usize {
        (memory / self.of_slot()).min(u32::MAX.into()) as usize
    }

    fn too_little(self, memory: u64) -> Failure {
        let (key, width) = (self.key, self.along.width());
        let needed = self.of_chunk().max(self.of_slot()) * (2 * LEAST_SLOT) as u64;
        Failure::new(format!(
            "--memory: {memory} bytes are too few for keys of {key} bytes with values of {width}, expected at least {needed}"
        ))
    }
}

/// Of the keys of a block that a run is read to, how many are room for what is left of the block before.
pub fn head(slot: usize) -> usize {
    slot / HEAD
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALONG: [Along; 6] =
        [Along::Nothing, Along::Values(1), Along::Values(4), Along::Values(8), Along::Values(100), Along::Places];

    #[test]
    fn nothing_takes_more_than_the_memory() {
        for (key, along) in [1, 2, 4, 8, 16].into_iter().flat_map(|key| ALONG.map(|along| (key, along))) {
            let shape = Shape { key, along };
            for memory in [1 << 20, (100 << 20) + 12345, 8 << 30] {
                let most = shape.most_in_memory(memory);
                assert!(shape.in_memory(most) <= memory.into(), "{shape:?}");
                assert!(shape.in_memory(2 * most) > memory.into(), "{shape:?}");
                assert!(shape.chunk(memory, None).unwrap() as u64 * shape.of_chunk() <= memory);
                for batch_size in [None, Some(2), Some(5000)] {
                    let runs = shape.fan_in(memory, batch_size).unwrap();
                    assert!((2..=4096).contains(&runs) && runs <= batch_size.unwrap_or(4096));
                    assert!((shape.slot(memory, runs) * runs) as u64 * shape.of_slot() <= memory);
                    assert!(shape.slot(memory, runs) >= LEAST_SLOT && head(shape.slot(memory, runs)) > 0);
                }
            }
        }
    }

    #[test]
    fn a_chunk_fits_the_gpu_too() {
        let shape = Shape { key: 8, along: Along::Places };
        assert_eq!(shape.chunk(1 << 30, Some(32 * 1000)).unwrap(), 1000);
        assert_eq!(shape.most_on_gpu(32 * 1000), 1000);
    }

    #[test]
    fn values_that_fill_the_memory_are_an_error() {
        let shape = Shape { key: 8, along: Along::Values(1 << 20) };
        assert!(shape.chunk(1 << 20, None).unwrap_err().message().unwrap().contains("values of 1048576"));
        assert!(shape.fan_in(1 << 20, None).is_err());
    }
}
