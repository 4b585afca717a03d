//! Sorts records that do not fit in memory: in chunks, as keys are, with the records as the keys' values.

use crate::args::SortArgs;
use crate::engine::ChosenEngine;
use crate::error::{Failure, Result};
use crate::external::{Along, Coding, External, KeyOf, Outputs, Shape, Source, check_space};
use crate::input::Input;
use crate::key_type::FileKey;
use crate::output::{self, Output};
use crate::records::Key;
use crate::report;
use crate::stats::{Phase, Stats};
use merge_host::SortOrder;
use std::sync::Arc;

/// More records than there is memory for.
pub struct Many<'a> {
    pub args: &'a SortArgs,
    /// Bytes of a record.
    pub size: usize,
    pub key: Key,
    /// Bytes of memory that may be used.
    pub memory: u64,
    pub input: Input,
    /// Bytes of the input, if it tells.
    pub length: Option<u64>,
    pub output: Output,
    pub stats: Stats,
}

impl Many<'_> {
    /// Sorts them by their whole keys, as numbers.
    pub fn sort(self) -> Result<()> {
        let key = self.key.clone();
        match key.size() {
            0..=8 => self.sort_by::<u64>(Arc::new(move |record| key.whole(record) as u64)),
            9..=16 => self.sort_by::<u128>(Arc::new(move |record| key.whole(record))),
            bytes => {
                let message = format!(
                    "does not fit in the {} bytes of --memory: for that, expected a key of at most 16 bytes, found {bytes}",
                    self.memory
                );
                Err(Failure::file(&self.args.input, message))
            }
        }
    }

    fn sort_by<K: FileKey<Ordered = K>>(self, key_of: KeyOf<K>) -> Result<()> {
        let Self { args, size, memory, input, length, output, mut stats, .. } = self;
        report::verbose(format_args!("plan: in chunks, with {memory} bytes of memory"));
        let along = Along::Values(size);
        let shape = Shape { key: K::SIZE, along };
        let folder = args.memory.folder();
        let bytes = u128::from(length.unwrap_or(0));
        let spilled = bytes + bytes / size as u128 * K::SIZE as u128;
        check_space(&folder, spilled, output.folder().map(|folder| (folder, bytes)), &args.input)?;

        let engine = ChosenEngine::start::<K>(args.engine.engine, args.common.parallel)?;
        let memory = memory.saturating_sub(input.bytes_ahead());
        let external = External { shape, memory, folder, batch_size: args.memory.batch_size, unique: false };
        let coding = Coding::of::<K>(SortOrder::Ascending);
        let source = Source { keys: input, values: None, along, coding, key_of: Some(key_of), position: 0 };
        let begin = || Ok(Outputs { keys: None, values: Some(output.begin()?), coding });
        let (outputs, _) = external.sort(source, None, engine, begin, &mut stats)?;
        let writers: Vec<_> = outputs.values.into_iter().collect();
        stats.time(Phase::Write, || output::finish(writers))?;
        stats.print(args.common.stats);
        Ok(())
    }
}
