//! `gmerge gen`

use crate::args::GenArgs;
use crate::engine::start_threads;
use crate::error::Result;
use crate::format;
use crate::generate::Generator;
use crate::key_type::{FileKey, with_key_type};
use crate::memory;
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};

/// Bytes of keys to hold in memory at once, so that a file of any size can be made.
const ROOM: u64 = 32 << 20;

pub fn run(args: &GenArgs) -> Result<()> {
    let key_type = format::detect(&args.common, &mut [], Some(&args.output.output))?;
    with_key_type!(key_type, K => generate::<K>(args))
}

fn generate<K: FileKey>(args: &GenArgs) -> Result<()> {
    let mut stats = Stats::begin::<K>("gen");
    let mut output = Output::prepare_keys::<K>(&args.output, &args.common, &[])?;
    output.expect(args.n);
    output.check_space(u128::from(args.n) * K::SIZE as u128)?;
    start_threads(args.common.parallel)?;

    let generator = Generator::new::<K>(args.dist, args.n, args.seed);
    let room = (ROOM / K::SIZE as u64).min(args.n);
    let mut keys = memory::zeroed::<K>(room, "a part of the file")?;
    let mut writer = stats.time(Phase::Write, || output.begin())?;
    while stats.keys < args.n {
        let count = room.min(args.n - stats.keys);
        let part = &mut keys[..count as usize];
        let begin = stats.keys;
        stats.time(Phase::Compute, || generator.fill(begin, part));
        stats.time(Phase::Write, || writer.write(bytemuck::cast_slice(part)))?;
        stats.keys += count;
    }
    stats.time(Phase::Write, || output::finish([writer]))?;
    stats.print(args.common.stats);
    Ok(())
}
