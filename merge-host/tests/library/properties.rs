//! Properties that hold for any input.

use kernels_gpu::textbook::co_rank::co_rank;
use merge_host::{Engine, MergeKernel, first_unsorted};
use proptest::collection::vec;
use proptest::prelude::*;

/// Ascending keys of few values, so that many keys are equal.
fn ascending(most: usize) -> impl Strategy<Value = Vec<i32>> {
    vec(-8..8, 0..most).prop_map(|mut keys| {
        keys.sort();
        keys
    })
}

proptest! {
    #[test]
    fn the_co_rank_is_the_stable_split(a in ascending(50), b in ascending(50), k in 0usize..100) {
        let k = k.min(a.len() + b.len());
        let i = co_rank(k, &a[..], &b[..]);
        let j = k - i;
        prop_assert!(i <= a.len() && j <= b.len());
        prop_assert!(i == 0 || j == b.len() || a[i - 1] <= b[j]);
        prop_assert!(j == 0 || i == a.len() || b[j - 1] < a[i]);
    }

    #[test]
    fn co_ranks_of_any_input_are_a_split(
        a in vec(any::<u64>(), 0..50),
        b in vec(any::<u64>(), 0..50),
        k in 0usize..100,
    ) {
        let k = k.min(a.len() + b.len());
        let i = co_rank(k, &a[..], &b[..]);
        prop_assert!(i <= a.len() && k - i <= b.len());
    }

    #[test]
    fn merging_is_sorting(a in ascending(3000), b in ascending(3000)) {
        let engine = Engine::cpu_with_threads(1).unwrap();
        let mut want = [a.clone(), b.clone()].concat();
        want.sort();
        for kernel in MergeKernel::ALL {
            let mut out = vec![i32::MIN; want.len()];
            engine.merge_with(kernel, &a, &b, &mut out).unwrap();
            prop_assert_eq!(&out, &want, "{}", kernel);
        }
    }

    #[test]
    fn merging_with_nothing_is_copying(a in ascending(3000)) {
        for kernel in MergeKernel::ALL {
            let mut out = vec![i32::MIN; a.len()];
            Engine::cpu().merge_with(kernel, &a, &[], &mut out).unwrap();
            prop_assert_eq!(&out, &a);
            out.fill(i32::MIN);
            Engine::cpu().merge_with(kernel, &[], &a, &mut out).unwrap();
            prop_assert_eq!(&out, &a);
        }
    }

    #[test]
    fn sorted_keys_are_ascending_and_the_same_keys(bits in vec(any::<u64>(), 0..6000)) {
        let mut keys: Vec<f64> = bits.iter().map(|&bits| f64::from_bits(bits)).collect();
        Engine::cpu().sort(&mut keys).unwrap();
        prop_assert_eq!(first_unsorted(&keys), None);
        prop_assert!(keys.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_le()));
        let (mut before, mut after) = (bits, keys.iter().map(|key| key.to_bits()).collect::<Vec<_>>());
        before.sort();
        after.sort();
        prop_assert_eq!(before, after);
    }
}
