//! `gmerge sort --top`

use crate::common::{Folder, Random, TestKey, for_each_type};
use crate::reference::Files;

fn works<K: TestKey>(random: &mut Random) {
    let files = Files::new(&[random.keys::<K>(5003)], 0);
    for (flag, reverse) in [("", false), ("-r", true)] {
        let places = files.sorted(reverse);
        for count in [0, 1, 17, 5002, 5003, 9999] {
            files.check(&format!("sort --top {count} {flag}"), &places[..count.min(5003)]);
        }
    }
    Files::<K>::new(&[vec![]], 0).check("sort --top 3", &[]);
}

#[test]
fn all_types() {
    let mut random = Random::new();
    for_each_type!(K => works::<K>(&mut random));
}

/// Keys for several parts: 4 million keys are read at once.
const MANY: u64 = 9_000_001;

#[test]
fn files_and_pipes_of_several_parts() {
    let folder = Folder::new();
    // Shuffled, so that all parts have some of the first keys.
    let keys: Vec<u64> = (0..MANY).map(|i| i * 7_654_321 % MANY).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&keys);
    folder.write("in.u64", bytes);
    for count in [3, 100_000, 5_000_000] {
        folder.run(&format!("sort --top {count} in.u64 -o out.u64")).succeeds();
        assert!(folder.read::<u64>("out.u64").into_iter().eq(0..count), "{count}");
    }
    folder.run_with_input("sort --top 1000 -r - --type u64 -o out.u64", bytes).succeeds();
    assert!(folder.read::<u64>("out.u64").into_iter().eq((MANY - 1000..MANY).rev()));
}

#[test]
fn every_key_better_than_those_before() {
    let folder = Folder::new();
    let keys: Vec<u32> = (0..5_000_000).rev().collect();
    folder.write("in.u32", &keys);
    folder.run("sort --top 70000 in.u32 -o out.u32").succeeds();
    assert!(folder.read::<u32>("out.u32").into_iter().eq(0..70_000));
    folder.write("in.u32", &vec![5u32; 300_000]);
    folder.run("sort --top 100000 in.u32 -o out.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), vec![5; 100_000]);
}

#[test]
fn what_does_not_go_together() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    folder.write("odd.u32", &[3u8; 7]);
    for (arguments, parts) in [
        ("2 in.u32 -m", &["--top", "cannot be used together"][..]),
        ("2 in.u32 --unique", &["--top and --unique cannot be used together"]),
        ("-2 in.u32", &["-2"]),
        ("2 odd.u32", &["odd.u32: length is 7 bytes", "multiple of 4"]),
    ] {
        folder.refuses(&format!("sort -o out.u32 --top {arguments}"), parts);
    }
    folder.refuses_input("sort --top 2 - --type u32 -o out.u32", &[3; 7], &["-: length is 7 bytes"]);
}
