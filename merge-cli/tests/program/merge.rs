//! `gmerge merge`

use crate::common::{Folder, Random, TestKey, descending, engine_for, engines, for_each_type, sizes};
use crate::reference::Files;

const KERNELS: [&str; 5] = ["auto", "basic", "tiled", "circular", "merge-path"];

fn merges<K: TestKey>(random: &mut Random, engine: &str) {
    for &a_size in sizes(engine) {
        for &b_size in if engine == "cpu" { &[0, 1, 50_021][..] } else { &[50_021] } {
            let files = Files::new(&[random.sorted::<K>(a_size), random.sorted::<K>(b_size)], 0);
            let places = files.sorted(false);
            // All kernels for sizes that may reveal mistakes, and one kernel for other sizes.
            let kernels = if a_size >= 1000 && b_size > 0 { &KERNELS[..] } else { &KERNELS[a_size % 2..][..1] };
            for kernel in kernels {
                files.check(&format!("merge --engine {engine} --kernel {kernel}"), &places);
            }
        }
    }
}

#[test]
fn all_types_sizes_and_kernels() {
    let mut random = Random::new();
    for engine in engines() {
        for_each_type!(K => merges::<K>(&mut random, engine_for::<K>(engine)));
    }
}

#[test]
fn descending_files_stay_descending() {
    fn check<K: TestKey>(random: &mut Random) {
        let runs: Vec<Vec<K>> = (0..3).map(|_| descending(&random.keys::<K>(2003))).collect();
        // Values show the origin of a key: equal keys stay in the order of the files.
        let files = Files::new(&runs, 2);
        for command in ["merge --reverse", "sort -m -r"] {
            files.check(command, &files.sorted(true));
        }
    }
    let mut random = Random::new();
    check::<u32>(&mut random);
    check::<f64>(&mut random);

    let folder = Folder::new();
    folder.write("down.u32", &[7u32, 3, 2]);
    folder.write("up.u32", &[9u32, 3, 8]);
    let parts = ["up.u32: ", "index 2", "8 after 3", "--reverse"];
    folder.run("merge down.u32 up.u32 -o out.u32 -r").fails(2, &parts);
    folder.write("a.u32", &[7u32, 3, 9, 2]);
    folder.run("batch a.u32 a.u32 -d 4 -o out.u32 -r").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [7, 7, 3, 3, 9, 9, 2, 2]);
}

#[test]
fn a_file_with_itself() {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32, 5]);
    folder.run("merge a.u32 a.u32 -o a.u32").succeeds();
    assert_eq!(folder.read::<u32>("a.u32"), [1, 1, 5, 5]);
}

#[test]
fn unsorted_input_is_named_with_the_index() {
    let folder = Folder::new();
    folder.write("good.u32", &[1u32, 2, 3]);
    folder.write("bad.u32", &[1u32, 7, 3, 2]);
    let parts = ["bad.u32: ", "index 2", "3 after 7"];
    folder.refuses("merge good.u32 bad.u32 -o out.u32", &parts);
    folder.refuses("merge bad.u32 good.u32 -o out.u32", &parts);
    // -0.0 is before 0.0.
    folder.write("zeros.f64", &[0.0f64, -0.0]);
    folder.run("merge zeros.f64 zeros.f64 -o out.f64").fails(2, &["zeros.f64: ", "index 1", "-0.0 after 0.0"]);
    // Without a check of the order, only the length of the result is specified.
    folder.run("merge good.u32 bad.u32 -o out.u32 --assume-sorted").succeeds();
    assert_eq!(folder.read::<u32>("out.u32").len(), 7);
}

#[test]
fn unsorted_input_is_found_at_every_place_of_a_large_file() {
    let folder = Folder::new();
    let keys: Vec<u32> = (0..1_000_000).collect();
    folder.write("good.u32", &keys);
    for place in [1, 262_143, 262_144, 262_145, 999_999] {
        let mut bad = keys.clone();
        bad[place - 1] = u32::MAX;
        folder.write("bad.u32", &bad);
        folder.run("merge good.u32 bad.u32 -o out.u32").fails(2, &["bad.u32: ", &format!("index {place}: ")]);
    }
}
