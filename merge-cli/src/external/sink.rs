//! Where merged keys go: to the temporary file as a run again, or to the output.

use super::block::Block;
use super::coding::Coding;
use super::run::SpilledRun;
use super::spill::{ExtentWriter, Spill};
use crate::error::Result;
use crate::key_type::FileKey;
use crate::output::Writer;
use crate::unique::unique;
use std::sync::Arc;

/// Takes sorted keys and their values, part by part.
pub trait Target<O>: Send {
    /// Takes these keys after those before. What `keys` are afterwards is unspecified.
    fn write(&mut self, keys: &mut [O], values: &[u8]) -> Result<()>;
}

/// The outputs of a sort: keys, values (or places), or both.
#[derive(Debug)]
pub struct Outputs<O> {
    pub keys: Option<Writer>,
    pub values: Option<Writer>,
    pub coding: Coding<O>,
}

impl<O: FileKey> Target<O> for Outputs<O> {
    fn write(&mut self, keys: &mut [O], values: &[u8]) -> Result<()> {
        if let Some(writer) = &mut self.keys {
            (self.coding.decode)(keys);
            writer.write(bytemuck::cast_slice(keys))?;
        }
        self.values.as_mut().map_or(Ok(()), |writer| writer.write(values))
    }
}

/// A run on its way to the temporary file.
#[derive(Debug)]
pub struct RunWriter<'a> {
    spill: &'a Arc<Spill>,
    keys: ExtentWriter<'a>,
    values: ExtentWriter<'a>,
    count: u64,
}

impl<'a> RunWriter<'a> {
    /// A run of at most `count` keys of `key` bytes with values of `width` bytes.
    pub fn begin(spill: &'a Arc<Spill>, count: u64, key: usize, width: usize) -> Self {
        let (keys, values) = (spill.begin(count * key as u64), spill.begin(count * width as u64));
        Self { spill, keys, values, count: 0 }
    }

    /// The run.
    pub fn finish(self) -> SpilledRun {
        let Self { spill, keys, values, count } = self;
        SpilledRun { spill: spill.clone(), keys: keys.finish(), values: values.finish(), count }
    }
}

impl<O: FileKey> Target<O> for RunWriter<'_> {
    fn write(&mut self, keys: &mut [O], values: &[u8]) -> Result<()> {
        self.count += keys.len() as u64;
        self.keys.write(bytemuck::cast_slice(keys))?;
        self.values.write(values)
    }
}

/// Hands on to a target what is wanted of the merged keys: all, or the first of equal ones.
#[derive(Debug)]
pub struct Sink<O, T> {
    pub target: T,
    unique: bool,
    last: Option<O>,
    /// Keys handed on.
    pub count: u64,
}

impl<O: FileKey, T: Target<O>> Sink<O, T> {
    pub fn new(target: T, unique: bool) -> Self {
        Self { target, unique, last: None, count: 0 }
    }

    /// Takes the first `count` keys of a block, and their values. What the block holds afterwards is unspecified.
    pub fn put(&mut self, block: &mut Block<O>, count: usize) -> Result<()> {
        let width = block.width;
        let (keys, values) = block.parts(0..count);
        let mut count = count;
        if self.unique {
            let last = keys.last().copied().or(self.last);
            count = unique(keys, values, width, self.last);
            self.last = last;
        }
        self.count += count as u64;
        self.target.write(&mut keys[..count], &values[..count * width])
    }
}
