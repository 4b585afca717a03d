//! Files of offsets: `gmerge batch --offsets` and `gmerge sort --segments`, and `--segment-len`

use crate::common::{Folder, Random, TestKey, assert_same, engine_for, engines, for_each_type};
use crate::reference::Files;
use std::fs;

/// Lengths of runs, many short and some 0.
fn lengths(random: &mut Random, count: usize, most: u64) -> Vec<usize> {
    (0..count).map(|_| (random.next() % (most + 1)) as usize * usize::from(!random.next().is_multiple_of(4))).collect()
}

fn offsets(lengths: &[usize]) -> Vec<u64> {
    let mut offsets = vec![0];
    for length in lengths {
        offsets.push(offsets[offsets.len() - 1] + *length as u64);
    }
    offsets
}

fn merges<K: TestKey>(random: &mut Random, options: &str, pairs: usize, most: u64) {
    let lengths = [(); 2].map(|()| lengths(random, pairs, most));
    let runs =
        lengths.each_ref().map(|lengths| lengths.iter().flat_map(|&n| random.sorted::<K>(n)).collect::<Vec<K>>());
    let (begin_of_b, files) = (runs[0].len(), Files::new(&runs, 3));
    let [a, b] = lengths.map(|lengths| offsets(&lengths));
    files.folder.write("a.offsets", &a);
    files.folder.write("b.offsets", &b);
    let run = |offsets: &[u64], begin: usize| begin + offsets[0] as usize..begin + offsets[1] as usize;
    let pairs = a.windows(2).zip(b.windows(2)).map(|(a, b)| run(a, 0).chain(run(b, begin_of_b)).collect());
    let places = files.sorted_groups(pairs, false);
    files.check(&format!("batch --offsets a.offsets b.offsets {options}"), &places);
}

#[test]
fn batches_between_offsets() {
    let mut random = Random::new();
    for engine in engines() {
        for_each_type!(K => merges::<K>(&mut random, &format!("--engine {}", engine_for::<K>(engine)), 100, 60));
        for (pairs, most) in [(0, 0), (1, 0), (1, 3000), (5000, 3), (3, 200_000)] {
            merges::<u32>(&mut random, &format!("--engine {engine}"), pairs, most);
        }
    }
}

#[test]
fn batches_that_are_refused() {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32, 2, 9, 1]);
    folder.write("b.u32", &[3u32, 0]);
    folder.write("a.o", &[0u64, 3, 3, 4]);
    folder.write("b.o", &[0u64, 0, 1, 2]);
    folder.write("two.o", &[0u64, 1, 2]);
    folder.write("one.o", &[1u64, 1, 1, 4]);
    folder.write("down.o", &[0u64, 3, 2, 4]);
    folder.write("short.o", &[0u64, 1, 1, 1]);
    folder.write("huge.o", &[0u64, 1, 1, u64::MAX]);
    folder.write("minus.i32", &[0i32, -2, 1, 4]);
    folder.write("first.i64", &[i64::MIN, 2, 1, 4]);
    folder.write("large.u128", &[0u128, 1 << 64, 1, 4]);
    folder.write("unsorted.o", &[0u64, 1, 1, 4]);
    folder.write("none.o", &[0u64; 0]);
    folder.write("odd.o", b"odd");
    for (offsets, part) in [
        ("a.o two.o", "a.o: has offsets of 3 runs, expected as many runs as in two.o: 2"),
        ("one.o b.o", "one.o: the first offset is 1, expected 0"),
        ("down.o b.o", "down.o: offset 2 is 2, below the one before it (3)"),
        ("a.o short.o", "short.o: the last offset is 1, expected 2, the number of keys of b.u32"),
        ("huge.o b.o", "huge.o: the last offset is 18446744073709551615, expected 4"),
        ("none.o b.o", "none.o: has no offsets, expected one more than there are runs"),
        ("a.o odd.o", "odd.o: length is 3 bytes, expected a multiple of 8"),
        ("minus.i32 b.o", "minus.i32: offset 1 is -2, expected a number of keys from 0 to "),
        ("first.i64 b.o", "first.i64: offset 0 is -9223372036854775808, expected a number of keys"),
        ("large.u128 b.o", "large.u128: offset 1 is 18446744073709551616, expected a number of keys from 0 to "),
        ("lost.o a.o", "lost.o: No such file or directory"),
        ("- -", "OA and OB are both -"),
        ("unsorted.o b.o", "a.u32: not sorted at index 3 (in run 2): 1 after 9"),
        ("a.o b.o -d 2", "--offsets and -d"),
        ("a.o b.o --a-len 2", "--offsets and --a-len"),
        ("a.o", "--offsets <OA> <OB>: expected 2 values, found 1"),
    ] {
        folder.refuses(&format!("batch a.u32 b.u32 --offsets {offsets} -o out.u32"), &[part]);
    }
    folder.refuses("batch a.u32 - --offsets a.o - -o out.u32", &["B and OB are both -"]);
    folder.run("batch a.u32 b.u32 --offsets a.o b.o -o out.u32").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 9, 3, 0, 1]);
}

fn sorts<K: TestKey>(random: &mut Random, options: &str, lengths: &[usize], how: &str) {
    let offsets = offsets(lengths);
    let keys = random.keys::<K>(offsets[lengths.len()] as usize);
    for (width, flag) in [(0, ""), (4, "--reverse"), (8, ""), (3, "--reverse")] {
        let files = Files::new(std::slice::from_ref(&keys), width);
        files.folder.write("in.offsets", &offsets);
        let segments = offsets.windows(2).map(|ends| (ends[0] as usize..ends[1] as usize).collect());
        let places = files.sorted_groups(segments, !flag.is_empty());
        files.check(&format!("sort {how} {options} {flag}"), &places);
    }
}

#[test]
fn sorts_segments() {
    let mut random = Random::new();
    for_each_type!(K => {
        let lengths = lengths(&mut random, 100, 60);
        sorts::<K>(&mut random, "", &lengths, "--segments in.offsets")
    });
    for lengths in [&[][..], &[0], &[1], &[5000], &[300_000, 7, 0, 100_000]] {
        sorts::<f64>(&mut random, "--engine cpu --parallel 3", lengths, "--segments in.offsets");
    }
    for (segments, length) in [(0, 5), (1, 5), (1000, 1), (100, 77), (3, 100_000)] {
        sorts::<u32>(&mut random, "", &vec![length; segments], &format!("--segment-len {length}"));
    }
}

#[test]
fn segments_that_do_not_fit_in_memory_together() {
    let (mut random, folder) = (Random::new(), Folder::new());
    // With 1 MiB, 131072 keys are sorted at once.
    for lengths in [lengths(&mut random, 40, 60_000), vec![0, 131_072, 0, 0, 1, 131_071, 131_072, 0], vec![30_000; 20]]
    {
        let offsets = offsets(&lengths);
        let mut keys = random.keys::<u32>(offsets[lengths.len()] as usize);
        folder.write("in.u32", &keys);
        folder.write("in.offsets", &offsets);
        folder.run("sort in.u32 --segments in.offsets -o out.u32 -S 1M -r").succeeds();
        let ends = offsets.windows(2);
        ends.for_each(|ends| keys[ends[0] as usize..ends[1] as usize].sort_by(|x, y| y.cmp(x)));
        assert_same(&folder.read::<u32>("out.u32"), &keys, &format!("{lengths:?}"));
    }
    folder.write("in.offsets", &[0u64, 10, 10 + 131_073, 600_000]);
    let part = "in.u32: the segment at byte 40 has 131073 keys, too many for the 1048576 bytes of --memory";
    folder.refuses("sort in.u32 --segments in.offsets -o new.u32 -S 1M", &[part]);
}

#[test]
fn sorts_of_segments_that_are_refused() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 2, 1, 0]);
    folder.write("in.o", &[0u64, 3, 4]);
    folder.write("short.o", &[0u64, 3]);
    folder.write("down.o", &[0u64, 3, 1, 4]);
    for (options, part) in [
        ("--segments short.o", "short.o: the last offset is 3, expected 4, the number of keys of in.u32"),
        ("--segments down.o", "down.o: offset 2 is 1, below the one before it (3)"),
        ("--segments lost.o", "lost.o: No such file or directory"),
        ("--segment-len 3", "in.u32: has 4 keys, expected a multiple of 3, the --segment-len given"),
        ("--segments in.o --unique", "--segments and --unique cannot be used together"),
        ("--segment-len 0", "--segment-len <D>"),
        ("--segment-len 2 --segments in.o", "--segments and --segment-len cannot be used together"),
        ("--segment-len 2 --argsort", "--argsort and --segment-len cannot be used together"),
        ("--segments in.o --argsort", "--argsort and --segments cannot be used together"),
    ] {
        folder.refuses(&format!("sort in.u32 {options} -o out.u32"), &[part]);
    }
    folder.refuses("sort - --type u32 --segments - -o out.u32", &["IN and OFFSETS are both -"]);
    // The length of a pipe is unknown until it ends.
    let keys = bytemuck::cast_slice::<u32, u8>(&[3, 2, 1]);
    folder.refuses_input("sort - --segment-len 2 -o out.u32", keys, &["-: has 3 keys", "multiple of 2"]);
    folder.run("sort in.u32 --segments in.o -o in.u32").succeeds();
    assert_eq!(folder.read::<u32>("in.u32"), [1, 2, 3, 0]);
}

#[test]
fn raw_offsets_have_the_byte_order_of_the_flag() {
    let folder = Folder::new();
    let big = |numbers: &[u64], size: usize| -> Vec<u8> {
        numbers.iter().flat_map(|number| number.to_be_bytes()[8 - size..].to_vec()).collect()
    };
    folder.write("k", &big(&[3, 1, 2, 9, 8], 4));
    folder.write("o", &big(&[0, 3, 5], 8));
    folder.write("o.i32", &big(&[0, 3, 5], 4));
    folder.write("le.u16le", &[0u16, 3, 5]);
    let expected = big(&[1, 2, 3, 8, 9], 4);
    folder.shell("cat o | gmerge sort k --type u32 --endian big --segments - -o out").succeeds();
    for offsets in ["o", "o.i32", "le.u16le"] {
        fs::write(folder.path("out"), "").unwrap();
        folder.run(&format!("sort k --type u32 --endian big --segments {offsets} -o out")).succeeds();
        assert_eq!(folder.read::<u8>("out"), expected, "{offsets}");
        let run = format!("batch out out --type u32 --endian big --offsets {offsets} {offsets} -o both");
        folder.run(&run).succeeds();
        assert_eq!(folder.read::<u8>("both"), big(&[1, 1, 2, 2, 3, 3, 8, 8, 9, 9], 4), "{offsets}");
        if offsets != "le.u16le" {
            folder.run(&format!("sort k --type u32 --segments {offsets} -o out")).fails(2, &[offsets, "offset"]);
        }
    }
    // The keys have the byte order of their extension.
    folder.write("k.u32le", &[3u32, 1, 2, 9, 8]);
    folder.run("sort k.u32le --endian big --segments o -o out.u32le").succeeds();
    assert_eq!(folder.read::<u32>("out.u32le"), [1, 2, 3, 8, 9]);
}
