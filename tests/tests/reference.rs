//! The library, compared with the kernels' reference, the sequential merge at the beginning of the textbook. On all
//! cores, by any kernel, `merge-host` gives the same bits as one thread with two cursors.

use kernels_gpu::textbook::sequential::merge_sequential;
use merge_host::{Engine, GpuKey, Key, MergeKernel, first_unsorted};

/// Sorted keys of scattered bits, many equal.
fn sorted<K: Key>(engine: &Engine, count: u64, seed: u64) -> Vec<K> {
    let bits = (0..count).map(|i| (i / 3 + (seed << 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ seed);
    // Keys are made from bytes, so that all kinds of bit patterns of floats occur.
    let mut keys: Vec<K> =
        bits.map(|bits| bytemuck::pod_read_unaligned(&bits.to_le_bytes()[..size_of::<K>()])).collect();
    engine.sort(&mut keys).unwrap();
    assert_eq!(first_unsorted(&keys), None);
    keys
}

fn agrees<K: GpuKey + kernels_gpu::key::Key>(seed: u64) {
    let engine = Engine::cpu();
    for (m, n) in [(0, 0), (0, 1000), (1, 1), (100_003, 50_021), (5, 200_000)] {
        let (a, b) = (sorted::<K>(&engine, m, seed), sorted::<K>(&engine, n, seed + 1));
        let mut expected = vec![K::zeroed(); a.len() + b.len()];
        merge_sequential(&a[..], &b[..], |i: usize, key| expected[i] = kernels_gpu::key::Key::from_ordered(key));
        for kernel in MergeKernel::ALL {
            let mut out = vec![K::zeroed(); expected.len()];
            engine.merge_with(kernel, &a, &b, &mut out).unwrap();
            let bytes: (&[u8], &[u8]) = (bytemuck::cast_slice(&out), bytemuck::cast_slice(&expected));
            assert!(bytes.0 == bytes.1, "{} {kernel}: {m} and {n} keys, seed {seed}", <K as Key>::NAME);
        }
        // A sort of both runs has the same result.
        let mut both = [a, b].concat();
        engine.sort(&mut both).unwrap();
        assert!(both.iter().map(|key| Key::to_ordered(*key)).eq(expected.iter().map(|key| Key::to_ordered(*key))));
    }
}

#[test]
fn one_thread_and_all_cores_agree() {
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos().into();
    println!("seed {seed}");
    agrees::<u32>(seed);
    agrees::<i32>(seed);
    agrees::<f32>(seed);
    agrees::<u64>(seed);
    agrees::<i64>(seed);
    agrees::<f64>(seed);
}
