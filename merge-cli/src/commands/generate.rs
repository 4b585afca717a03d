//! `gmerge gen`

use crate::args::GenArgs;
use crate::engine::start_threads;
use crate::error::{Failure, Result};
use crate::format;
use crate::generate::Generator;
use crate::key_type::{FileKey, with_key_type};
use crate::memory;
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};

/// Bytes of keys to hold in memory at once, so that a file of any size can be made.
const ROOM: u64 = 32 << 20;

pub fn run(args: &GenArgs) -> Result<()> {
    if let Some(size) = args.record_size {
        let bytes = u128::from(args.n) * size as u128;
        let bytes = u64::try_from(bytes).map_err(|_| too_large(args, bytes))?;
        return generate::<u8>(args, bytes, Stats::begin_sized("gen", "record", size));
    }
    let key_type = format::detect(&args.common, &mut [], Some(&args.output.output))?;
    with_key_type!(key_type, K => generate::<K>(args, args.n, Stats::begin::<K>("gen")))
}

fn too_large(args: &GenArgs, bytes: u128) -> Failure {
    Failure::file(&args.output.output, format!("{bytes} bytes are more than a file can hold"))
}

/// Generates so many keys.
fn generate<K: FileKey>(args: &GenArgs, keys: u64, mut stats: Stats) -> Result<()> {
    let mut output = Output::prepare_keys::<K>(&args.output, &args.common, &[])?;
    output.expect(keys);
    output.check_space(u128::from(keys) * K::SIZE as u128)?;
    start_threads(args.common.parallel)?;

    let generator = Generator::new::<K>(args.dist, keys, args.seed);
    let room = (ROOM / K::SIZE as u64).min(keys);
    let mut part = memory::zeroed::<K>(room, "a part of the file")?;
    let mut writer = stats.time(Phase::Write, || output.begin())?;
    let mut done = 0;
    while done < keys {
        let count = room.min(keys - done);
        let part = &mut part[..count as usize];
        stats.time(Phase::Compute, || generator.fill(done, part));
        stats.time(Phase::Write, || writer.write(bytemuck::cast_slice(part)))?;
        done += count;
    }
    stats.time(Phase::Write, || output::finish([writer]))?;
    stats.keys = args.n;
    stats.print(args.common.stats);
    Ok(())
}
