//! Sources and targets in memory, and the expected results from the standard library's stable sort.

use crate::common::sorted_indices_by;
use merge_host::Word;
use merge_host::external::{Options, Source, Target};
use std::sync::{Arc, Mutex};

/// Keys and their payloads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs<W> {
    pub keys: Vec<W>,
    pub payload: Vec<u8>,
}

/// `count` keys below `distinct`, in random order. The payload of a key consists of bytes of its index.
pub fn pairs<W: Word + TryFrom<u64>>(count: usize, distinct: u64, width: usize) -> Pairs<W> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let most = distinct.min(u64::MAX >> (64 - 8 * size_of::<W>().min(8)));
    let keys = (0..count).map(|_| W::try_from(next() % most).ok().unwrap()).collect();
    let payload = (0..count * width).map(|i| ((i / width) >> (i % width % 4 * 8)) as u8).collect();
    Pairs { keys, payload }
}

impl<W: Word> Pairs<W> {
    /// The pairs sorted by key; only the first of equal keys if `unique`.
    pub fn sorted(&self, options: &Options) -> Self {
        let mut order = sorted_indices_by(self.keys.len(), &|i, j| self.keys[i].cmp(&self.keys[j]));
        if options.unique {
            order.dedup_by_key(|index| self.keys[*index]);
        }
        let width = options.width;
        let payload = order.iter().flat_map(|&index| self.payload[index * width..][..width].to_vec());
        Self { keys: order.iter().map(|&index| self.keys[index]).collect(), payload: payload.collect() }
    }
}

/// Counts calls, and fails at one call.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    done: Arc<Mutex<usize>>,
    failing: Option<usize>,
}

impl Calls {
    /// The call with the index `failing` fails.
    pub fn failing_at(failing: usize) -> Self {
        Self { failing: Some(failing), ..Self::default() }
    }

    pub fn count(&self) -> usize {
        *self.done.lock().unwrap()
    }

    fn call(&self, name: &str) -> Result<(), String> {
        let mut done = self.done.lock().unwrap();
        *done += 1;
        if self.failing == Some(*done - 1) { Err(format!("{name} {} failed", *done - 1)) } else { Ok(()) }
    }
}

/// A source of pairs in memory.
pub struct FromSlice<W> {
    pub pairs: Pairs<W>,
    pub width: usize,
    pub position: usize,
    pub is_len_known: bool,
    pub can_read_again: bool,
    pub calls: Calls,
}

impl<W> FromSlice<W> {
    pub fn new(pairs: Pairs<W>, width: usize) -> Self {
        Self { pairs, width, position: 0, is_len_known: true, can_read_again: false, calls: Calls::default() }
    }
}

impl<W: Word> FromSlice<W> {
    fn copy(&self, begin: usize, keys: &mut [W], payload: &mut [u8]) {
        let end = begin + keys.len();
        keys.copy_from_slice(&self.pairs.keys[begin..end]);
        payload.copy_from_slice(&self.pairs.payload[begin * self.width..end * self.width]);
    }
}

impl<W: Word> Source<W> for FromSlice<W> {
    type Error = String;

    fn len(&self) -> Option<u64> {
        self.is_len_known.then_some(self.pairs.keys.len() as u64)
    }

    fn read(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<usize, String> {
        self.calls.call("read")?;
        assert!(!keys.is_empty());
        assert_eq!(payload.len(), keys.len() * self.width);
        assert!(self.position == 0 || self.position < self.pairs.keys.len() || !self.is_len_known);
        let count = keys.len().min(self.pairs.keys.len() - self.position);
        self.copy(self.position, &mut keys[..count], &mut payload[..count * self.width]);
        self.position += count;
        Ok(count)
    }

    fn read_again(&mut self, index: u64, keys: &mut [W], payload: &mut [u8]) -> Result<bool, String> {
        self.calls.call("read again")?;
        assert!(index as usize + keys.len() <= self.position);
        if self.can_read_again {
            self.copy(index as usize, keys, payload);
        }
        Ok(self.can_read_again)
    }
}

/// A target that keeps pairs in memory.
#[derive(Debug, Default)]
pub struct ToVec<W> {
    pub pairs: Pairs<W>,
    pub width: usize,
    pub calls: Calls,
}

impl<W> ToVec<W> {
    pub fn new(width: usize, calls: Calls) -> Self {
        Self { pairs: Pairs { keys: Vec::new(), payload: Vec::new() }, width, calls }
    }
}

impl<W: Word> Target<W> for ToVec<W> {
    type Error = String;

    fn write(&mut self, keys: &mut [W], payload: &mut [u8]) -> Result<(), String> {
        self.calls.call("write")?;
        assert!(!keys.is_empty());
        assert_eq!(payload.len(), keys.len() * self.width);
        self.pairs.keys.extend_from_slice(keys);
        self.pairs.payload.extend_from_slice(payload);
        // A target may leave any contents.
        keys.fill(W::from_ordered(bytemuck::Zeroable::zeroed()));
        payload.fill(0xee);
        Ok(())
    }
}
