//! `gmerge union`, `intersect`, `difference` and `symmetric-difference`

use crate::common::{Folder, Random, TestKey, assert_same, for_each_type, sorted};

/// The commands of set operations, which have the same flags.
pub const COMMANDS: [&str; 4] = ["union", "intersect", "difference", "symmetric-difference"];

/// The expected result, by a walk along both inputs in the standard library's order.
fn expected<K: TestKey>(command: &str, a: &[K], b: &[K]) -> Vec<K> {
    let mut all = sorted(&[a, b].concat());
    all.dedup_by(|x, y| x.order(y).is_eq());
    let count = |keys: &[K], key: &K| keys.iter().filter(|other| other.order(key).is_eq()).count();
    let times = |key: &K| {
        let (m, n) = (count(a, key), count(b, key));
        match command {
            "union" => m.max(n),
            "intersect" => m.min(n),
            "difference" => m.saturating_sub(n),
            _ => m.abs_diff(n),
        }
    };
    all.iter().flat_map(|key| vec![*key; times(key)]).collect()
}

fn works<K: TestKey>(random: &mut Random) {
    let folder = Folder::new();
    let name = K::NAME;
    for (m, n) in [(0, 5), (300, 0), (400, 300)] {
        let (mut a, mut b) = (random.keys::<K>(m), random.keys::<K>(n));
        // Random keys have nothing in common, so each file gets some keys of the other.
        b.extend(a.iter().step_by(3));
        a.extend(b.iter().step_by(4));
        let (a, b) = (sorted(&a), sorted(&b));
        folder.write(&format!("a.{name}"), &a);
        folder.write(&format!("b.{name}"), &b);
        for command in COMMANDS {
            folder.run(&format!("{command} a.{name} b.{name} -o out.{name}")).succeeds();
            let found = folder.read::<K>(&format!("out.{name}"));
            assert_same(&found, &expected(command, &a, &b), &format!("{command} {name} {m} {n}"));
        }
    }
}

#[test]
fn all_types() {
    let mut random = Random::new();
    for_each_type!(K => works::<K>(&mut random));
}

#[test]
fn many_keys_on_any_number_of_threads() {
    let folder = Folder::new();
    // Every key of A occurs m = 3 times, and every second key n = 5 times in B.
    let (a, b): (Vec<u64>, Vec<u64>) =
        ((0..900_000).map(|i| i / 3).collect(), (0..750_000).map(|i| i / 5 * 2).collect());
    folder.write("a.u64", &a);
    folder.write("b.u64", &b);
    for threads in [1, 2, 7] {
        for (command, even, odd) in
            [("union", 5, 3), ("intersect", 3, 0), ("difference", 0, 3), ("symmetric-difference", 2, 3)]
        {
            folder.run(&format!("{command} a.u64 b.u64 -o out.u64 --parallel {threads}")).succeeds();
            let times = |key: u64| if key.is_multiple_of(2) { even } else { odd };
            let expected: Vec<u64> = (0..300_000).flat_map(|key| vec![key; times(key)]).collect();
            assert_same(&folder.read::<u64>("out.u64"), &expected, &format!("{command} {threads}"));
        }
    }
}

#[test]
fn streams_and_the_input_as_the_output() {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32, 2, 2, 3]);
    folder.write("b.u32", &[2u32, 3, 4]);
    let input = bytemuck::cast_slice::<u32, u8>(&[2, 3, 4]);
    let run = folder.run_with_input("difference a.u32 - -o -", input);
    run.succeeds();
    assert_eq!(run.stdout(), bytemuck::cast_slice::<u32, u8>(&[1, 2]));
    folder.run("intersect a.u32 b.u32 -o a.u32").succeeds();
    assert_eq!(folder.read::<u32>("a.u32"), [2, 3]);
    folder.run("union a.u32 a.u32 -o a.u32").succeeds();
    assert_eq!(folder.read::<u32>("a.u32"), [2, 3]);
    let run = folder.run("union a.u32 b.u32 -o out.u32 --stats json");
    assert!(run.stderr().contains(r#""op":"union","type":"u32","keys":5"#), "{}", run.stderr());
}

#[test]
fn bad_input_is_named_and_nothing_is_written() {
    let folder = Folder::new();
    folder.write("good.u32", &[1u32, 2, 3]);
    folder.write("bad.u32", &[1u32, 7, 3]);
    folder.write("odd.u32", &[0u8; 7]);
    folder.write("keys.i64", &[1i64]);
    for command in COMMANDS {
        let unsorted = "bad.u32: not sorted at index 2: 3 after 7 (byte 8); sort it first";
        for (inputs, part) in [
            ("good.u32 bad.u32", unsorted),
            ("bad.u32 good.u32", unsorted),
            ("odd.u32 good.u32", "odd.u32: length is 7 bytes, expected a multiple of 4"),
            ("odd.u32 good.u32", "3 are left over at byte 4"),
            ("good.u32 keys.i64", "--type"),
            ("none.u32 good.u32", "none.u32: No such file"),
            ("- - --type u32", "A and B are both -"),
        ] {
            folder.refuses(&format!("{command} {inputs} -o out.u32"), &[part]);
        }
        folder.run(&format!("{command} good.u32 bad.u32 -o /dev/null --assume-sorted")).succeeds();
    }
}

#[test]
fn files_that_do_not_fit_in_memory() {
    let mut random = Random::new();
    let folder = Folder::new();
    // Groups of equal keys of many lengths. Some groups exceed the part of a file that is in memory.
    let mut group = |common: bool| {
        let length = [1, 1, 2, 3, 1000, 300_000][random.next() as usize % if common { 5 } else { 6 }];
        (random.next() % 1000, length)
    };
    let mut keys = || {
        let mut keys: Vec<i16> = Vec::new();
        for i in 0..1500 {
            let (key, length) = group(i % 500 > 0);
            keys.extend(std::iter::repeat_n(key as i16 - 500, length as usize));
        }
        keys.sort();
        keys
    };
    let (a, b) = (keys(), keys());
    folder.write("a.i16", &a);
    folder.write("b.i16", &b);
    for command in COMMANDS {
        folder.run(&format!("{command} a.i16 b.i16 -o want.i16 -S 1G")).succeeds();
        folder.run(&format!("{command} a.i16 b.i16 -o out.i16 -S 1M")).succeeds();
        assert_same(&folder.read::<i16>("out.i16"), &folder.read::<i16>("want.i16"), command);
        folder.run(&format!("{command} a.i16 b.i16 -o out.npy -S 1M")).succeeds();
        assert_same(
            bytemuck::cast_slice(&folder.read::<u8>("out.npy")[128..]),
            &folder.read::<i16>("want.i16"),
            command,
        );
    }
    let mut unsorted = b;
    unsorted[12_345] = 20_000;
    folder.write("b.i16", &unsorted);
    folder.run("union a.i16 b.i16 -o out.i16 -S 1M").fails(2, &["b.i16: not sorted at index 12346: ", "after 20000"]);
}
