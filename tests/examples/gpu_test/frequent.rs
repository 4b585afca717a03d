//! Sorts of keys that are spread evenly, except for one frequent value or a few. Columns with many zeros are such keys,
//! and so are padded arrays.

use super::table::{Table, keys_of};
use super::widths::time;
use super::{Kind, Test};
use merge_host::{Error, GpuKey, GpuSortKey, SortOrder, workspace};
use tests::distribution::mix;

/// Keys with frequent values.
pub(super) const FREQUENT: [Kind; 8] = [
    ("1/64 zeros", |word| if word.is_multiple_of(64) { 0 } else { mix(word) }),
    ("1/8 zeros", |word| if word.is_multiple_of(8) { 0 } else { mix(word) }),
    ("1/2 zeros", |word| if word.is_multiple_of(2) { 0 } else { mix(word) }),
    ("7/8 zeros", |word| if word.is_multiple_of(8) { mix(word) } else { 0 }),
    ("1/2 between", |word| if word.is_multiple_of(2) { 0x5a5a_5a5a_5a5a_5a5a } else { mix(word) }),
    ("1/2 greatest", |word| if word.is_multiple_of(2) { u64::MAX } else { mix(word) }),
    ("1/2 of 16 neighbours", |word| if word.is_multiple_of(2) { word >> 60 } else { mix(word) }),
    ("1/2 of 16 values", |word| if word.is_multiple_of(2) { mix(word >> 60) } else { mix(word) }),
];

impl Test {
    /// Sorts at the numbers of keys where the number of divisions changes, and between them.
    pub(super) fn check_frequent<K: GpuKey + GpuSortKey>(&mut self) {
        let around = [17, 19, 20, 21, 23, 24].map(|log| [1usize << log, (1 << log) + 1]).concat();
        let sizes = [&around[..], &[150_001, 3_000_017, 9_000_011]].concat();
        self.check_array_sorts::<K>(&FREQUENT, &sizes);
    }

    /// Prints rows of sorts of up to `most` keys.
    pub(super) fn time_frequent<K: GpuKey + GpuSortKey>(&self, most: usize) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let table = Table::new::<K>(&stream, most)?;
        let uniform: Kind = ("uniform", mix);
        for n in [1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28].into_iter().filter(|&n| n <= most) {
            for (name, kind) in [&[uniform], &FREQUENT[..]].concat() {
                let unsorted = stream.upload(&keys_of::<K>(n, |i| kind(mix(i ^ 1 << 40))))?;
                let (mut out, mut values) = (stream.zeroed(n)?, stream.zeroed::<u32>(n)?);
                let mut memory = stream.zeroed(workspace::sort::<K, u32>(n))?;
                let (order, moved) = (SortOrder::Ascending, 2 * n * size_of::<K>());
                let ms = time(&stream, &unsorted, &mut out, |out| stream.sort(order, out, &mut memory))?;
                table.row(&format!("sort, {name}"), "", n, ms, moved);
                let ms = time(&stream, &unsorted, &mut out, |out| stream.sort(order, (out, &mut values), &mut memory))?;
                table.row(&format!("sort, {name}"), "+u32", n, ms, moved + 8 * n);
            }
        }
        Ok(())
    }
}
