//! Ordered bits against the standard library's orders.

use crate::common::*;

#[test]
fn ordered_bits_compare_as_the_keys_do_and_turn_back() {
    fn check<K: TestKey>(seed: u64) {
        for keys in [Keys::Any, Keys::Few] {
            let (left, right) = (keys.random::<K>(3000, seed), keys.random::<K>(3000, seed ^ 1));
            for (x, y) in left.iter().zip(&right) {
                assert_eq!(x.to_ordered().cmp(&y.to_ordered()), x.compare(y), "{x:?}, {y:?}, seed {seed}");
                assert_eq!(bits(&[K::from_ordered(x.to_ordered())]), bits(&[*x]), "{x:?}, seed {seed}");
                assert!(K::coding().encode(x.to_raw()) == x.to_ordered(), "{x:?}, seed {seed}");
            }
        }
    }
    for_all_types!(check(fresh_seed()));
}

#[test]
fn special_floats_are_in_ieee_total_order() {
    let in_order = [-f32::NAN, f32::NEG_INFINITY, f32::MIN, -1.0, -f32::MIN_POSITIVE / 2.0, -0.0, 0.0, 1e-45, 1.0];
    let in_order: Vec<f32> = in_order.into_iter().chain([f32::MAX, f32::INFINITY, f32::NAN]).collect();
    use kernels_gpu::key::Key;
    assert!(in_order.is_sorted_by(|x, y| x.to_ordered() < y.to_ordered()), "{in_order:?}");
}
