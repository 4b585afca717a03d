//! `gmerge batch`

use super::pair::{self, Pairing, Pairs, PairsMut};
use crate::args::BatchArgs;
use crate::error::{Failure, Result, name};
use crate::key_type::{FileKey, with_key_type};
use crate::order::first_unsorted_in_runs;
use bytemuck::Pod;
use merge_host::{Engine, Error, Timing};

pub fn run(args: &BatchArgs) -> Result<()> {
    let (d, a_len) = (args.d, args.a_len.unwrap_or(args.d / 2));
    if a_len > d {
        return Err(Failure::new(format!("--a-len is {a_len}, expected at most {d}, the -d given")));
    }
    let runs = Runs { d, lengths: [a_len, d - a_len], names: [&args.pair.a, &args.pair.b].map(|path| name(path)) };
    with_key_type!(pair::key_type(&args.pair)?, K => pair::run::<K, _>(&args.pair, &runs))
}

/// Many runs in each file.
struct Runs {
    d: usize,
    /// Keys of a run, in A and in B.
    lengths: [usize; 2],
    /// The files' names, for messages.
    names: [String; 2],
}

impl<K: FileKey> Pairing<K> for Runs {
    const OP: &'static str = "batch";

    fn check_counts(&self, a: u64, b: u64) -> Result<()> {
        let mut runs = [None; 2];
        for (i, count) in [a, b].into_iter().enumerate() {
            let (name, length) = (&self.names[i], self.lengths[i] as u64);
            // Of runs without keys, there are as many as are needed.
            if length == 0 && count > 0 {
                let side = ["A", "B"][i];
                return Err(Failure::new(format!(
                    "{name}: has {count} keys, expected none: -d and --a-len leave no keys of {side} in a run"
                )));
            }
            if length > 0 {
                if !count.is_multiple_of(length) {
                    return Err(Failure::new(format!(
                        "{name}: has {count} keys, expected a multiple of {length}, the length of its runs \
                         by -d and --a-len"
                    )));
                }
                runs[i] = Some(count / length);
            }
        }
        if let [Some(of_a), Some(of_b)] = runs
            && of_a != of_b
        {
            let [a_name, b_name] = &self.names;
            let [a_len, b_len] = self.lengths;
            return Err(Failure::new(format!(
                "{a_name}: {a} keys in runs of {a_len} make {of_a}, expected as many runs as in \
                 {b_name}: {b} keys in runs of {b_len} make {of_b}"
            )));
        }
        Ok(())
    }

    fn first_unsorted(&self, a: &[K], b: &[K]) -> [Option<usize>; 2] {
        [first_unsorted_in_runs(a, self.lengths[0]), first_unsorted_in_runs(b, self.lengths[1])]
    }

    fn place(&self, input: usize, index: usize) -> String {
        format!(" (in run {})", index / self.lengths[input])
    }

    fn merge(&self, engine: &Engine, a: &[K], b: &[K], out: &mut [K]) -> std::result::Result<Timing, Error> {
        engine.merge_batch(a, b, out, self.d, self.lengths[0])
    }

    fn merge_pairs<V: Pod + Send + Sync>(
        &self,
        engine: &Engine,
        a: Pairs<K, V>,
        b: Pairs<K, V>,
        out: PairsMut<K, V>,
    ) -> std::result::Result<Timing, Error> {
        engine.merge_batch_pairs(a, b, out, self.d, self.lengths[0])
    }
}
