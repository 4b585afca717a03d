//! Every merge kernel in the emulator against the standard library's stable sort.

use crate::common::*;
use kernels_gpu::tuning;

/// Lengths of A and B around multiples of tiles of `tile` keys, and with one side empty or short.
fn shapes(tile: usize) -> Vec<(usize, usize)> {
    let mut shapes =
        vec![(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (0, 3 * tile), (3 * tile, 0), (1, 2 * tile), (2 * tile, 1)];
    for total in [tile - 1, tile, tile + 1, 2 * tile - 1, 2 * tile, 2 * tile + 1, 3 * tile + tile / 2] {
        shapes.extend([(total / 2, total - total / 2), (total / 3, total - total / 3)]);
    }
    shapes
}

fn check<K: TestKey>(
    name: &str,
    shapes: &[(usize, usize)],
    merge: impl Fn(u64, &[K], &[K]) -> Result<Vec<K>, cuda_std::emulator::Fault>,
) {
    let seed = fresh_seed();
    let verify = |a: &[K], b: &[K], what: &str| {
        let at = || format!("{name} of {} {} + {}, {what}, seed {seed}", K::NAME, a.len(), b.len());
        let found = merge(seed, a, b).unwrap_or_else(|fault| panic!("{}: {fault}", at()));
        assert!(bits(&found) == bits(&merged(a, b)), "{}", at());
    };
    for &(m, n) in shapes {
        for keys in Keys::ALL {
            verify(&keys.ascending(m, seed), &keys.ascending(n, seed ^ 1), &format!("{keys:?}"));
        }
        let both = Keys::Any.ascending::<K>(m + n, seed ^ 2);
        verify(&both[..m], &both[m..], "all of A before all of B");
        verify(&both[m..], &both[..m], "all of B before all of A");
    }
}

#[test]
fn one_thread() {
    fn all<K: TestKey>() {
        check::<K>("merge_one_thread", &shapes(20), run::one_thread);
    }
    for_all_types!(all());
}

#[test]
fn basic() {
    fn all<K: TestKey>() {
        for (grid, block) in [(1, 1), (1, 32), (3, 40), (7, 64)] {
            check::<K>(&format!("merge_basic on {grid} x {block}"), &shapes(50), |s, a, b| {
                run::basic(s, a, b, grid, block)
            });
        }
    }
    for_all_types!(all());
}

/// Checks a kernel with tiles that are multiples of the block and tiles that are not, tiles shorter than the block, and
/// tiles of one key.
fn check_tiles<K: TestKey>(
    kernel: &str,
    merge: impl Fn(u64, &[K], &[K], u32, u32, u32) -> Result<Vec<K>, cuda_std::emulator::Fault>,
) {
    for (grid, block, tile) in [(1, 1, 8), (1, 32, 64), (3, 32, 50), (2, 64, 48), (4, 40, 129), (2, 32, 1)] {
        let name = format!("{kernel} on {grid} x {block}, tiles of {tile}");
        check(&name, &shapes(tile.max(24) as usize), |s, a, b| merge(s, a, b, grid, block, tile));
    }
}

#[test]
fn tiled() {
    fn all<K: TestKey>() {
        check_tiles::<K>("merge_tiled", run::tiled);
    }
    for_all_types!(all());
}

#[test]
fn circular() {
    fn all<K: TestKey>() {
        check_tiles::<K>("merge_circular", run::circular);
    }
    for_all_types!(all());
}

#[test]
fn small() {
    fn all<K: TestKey>() {
        let shapes: Vec<_> =
            shapes(250).into_iter().chain([(512, 512), (1024, 0), (0, 1024), (1, 1023), (700, 324)]).collect();
        check::<K>("merge_small", &shapes, |s, a, b| {
            run::small(s, a, b, ((a.len() + b.len()) as u32).next_multiple_of(32).max(32))
        });
    }
    for_all_types!(all());
}

#[test]
fn big_in_small_tiles() {
    fn all<K: TestKey>() {
        check::<K>("merge_big, 1 x 3", &shapes(3), run::big::<K, 1, 3>);
        check::<K>("merge_big, 32 x 1", &shapes(32), run::big::<K, 32, 1>);
        check::<K>("merge_big, 32 x 5", &shapes(160), run::big::<K, 32, 5>);
        check::<K>("merge_big, 64 x 7", &shapes(448), run::big::<K, 64, 7>);
        // More tiles than one block of `path_big` handles.
        check::<K>("merge_big, 32 x 1", &[(3000, 2500), (5000, 3), (0, 2080), (2048, 2049)], run::big::<K, 32, 1>);
    }
    for_all_types!(all());
}

#[test]
fn big_in_the_tiles_that_ship() {
    fn all<K: TestKey, const NT: usize, const VT: usize>() {
        let tile = NT * VT;
        let shapes =
            [(tile / 2, tile / 2 + tile % 2), (tile, tile + 1), (tile / 3, tile - tile / 3 - 1), (17, 2 * tile)];
        check::<K>("merge_big", &shapes, run::big::<K, NT, VT>);
    }
    const W4: tuning::Tile = tuning::ROW.merge.of(4, 0);
    const W8: tuning::Tile = tuning::ROW.merge.of(8, 0);
    all::<u32, { W4.threads }, { W4.items_per_thread }>();
    all::<i32, { W4.threads }, { W4.items_per_thread }>();
    all::<f32, { W4.threads }, { W4.items_per_thread }>();
    all::<u64, { W8.threads }, { W8.items_per_thread }>();
    all::<i64, { W8.threads }, { W8.items_per_thread }>();
    all::<f64, { W8.threads }, { W8.items_per_thread }>();
}

#[test]
fn fused_in_small_tiles() {
    fn all<K: TestKey>() {
        for grid in [1, 2, 3, 50] {
            let name = |tile| format!("merge_fused on {grid} blocks, tiles of {tile}");
            check::<K>(&name(32), &shapes(32), |s, a, b| run::fused::<K, 32, 1>(s, a, b, grid));
            check::<K>(&name(192), &shapes(192), |s, a, b| run::fused::<K, 64, 3>(s, a, b, grid));
        }
        // Ranges of many tiles per block.
        check::<K>("merge_fused on 2 blocks", &[(900, 1000), (3000, 7), (40, 4000)], |s, a, b| {
            run::fused::<K, 32, 3>(s, a, b, 2)
        });
    }
    for_all_types!(all());
}

#[test]
fn fused_in_the_tiles_that_ship() {
    fn all<K: TestKey, const NT: usize, const VT: usize>() {
        let tile = NT * VT;
        let shapes =
            [(tile / 2, tile / 2 + tile % 2), (tile, tile + 1), (tile / 3, tile - tile / 3 - 1), (17, 2 * tile)];
        check::<K>("merge_fused", &shapes, |s, a, b| run::fused::<K, NT, VT>(s, a, b, 2));
    }
    const W4: tuning::Tile = tuning::ROW.fused.of(4, 0);
    const W8: tuning::Tile = tuning::ROW.fused.of(8, 0);
    all::<u32, { W4.threads }, { W4.items_per_thread }>();
    all::<i32, { W4.threads }, { W4.items_per_thread }>();
    all::<f32, { W4.threads }, { W4.items_per_thread }>();
    all::<u64, { W8.threads }, { W8.items_per_thread }>();
    all::<i64, { W8.threads }, { W8.items_per_thread }>();
    all::<f64, { W8.threads }, { W8.items_per_thread }>();
}

/// For unsorted input, the merge kernels promise no order, but stay inside their arrays. The emulator checks this.
#[test]
fn unsorted_input_stays_in_bounds() {
    for round in 0..40 {
        let seed = fresh_seed();
        let (m, n) = (37 + 11 * round % 150, 200 - round);
        let (a, b) = (Keys::Any.random::<u32>(m, seed), Keys::Few.random::<u32>(n, seed ^ 1));
        let runs = [
            ("one_thread", run::one_thread(seed, &a, &b)),
            ("basic", run::basic(seed, &a, &b, 3, 32)),
            ("tiled", run::tiled(seed, &a, &b, 2, 32, 40)),
            ("circular", run::circular(seed, &a, &b, 2, 32, 40)),
            ("small", run::small(seed, &a, &b, (m + n) as u32)),
            ("fused", run::fused::<u32, 32, 3>(seed, &a, &b, 2)),
            ("big", run::big::<u32, 32, 3>(seed, &a, &b)),
        ];
        for (name, result) in runs {
            let found = result.unwrap_or_else(|fault| panic!("{name}: {fault}, seed {seed}"));
            assert_eq!(found.len(), m + n, "{name}, seed {seed}");
        }
    }
}
