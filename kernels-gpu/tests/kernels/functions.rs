//! Functions of kernels that need no emulator.

use cuda_std::Word;
use kernels_gpu::kernels::sort::divide::choose_digits::digits_for;
use kernels_gpu::kernels::sort::divide::digits::{ANY, Curve, Digits, LINEAR};
use kernels_gpu::key::{Bits, Coding, Key};
use kernels_gpu::own::merge_groups::{Groups, TileOfGroup};
use kernels_gpu::thread::balanced_path::balance;
use kernels_gpu::thread::diagonal::diagonal_search;

/// The points of the balanced path, as numbers of keys of A and of B, found by walking the path.
fn walk(a: &[u32], b: &[u32]) -> [(usize, usize); 64] {
    let (mut points, mut at, mut count) = ([(0, 0); 64], (0, 0), 1);
    while at.0 < a.len() || at.1 < b.len() {
        let of_a = at.1 == b.len() || at.0 < a.len() && a[at.0] <= b[at.1];
        let of_b = at.0 == a.len() || at.1 < b.len() && b[at.1] <= a[at.0];
        at = (at.0 + usize::from(of_a), at.1 + usize::from(of_b));
        points[count] = at;
        count += 1;
    }
    points[count..].fill(at);
    points
}

#[test]
fn each_diagonal_has_the_last_point_of_the_path_before_it() {
    // All pairs of multisets of 1, 2 and 3 with up to three copies of each key.
    let mut keys = [0; 9];
    let mut multiset = |mut code: usize| {
        let mut len = 0;
        for key in 1..=3 {
            for _ in 0..code % 4 {
                keys[len] = key;
                len += 1;
            }
            code /= 4;
        }
        (keys, len)
    };
    for code in 0..64 {
        let (a, a_len) = multiset(code);
        for code in 0..64 {
            let (b, b_len) = multiset(code);
            let (a, b) = (&a[..a_len], &b[..b_len]);
            let points = walk(a, b);
            for k in 0..=a_len + b_len {
                let found = balance(k, diagonal_search(k, a, b), a, b);
                let expected = points.into_iter().rev().find(|point| point.0 + point.1 <= k).unwrap_or_default();
                assert_eq!((found.a, found.rank(k) - found.a), expected, "{a:?} {b:?} {k}");
            }
        }
    }
}

fn linear<B: Bits>(digits: Digits<B>, key: B) -> u32 {
    digits.of::<LINEAR>(key, Coding::NONE)
}

#[test]
fn digits_never_descend_and_are_below_their_count() {
    for (least, greatest) in [(0, 1), (0, u32::MAX), (7, 1_000_000_007), (u32::MAX - 5, u32::MAX), (5, 6)] {
        for count in [1, 2, 7, 8, 255, 1000, 1024] {
            let digits = Digits::even(least, greatest, count);
            assert!(digits.count <= count + 1, "{digits:?}");
            let wide = Digits::even((least as u64) << 31, (greatest as u64) << 31, count);
            assert!(wide.count <= count + 1, "{wide:?}");
            let mut last = (0, 0);
            for i in 0..=4096u64 {
                let key = (i * u32::MAX as u64 / 4096) as u32;
                let of_key = (linear(digits, key), linear(wide, (key as u64) << 31));
                assert!(last.0 <= of_key.0 && last.1 <= of_key.1, "{key}");
                assert!(of_key.0 < digits.count && of_key.1 < wide.count, "{key}");
                last = of_key;
            }
        }
    }
}

#[test]
fn even_digits_have_equal_shares_of_even_keys() {
    let digits = Digits::even(1000, 4_000_000_999u32, 64);
    let mut shares = [0u32; 66];
    (0..1_000_000u32).for_each(|i| shares[linear(digits, 1000 + 4000 * i) as usize] += 1);
    assert!(shares.iter().all(|&share| share <= 15_626), "{shares:?}");
    assert!((64..=65).contains(&shares.iter().filter(|&&share| share > 0).count()));
}

#[test]
fn exact_digits_are_one_key_each_but_the_outer_ones() {
    let ranges = [(0, 0), (0, 5), (100, 100), (100, 1000), (u32::MAX - 3, u32::MAX), (u32::MAX, u32::MAX)];
    for (least, greatest) in ranges {
        let digits = Digits::exact(least, greatest);
        let (below, above) = (u32::from(least > 0), u32::from(greatest < u32::MAX));
        assert_eq!(digits.count, greatest - least + below + 1 + above, "{digits:?}");
        for key in least..=greatest {
            assert_eq!(linear(digits, key), key - least + below);
            assert!(digits.is_one_key(linear(digits, key), true));
        }
        // All other keys are less, or greater.
        assert_eq!(linear(digits, 0), 0);
        assert_eq!(digits.is_one_key(0, true), least <= 1);
        assert_eq!(linear(digits, u32::MAX), digits.count - 1);
        assert_eq!(digits.is_one_key(digits.count - 1, true), greatest >= u32::MAX - 1);
    }
}

/// The digits along `curve` of keys in ascending order.
fn along<K: Key<Bits: std::fmt::Debug> + Word>(curve: Curve, keys: &[K], count: u32, descending: bool) -> Vec<u32> {
    let coding = Coding::<K::Bits>::of::<K>(descending);
    along_coding(curve, keys, count, coding.with_nans_last());
    along_coding(curve, keys, count, coding.with_nans_first());
    along_coding(curve, keys, count, coding)
}

/// [`along`] with the given coding.
fn along_coding<K: Key<Bits: std::fmt::Debug> + Word>(
    curve: Curve,
    keys: &[K],
    count: u32,
    coding: Coding<K::Bits>,
) -> Vec<u32> {
    let bits = |key: K| coding.encode(K::Bits::from_register(key.to_register()));
    let bits: Vec<_> = keys.iter().map(|&key| bits(key)).collect();
    let least = *bits.iter().min().expect("there are keys");
    let greatest = *bits.iter().max().expect("there are keys");
    let digits = Digits::along(curve, least, greatest, count, coding);
    assert!(digits.count <= count + 1, "{digits:?}");
    let digits: Vec<_> =
        bits.iter().map(|&key| digits.of::<ANY>(key, coding)).inspect(|&digit| assert!(digit < digits.count)).collect();
    let mut in_order: Vec<_> = bits.into_iter().zip(digits.iter().copied()).collect();
    in_order.sort_unstable();
    assert!(in_order.is_sorted_by_key(|&(_, digit)| digit), "{curve:?} of {}, {coding:?}", K::NAME);
    digits
}

#[test]
fn digits_along_curves_never_descend() {
    let words = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 60);
    for count in [1, 2, 32, 254, 1022] {
        for descending in [false, true] {
            for curve in [Curve::Logarithm, Curve::Mirrored] {
                along(curve, &(0..10_000).map(|i| words(i) as u32).collect::<Vec<_>>(), count, descending);
                along(curve, &(0..10_000).map(words).collect::<Vec<_>>(), count, descending);
            }
            for curve in [Curve::Logarithm, Curve::Mirrored, Curve::Value] {
                // Floats of all exponents and both signs, NaN and infinities.
                along(
                    curve,
                    &(0..10_000).map(|i| f32::from_bits(words(i) as u32)).collect::<Vec<_>>(),
                    count,
                    descending,
                );
                along(curve, &(0..10_000).map(|i| f64::from_bits(words(i))).collect::<Vec<_>>(), count, descending);
            }
            for scale in [1e-38, 1e-20, 1.0, 1e30] {
                let floats = (0..10_000).map(|i| (words(i) as i64 as f32) * scale);
                along(Curve::Value, &floats.clone().collect::<Vec<_>>(), count, descending);
                along(Curve::Value, &floats.map(f64::from).collect::<Vec<_>>(), count, descending);
            }
        }
    }
}

#[test]
fn curves_spread_what_distances_do_not() {
    let fullest = |digits: &[u32]| {
        let mut counts = [0; 40];
        digits.iter().for_each(|&digit| counts[digit as usize] += 1);
        *counts.iter().max().expect("there are digits")
    };
    let units: Vec<_> = (0..32_000).map(|i| i as f32 / 32_000.0).collect();
    assert!(fullest(&along(Curve::Value, &units, 32, false)) <= 1001);
    assert!(fullest(&along(Curve::Value, &units, 32, true)) <= 1001);
    assert!(fullest(&along(Curve::Distance, &units, 32, false)) >= 8000);
    let small: Vec<_> = (0..32_000u64).map(|i| (i | 1 << 20) >> (i % 20)).collect();
    assert!(fullest(&along(Curve::Logarithm, &small, 32, false)) <= 2500);
    assert!(fullest(&along(Curve::Distance, &small, 32, false)) >= 20_000);
    let great: Vec<_> = small.iter().map(|key| !key).collect();
    assert!(fullest(&along(Curve::Mirrored, &great, 32, false)) <= 2500);
    assert!(fullest(&along(Curve::Logarithm, &great, 32, false)) >= 20_000);
}

#[test]
fn logarithms_tell_the_least_key_apart() {
    for (least, greatest) in [(0, 1000), (0, u32::MAX), (1, 5), (77, 1_000_000), (1 << 31, u32::MAX), (5, 6)] {
        for count in [2, 8, 100, 1022] {
            let mirrored = Digits::along(Curve::Mirrored, !greatest, !least, count, Coding::NONE);
            let digits = Digits::along(Curve::Logarithm, least, greatest, count, Coding::NONE);
            assert_eq!(digits.count, mirrored.count);
            let of = |key: u32| digits.of::<ANY>(key, Coding::NONE);
            for key in [least, greatest, least / 2 + greatest / 2, 0, u32::MAX, least.saturating_add(1)] {
                assert_eq!(mirrored.of::<ANY>(!key, Coding::NONE), digits.count - 1 - of(key), "{digits:?}, {key}");
            }
            for digit in 0..digits.count {
                assert_eq!(mirrored.is_one_key(digits.count - 1 - digit, false), digits.is_one_key(digit, false));
            }
            let only = if digits.least == 0 { 0 } else { least };
            for digit in (0..digits.count).filter(|&digit| digits.is_one_key(digit, false)) {
                assert_eq!(digit, of(only), "{digits:?}");
                assert!(only == 0 || of(only - 1) < digit, "{digits:?}");
                assert!(of(only + 1) > digit, "{digits:?}");
            }
            assert!(count < 100 || digits.is_one_key(of(only), false), "{digits:?}");
        }
    }
}

#[test]
fn a_segment_that_needs_two_divisions_has_about_as_many_digits_in_each() {
    let (usual, most) = (4234, 254);
    for wanted in [270, 300, 499, 512, 998, 10_000, most * most] {
        for single in [512, 1024] {
            let first = digits_for(wanted * usual, 0, usual, single, most);
            let then = digits_for((wanted * usual).div_ceil(first), 0, usual, most, most);
            assert!(first * then >= wanted && first.abs_diff(then) <= 1, "{wanted}: {first}, {then}");
        }
    }
    // Slightly more digits than there can be are divided once.
    for wanted in [most - 1, most, most + 1, most + most / 16] {
        assert_eq!(digits_for(wanted * usual, 0, usual, 512, most), wanted.min(most));
    }
}

#[test]
fn groups_have_tiles_of_their_own() {
    let runs = Groups::of_runs(23, 5);
    assert_eq!(runs.tiles(4), 3 + 3 + 1);
    assert_eq!(runs.tile(5, 4), TileOfGroup { number: 1, lengths: [5, 5], rank: 8, count: 2 });
    assert_eq!(runs.tile(6, 4), TileOfGroup { number: 2, lengths: [3, 0], rank: 0, count: 3 });
    let two = Groups::of_two(3, 6);
    assert_eq!((two.tiles(4), two.tile(2, 4)), (3, TileOfGroup { number: 0, lengths: [3, 6], rank: 8, count: 1 }));
    assert_eq!((Groups::of_two(0, 0).tiles(4), Groups::of_batch(3, 0, 0).tiles(4)), (0, 0));
    assert_eq!(Groups::of_batch(3, 1, 2).tile(2, 4), TileOfGroup { number: 2, lengths: [1, 2], rank: 0, count: 3 });
}
