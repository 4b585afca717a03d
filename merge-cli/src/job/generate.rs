//! The job of `gmerge gen`.

use super::refuse;
use super::{Generate, Items, Job, records::RECORD};
use crate::args::{CommonArgs, GenArgs, OutputArgs, WritingArgs};
use crate::coding::KeyOrder;
use crate::file::{Form, Output, Target};
use crate::format::{self, Container, Format};
use crate::run::generator::Generator;
use crate::say::error::{Failure, Result};
use crate::say::stats::Stats;
use crate::spec::{Distribution, KeyType};

/// The job of these flags.
pub fn job(args: GenArgs) -> Result<Job> {
    let GenArgs { n, record_size, seed, dist, output, common } = args;
    let OutputArgs { output: path, writing: WritingArgs { format, sync } } = output;
    let CommonArgs { key_type: given_type, endian, parallel: threads, stats } = common;
    let distribution = dist.unwrap_or(Distribution::Uniform);
    let flags = common.key_flags(format, KeyOrder::TOTAL);
    let (generator, count, mut output, stats) = match record_size {
        Some(size) => {
            let others = [("--type", given_type.is_some()), ("--dist", dist.is_some()), ("--endian", endian.is_some())];
            refuse::beside(("--record-size", true), &others, "records are random bytes, and no numbers")?;
            let container = match format::of_output(&path, format)? {
                Format::Raw => Container::Raw,
                Format::Npy => Container::Void,
                found @ (Format::Arrow | Format::Arrows | Format::Parquet) => {
                    let (by, name) = (if format.is_some() { "--format" } else { "--output" }, found.name());
                    let message = format!("{by} and --record-size cannot be used together: no {name} holds records");
                    return Err(Failure::file(&path, message));
                }
            };
            let bytes = u128::from(n) * size as u128;
            let count = u64::try_from(bytes)
                .map_err(|_| Failure::file(&path, format!("{bytes} bytes are more than a file can hold")))?;
            let output = Output::new(Target::find(&path, sync)?, Form { container, ..Form::raw(size) });
            let stats = Stats::begin("gen", RECORD, size, stats);
            (Generator::new(KeyType::U8, distribution, count, seed), count, output, stats)
        }
        None => {
            let key_type = flags.decide(&mut [], Some(&path))?;
            let output = flags.output(Target::find(&path, sync)?, key_type, &[])?;
            (Generator::new(key_type, distribution, n, seed), n, output, Items::Keys(key_type).stats("gen", stats))
        }
    };
    output.expect(n);
    let mut stats = stats;
    stats.keys = n;
    Ok(Job::Generate(Generate { generator, count, output, threads, stats }))
}
