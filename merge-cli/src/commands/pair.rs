//! What `merge` and `batch` share: two inputs to one output.

use super::values::ValueFiles;
use crate::args::PairArgs;
use crate::engine::{ChosenEngine, start_threads};
use crate::error::{Failure, Result};
use crate::input::{Input, check_standard_input};
use crate::key_type::{FileKey, KeyType};
use crate::memory;
use crate::order::not_sorted;
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};
use bytemuck::Pod;
use merge_host::{Engine, Error, Timing};

/// The type of the keys of both inputs and of the output.
pub fn key_type(args: &PairArgs) -> Result<KeyType> {
    KeyType::of(args.common.key_type, &[&args.a, &args.b, &args.output.output])
}

/// How to merge two inputs.
pub trait Pairing<K: FileKey> {
    /// The command's name.
    const OP: &'static str;
    /// The merge kernel's name, where there is a choice.
    fn kernel(&self) -> Option<&'static str> {
        None
    }
    /// Whether these numbers of keys can be merged.
    fn check_counts(&self, a: u64, b: u64) -> Result<()>;
    /// The first key out of order in A and in B.
    fn first_unsorted(&self, a: &[K], b: &[K]) -> [Option<usize>; 2];
    /// Where the key at `index` of A (`input` 0) or B (1) is, beyond its index.
    fn place(&self, _input: usize, _index: usize) -> String {
        String::new()
    }
    /// Merges keys.
    fn merge(&self, engine: &Engine, a: &[K], b: &[K], out: &mut [K]) -> std::result::Result<Timing, Error>;
    /// Merges keys with values.
    fn merge_pairs<V: Pod + Send + Sync>(
        &self,
        engine: &Engine,
        a: Pairs<K, V>,
        b: Pairs<K, V>,
        out: PairsMut<K, V>,
    ) -> std::result::Result<Timing, Error>;
}

/// Keys, and the value of each.
pub type Pairs<'a, K, V> = (&'a [K], &'a [V]);
/// Room for keys, and for the value of each.
pub type PairsMut<'a, K, V> = (&'a mut [K], &'a mut [V]);

/// Reads A and B, merges them as `pairing` does, and writes the output; with their values, where there are some.
pub fn run<K: FileKey, P: Pairing<K>>(args: &PairArgs, pairing: &P) -> Result<()> {
    let mut stats = Stats::begin::<K>(P::OP);
    let values = args.values.iter().flatten().map(|path| &**path);
    check_standard_input(["A", "B", "VA", "VB"].into_iter().zip([&*args.a, &*args.b].into_iter().chain(values)))?;
    let mut inputs = [Input::open(&args.a)?, Input::open(&args.b)?];
    let counts = [inputs[0].count::<K>()?, inputs[1].count::<K>()?];
    if let [Some(a), Some(b)] = counts {
        pairing.check_counts(a, b)?;
    }
    let output = Output::prepare(&args.output.output)?;
    let known = counts.iter().map(|count| u128::from(count.unwrap_or(0))).sum::<u128>();
    output.check_space(known * K::SIZE as u128)?;
    let values = ValueFiles::open(args, counts, &output)?;
    start_threads(args.common.parallel)?;

    let mut engine = ChosenEngine::start::<K>(args.engine.engine, args.common.parallel)?;
    let [a, b] = &mut inputs;
    let (a_keys, b_keys) = stats.time(Phase::Read, || Ok::<_, Failure>((a.read_all::<K>()?, b.read_all::<K>()?)))?;
    let counts = [a_keys.len() as u64, b_keys.len() as u64];
    pairing.check_counts(counts[0], counts[1])?;
    let values = values.map(|values| stats.time(Phase::Read, || values.read(args, counts))).transpose()?;
    if !args.assume_sorted {
        let places = stats.time(Phase::Check, || pairing.first_unsorted(&a_keys, &b_keys));
        for (i, (input, keys)) in [(&*a, &a_keys), (&*b, &b_keys)].into_iter().enumerate() {
            if let Some(index) = places[i] {
                return Err(not_sorted(input, keys, index, &pairing.place(i, index)));
            }
        }
    }
    stats.keys = counts[0] + counts[1];
    match values {
        Some(values) => {
            stats.value_size = Some(values.width);
            values.merge(pairing, &mut engine, [&a_keys, &b_keys], output, &mut stats)?;
        }
        None => {
            let mut out = memory::zeroed::<K>(stats.keys, "the output")?;
            if engine.name()? == "gpu" {
                stats.time(Phase::Download, || memory::touch(&mut out));
            }
            let merge = |engine: &Engine, out: &mut Vec<K>| pairing.merge(engine, &a_keys, &b_keys, out);
            // The inputs are still what they were, and every key of the output is written again.
            stats.add(engine.run(&mut out, merge, |_| Ok(true))?);
            stats.time(Phase::Write, || output::finish([output.write(bytemuck::cast_slice(&out))?]))?;
        }
    }
    stats.engine = engine.name()?;
    stats.kernel = pairing.kernel();
    stats.print(args.common.stats);
    Ok(())
}
