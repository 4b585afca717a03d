//! Values that go along with the keys of `merge` and `batch`: their files, their width, and the merge.
//!
//! Values of 4 and 8 bytes are numbers to the library, which moves them along with the keys. For others it moves the
//! numbers of the pairs, and the values are gathered here.

use super::pair::Pairing;
use crate::args::PairArgs;
use crate::engine::ChosenEngine;
use crate::error::{Failure, Result, name};
use crate::input::Input;
use crate::key_type::FileKey;
use crate::memory;
use crate::output::{self, Output};
use crate::stats::{Phase, Stats};
use bytemuck::Pod;
use merge_host::Engine;
use rayon::prelude::*;
use std::borrow::Cow;
use std::path::Path;

/// Values that a thread gathers at once.
const PIECE: usize = 1 << 14;

/// The files that `--values` and `--values-out` name.
#[derive(Debug)]
pub struct ValueFiles {
    inputs: [Input; 2],
    output: Output,
}

impl ValueFiles {
    /// Opens the inputs and finds out whether the output can be written, if there are values. `counts` are the numbers
    /// of keys, as far as they are known, and `keys_output` is where the keys will go.
    pub fn open(args: &PairArgs, counts: [Option<u64>; 2], keys_output: &Output) -> Result<Option<Self>> {
        let (Some([a, b]), Some(path)) = (args.values.as_deref(), &args.values_out) else { return Ok(None) };
        let inputs = [Input::open(a)?, Input::open(b)?];
        let lengths = [inputs[0].count::<u8>()?, inputs[1].count::<u8>()?];
        if let ([Some(a_count), Some(b_count)], [Some(a_length), Some(b_length)]) = (counts, lengths) {
            width(&sides(args, [a_count, b_count], [a_length, b_length]))?;
        }
        let output = prepare_output(path, keys_output)?;
        output.check_space(lengths.iter().map(|length| u128::from(length.unwrap_or(0))).sum())?;
        Ok(Some(Self { inputs, output }))
    }

    /// Reads the values of so many keys.
    pub fn read(self, args: &PairArgs, counts: [u64; 2]) -> Result<Values> {
        let [mut a, mut b] = self.inputs;
        let (a, b) = (a.read_all::<u8>()?, b.read_all::<u8>()?);
        let width = width(&sides(args, counts, [a.len() as u64, b.len() as u64]))?;
        Ok(Values { width, a, b, output: self.output })
    }
}

/// Finds out whether the values can be written to `path`. `keys_output` is where the keys will go.
pub fn prepare_output(path: &Path, keys_output: &Output) -> Result<Output> {
    let output = Output::prepare(path)?;
    if output.is_same(keys_output) {
        return Err(Failure::file(path, "is where the keys go, expected another file for --values-out"));
    }
    Ok(output)
}

/// How many keys and bytes of values an input has, and the files' names.
pub struct Side {
    pub keys_name: String,
    pub keys: u64,
    pub name: String,
    pub bytes: u64,
}

impl Side {
    /// The number of bytes of a value, if there are keys.
    pub fn width(&self) -> Result<Option<u64>> {
        let Self { keys_name, keys, name, bytes } = self;
        if *keys == 0 {
            if *bytes > 0 {
                return Err(Failure::new(format!("{name}: has {bytes} bytes, expected none: {keys_name} has no keys")));
            }
            return Ok(None);
        }
        if *bytes == 0 {
            let expected = format!("a value for each of the {keys} keys of {keys_name}");
            return Err(Failure::new(format!("{name}: has no bytes, expected {expected}")));
        }
        if !bytes.is_multiple_of(*keys) {
            let expected = format!("a multiple of {keys}, the number of keys of {keys_name}");
            return Err(Failure::new(format!("{name}: has {bytes} bytes, expected {expected}")));
        }
        Ok(Some(bytes / keys))
    }
}

fn sides(args: &PairArgs, keys: [u64; 2], bytes: [u64; 2]) -> [Side; 2] {
    let names = [&args.a, &args.b].map(|path| name(path));
    let value_names = args.values.iter().flatten().map(|path| name(path));
    let [mut a, mut b] = names.map(|keys_name| Side { keys_name, keys: 0, name: String::new(), bytes: 0 });
    for (i, (side, name)) in [&mut a, &mut b].into_iter().zip(value_names).enumerate() {
        (side.keys, side.name, side.bytes) = (keys[i], name, bytes[i]);
    }
    [a, b]
}

/// The number of bytes of a value; 0 where there are no keys at all.
fn width(sides: &[Side; 2]) -> Result<usize> {
    let widths = [sides[0].width()?, sides[1].width()?];
    let [a, b] = sides;
    if let [Some(of_a), Some(of_b)] = widths
        && of_a != of_b
    {
        return Err(Failure::new(format!(
            "{}: has values of {of_a} bytes ({} bytes for {} keys), expected values as long as in {}: {of_b} bytes \
             ({} bytes for {} keys)",
            a.name, a.bytes, a.keys, b.name, b.bytes, b.keys
        )));
    }
    Ok(widths[0].or(widths[1]).unwrap_or(0) as usize)
}

/// The values of A's and B's keys, and where those of the output go.
#[derive(Debug)]
pub struct Values {
    /// The number of bytes of a value.
    pub width: usize,
    a: Vec<u8>,
    b: Vec<u8>,
    output: Output,
}

impl Values {
    /// Merges keys with these values as `pairing` does, and writes both outputs.
    pub fn merge<K: FileKey, P: Pairing<K>>(
        self,
        pairing: &P,
        engine: &mut ChosenEngine,
        keys: [&[K]; 2],
        keys_output: Output,
        stats: &mut Stats,
    ) -> Result<()> {
        let Self { width, a, b, output } = self;
        let mut merge = Merge { pairing, engine, keys, stats };
        match width {
            4 => {
                let (keys, values) = merge.run(&as_numbers::<u32>(&a), &as_numbers::<u32>(&b))?;
                merge.write(keys_output, &keys, output, bytemuck::cast_slice(&values))
            }
            8 => {
                let (keys, values) = merge.run(&as_numbers::<u64>(&a), &as_numbers::<u64>(&b))?;
                merge.write(keys_output, &keys, output, bytemuck::cast_slice(&values))
            }
            // Numbers of half the size where they suffice.
            _ if u32::try_from(keys[0].len() + keys[1].len()).is_ok() => {
                let (keys, values) = merge.run_by_index::<u32>(width, &a, &b)?;
                merge.write(keys_output, &keys, output, &values)
            }
            _ => {
                let (keys, values) = merge.run_by_index::<u64>(width, &a, &b)?;
                merge.write(keys_output, &keys, output, &values)
            }
        }
    }
}

struct Merge<'a, K, P> {
    pairing: &'a P,
    engine: &'a mut ChosenEngine,
    keys: [&'a [K]; 2],
    stats: &'a mut Stats,
}

impl<K: FileKey, P: Pairing<K>> Merge<'_, K, P> {
    /// Merges the keys with the values `a` and `b`.
    fn run<V: Pod + Send + Sync>(&mut self, a: &[V], b: &[V]) -> Result<(Vec<K>, Vec<V>)> {
        let count = (a.len() + b.len()) as u64;
        let mut out = (memory::zeroed::<K>(count, "the output")?, memory::zeroed::<V>(count, "the output's values")?);
        if self.engine.name()? == "gpu" {
            self.stats.time(Phase::Download, || {
                memory::touch(&mut out.0);
                memory::touch(&mut out.1);
            });
        }
        let (pairing, [a_keys, b_keys]) = (self.pairing, self.keys);
        let merge = |engine: &Engine, out: &mut (Vec<K>, Vec<V>)| {
            pairing.merge_pairs(engine, (a_keys, a), (b_keys, b), (&mut out.0, &mut out.1))
        };
        // The inputs are still what they were, and all of the output is written again.
        let timing = self.engine.run(&mut out, merge, |_| Ok(true))?;
        self.stats.add(timing);
        Ok(out)
    }

    /// As [`run`](Self::run), for values of `width` bytes.
    fn run_by_index<I: Index>(&mut self, width: usize, a: &[u8], b: &[u8]) -> Result<(Vec<K>, Vec<u8>)> {
        let [m, n] = self.keys.map(<[K]>::len);
        let mut indices = memory::zeroed::<I>((m + n) as u64, "the values' places")?;
        self.stats.time(Phase::Compute, || {
            indices.par_iter_mut().enumerate().for_each(|(i, index)| *index = I::new(i));
        });
        let (keys, merged) = self.run(&indices[..m], &indices[m..])?;
        drop(indices);
        let mut values = memory::zeroed::<u8>((a.len() + b.len()) as u64, "the output's values")?;
        self.stats.time(Phase::Compute, || gather(width, a, b, &merged, &mut values));
        Ok((keys, values))
    }

    /// Writes both outputs.
    fn write(&mut self, keys_output: Output, keys: &[K], values_output: Output, values: &[u8]) -> Result<()> {
        self.stats.time(Phase::Write, || {
            let keys = keys_output.write(bytemuck::cast_slice(keys))?;
            let values = values_output.write(values)?;
            output::finish([keys, values])
        })
    }
}

/// The place of a value, in A followed by B.
pub trait Index: Pod + Send + Sync {
    fn new(place: usize) -> Self;
    fn get(self) -> usize;
}

macro_rules! index {
    ($($t:ty)*) => {$(
        impl Index for $t {
            fn new(place: usize) -> Self {
                place as $t
            }
            fn get(self) -> usize {
                self as usize
            }
        }
    )*};
}
index!(u32 u64);

/// Copies to `out` the values at `places` in `a` followed by `b`, each of `width` bytes.
pub fn gather<I: Index>(width: usize, a: &[u8], b: &[u8], places: &[I], out: &mut [u8]) {
    if width == 0 {
        return;
    }
    out.par_chunks_mut(PIECE * width).zip(places.par_chunks(PIECE)).for_each(|(out, places)| {
        for (to, place) in out.chunks_exact_mut(width).zip(places) {
            let begin = place.get() * width;
            to.copy_from_slice(match begin.checked_sub(a.len()) {
                None => &a[begin..][..width],
                Some(begin) => &b[begin..][..width],
            });
        }
    });
}

/// The bytes as numbers, copied only if they do not lie as numbers have to.
fn as_numbers<V: Pod>(bytes: &[u8]) -> Cow<'_, [V]> {
    bytemuck::try_cast_slice(bytes).map_or_else(|_| bytemuck::pod_collect_to_vec(bytes).into(), Cow::Borrowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathers<I: Index>() {
        let (a, b): (Vec<u8>, Vec<u8>) = ((0..9).collect(), (9..30).collect());
        let places = [0, 3, 9, 2, 4].map(I::new);
        let mut out = [99; 15];
        gather(3, &a, &b, &places, &mut out);
        assert_eq!(out, [0, 1, 2, 9, 10, 11, 27, 28, 29, 6, 7, 8, 12, 13, 14]);
    }

    #[test]
    fn values_come_from_their_places() {
        gathers::<u32>();
        gathers::<u64>();
        gather::<u32>(0, &[], &[], &[], &mut []);
    }

    #[test]
    fn values_of_several_pieces_come_from_their_places() {
        let count = 2 * PIECE + 3;
        let values: Vec<u8> = (0..2 * count).map(|i| (i / 2 * 7) as u8).collect();
        let places: Vec<u32> = (0..count as u32).rev().collect();
        let mut out = vec![0; 2 * count];
        gather(2, &values[..10], &values[10..], &places, &mut out);
        assert!(out.chunks(2).eq(values.chunks(2).rev()));
    }

    #[test]
    fn bytes_that_begin_anywhere_are_numbers() {
        let bytes: Vec<u8> = (0..24).collect();
        for begin in 0..8 {
            let part = &bytes[begin..][..16];
            let expected: Vec<u64> = part.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
            assert_eq!(*as_numbers::<u64>(part), expected);
        }
    }
}
