//! The first N keys of the order, without sorting the others.
//!
//! The input is read in parts, and the library keeps the candidates of each part ([`TopK`]). Equal keys have equal
//! bits, so the choice among equal keys does not matter. If the memory is too small for the candidates, all keys are
//! sorted in chunks, and the first N keys are written.

use super::checksum::Checksum;
use super::engine::{ChosenEngine, cpu, failure, work_of};
use super::finish;
use super::spilled::{self, KeySource, PayloadSource};
use super::verify::{Expected, verify};
use crate::coding::Word;
use crate::file::{Concatenation, Writer, Writers};
use crate::job::Top;
use crate::os::{memory, threads};
use crate::plan::{Destination, SortPlan};
use crate::say::error::{Failure, Result};
use crate::say::stats::{Phase, Stats};
use crate::spec::EngineChoice;
use merge_host::external::{Engines, Shape, Target};
use merge_host::{SortOrder, TopK, Work};

/// Bytes of keys to read at once.
const BUFFER: u64 = 32 << 20;
/// Bytes of keys to read at once if a GPU selects, because each part is a separate call.
const GPU_BUFFER: u64 = 256 << 20;

/// Writes the first keys.
pub fn run<W: Word>(job: Top) -> Result<()> {
    let Top { keys, key_type, count: wanted, mut output, verify: is_verified, resources, mut stats } = job;
    if is_verified {
        output.check_can_be_read_back("--output")?;
    }
    let count = keys.count::<W>()?;
    let wanted = wanted.min(count.unwrap_or(u64::MAX));
    let bytes = count.map_or(0, |_| u128::from(wanted) * W::SIZE as u128);
    output.check_space(bytes)?;
    threads::start(resources.threads, threads::useful(keys.length()))?;
    let processors = resources.processors.clone();
    let part = if processors.engine == EngineChoice::Gpu { GPU_BUFFER } else { BUFFER };
    let mut engine = ChosenEngine::start(processors, key_type, work_of(count, Work::top_k::<W>))?;
    let most = u128::from(wanted) * W::SIZE as u128;
    let destination = Destination::new(&output, None, [bytes, 0]).or_up_to(Some([most, 0]));
    let budget = memory::budget(resources.memory, destination.in_memory())?;
    let candidates = TopK::<W>::max_bytes(usize::try_from(wanted).unwrap_or(usize::MAX)) as u64;
    let buffer = part.min(budget / 4);
    let checksum = Checksum::default();
    let (writer, written) = if candidates.saturating_add(buffer) <= budget {
        let mut keys = keys;
        let first = first_keys::<W>(&mut keys, wanted as usize, buffer, &mut engine, &mut stats)?;
        output.expect(first.len() as u64);
        let mut writer = output.begin()?;
        stats.time(Phase::Write, || writer.write(&first))?;
        if is_verified {
            checksum.add(&first, &[], 0);
        }
        (writer, first.len() as u64)
    } else {
        let mut device = || engine.device_memory().map_err(failure);
        let plan =
            SortPlan::new(Shape { key: W::SIZE, width: 0 }, count, destination, &resources, &mut device, keys.path())?;
        let source = KeySource::new(keys, PayloadSource::None, count, None);
        let begin = |count: Option<u64>| {
            output.expect(count.map(|count| count.min(wanted)));
            Ok(First { writer: output.begin()?, left: wanted, written: 0, checksum: checksum.clone() })
        };
        let options = plan.options(0, false, &resources);
        let sorted = spilled::sort::<W, _>(&options, source, begin, &mut engine, &mut stats)?;
        let (First { writer, written, .. }, summary) = sorted;
        stats.keys = summary.keys_read;
        (writer, written)
    };
    stats.engine = engine.name()?;
    let writers = Writers::from(writer);
    if is_verified {
        let expected = Expected { count: written, checksum: checksum.get(), unique: false, width: 0 };
        stats.time(Phase::Check, || verify::<W>(&writers, expected))?;
    }
    finish(writers, stats)
}

/// The first `wanted` keys, sorted. `buffer` bytes are read at once.
fn first_keys<W: Word>(
    keys: &mut Concatenation,
    wanted: usize,
    buffer: u64,
    engine: &mut ChosenEngine,
    stats: &mut Stats,
) -> Result<Vec<W>> {
    let capacity = (buffer / W::SIZE as u64).min(keys.count::<W>()?.unwrap_or(u64::MAX)).max(1);
    let mut part = memory::zeroed::<W>(capacity, "a part of the file")?;
    let mut top = TopK::new(SortOrder::Ascending, wanted);
    loop {
        let read = stats.time(Phase::Read, || keys.read(&mut part))?;
        if read > 0 && wanted > 0 {
            // A GPU that fails has added no keys, so the CPU can add the part.
            stats.add(engine.run(&mut top, |engine, top| top.add(engine, &part[..read]))?);
        }
        stats.keys += read as u64;
        if read < part.len() {
            let (first, _, timing) = top.into_sorted(&cpu())?;
            stats.add(timing);
            return Ok(first);
        }
    }
}

/// Writes the first keys of a sort, and drops the others.
struct First {
    writer: Writer,
    left: u64,
    written: u64,
    checksum: Checksum,
}

impl<W: Word> Target<W> for First {
    type Error = Failure;

    fn write(&mut self, keys: &mut [W], _payload: &mut [u8]) -> Result<()> {
        let count = self.left.min(keys.len() as u64);
        self.left -= count;
        self.written += count;
        let keys = &keys[..count as usize];
        self.checksum.add(keys, &[], 0);
        if keys.is_empty() { Ok(()) } else { self.writer.write(keys) }
    }
}
