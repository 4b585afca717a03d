//! Rows of operations on arrays of a stream. `benches/peers/run operations` prints rows with the same names, of the
//! same keys.

use super::{Step, median_ms};
use merge_host::{Error, Key, Stream, parallel};
use tests::distribution::{Distribution, key};

/// The number of keys that a thread makes at a time.
const BLOCK: usize = 1 << 16;

/// `n` keys with `bits` of their indices, computed on all cores.
pub fn keys_of<K: Key>(n: usize, bits: impl Fn(u64) -> u64 + Sync) -> Vec<K> {
    let mut keys = bytemuck::allocation::zeroed_vec(n);
    parallel::for_each(keys.chunks_mut(BLOCK).enumerate(), |(block, keys)| {
        for (slot, i) in keys.iter_mut().zip((block * BLOCK) as u64..) {
            *slot = key(bits(i));
        }
    });
    keys
}

/// Prints the names of the columns. The fraction is relative to the bandwidth of a copy.
pub fn head() {
    println!("\n{:<44} {:<8} {:>10} {:>10} {:>8}", "operation", "type", "keys", "ms", "fraction");
}

/// Prints rows for keys of one type, compared with a copy.
pub struct Table<'a> {
    stream: &'a Stream,
    key: &'static str,
    /// Bytes that a copy reads and writes in a millisecond.
    copied: f64,
}

impl<'a> Table<'a> {
    /// Measures the copy of `n` keys, and prints its row.
    pub fn new<K: Key>(stream: &'a Stream, n: usize) -> Result<Self, Error> {
        let (from, mut to) = (stream.upload(&Distribution::Uniform.keys::<K>(n))?, stream.zeroed::<K>(n)?);
        let (bytes, mut table) = (2 * n * size_of::<K>(), Self { stream, key: K::NAME, copied: 0.0 });
        let ms = table.time(|| to.copy_from(&from))?;
        table.copied = bytes as f64 / ms;
        table.row("copy", "", n, ms, bytes);
        Ok(table)
    }

    /// The median time of a launch that does not change its input.
    pub fn time(&self, mut launch: impl FnMut() -> Result<(), Error>) -> Result<f64, Error> {
        median_ms(self.stream, |step| if step == Step::Launch { launch() } else { Ok(()) })
    }

    /// Prints the row of an operation on `n` keys that took `ms` milliseconds, and reads and writes `moved` bytes: its
    /// time, and the fraction of the bandwidth of a copy. `values` is empty for keys alone, or the type of the values
    /// after a plus sign.
    pub fn row(&self, operation: &str, values: &str, n: usize, ms: f64, moved: usize) {
        let (type_name, fraction) = (format!("{}{values}", self.key), moved as f64 / ms / self.copied);
        println!("{operation:<44} {type_name:<8} {n:>10} {ms:>10.4} {fraction:>8.3}");
    }
}
