//! Generates a file of test keys.

use super::finish;
use crate::coding::Word;
use crate::job::Generate;
use crate::os::{memory, threads};
use crate::say::Result;
use crate::say::stats::Phase;

/// Bytes of keys to hold in memory at once, so that a file of any size can be generated.
const BUFFER: u64 = 32 << 20;

/// Makes the file.
pub fn run<W: Word>(job: Generate) -> Result<()> {
    let Generate { generator, count, output, threads, mut stats } = job;
    let bytes = u128::from(count) * W::SIZE as u128;
    output.check_space(bytes)?;
    threads::start(threads, threads::useful(u64::try_from(bytes).ok()))?;
    let capacity = (BUFFER / W::SIZE as u64).min(count);
    let mut part = memory::zeroed::<W>(capacity, "a part of the file")?;
    let mut writer = stats.time(Phase::Write, || output.begin())?;
    let mut done = 0;
    while done < count {
        let part = &mut part[..capacity.min(count - done) as usize];
        stats.time(Phase::Compute, || generator.fill(done, part));
        stats.time(Phase::Write, || writer.write(part))?;
        done += part.len() as u64;
    }
    finish([writer], stats)
}
