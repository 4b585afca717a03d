//! Keys of 1, 2 and 16 bytes: sorts of arrays of a stream, at and around each edge of the kernels, and their times.

use super::table::{Table, keys_of};
use super::{KINDS, Kind, Step, Test, median_ms, poison};
use merge_host::{DeviceArray, Error, GpuSortKey, Key, NanOrder, SortOptions, SortOrder, Stream, parallel, workspace};
use tests::distribution::mix;

/// Numbers of keys around words, tiles of the histogram (16,384 keys), chunks of warps (4096 and 2048 words), and
/// numbers with which all blocks have several tiles.
const SIZES: [usize; 20] = [
    0,
    1,
    2,
    7,
    8,
    9,
    255,
    4096,
    16_383,
    16_384,
    16_385,
    32_767,
    32_768,
    32_769,
    65_536,
    100_003,
    1 << 20,
    2_162_689,
    5_000_011,
    20_000_003,
];

/// Nine keys of ten are equal, so that one counter overflows again and again.
const MOSTLY_EQUAL: Kind = ("mostly equal", |word| if word.is_multiple_of(10) { mix(word) } else { 0x3c3c_3c3c });

/// The timed kinds of keys.
const TIMED_KINDS: [Kind; 4] = [
    ("uniform", |word| word),
    ("all equal", |_| 7),
    ("of 16", |word| mix(word % 16)),
    ("mostly equal", |word| if word.is_multiple_of(10) { mix(word) } else { 7 }),
];

impl Test {
    /// Sorts at the edges of the kernels for these widths.
    pub(super) fn check_widths<K: GpuSortKey>(&mut self) {
        self.check_array_sorts::<K>(&[&KINDS[..], &[MOSTLY_EQUAL]].concat(), &SIZES);
    }

    /// Sorts alone, with values and with indices, compared with a stable sort by the CPU.
    pub(super) fn check_array_sorts<K: GpuSortKey>(&mut self, kinds: &[Kind], sizes: &[usize]) {
        let stream = self.device().stream().expect("the device makes streams");
        for &(name, kind) in kinds {
            for (i, &n) in sizes.iter().enumerate() {
                let mut keys: Vec<K> = self.keys(n, kind);
                if size_of::<K>() == 16 {
                    // Both words of a key are the same, so that the high word would decide alone.
                    let words: &mut [u64] = bytemuck::cast_slice_mut(&mut keys);
                    words.chunks_mut(2).for_each(|words| words[0] = self.random.next() >> (words[0] % 64));
                }
                let order = [SortOrder::Ascending, SortOrder::Descending][i % 2];
                let nans = [NanOrder::Total, NanOrder::Last, NanOrder::First][i % 3];
                let options = SortOptions::from(order).nans(nans);
                let (mut sorted, mut permutation) = (keys.clone(), (0..n as u32).collect::<Vec<_>>());
                self.cpu.sort_with(options, (&mut sorted, &mut permutation)).expect("the CPU sorts");
                let what = format!("sort of {n} {name}, {order}, NaNs {nans}");
                let found = sorted_alone(&stream, options, &keys);
                self.expect(|| what.clone(), found, &sorted);
                let found = sorted_with(&stream, options, &keys, |i| u64::from(i) << 32 | 5);
                let expected: Vec<u64> = permutation.iter().map(|&i| u64::from(i) << 32 | 5).collect();
                self.expect_both(&format!("{what}, with u64 values"), found, (&sorted, &expected));
                let found = sorted_with(&stream, options, &keys, |i| i ^ 0x5555);
                let expected: Vec<u32> = permutation.iter().map(|&i| i ^ 0x5555).collect();
                self.expect_both(&format!("{what}, with u32 values"), found, (&sorted, &expected));
                let found = argsorted(&stream, options, &keys);
                self.expect_both(&format!("arg{what}"), found, (&sorted, &permutation));
            }
        }
    }

    pub(super) fn expect_both<K: Key, V: Key>(
        &mut self,
        what: &str,
        found: Result<(Vec<K>, Vec<V>), Error>,
        (keys, values): (&[K], &[V]),
    ) {
        let (found, found_values) = match found {
            Ok((keys, values)) => (Ok(keys), Ok(values)),
            Err(error) => (Err(error.clone()), Err(error)),
        };
        self.expect(|| what.to_owned(), found, keys);
        self.expect(|| format!("values of the {what}"), found_values, values);
    }

    /// Prints rows of sorts of `n` keys. The fraction is relative to a copy of the keys, and of values if there are
    /// any.
    pub(super) fn time_widths<K: GpuSortKey>(&self, n: usize) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let table = Table::new::<K>(&stream, n)?;
        for (name, kind) in TIMED_KINDS {
            let unsorted = stream.upload(&timed_keys::<K>(n, kind))?;
            let mut out = stream.zeroed::<K>(n)?;
            let mut memory = stream.zeroed(workspace::sort::<K, ()>(n))?;
            let ms = time(&stream, &unsorted, &mut out, |out| stream.sort(SortOrder::Ascending, out, &mut memory))?;
            table.row(&format!("sort, {name}"), "", n, ms, 2 * n * size_of::<K>());
            if name != "uniform" {
                continue;
            }
            let moved = 2 * n * (size_of::<K>() + size_of::<u32>());
            let (mut values, order) = (stream.zeroed::<u32>(n)?, SortOrder::Ascending);
            let mut memory = stream.zeroed(workspace::sort::<K, u32>(n).max(workspace::argsort::<K, u32>(n)))?;
            let ms = time(&stream, &unsorted, &mut out, |out| stream.sort(order, (out, &mut values), &mut memory))?;
            table.row(&format!("sort, {name}"), "+u32", n, ms, moved);
            let ms = time(&stream, &unsorted, &mut out, |out| stream.argsort(order, out, &mut values, &mut memory))?;
            table.row(&format!("argsort, {name}"), "+u32", n, ms, moved - n * size_of::<u32>());
        }
        Ok(())
    }
}

/// `n` keys to time. The words of a key of 16 bytes are in independent orders, so that both have to be sorted.
fn timed_keys<K: Key>(n: usize, kind: fn(u64) -> u64) -> Vec<K> {
    let mut keys = keys_of::<K>(n, |i| kind(mix(i ^ 1 << 40)));
    if size_of::<K>() == 16 {
        let words: &mut [u64] = bytemuck::cast_slice_mut(&mut keys);
        parallel::for_each(words.chunks_mut(1 << 16), |words| {
            words.chunks_mut(2).for_each(|words| words[0] = mix(words[0] ^ 1));
        });
    }
    keys
}

fn sorted_alone<K: GpuSortKey>(stream: &Stream, options: SortOptions, keys: &[K]) -> Result<Vec<K>, Error> {
    let mut array = stream.upload(keys)?;
    let mut memory = stream.upload(&poison::<u8>(workspace::sort::<K, ()>(keys.len())))?;
    stream.sort(options, &mut array, &mut memory)?;
    array.download()
}

fn sorted_with<K: GpuSortKey, V: Key>(
    stream: &Stream,
    options: SortOptions,
    keys: &[K],
    value: impl Fn(u32) -> V,
) -> Result<(Vec<K>, Vec<V>), Error> {
    let values: Vec<V> = (0..keys.len() as u32).map(value).collect();
    let (mut array, mut values) = (stream.upload(keys)?, stream.upload(&values)?);
    let mut memory = stream.zeroed(workspace::sort::<K, V>(keys.len()))?;
    stream.sort(options, (&mut array, &mut values), &mut memory)?;
    Ok((array.download()?, values.download()?))
}

fn argsorted<K: GpuSortKey>(stream: &Stream, options: SortOptions, keys: &[K]) -> Result<(Vec<K>, Vec<u32>), Error> {
    let (mut array, mut indices) = (stream.upload(keys)?, stream.upload(&poison::<u32>(keys.len()))?);
    let mut memory = stream.zeroed(workspace::argsort::<K, u32>(keys.len()))?;
    stream.argsort(options, &mut array, &mut indices, &mut memory)?;
    Ok((array.download()?, indices.download()?))
}

/// The median time of a launch on a copy of `unsorted`.
pub(super) fn time<K: Key>(
    stream: &Stream,
    unsorted: &DeviceArray<K>,
    out: &mut DeviceArray<K>,
    mut launch: impl FnMut(&mut DeviceArray<K>) -> Result<(), Error>,
) -> Result<f64, Error> {
    median_ms(stream, |step| match step {
        Step::Prepare => out.copy_from(unsorted),
        Step::Launch => launch(out),
    })
}
