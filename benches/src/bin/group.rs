//! Measures sorts and merges on several GPUs, compared with the same work on one GPU, and checks the results.
//!
//! ```text
//! group [LG_N]               keys in all, as a power of two; 31 by default
//! ```
//!
//! Times are medians of several runs by the clock, from an idle machine to an idle machine, because events of two GPUs
//! have no common time.

use merge_host::{DeviceArray, Error, Gpu, GpuGroup, GpuKey, Gpus, Key, SortOrder, Stream, parallel, workspace};
use std::time::Instant;

/// Runs of each measurement.
const RUNS: usize = 7;

fn main() -> Result<(), Error> {
    let lg_n = std::env::args().nth(1).map_or(31, |text| text.parse().expect("a power of two"));
    let group = GpuGroup::new(Gpus::All)?;
    println!("{} GPUs, 2^{lg_n} keys of u32, half as many of u64; times in ms", group.gpus().len());
    measure::<u32>(&group, 1 << lg_n)?;
    measure::<u64>(&group, 1 << (lg_n - 1))?;
    measure_pairs(&group, 1 << (lg_n - 2))
}

fn measure<K: GpuKey + Key<Bits = K>>(group: &GpuGroup, n: usize) -> Result<(), Error> {
    let input: Vec<K> = keys(n);
    let gpu = group.gpus().next().expect("a group has a member");
    group.gpus().try_for_each(Gpu::prepare::<K>)?;

    let one = on_one(gpu, &input)?;
    let from = group.upload(&input)?;
    let (mut keys, mut sorted) = (group.zeroed::<K>(n)?, group.zeroed::<K>(n)?);
    let mut workspace = workspaces::<K, ()>(group, &keys, &sorted)?;
    let mut arrays = (&mut keys, &mut sorted, &mut workspace);
    let all = median(
        |(keys, _, _)| copy(group, &from, keys),
        |(keys, sorted, workspace)| {
            group.sort(SortOrder::Ascending, &mut keys[..], &mut sorted[..], workspace)?;
            synchronize(group)
        },
        &mut arrays,
    )?;
    check(&input, &group.download(&sorted)?);
    println!("sort {:4} 2^{:2}: one {one:8.3}   all {all:8.3}   {:.2} x", <K as Key>::NAME, n.ilog2(), one / all);

    // Each member's run is sorted. The parts of the result have the lengths of the runs.
    copy(group, &from, &mut keys)?;
    for ((stream, keys), workspace) in group.streams().zip(&mut keys).zip(&mut workspace) {
        stream.sort(SortOrder::Ascending, keys, workspace)?;
    }
    let merged = median(
        |_| synchronize(group),
        |(sorted, workspace)| {
            group.merge(&keys[..], &mut sorted[..], workspace)?;
            synchronize(group)
        },
        &mut (&mut sorted, &mut workspace),
    )?;
    check(&input, &group.download(&sorted)?);
    let members = group.gpus().len();
    let gib = (n / members * (members - 1) / members * size_of::<K>()) as f64 / (1u64 << 30) as f64;
    println!("merge {:3} 2^{:2}: all {merged:8.3}   {gib} GiB to each GPU", <K as Key>::NAME, n.ilog2());
    Ok(())
}

/// The time of one GPU for all keys.
fn on_one<K: GpuKey>(gpu: &Gpu, input: &[K]) -> Result<f64, Error> {
    let stream = gpu.stream()?;
    let (from, mut keys) = (stream.upload(input)?, stream.zeroed::<K>(input.len())?);
    let mut workspace = stream.zeroed(workspace::sort::<K, ()>(input.len()))?;
    let prepare = |keys: &mut DeviceArray<K>| {
        keys.copy_from(&from)?;
        stream.synchronize()
    };
    let sort = |keys: &mut DeviceArray<K>| {
        stream.sort(SortOrder::Ascending, keys, &mut workspace)?;
        stream.synchronize()
    };
    median(prepare, sort, &mut keys)
}

/// Measures sorts of keys with values, and argsorts.
fn measure_pairs(group: &GpuGroup, n: usize) -> Result<(), Error> {
    let input: Vec<u32> = keys(n);
    let gpu = group.gpus().next().expect("a group has a member");
    let one = {
        let stream = gpu.stream()?;
        let (from, mut keys, mut values) = (stream.upload(&input)?, stream.zeroed::<u32>(n)?, stream.zeroed::<u32>(n)?);
        let mut workspace = stream.zeroed(workspace::sort::<u32, u32>(n))?;
        let prepare = |keys: &mut DeviceArray<u32>| {
            keys.copy_from(&from)?;
            stream.synchronize()
        };
        let sort = |keys: &mut DeviceArray<u32>| {
            stream.sort(SortOrder::Ascending, (keys, &mut values), &mut workspace)?;
            stream.synchronize()
        };
        median(prepare, sort, &mut keys)?
    };
    let from = group.upload(&input)?;
    let (mut keys, mut indices) = (group.zeroed::<u32>(n)?, group.zeroed::<u32>(n)?);
    let (mut sorted, mut permutation) = (group.zeroed::<u32>(n)?, group.zeroed::<u32>(n)?);
    let mut workspace = workspaces::<u32, u32>(group, &keys, &sorted)?;
    let prepare = |keys: &mut Vec<DeviceArray<u32>>| copy(group, &from, keys);
    let sort = |keys: &mut Vec<DeviceArray<u32>>| {
        let out = (&mut sorted[..], &mut permutation[..]);
        group.sort(SortOrder::Ascending, (&mut keys[..], &mut indices[..]), out, &mut workspace)?;
        synchronize(group)
    };
    let all = median(prepare, sort, &mut keys)?;
    println!("sort u32+u32 2^{:2}: one {one:8.3}   all {all:8.3}   {:.2} x", n.ilog2(), one / all);

    copy(group, &from, &mut keys)?;
    let out = (&mut sorted[..], &mut permutation[..]);
    group.argsort(SortOrder::Descending, (&mut keys, &mut indices), out, &mut workspace)?;
    check(merge_host::descending(&input), merge_host::descending(&group.download(&sorted)?));
    let (sorted, permutation) = (group.download(&sorted)?, group.download(&permutation)?);
    for (i, &index) in permutation.iter().enumerate() {
        assert_eq!(input[index as usize], sorted[i], "the index of key {i} is wrong");
        let before = i.checked_sub(1).map(|i| (sorted[i], permutation[i]));
        assert!(
            before.is_none_or(|(key, before)| key > sorted[i] || before < index),
            "the argsort is not stable at {i}"
        );
    }
    Ok(())
}

/// The workspaces of a sort of keys with values of type `V`, or `()`.
fn workspaces<K: GpuKey, V>(
    group: &GpuGroup,
    keys: &[DeviceArray<K>],
    sorted: &[DeviceArray<K>],
) -> Result<Vec<DeviceArray<u8>>, Error> {
    let members = group.gpus().len();
    let bytes = |i: usize| workspace::group_sort::<K, V>(members, keys[i].len(), sorted[i].len());
    group.streams().enumerate().map(|(i, stream)| stream.zeroed(bytes(i))).collect()
}

/// Copies a distributed array, and waits.
fn copy<K: GpuKey>(group: &GpuGroup, from: &[DeviceArray<K>], to: &mut [DeviceArray<K>]) -> Result<(), Error> {
    from.iter().zip(to).try_for_each(|(from, to)| to.copy_from(from))?;
    synchronize(group)
}

/// Waits for the work of all members.
fn synchronize(group: &GpuGroup) -> Result<(), Error> {
    group.streams().try_for_each(Stream::synchronize)
}

/// The median time of `work` in ms, with a call of `prepare` before each.
fn median<T>(
    mut prepare: impl FnMut(&mut T) -> Result<(), Error>,
    mut work: impl FnMut(&mut T) -> Result<(), Error>,
    with: &mut T,
) -> Result<f64, Error> {
    let mut times = [0.0; RUNS];
    for time in &mut times {
        prepare(with)?;
        let start = Instant::now();
        work(with)?;
        *time = 1e3 * start.elapsed().as_secs_f64();
    }
    times.sort_by(f64::total_cmp);
    Ok(times[RUNS / 2])
}

/// Random keys of a type that equals its ordered bits.
fn keys<K: GpuKey + Key<Bits = K>>(n: usize) -> Vec<K> {
    const BLOCK: usize = 1 << 20;
    let mut keys: Vec<K> = vec![bytemuck::Zeroable::zeroed(); n];
    parallel::for_each(keys.chunks_mut(BLOCK).enumerate(), |(block, keys)| {
        for (i, bytes) in bytemuck::cast_slice_mut::<K, u32>(keys).iter_mut().enumerate() {
            *bytes = (mixed((block * BLOCK * 2 + i) as u64) >> 32) as u32;
        }
    });
    keys
}

/// A scrambled number: every bit depends on all bits of `number` (the last steps of SplitMix64).
fn mixed(number: u64) -> u64 {
    let z = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Fails unless `sorted` is ascending and has the keys of `input`, by a checksum that does not depend on the order.
fn check<K: Key>(input: &[K], sorted: &[K]) {
    let checksum = |keys: &[K]| {
        let sums = parallel::map(keys.chunks(1 << 20), |keys| {
            let word =
                |key: &K| bytemuck::bytes_of(key).iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
            keys.iter().fold(0u64, |sum, key| sum.wrapping_add(mixed(word(key))))
        });
        sums.into_iter().fold(0u64, u64::wrapping_add)
    };
    assert_eq!(merge_host::first_unsorted(sorted), None, "the keys are not sorted");
    assert_eq!((sorted.len(), checksum(sorted)), (input.len(), checksum(input)), "the keys are not those of the input");
}
