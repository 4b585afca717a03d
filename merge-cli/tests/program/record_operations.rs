//! Merges, set operations, first items, permutations and distinct records, against the standard library's stable sort.

use crate::common::{Folder, Random, npy, tried};
use crate::records::{Field, Layout, assert_records};
use crate::set_operations;
use std::cmp::Ordering;

/// Layouts with keys of one word, of two words, and of more bytes than a merged number has. Tests try some of them.
fn layouts() -> Vec<Layout> {
    tried([
        Layout { size: 9, fields: vec![Field::new(3, "i16", 2)] },
        Layout { size: 24, fields: vec![Field::new(0, "bytes", 10), Field::new(12, "f32", 4)] },
        Layout { size: 40, fields: vec![Field::new(1, "bytes", 20), Field::new(24, "f64", 8)] },
        Layout { size: 66, fields: vec![Field::new(0, "bytes", 60)] },
    ])
}

/// Records of which many are equal, or equal in the first bytes of their keys.
fn records(layout: &Layout, random: &mut Random, count: usize) -> Vec<u8> {
    let mut bytes = layout.records(random, count);
    let alike = [0, 17, 20][random.below(3)];
    bytes.chunks_mut(layout.size).step_by(2).for_each(|record| record[..alike.min(layout.size - 6)].fill(7));
    bytes
}

/// Runs of records with equal keys.
fn groups<'a>(layout: &Layout, sorted: &'a [u8], reverse: bool) -> Vec<Vec<&'a [u8]>> {
    let is_equal = |a: &&[u8], b: &&[u8]| layout.compare(a, b, "last", reverse).is_eq();
    let records: Vec<&[u8]> = sorted.chunks(layout.size).collect();
    records.chunk_by(is_equal).map(<[&[u8]]>::to_vec).collect()
}

#[test]
fn one_of_equal_records_and_their_numbers() {
    let (mut random, folder) = (Random::new(), Folder::new());
    for layout in layouts() {
        for (bytes, more) in
            [(0, ""), (300, "--check"), (60_000, "-r"), (3_000_000, "-S 1M"), (3_000_000, "-S 1M -r --check")]
        {
            let bytes = records(&layout, &mut random, bytes / layout.size);
            let sorted = layout.sorted(&bytes, more.contains("-r"));
            let groups = groups(&layout, &sorted, more.contains("-r"));
            let counts: Vec<u64> = groups.iter().map(|group| group.len() as u64).collect();
            let arguments = format!("{} {more}", layout.arguments());
            folder.write("in", &bytes);
            folder.write("sorted", &sorted);
            for command in ["sort -u in", "sort -m -u sorted", "merge -u sorted"] {
                folder.run(&format!("{command} -o out {arguments}")).succeeds();
                let first: Vec<u8> = groups.iter().flat_map(|group| group[0].to_vec()).collect();
                assert_records(&folder.read("out"), &first, &layout);
                folder.run(&format!("{command} -o out {arguments} --last --count counts")).succeeds();
                let last: Vec<u8> = groups.iter().flat_map(|group| group[group.len() - 1].to_vec()).collect();
                assert_records(&folder.read("out"), &last, &layout);
                assert_eq!(folder.read::<u64>("counts"), counts, "{command} {arguments}");
            }
            let pipe = folder.run_with_input(&format!("sort -u - --count counts.u32 {arguments} -o out"), &bytes);
            pipe.succeeds();
            assert!(folder.read::<u32>("counts.u32").into_iter().map(u64::from).eq(counts), "{arguments}");
        }
    }
}

#[test]
fn sorted_files_of_records_are_merged() {
    let (mut random, folder) = (Random::new(), Folder::new());
    for (layout, files) in layouts().iter().flat_map(|layout| [1, 2, 3, 40].map(|files| (layout, files))) {
        for (bytes, more) in
            [(5_000, "--check"), (2_000_000, "-S 2M -r --batch-size 3"), (300_000, "--assume-sorted -S 1M")]
        {
            let reverse = more.contains("-r ");
            let parts: Vec<Vec<u8>> = (0..files)
                .map(|_| layout.sorted(&records(layout, &mut random, bytes / files / layout.size), reverse))
                .collect();
            for (i, part) in parts.iter().enumerate() {
                folder.write(&format!("in{i}"), part);
            }
            let names: String = (0..files).map(|i| format!(" in{i}")).collect();
            let want = layout.sorted(&parts.concat(), reverse);
            folder.run(&format!("merge{names} -o out {} {more}", layout.arguments())).succeeds();
            assert_records(&folder.read("out"), &want, layout);
            let piped = names.replacen(" in0", " -", 1);
            let run = folder.run_with_input(
                &format!("merge{piped} -o - {} {}", layout.arguments(), more.replace("--check", "")),
                &parts[0],
            );
            assert_records(run.stdout(), &want, layout);
            run.succeeds();
        }
    }
}

#[test]
fn files_of_records_that_are_not_sorted_are_refused() {
    let folder = Folder::new();
    for layout in layouts() {
        // Records that differ in the last byte of the key, which is the last byte that the merge looks at.
        let last = layout.fields.last().unwrap();
        let record = |number: u8| {
            let mut record = vec![0; layout.size];
            record[last.offset + if last.kind == "bytes" { last.bytes - 1 } else { 0 }] = number;
            record
        };
        let mut numbers: Vec<u8> = (0..100).collect();
        folder.write("good", &numbers.iter().flat_map(|number| record(*number)).collect::<Vec<_>>());
        numbers.swap(60, 61);
        folder.write("bad", &numbers.iter().flat_map(|number| record(*number)).collect::<Vec<_>>());
        folder.write("out", b"old");
        for command in ["merge", "sort -m", "union", "intersect", "difference", "symmetric-difference"] {
            for (names, more) in [("good bad", ""), ("bad good", "-S 1M")] {
                let command = format!("{command} {names} -o out {} {more}", layout.arguments());
                folder.run(&command).fails(2, &["bad: not sorted at index 61: ", "gmerge sort"]);
                assert_eq!(folder.read::<u8>("out"), b"old");
            }
        }
    }
}

/// The result of C++'s function of this name on two sorted files.
fn set_operation(layout: &Layout, command: &str, [a, b]: [&[u8]; 2], reverse: bool) -> Vec<u8> {
    let (a, b): (Vec<&[u8]>, Vec<&[u8]>) = (a.chunks(layout.size).collect(), b.chunks(layout.size).collect());
    let (mut a, mut b) = (&a[..], &b[..]);
    let mut out: Vec<&[u8]> = Vec::new();
    let (only_a, both, only_b) = match command {
        "union" => (true, true, true),
        "intersect" => (false, true, false),
        "difference" => (true, false, false),
        _ => (true, false, true),
    };
    // As the standard describes it: equal records are paired one by one.
    while let (Some(x), Some(y)) = (a.first(), b.first()) {
        let order = layout.compare(x, y, "last", reverse);
        if order.is_lt() && only_a || order.is_eq() && both {
            out.push(x);
        } else if order.is_gt() && only_b {
            out.push(y);
        }
        a = &a[usize::from(order != Ordering::Greater)..];
        b = &b[usize::from(order != Ordering::Less)..];
    }
    out.extend(a.iter().filter(|_| only_a));
    out.extend(b.iter().filter(|_| only_b));
    out.concat()
}

#[test]
fn set_operations_are_those_of_cpp() {
    let (mut random, folder) = (Random::new(), Folder::new());
    for layout in layouts() {
        for (bytes, more) in [([0, 0], ""), ([4_000, 0], ""), ([9_000, 5_000], "-r"), ([1_500_000, 2_000_000], "-S 1M")]
        {
            let reverse = more == "-r";
            let all = records(&layout, &mut random, (bytes[0] + bytes[1]) / layout.size);
            let (a, b) = all.split_at(bytes[0] / layout.size * layout.size);
            let [a, b] = [a, b].map(|bytes| layout.sorted(bytes, reverse));
            folder.write("a", &a);
            folder.write("b", &b);
            for command in set_operations::COMMANDS {
                let want = set_operation(&layout, command, [&a, &b], reverse);
                let arguments = format!("{} {more}", layout.arguments());
                folder.run(&format!("{command} a b -o out {arguments}")).succeeds();
                assert_records(&folder.read("out"), &want, &layout);
                folder.run_with_input(&format!("{command} - b -o out {arguments}"), &a).succeeds();
                assert_records(&folder.read("out"), &want, &layout);
                folder.run_with_input(&format!("{command} a - -o out {arguments}"), &b).succeeds();
                assert_records(&folder.read("out"), &want, &layout);
                // Two pipes, neither of which can be read twice.
                let pipes = format!("gmerge {command} /dev/fd/0 /dev/fd/3 -o out {arguments}");
                folder.shell(&format!("cat a | {{ cat b | {pipes} 3<&0 0<&4; }} 4<&0")).succeeds();
                assert_records(&folder.read("out"), &want, &layout);
            }
        }
    }
}

#[test]
fn first_records_and_permutations() {
    let (mut random, folder) = (Random::new(), Folder::new());
    for layout in layouts() {
        for (bytes, more) in [(0, ""), (400, ""), (2_000_000, "-S 1M"), (500_000, "-r"), (2_000_000, "-S 1M -r")] {
            let bytes = records(&layout, &mut random, bytes / layout.size);
            let count = bytes.len() / layout.size;
            let reverse = more.contains("-r");
            let mut order: Vec<u64> = (0..count as u64).collect();
            let record = |index: u64| &bytes[index as usize * layout.size..][..layout.size];
            order.sort_by(|a, b| layout.compare(record(*a), record(*b), "last", reverse));
            let arguments = format!("{} {more}", layout.arguments());
            folder.write("in", &bytes);
            folder.run(&format!("sort in -o out --argsort {arguments}")).succeeds();
            assert!(folder.read::<u64>("out") == order, "{arguments}");
            let mut first = order.clone();
            first.dedup_by(|a, b| layout.compare(record(*a), record(*b), "last", reverse).is_eq());
            folder.run(&format!("sort in -o out.u32 --argsort -u {arguments}")).succeeds();
            assert!(folder.read::<u32>("out.u32").into_iter().map(u64::from).eq(first), "{arguments}");
            for top in [0, 1, 7, 5000, count, count + 1] {
                let first = &order[..top.min(count)];
                let want: Vec<u8> = first.iter().flat_map(|index| record(*index).to_vec()).collect();
                folder.run(&format!("sort in -o out --top {top} --check {arguments}")).succeeds();
                assert_records(&folder.read("out"), &want, &layout);
                folder.run_with_input(&format!("sort - -o out --top {top} --argsort {arguments}"), &bytes).succeeds();
                assert_eq!(folder.read::<u64>("out"), first, "{top} {arguments}");
            }
        }
    }
}

#[test]
fn first_records_take_memory_for_themselves_alone() {
    let folder = Folder::new();
    // In descending order, so that every part has better records than the parts before.
    let records: Vec<u8> =
        (0..2_000_000u32).rev().flat_map(|i| [u64::from(i).to_be_bytes(), [1; 8]].concat()).collect();
    folder.write("in", &records);
    // No folder for temporary files is needed.
    let run = folder.run("sort in -o out --record-size 16 --key 0:bytes8 --top 1000 -S 2M -T nowhere");
    run.succeeds();
    let want: Vec<u8> = (0..1000u64).flat_map(|i| [i.to_be_bytes(), [1; 8]].concat()).collect();
    assert!(folder.read::<u8>("out") == want);
}

#[test]
fn numbers_of_equal_keys() {
    let (mut random, folder) = (Random::new(), Folder::new());
    for count in [0, 1, 1000, 700_000] {
        let keys: Vec<u32> = (0..count).map(|_| random.below(1 + count / 3) as u32).collect();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|index| keys[*index]);
        let groups: Vec<&[usize]> = order.chunk_by(|a, b| keys[*a] == keys[*b]).collect();
        let counts: Vec<u64> = groups.iter().map(|group| group.len() as u64).collect();
        let last: Vec<u64> = groups.iter().map(|group| group[group.len() - 1] as u64).collect();
        folder.write("in.u32", &keys);
        folder.write("in.rows", &(0..count as u64).collect::<Vec<_>>());
        for more in ["", "-S 1M", "-S 1M --batch-size 2", "--check"] {
            folder.run(&format!("sort -u in.u32 -o out.u32 --count counts.npy {more}")).succeeds();
            assert!(folder.read::<u32>("out.u32").into_iter().eq(groups.iter().map(|group| keys[group[0]])));
            assert!(folder.read::<u8>("counts.npy")[128..] == *bytemuck::cast_slice::<u64, u8>(&counts), "{more}");
            let values = "--values in.rows --values-out out.rows --count counts.i32";
            folder.run(&format!("sort -u --last in.u32 -o out.u32 {values} {more}")).succeeds();
            assert_eq!(folder.read::<u64>("out.rows"), last);
            assert!(folder.read::<i32>("counts.i32").into_iter().eq(counts.iter().map(|count| *count as i32)));
            if more != "--check" {
                folder.run(&format!("sort -u --last --argsort in.u32 -o out --count counts {more}")).succeeds();
                assert_eq!((folder.read::<u64>("out"), folder.read::<u64>("counts")), (last.clone(), counts.clone()));
            }
        }
    }
}

#[test]
fn numbers_of_equal_keys_that_do_not_fit_are_an_error() {
    let folder = Folder::new();
    folder.write("in.u8", &[5u8; 300]);
    folder.write("out.u8", b"old");
    let error = ["counts.u8: u8 numbers count up to 255 equal keys, found 300", ".u64"];
    folder.run("sort -u in.u8 -o out.u8 --count counts.u8").fails(2, &error);
    folder.run("merge -u in.u8 in.u8 -o out.u8 --count counts.u8").fails(2, &["found 600"]);
    assert_eq!(
        (folder.read::<u8>("out.u8"), folder.files()),
        (b"old".to_vec(), vec!["in.u8".to_owned(), "out.u8".to_owned()])
    );
    for (flags, parts) in [
        ("--count counts", &["--unique"][..]),
        ("--last", &["--unique"]),
        ("-u --count counts.f32", &["counts.f32: f32 numbers do not count keys"]),
        ("-u --count counts.u128", &["counts.u128: u128 numbers do not count keys"]),
        ("-u --count out.u8", &["out.u8", "--count"]),
        ("-u --count ./out.u8", &["out.u8", "--count"]),
        ("-u --count v --values in.u8 --values-out v", &["v", "--count"]),
        ("-u -c --count counts", &["-c", "--count"]),
    ] {
        let output = if flags.contains("-c ") { "" } else { "-o out.u8" };
        folder.refuses(&format!("sort in.u8 {output} {flags}"), parts);
    }
    assert_eq!(folder.read::<u8>("out.u8"), b"old");
}

#[test]
fn what_records_do_not_go_together_with() {
    let folder = Folder::new();
    folder.write("in", &[3u8; 60]);
    let records = "--record-size 6 --key 0:u8 -o out";
    for command in ["merge in in", "sort -m in in", "union in in", "difference in in"] {
        for flag in ["--type u8", "--engine gpu"] {
            folder.refuses(&format!("{command} {records} {flag}"), &[flag.split(' ').next().unwrap(), "--record-size"]);
        }
    }
    for flag in ["--kernel tiled", "--values in in --values-out v"] {
        folder.refuses(&format!("merge in in {records} {flag}"), &[flag.split(' ').next().unwrap(), "--record-size"]);
    }
    folder.refuses(&format!("sort in {records} --top 2 -u"), &["--top and --unique cannot be used together"]);
    folder.write("odd", &[3u8; 61]);
    for command in ["merge in odd", "sort --top 2 odd", "union in odd", "sort -u odd"] {
        folder.refuses(&format!("{command} {records}"), &["odd: length is 61 bytes", "multiple of 6"]);
    }
}

#[test]
fn nat_in_fields_lies_where_nans_do() {
    let folder = Folder::new();
    let times = [7, i64::MIN, -3, i64::MAX, i64::MIN + 1, i64::MIN];
    for (dtype, big) in [("<M8[ns]", false), (">m8[s]", true)] {
        let bytes = |time: i64| if big { time.to_be_bytes() } else { time.to_le_bytes() };
        let file = |times: &[i64]| {
            let records: Vec<u8> =
                times.iter().flat_map(|time| [b"ab".to_vec(), bytes(*time).to_vec()].concat()).collect();
            npy(&format!("[('id', 'S2'), ('t', '{dtype}')]"), &format!("({},)", times.len()), &records)
        };
        folder.write("in.npy", &file(&times));
        let [least, most] = [i64::MIN + 1, i64::MAX];
        let nat = [i64::MIN; 2];
        for (flags, want) in [
            ("t", [&[least, -3, 7, most][..], &nat].concat()),
            ("t:desc", [&[most, 7, -3, least][..], &nat].concat()),
            ("id,t -r", [&[most, 7, -3, least][..], &nat].concat()),
            ("t --nan first", [&nat, &[least, -3, 7, most][..]].concat()),
            ("t:desc --nan first", [&nat, &[most, 7, -3, least][..]].concat()),
            ("t --nan total", [&nat, &[least, -3, 7, most][..]].concat()),
            ("t -r --nan total", [&[most, 7, -3, least][..], &nat].concat()),
        ] {
            folder.run(&format!("sort in.npy -o out.npy --key {flags}")).succeeds();
            assert_eq!(folder.read::<u8>("out.npy"), file(&want), "{flags}");
            folder.run(&format!("check out.npy --key {flags}")).succeeds();
            folder.run(&format!("merge out.npy out.npy -u -o once.npy --key {flags} --check")).succeeds();
            let mut once = want;
            once.dedup();
            assert_eq!(folder.read::<u8>("once.npy"), file(&once), "{flags}");
        }
    }
    folder.write("in.npy", &npy("[('t', '<M8[s]')]", "(2,)", &[i64::MIN.to_le_bytes(), 5i64.to_le_bytes()].concat()));
    folder.run("check in.npy --key t").fails(1, &["index 1: 5 after NaT"]);
}
