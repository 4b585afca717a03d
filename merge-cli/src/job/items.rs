//! What files hold: keys of one type, or records.

use super::keys::KeyFlags;
use super::records;
use crate::args::RecordArgs;
use crate::file::{Input, Output, Target};
use crate::records::Records;
use crate::say::error::{Failure, Result, shown};
use crate::say::stats::Stats;
use crate::spec::{KeyType, StatsFormat};
use crate::with_word;
use std::path::Path;

/// What files hold.
#[derive(Clone, Debug)]
pub enum Items {
    /// Keys of this type.
    Keys(KeyType),
    Records(Records),
}

impl Items {
    /// What `inputs` hold, by the flags and the headers. Sets the coding of keys. The extension of `output` may name
    /// their type.
    pub fn decide(args: RecordArgs, inputs: &mut [Input], flags: KeyFlags, output: Option<&Path>) -> Result<Self> {
        inputs.iter().try_for_each(Input::check_is_no_table)?;
        if args.rows {
            inputs.iter_mut().try_for_each(Input::rows_to_records)?;
        }
        if !records::are_meant(&args, inputs) {
            return Ok(Self::Keys(flags.decide(inputs, output)?));
        }
        let of_header = inputs.iter().find_map(|input| Some((input.path(), input.header_record()?)));
        if let Some((flag, (path, record))) = flags.keys_only.zip(of_header) {
            let dtype = shown(&record.descr);
            return Err(Failure::file(path, format!("holds records of dtype {dtype}, expected keys for {flag}")));
        }
        Ok(Self::Records(Records::new(records::layout(args, inputs, flags)?, flags.order)?))
    }

    /// The output of the items of `inputs` to `target`.
    pub fn output(&self, target: Target, inputs: &[Input], flags: KeyFlags) -> Result<Output> {
        match self {
            Self::Keys(key_type) => flags.output(target, *key_type, inputs),
            Self::Records(records) => records::output(records, target, inputs, flags),
        }
    }

    /// Starts the clock of the command `op`.
    pub fn stats(&self, op: &'static str, format: Option<StatsFormat>) -> Stats {
        match self {
            Self::Keys(key_type) => Stats::begin(op, key_type.name(), key_type.size(), format),
            Self::Records(records) => Stats::begin(op, records::RECORD, records.layout.size, format),
        }
    }

    /// The type of the words that order the items: keys, or up to 16 bytes of the keys of records.
    pub fn word_type(&self) -> KeyType {
        match self {
            Self::Keys(key_type) => *key_type,
            Self::Records(records) if records.key.size() <= size_of::<u64>() => KeyType::U64,
            Self::Records(_) => KeyType::U128,
        }
    }

    /// Bytes of an item.
    pub fn size(&self) -> usize {
        match self {
            Self::Keys(key_type) => key_type.size(),
            Self::Records(records) => records.layout.size,
        }
    }

    /// The number of items in a file, if known. An error if its length is not a whole number of items.
    pub fn count(&self, input: &Input) -> Result<Option<u64>> {
        match self {
            Self::Keys(key_type) => with_word!(key_type.size(), W => input.count::<W>()),
            Self::Records(records) => {
                input.length().map(|length| records.layout.count(input.path(), length)).transpose()
            }
        }
    }

    /// The number of items in all files, if known.
    pub fn count_all(&self, inputs: &[Input]) -> Result<Option<u64>> {
        let counts = inputs.iter().map(|input| self.count(input)).collect::<Result<Vec<_>>>()?;
        Ok(counts.into_iter().sum())
    }

    /// The records, if the items are records.
    pub fn records(&self) -> Option<&Records> {
        match self {
            Self::Keys(_) => None,
            Self::Records(records) => Some(records),
        }
    }
}
