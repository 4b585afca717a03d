//! The outputs of keys, of their values, and of the numbers of equal keys.

use super::output::{Output, Writer};
use crate::coding::Word;
use crate::job::NumberLimit;
use crate::say::error::Result;

/// The output of keys, and the outputs of their values and of the numbers of equal keys, if there are any.
#[derive(Debug)]
pub struct Outputs {
    /// The output of the keys, of their indices, or of records.
    pub keys: Output,
    /// The output of the values.
    pub values: Option<Output>,
    /// The output of the numbers of equal keys, and the type of these numbers.
    pub counts: Option<(Output, NumberLimit)>,
}

impl From<Output> for Outputs {
    fn from(keys: Output) -> Self {
        Self { keys, values: None, counts: None }
    }
}

impl Outputs {
    /// All outputs.
    pub fn iter(&self) -> impl Iterator<Item = &Output> {
        [&self.keys].into_iter().chain(&self.values).chain(self.counts.iter().map(|(output, _)| output))
    }

    /// An error unless all outputs can be read back before they replace old files, for `--check`.
    pub fn check_can_be_read_back(&self) -> Result<()> {
        self.keys.check_can_be_read_back("--output")?;
        self.values.iter().try_for_each(|values| values.check_can_be_read_back("--values-out"))?;
        self.counts.iter().try_for_each(|(counts, _)| counts.check_can_be_read_back("--count"))
    }

    /// An error if these bytes of keys and of values can certainly not be written.
    pub fn check_space(&self, bytes: [u128; 2]) -> Result<()> {
        [Some(&self.keys), self.values.as_ref()]
            .into_iter()
            .zip(bytes)
            .try_for_each(|(output, bytes)| output.map_or(Ok(()), |output| output.check_space(bytes)))
    }

    /// Sets the number of bytes of a value, if there are values.
    pub fn set_width(&mut self, width: usize) {
        self.values.iter_mut().for_each(|values| values.set_size(width));
    }

    /// Sets the number of keys, if known.
    pub fn expect(&mut self, count: impl Into<Option<u64>>) {
        let count = count.into();
        self.keys.expect(count);
        self.values.iter_mut().for_each(|values| values.expect(count));
        self.counts.iter_mut().for_each(|(counts, _)| counts.expect(count));
    }

    /// Starts to write all.
    pub fn begin(self) -> Result<Writers> {
        let Self { keys, values, counts } = self;
        Ok(Writers {
            keys: keys.begin()?,
            values: values.map(Output::begin).transpose()?,
            counts: match counts {
                Some((output, limit)) => Some((output.begin()?, limit)),
                None => None,
            },
        })
    }
}

/// Outputs that are being written.
#[derive(Debug)]
pub struct Writers {
    pub keys: Writer,
    pub values: Option<Writer>,
    /// The output of the numbers of equal keys, and their type.
    pub counts: Option<(Writer, NumberLimit)>,
}

impl Writers {
    /// Appends keys, and their values if there is an output of values.
    pub fn write<W: Word>(&mut self, keys: &[W], values: &[u8]) -> Result<()> {
        self.keys.write(keys)?;
        self.values.as_mut().map_or(Ok(()), |writer| writer.write(values))
    }
}

impl From<Writer> for Writers {
    fn from(keys: Writer) -> Self {
        Self { keys, values: None, counts: None }
    }
}

impl IntoIterator for Writers {
    type Item = Writer;
    type IntoIter = std::vec::IntoIter<Writer>;

    fn into_iter(self) -> Self::IntoIter {
        let Self { keys, values, counts } = self;
        let writers = [Some(keys), values, counts.map(|(counts, _)| counts)];
        writers.into_iter().flatten().collect::<Vec<_>>().into_iter()
    }
}
