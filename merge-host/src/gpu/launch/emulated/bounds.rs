//! Lower and upper bounds, against the standard library's `partition_point`.

use super::super::bounds;
use super::keys::*;
use super::*;
use kernels_gpu::tuning;

fn check<K: TestKey, I: Word>((needles, keys): (usize, usize), of: Keys) {
    for lower in [true, false] {
        let seed = fresh_seed();
        let device = Device::new(seed);
        // Needles and keys of one pool, so that some are equal.
        let mut pool: Vec<K> = of.random(needles + keys, seed);
        let half = pool.len() / 2;
        pool.copy_within(0..half / 2, half);
        let mut random = StdRng::seed_from_u64(!seed);
        let mut some = |len: usize| {
            let mut keys: Vec<K> = (0..len).map(|_| pool[random.random_range(0..pool.len())]).collect();
            keys.sort_by(K::compare);
            keys
        };
        let (needles, keys) = (some(needles), some(keys));
        let [of_needles, of_keys] = [&needles, &keys].map(|keys| Arrays::keys(address(device.array(keys)), keys.len()));
        let (found, total) = (device.uninit::<I>(needles.len()), needles.len() + keys.len());
        let (to, workspace) = ((address(found), size_of::<I>()), device.workspace(bounds::workspace_bytes::<K>(total)));
        // SAFETY: the arrays are as long as they are said to be, and the emulator checks accesses.
        unsafe { bounds::bounds::<K>(&device.queue(), lower, of_needles, of_keys, to, workspace) }
            .expect("all is launched");
        let bound = |needle: &K| {
            keys.partition_point(|key| if lower { key.compare(needle).is_lt() } else { key.compare(needle).is_le() })
        };
        let expected: Vec<u64> = needles.iter().map(|needle| bound(needle) as u64).collect();
        let name = <K as crate::Key>::NAME;
        assert!(
            raw_bits(&device.read(found)) == expected,
            "{} {of:?} {name} needles in {} keys, lower: {lower}, seed {seed}",
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
                for of in [Keys::Any, Keys::Few, Keys::Equal] {
                    check::<K, u32>((needles, total - needles), of);
                    check::<K, u64>((needles, total - needles), of);
                }
            }
        }
    }
    for_all_types!(all());
}
