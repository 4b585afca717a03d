//! Set operations on files that do not fit in memory, while they are read.
//!
//! The files are merged, with a byte for each key that tells which of them it is from. In the merged keys, equal ones are
//! neighbours. Those of each file are counted, and as many are written as the operation tells:
//!
//! ```text
//!   merged   3 3 3 5 5 7          union  3 3 5 7      m, n = 2, 1   1, 1   1, 0
//!   from     A A B A B A
//! ```

use crate::args::SetArgs;
use crate::engine::cpu;
use crate::error::Result;
use crate::external::{Along, Coding, External, Shape, SortedFile, Source, Target};
use crate::input::Input;
use crate::key_type::FileKey;
use crate::output::{self, Output, Writer};
use crate::report;
use crate::stats::{Phase, Stats};
use merge_host::{SetOperation, SortOrder};

/// Keys that are written at once.
const PIECE: usize = 1 << 18;

pub fn run<K: FileKey>(
    operation: SetOperation,
    args: &SetArgs,
    inputs: [Input; 2],
    output: Output,
    memory: u64,
    mut stats: Stats,
) -> Result<()> {
    report::verbose(format_args!("plan: merged while read, with {memory} bytes of memory"));
    let coding = Coding::of::<K>(SortOrder::Ascending);
    let files = inputs.into_iter().zip(0..).map(|(keys, origin)| {
        let source = Source { keys, values: None, along: Along::Origin(origin), coding, key_of: None, position: 0 };
        SortedFile::new(source, !args.assume_sorted)
    });
    let files = files.collect::<Result<Vec<_>>>()?;
    let external = External {
        shape: Shape { key: K::SIZE, along: Along::Origin(0) },
        memory,
        // Two files are merged at once, with nothing in between.
        folder: std::env::temp_dir(),
        batch_size: None,
        unique: false,
    };
    let engine = cpu(args.common.parallel)?;
    stats.engine = engine.kind().name();
    let begin = || {
        let (key, kept, writer) = (None, Vec::with_capacity(PIECE), output.begin()?);
        Ok(Counted { operation, coding, key, times: [0; 2], kept, writer })
    };
    let (mut counted, count) = external.merge(files, &engine, begin, &mut stats)?;
    stats.keys = count;
    stats.time(Phase::Write, || {
        counted.keep()?;
        counted.write_kept()?;
        output::finish([counted.writer])
    })?;
    stats.print(args.common.stats);
    Ok(())
}

/// Counts equal keys, and writes as many as the operation tells.
struct Counted<O> {
    operation: SetOperation,
    coding: Coding<O>,
    /// The key that is being counted.
    key: Option<O>,
    /// How often it came from each of the files.
    times: [u64; 2],
    /// Keys to write.
    kept: Vec<O>,
    writer: Writer,
}

impl<O: FileKey> Target<O> for Counted<O> {
    fn write(&mut self, keys: &mut [O], origins: &[u8]) -> Result<()> {
        for (key, &origin) in keys.iter().zip(origins) {
            if self.key.is_none_or(|counted| counted.to_ordered() != key.to_ordered()) {
                self.keep()?;
                self.key = Some(*key);
            }
            self.times[usize::from(origin & 1)] += 1;
        }
        Ok(())
    }
}

impl<O: FileKey> Counted<O> {
    /// Keeps as many of the key as the operation tells, now that all of them are counted.
    fn keep(&mut self) -> Result<()> {
        let ([m, n], Some(key)) = (std::mem::take(&mut self.times), self.key) else { return Ok(()) };
        let times = match self.operation {
            SetOperation::Union => m.max(n),
            SetOperation::Intersection => m.min(n),
            SetOperation::Difference => m.saturating_sub(n),
            SetOperation::SymmetricDifference => m.abs_diff(n),
        };
        for _ in 0..times {
            self.kept.push(key);
            if self.kept.len() == PIECE {
                self.write_kept()?;
            }
        }
        Ok(())
    }

    fn write_kept(&mut self) -> Result<()> {
        (self.coding.decode)(&mut self.kept);
        self.writer.write(bytemuck::cast_slice(&self.kept))?;
        self.kept.clear();
        Ok(())
    }
}
