//! Lower and upper bounds, against the standard library's `partition_point`.

use super::super::bounds;
use super::keys::*;
use super::*;
use crate::NanOrder;
use kernels_gpu::tuning;

fn check<K: TestKey, I: Word>((needles, keys): (usize, usize), of: Keys) {
    for lower in [true, false] {
        let seed = fresh_seed();
        let (device, nans) = (Device::new(seed), NanOrder::ALL[(seed % 3) as usize]);
        // Needles and keys of one pool, so that some are equal.
        let mut pool: Vec<K> = of.random(needles + keys, seed);
        let half = pool.len() / 2;
        pool.copy_within(0..half / 2, half);
        let mut random = StdRng::seed_from_u64(!seed);
        let mut some = |len: usize| {
            let mut keys: Vec<K> = (0..len).map(|_| pool[random.random_range(0..pool.len())]).collect();
            keys.sort_by(|a, b| a.compare_with(b, nans));
            keys
        };
        let (needles, keys) = (some(needles), some(keys));
        let [of_needles, of_keys] = [&needles, &keys].map(|keys| Arrays::keys(address(device.array(keys)), keys.len()));
        let (found, total) = (device.uninit::<I>(needles.len()), needles.len() + keys.len());
        let (to, workspace) = ((address(found), size_of::<I>()), device.workspace(bounds::workspace_bytes::<K>(total)));
        // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
        let queued = with_nans!(nans, Ordered => unsafe {
            bounds::bounds::<Ordered<K>>(&device.queue(), lower, of_needles, of_keys, to, workspace)
        });
        queued.expect("all is launched");
        let is_before = |key: &K, needle: &K| {
            let order = key.compare_with(needle, nans);
            if lower { order.is_lt() } else { order.is_le() }
        };
        let bound = |needle: &K| keys.partition_point(|key| is_before(key, needle));
        let expected: Vec<u64> = needles.iter().map(|needle| bound(needle) as u64).collect();
        let name = <K as crate::Key>::NAME;
        assert!(
            raw_bits(&device.read(found)) == expected,
            "{} {of:?} {name} needles in {} keys, lower: {lower}, NaNs {nans}, seed {seed}",
            needles.len(),
            keys.len()
        );
    }
}

#[test]
fn bounds_of_few_and_of_many_needles_are_found() {
    fn all<K: TestKey>() {
        let tile = tuning::indexed(size_of::<K>()).keys();
        for total in [1, 2, 100, tile - 1, tile, tile + 1, 3 * tile - 1, 3 * tile, 3 * tile + 1] {
            for needles in [0, 1, total / 50, total / 3, total / 2, total] {
                let needles = needles.min(total);
                for of in [Keys::Any, Keys::Few, Keys::Equal, Keys::Ends] {
                    check::<K, u32>((needles, total - needles), of);
                    check::<K, u64>((needles, total - needles), of);
                }
            }
        }
    }
    for_all_types!(all());
}
