//! Lower and upper bounds, against the standard library's `partition_point`.

use crate::common::*;
use cuda_std::Word;
use kernels_gpu::tuning;
use merge_host::launches::KeyOrder;
use merge_host::launches::bounds::Bounds;
use merge_host::launches::emulated::{Device, address};
use rand::Rng;

fn check<K: TestKey, I: Word>((needles, keys): (usize, usize), of: Keys) {
    for lower in [true, false] {
        let seed = fresh_seed();
        let device = Device::new(seed);
        // Needles and keys of one pool, so that some are equal.
        let mut pool: Vec<K> = of.random(needles + keys, seed);
        let half = pool.len() / 2;
        pool.copy_within(0..half / 2, half);
        let mut random = fresh_random();
        let mut some = |len: usize| {
            let mut keys: Vec<K> = (0..len).map(|_| pool[random.random_range(0..pool.len())]).collect();
            keys.sort_by(K::compare);
            keys
        };
        let (needles, keys) = (some(needles), some(keys));
        let [of_needles, of_keys] = [&needles, &keys].map(|keys| Pairs::<K, ()>::of(&device, keys, 0).arrays());
        let found = device.uninit::<I>(needles.len());
        let bounds = (address(found), size_of::<I>());
        device.run(&Bounds {
            coding: KeyOrder::ASCENDING.coding::<K>().into(),
            lower,
            needles: of_needles,
            keys: of_keys,
            bounds,
        });
        let bound = |needle: &K| {
            keys.partition_point(|key| if lower { key.compare(needle).is_lt() } else { key.compare(needle).is_le() })
        };
        let expected: Vec<u64> = needles.iter().map(|needle| bound(needle) as u64).collect();
        let what = format!("{} {of:?} needles in {} keys, lower: {lower}, seed {seed}", needles.len(), keys.len());
        assert!(raw_bits(&device.read(found)) == expected, "{} {what}", <K as merge_host::Key>::NAME);
    }
}

#[test]
fn bounds_of_few_and_of_many_needles_are_found() {
    fn all<K: TestKey>() {
        let (tile, mut case) = (tuning::indexed(size_of::<K>()).keys(), 0..);
        for total in [1, 2, 100, tile - 1, tile, tile + 1, 3 * tile - 1, 3 * tile, 3 * tile + 1] {
            for needles in [0, 1, total / 50, total / 3, total / 2, total] {
                let needles = needles.min(total);
                for of in [Keys::Any, Keys::Few, Keys::Equal] {
                    for checked in [check::<K, u32>, check::<K, u64>] {
                        if case.next().is_some_and(takes_turn::<K>) {
                            checked((needles, total - needles), of);
                        }
                    }
                }
            }
        }
    }
    for_all_types!(all());
}
