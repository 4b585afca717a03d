//! The outputs of keys and of their values.

use super::output::{Output, Writer};
use crate::coding::Word;
use crate::say::error::Result;

/// The output of keys, and the output of their values, if they have values.
#[derive(Debug)]
pub struct Outputs {
    /// The output of the keys, of their indices, or of records.
    pub keys: Output,
    /// The output of the values.
    pub values: Option<Output>,
}

impl Outputs {
    /// Both outputs.
    pub fn iter(&self) -> impl Iterator<Item = &Output> {
        [&self.keys].into_iter().chain(&self.values)
    }

    /// An error unless both outputs can be read back before they replace old files, for `--check`.
    pub fn check_can_be_read_back(&self) -> Result<()> {
        self.keys.check_can_be_read_back("--output")?;
        self.values.iter().try_for_each(|values| values.check_can_be_read_back("--values-out"))
    }

    /// An error if these bytes of keys and of values can certainly not be written.
    pub fn check_space(&self, bytes: [u128; 2]) -> Result<()> {
        self.iter().zip(bytes).try_for_each(|(output, bytes)| output.check_space(bytes))
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
    }

    /// Starts to write both.
    pub fn begin(self) -> Result<Writers> {
        Ok(Writers { keys: self.keys.begin()?, values: self.values.map(Output::begin).transpose()? })
    }
}

/// Outputs of keys and values that are being written.
#[derive(Debug)]
pub struct Writers {
    pub keys: Writer,
    pub values: Option<Writer>,
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
        Self { keys, values: None }
    }
}

impl IntoIterator for Writers {
    type Item = Writer;
    type IntoIter = std::iter::Chain<std::iter::Once<Writer>, std::option::IntoIter<Writer>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.keys).chain(self.values)
    }
}
