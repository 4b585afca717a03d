//! `gmerge merge` of files that do not fit in memory, and of pipes.

use crate::common::{Folder, Random, TestKey, assert_same, descending, for_each_type};
use crate::merge_many::check;

/// A number of keys of `size` bytes. A merge of two such files takes more than 1 MiB.
fn many(size: usize) -> usize {
    (1 << 18) / size + 1
}

const SMALL: &str = "--engine cpu -S 1M";

#[test]
fn all_types() {
    let mut random = Random::new();
    for_each_type!(K => check::<K>(&mut random, SMALL, &[5 * many(size_of::<K>()), 0, 7, 3 * many(size_of::<K>())], 0));
}

#[test]
fn lengths_around_those_of_blocks() {
    let mut random = Random::new();
    // With 1 MiB, blocks of two files have 26214 keys of 8 bytes. A quarter of a block is its head.
    for blocks in [1, 2, 3] {
        for length in [-1, 0, 1].map(|more| (blocks * (13_107 - 3276) + more) as usize) {
            check::<u64>(&mut random, SMALL, &[length, 100_000], 0);
            check::<u64>(&mut random, SMALL, &[100_000, length], 0);
        }
    }
}

#[test]
fn values_of_any_width_go_along() {
    let mut random = Random::new();
    for width in [1, 4, 8, 13, 100] {
        let length = many(2 + width);
        // With 2 bytes there are many equal keys.
        check::<u16>(&mut random, SMALL, &[2 * length, length, 0, 3 * length], width);
    }
}

#[test]
fn more_files_than_are_merged_at_once() {
    let mut random = Random::new();
    for batch_size in [2, 3, 16] {
        let options = format!("{SMALL} --batch-size {batch_size}");
        check::<i32>(&mut random, &options, &[5000; 33], 0);
        check::<i8>(&mut random, &options, &[20_000; 17], 5);
    }
}

#[test]
fn descending_files() {
    let (mut random, folder) = (Random::new(), Folder::new());
    let mut all = Vec::new();
    for i in 0..3 {
        let run = descending(&random.keys::<f64>(many(8)));
        folder.write(&format!("{i}.f64"), &run);
        all.extend(run);
    }
    all.sort_by(|x: &f64, y| x.order_by(y, "last", true));
    for command in ["merge", "sort -m"] {
        folder.run(&format!("{command} -r 0.f64 1.f64 2.f64 -o out.f64 {SMALL}")).succeeds();
        assert_same(&folder.read::<f64>("out.f64"), &all, command);
    }
}

#[test]
fn pipes() {
    let (mut random, folder) = (Random::new(), Folder::new());
    let (a, b) = (random.sorted::<u32>(300_001), random.sorted::<u32>(1000));
    folder.write("a.u32", &a);
    folder.write("b.u32", &b);
    let mut all = [a, b].concat();
    all.sort();
    for memory in ["", "-S 1M"] {
        for (script, out) in [
            ("cat a.u32 | gmerge merge - b.u32 -o out.u32 --type u32", "out.u32"),
            ("cat a.u32 | gmerge merge b.u32 - -o - --type u32 > out", "out"),
            ("cat a.u32 | gmerge merge - -o out.npy --type u32 b.u32", "out.npy"),
        ] {
            folder.shell(&format!("{script} --engine cpu {memory}")).succeeds();
            let bytes = folder.read::<u8>(out);
            let header = if out.ends_with(".npy") { 128 } else { 0 };
            assert_same(bytemuck::cast_slice(&bytes[header..]), &all, script);
        }
    }
    // The header of the output needs the number of keys.
    folder.shell("cat a.u32 | gmerge merge - b.u32 -o - --format npy --type u32 --engine cpu > out").succeeds();
    assert_same(bytemuck::cast_slice(&folder.read::<u8>("out")[128..]), &all, "npy");
    folder
        .shell("head -c 1000001 a.u32 | gmerge merge - b.u32 -o bad.u32 --type u32")
        .fails(2, &["1000001", "multiple of 4"]);
    assert!(!folder.path("bad.u32").exists());
}

#[test]
fn a_key_out_of_order_is_found_wherever_it_is() {
    let folder = Folder::new();
    let count = 200_000;
    folder.write("a.i32", &(0..count).collect::<Vec<i32>>());
    for index in [1, 13_107 - 3276, 100_001, count - 1] {
        let mut keys: Vec<i32> = (0..count).collect();
        keys[index as usize] = -5;
        folder.write("b.i32", &keys);
        let place =
            [&*format!("b.i32: not sorted at index {index}: -5 after {}", index - 1), &format!("byte {}", 4 * index)];
        folder.run(&format!("merge a.i32 b.i32 -o out.i32 {SMALL}")).fails(2, &place);
        assert_eq!(folder.files(), ["a.i32", "b.i32"]);
        folder.run(&format!("merge a.i32 b.i32 -o out.i32 {SMALL} --assume-sorted")).succeeds();
        std::fs::remove_file(folder.path("out.i32")).unwrap();
    }
    // Equal keys are in order. An ascending pair is out of order with -r.
    folder.write("b.i32", &vec![7; count as usize]);
    folder.run(&format!("merge a.i32 b.i32 -o out.i32 {SMALL}")).succeeds();
    folder
        .run(&format!("merge -r a.i32 b.i32 -o out.i32 {SMALL}"))
        .fails(2, &["a.i32: not sorted at index 1: 1 after 0"]);
}

#[test]
fn a_gpu_merges_what_fits_in_memory() {
    let folder = Folder::new();
    folder.write("a.u32", &vec![1u32; 300_000]);
    folder.run("merge a.u32 a.u32 -o out.u32 -S 1M --engine gpu").fails(2, &["--engine gpu: merges in memory", "auto"]);
    folder.run("merge a.u32 a.u32 -o out.u32 -S 1M").succeeds();
    let run = folder.run("merge a.u32 a.u32 -o out.u32 -S 1M -v");
    assert_eq!(run.code(), Some(0));
    assert!(run.stderr().contains("merged by the CPU while read"), "{}", run.stderr());
    // The other kernels merge only in memory.
    folder.run("merge a.u32 a.u32 -o out.u32 --engine cpu --kernel tiled").succeeds();
    let run = folder.run("merge a.u32 a.u32 -o out.u32 -S 1M --engine cpu --kernel tiled");
    run.fails(2, &["--kernel tiled: merges in memory", "--memory"]);
}

#[test]
fn large_files_that_fit_in_memory() {
    let folder = Folder::new();
    let count = (64 << 20) / 16;
    for i in 0..2u64 {
        folder.write(&format!("{i}.u64"), &(0..count).map(|key| 2 * key + i).collect::<Vec<u64>>());
    }
    let run = folder.run("merge 0.u64 1.u64 -o out.u64 -v");
    assert_eq!(run.code(), Some(0));
    assert!(run.stderr().contains("merged by the CPU while read"), "{}", run.stderr());
    assert!(folder.read::<u64>("out.u64").into_iter().eq(0..2 * count));
    // Keys in a pipe cannot be taken back, so the files are checked before the merge.
    folder.write("1.u64", &(0..count).map(|key| key % (count - 1)).collect::<Vec<u64>>());
    let run = folder.run("merge 0.u64 1.u64 -o -");
    run.fails(2, &["1.u64: not sorted at index 4194303"]);
    assert!(run.stdout().is_empty());
    folder.run("merge 0.u64 1.u64 -o bad.u64").fails(2, &["1.u64: not sorted at index 4194303"]);
    assert!(!folder.path("bad.u64").exists());
    // A streamed merge is not worth it here.
    folder.write("0.u64", &[7u64]);
    let run = folder.run("merge 0.u64 1.u64 -o out.u64 -v");
    assert!(run.stderr().contains("plan: in memory"), "{}", run.stderr());
}
