//! `gmerge check`

use crate::common::{Folder, Random, SIZES, TestKey, for_each_type};

fn checks<K: TestKey>(random: &mut Random) {
    let folder = Folder::new();
    let file = format!("keys.{}", K::NAME);
    for size in SIZES {
        folder.write(&file, &random.sorted::<K>(size));
        let run = folder.run(&format!("check {file}"));
        run.succeeds();
        assert_eq!(run.stdout(), b"");

        let keys = random.keys::<K>(size);
        folder.write(&file, &keys);
        let run = folder.run(&format!("check {file}"));
        match keys.windows(2).position(|pair| pair[0].order(&pair[1]).is_gt()) {
            None => run.succeeds(),
            Some(i) => run.fails(1, &[&format!("gmerge: {file}: disorder at index {}: ", i + 1)]),
        }
        assert_eq!(run.stdout(), b"");
    }
}

#[test]
fn all_types_and_sizes() {
    let mut random = Random::new();
    for_each_type!(K => checks::<K>(&mut random));
}

#[test]
fn disorder_on_either_side_of_what_is_held_in_memory() {
    // Eight million 8-byte keys are read at once.
    const PART: usize = 8 << 20;
    let folder = Folder::new();
    let keys: Vec<u64> = (0..2 * PART as u64 + 10).collect();
    folder.write("keys.u64", &keys);
    folder.run("check keys.u64").succeeds();
    let bytes: &[u8] = bytemuck::cast_slice(&keys);
    folder.run_with_input("check - --type u64", bytes).succeeds();
    for place in [PART - 1, PART, PART + 1, 2 * PART, 2 * PART + 9] {
        let file = std::fs::File::options().write(true).open(folder.path("keys.u64")).unwrap();
        let write = |key: u64| {
            use std::os::unix::fs::FileExt;
            file.write_all_at(&key.to_le_bytes(), 8 * (place as u64 - 1)).unwrap();
        };
        write(u64::MAX);
        let parts = format!("disorder at index {place}: {place} after {}", u64::MAX);
        folder.run("check keys.u64").fails(1, &[&parts]);
        write(place as u64 - 1);
    }
    folder.run("check keys.u64").succeeds();
}

#[test]
fn different_nans_are_told_apart() {
    let folder = Folder::new();
    folder.write("keys.f32", &[0x7fc0_0001u32, 0x7fc0_0000]);
    folder.run("check keys.f32").fails(1, &["index 1: NaN (0x7fc00000) after NaN (0x7fc00001)"]);
}

#[test]
fn errors_are_not_disorder() {
    let folder = Folder::new();
    folder.run("check none.u32").fails(2, &["none.u32: No such file or directory"]);
    folder.write("odd.u32", &[0u8; 7]);
    folder.run("check odd.u32").fails(2, &["odd.u32: length is 7 bytes", "multiple of 4"]);
}
