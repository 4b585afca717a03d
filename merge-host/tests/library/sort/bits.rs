//! Sorts by some bits of the keys, against the standard library's stable sort.

use crate::common::{rng, seed, sorted_indices_by};
use merge_host::{Engine, Error, Key, SortOrder, f16};
use rand::Rng;
use rand::rngs::StdRng;

/// The bits `begin..end` of a key, as a number.
fn code<K: Key>(key: K, order: SortOrder, begin: u32, end: u32) -> u128 {
    let ordered = match order {
        SortOrder::Ascending => key.ordered_bits(),
        SortOrder::Descending => !key.ordered_bits(),
    };
    (begin..end).map(|bit| (ordered >> bit & 1) << (bit - begin)).sum()
}

fn check<K: Key>(random: &mut StdRng, engine: &Engine, seed: u64) {
    let bits = 8 * size_of::<K>() as u32;
    for n in [0, 1, 2, 40, 41, 1000, 70_000] {
        let few = random.random_range(0..3) == 0;
        let mut word = || if few { random.random_range(0..5) * (u128::MAX / 7) } else { random.random::<u128>() };
        let keys: Vec<K> =
            (0..n).map(|_| bytemuck::pod_read_unaligned(&word().to_le_bytes()[..size_of::<K>()])).collect();
        let order = [SortOrder::Ascending, SortOrder::Descending][random.random_range(0..2)];
        let begin = random.random_range(0..=bits);
        let range =
            [begin..random.random_range(begin..=bits), 0..bits, begin..begin][random.random_range(0..3)].clone();
        let code = |i: usize| code(keys[i], order, range.start, range.end);
        let indices = sorted_indices_by(n, &|x, y| code(x).cmp(&code(y)));
        let expected: Vec<K> = indices.iter().map(|&i| keys[i]).collect();
        let what = format!("{n} {} by bits {range:?}, {order}, seed {seed}", K::NAME);

        let mut found = keys.clone();
        engine.sort_by_bits(order, range.clone(), &mut found).unwrap();
        assert!(bytes(&found) == bytes(&expected), "{what}");
        let (mut found, mut values) = (keys.clone(), (0..n).map(|i| [i as u8, (i >> 8) as u8, 7]).collect::<Vec<_>>());
        engine.sort_by_bits(order, range.clone(), (&mut found, &mut values)).unwrap();
        assert!(bytes(&found) == bytes(&expected), "{what}, with values");
        assert!(values.iter().zip(&indices).all(|(value, &i)| *value == [i as u8, (i >> 8) as u8, 7]), "{what}");
        let mut found = vec![9u32; n];
        engine.argsort_by_bits(order, range, &keys, &mut found).unwrap();
        assert!(found.iter().zip(&indices).all(|(found, &i)| *found as usize == i), "argsort of {what}");
    }
}

fn bytes<K: Key>(keys: &[K]) -> &[u8] {
    bytemuck::cast_slice(keys)
}

#[test]
fn keys_are_sorted_by_any_range_of_their_bits() {
    let seed = seed();
    let mut random = rng(seed);
    for engine in [Engine::cpu(), Engine::cpu_with_threads(1).unwrap(), Engine::auto()] {
        check::<u8>(&mut random, &engine, seed);
        check::<i16>(&mut random, &engine, seed);
        check::<f16>(&mut random, &engine, seed);
        check::<u32>(&mut random, &engine, seed);
        check::<f32>(&mut random, &engine, seed);
        check::<i64>(&mut random, &engine, seed);
        check::<f64>(&mut random, &engine, seed);
        check::<u128>(&mut random, &engine, seed);
        check::<i128>(&mut random, &engine, seed);
    }
}

#[test]
fn bits_that_a_key_does_not_have_are_refused_and_nothing_is_sorted() {
    let mut keys = [3u16, 2, 1];
    #[expect(clippy::reversed_empty_ranges, reason = "the range is wrong")]
    for range in [0..17, 16..17, 9..8] {
        let expected = Error::BitRange { begin: range.start, end: range.end, bits: 16 };
        assert_eq!(Engine::cpu().sort_by_bits(SortOrder::Ascending, range.clone(), &mut keys), Err(expected.clone()));
        let found = Engine::cpu().argsort_by_bits(SortOrder::Ascending, range, &keys, &mut [0u32; 3]);
        assert_eq!(found, Err(expected));
    }
    assert_eq!(keys, [3, 2, 1]);
}
