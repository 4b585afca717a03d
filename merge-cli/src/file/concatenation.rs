//! Several files, read one after another as if they were one.

use super::Input;
use crate::coding::Word;
use crate::say::error::{Failure, Result};
use merge_host::parallel;
use std::path::Path;

/// Files of keys, or of values, in order.
#[derive(Debug)]
pub struct Concatenation {
    inputs: Vec<Input>,
    /// The index of the file to read next.
    current: usize,
}

impl Concatenation {
    /// Reads all `inputs`, at least one.
    pub fn new(inputs: Vec<Input>) -> Self {
        Self { inputs, current: 0 }
    }

    /// The files.
    pub fn inputs(&self) -> &[Input] {
        &self.inputs
    }

    /// The path of the first file, for messages about all files.
    pub fn path(&self) -> &Path {
        self.inputs[0].path()
    }

    /// Bytes of all keys, if known before reading.
    pub fn length(&self) -> Option<u64> {
        self.inputs.iter().map(Input::length).sum()
    }

    /// The number of keys, if known before reading. An error if a length is not a whole number of keys.
    pub fn count<W: Word>(&self) -> Result<Option<u64>> {
        let counts = self.inputs.iter().map(Input::count::<W>).collect::<Result<Vec<_>>>()?;
        Ok(counts.into_iter().sum())
    }

    /// Whether all files are regular and open, so that many threads can read at any offset.
    pub fn takes_any_order(&self) -> bool {
        self.inputs.iter().all(|input| input.is_regular() && input.is_open())
    }

    /// Bytes to read at once on a thread.
    pub fn block(&self) -> usize {
        self.inputs.iter().map(Input::block).max().unwrap_or(1)
    }

    /// Fills `keys` with the next keys and returns their number, which is less than `keys.len()` only at the end.
    pub fn read<W: Word>(&mut self, keys: &mut [W]) -> Result<usize> {
        let mut done = 0;
        while done < keys.len() && self.current < self.inputs.len() {
            let read = self.inputs[self.current].read(&mut keys[done..])?;
            done += read;
            if done < keys.len() {
                self.inputs[self.current].close();
                self.current += 1;
            }
        }
        Ok(done)
    }

    /// Fills `keys` from regular files, beginning with the key at `index`, on this thread. The position of
    /// [`read`](Self::read) does not change.
    pub fn read_at<W: Word>(&self, mut index: u64, keys: &mut [W]) -> Result<()> {
        let mut rest = keys;
        for input in &self.inputs {
            let count = input.length().unwrap_or(0) / W::SIZE as u64;
            if index >= count {
                index -= count;
                continue;
            }
            let here = usize::try_from(count - index).unwrap_or(usize::MAX).min(rest.len());
            let (keys, left) = rest.split_at_mut(here);
            input.read_at(index, keys)?;
            if left.is_empty() {
                return Ok(());
            }
            (index, rest) = (0, left);
        }
        Ok(())
    }

    /// Goes to the key at `index` of regular files.
    pub fn seek<W: Word>(&mut self, mut index: u64) {
        self.current = self.inputs.len();
        for (i, input) in self.inputs.iter_mut().enumerate() {
            let count = input.length().unwrap_or(0) / W::SIZE as u64;
            if index < count {
                self.current = self.current.min(i);
            }
            input.seek::<W>(index.min(count));
            index = index.saturating_sub(count);
        }
    }

    /// The same files again, from the first key on, if every file can be read twice.
    pub fn again(&self) -> Result<Option<Self>> {
        let inputs = self.inputs.iter().map(Input::again).collect::<Result<Option<Vec<_>>>>()?;
        Ok(inputs.map(Self::new))
    }

    /// All keys from here to the end.
    pub fn read_all<W: Word>(&mut self) -> Result<Vec<W>> {
        let mut keys = self.inputs[0].read_all()?;
        self.inputs[0].close();
        for input in &mut self.inputs[1..] {
            keys.append(&mut input.read_all()?);
            input.close();
        }
        self.current = self.inputs.len();
        Ok(keys)
    }

    /// Fills `bytes` with all bytes of regular files, on all threads.
    ///
    /// There is an item for each `size` bytes. A thread reads the bytes of `block` items at a time. Then it calls
    /// `each` with these bytes and items, while the bytes are still in its cache.
    pub fn read_blocks<T: Send>(
        &mut self,
        (bytes, size): (&mut [u8], usize),
        items: &mut [T],
        block: usize,
        each: impl Fn(&[u8], &mut [T]) + Sync,
    ) -> Result<()> {
        let this = &*self;
        let share = parallel::share_length(items.len(), block);
        let shares = bytes.chunks_mut(share * size).zip(items.chunks_mut(share)).enumerate();
        parallel::try_for_each(shares, |(i, (bytes, items))| {
            let blocks = bytes.chunks_mut(block * size).zip(items.chunks_mut(block));
            let mut begin = (i * share * size) as u64;
            for (bytes, items) in blocks {
                this.read_at(begin, bytes)?;
                each(bytes, items);
                begin += bytes.len() as u64;
            }
            Ok::<_, Failure>(())
        })?;
        self.current = self.inputs.len();
        Ok(())
    }

    /// The file that holds the key at `index`, and the index of the key in that file.
    pub fn locate<W: Word>(&self, mut index: u64) -> (&Input, u64) {
        for input in &self.inputs {
            match input.length().map(|length| length / W::SIZE as u64) {
                Some(count) if index >= count => index -= count,
                _ => return (input, index),
            }
        }
        (&self.inputs[0], index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_as_one() {
        let folder = tempfile::tempdir().unwrap();
        let lengths = [0u32, 3, 0, 1, 5, 0];
        let mut next = 0;
        let mut open = || {
            let inputs = lengths.iter().enumerate().map(|(i, &length)| {
                let path = folder.path().join(format!("{i}"));
                let keys: Vec<u32> = (next..next + length).collect();
                next += length;
                std::fs::write(&path, bytemuck::cast_slice(&keys)).unwrap();
                Input::open(&path).unwrap()
            });
            Concatenation::new(inputs.collect())
        };
        let mut files = open();
        assert_eq!((files.length(), files.count::<u32>().unwrap(), files.takes_any_order()), (Some(36), Some(9), true));
        let mut again = files.again().unwrap().unwrap();
        let mut part = [0; 4];
        for expected in [&[0, 1, 2, 3][..], &[4, 5, 6, 7], &[8], &[]] {
            let read = files.read(&mut part).unwrap();
            assert_eq!(&part[..read], expected);
        }
        assert_eq!(again.read_all::<u32>().unwrap(), (0..9).collect::<Vec<u32>>());
        for index in 0..=9 {
            again.seek::<u32>(index);
            let read = again.read(&mut part).unwrap();
            assert!(part[..read].iter().copied().eq((index as u32..9).take(4)), "{index}");
            let mut part = vec![0; (9 - index as usize).min(6)];
            again.read_at(index, &mut part).unwrap();
            assert!(part.iter().copied().eq((index as u32..9).take(6)), "{index}");
        }
        let located = |index| {
            let (input, index) = again.locate::<u32>(index);
            (input.path().file_name().unwrap().to_str().unwrap().to_owned(), index)
        };
        assert_eq!(
            [located(0), located(2), located(3), located(8)].map(|(name, index)| format!("{name}:{index}")),
            ["1:0", "1:2", "3:0", "4:4"]
        );
    }
}
