//! `gmerge search`, against a count over all keys.

use crate::common::{
    Folder, GMERGE, Random, Run, TestKey, assert_same, descending, for_each_type, gathered, npy, sorted,
    sorted_places_by,
};
use std::{fs, iter};

/// The numbers of keys before a needle and equal to it.
fn counts<K: TestKey>(keys: &[K], needle: &K, nans: &str, reverse: bool) -> [usize; 2] {
    let mut counts = [0; 2];
    for order in keys.iter().map(|key| key.order_by(needle, nans, reverse)) {
        counts[0] += usize::from(order.is_lt());
        counts[1] += usize::from(order.is_eq());
    }
    counts
}

/// The key as an argument, if an argument can stand for it: not for most NaNs.
fn typed<K: TestKey>(key: &K) -> Option<String> {
    // Of the special keys of floats, the third and the fourth are NaNs.
    let quiet = K::SPECIAL.iter().filter(|special| special.is_nan()).zip(["nan", "-nan"]);
    let same = |special: &K| bytemuck::bytes_of(special) == bytemuck::bytes_of(key);
    match key.is_nan() {
        true => quiet.into_iter().find(|(special, _)| same(special)).map(|(_, text)| text.to_owned()),
        false => Some(format!("{key:?}")),
    }
}

/// Checks the lines and the exit code of a search: keys as typed, each with the number of keys before it and of equal
/// keys.
#[track_caller]
fn assert_found(run: &Run, expected: &[(String, [usize; 2])]) {
    let lines: String = expected.iter().map(|(text, [before, equal])| format!("{text}\t{before}\t{equal}\n")).collect();
    let all_found = expected.iter().all(|(_, [_, equal])| *equal > 0);
    assert_eq!(String::from_utf8_lossy(run.stdout()), lines, "{}", run.what);
    assert_eq!((run.code(), &*run.stderr()), (Some(i32::from(!all_found)), ""), "{}", run.what);
}

fn all_orders<K: TestKey>(random: &mut Random) {
    let folder = Folder::new();
    let name = K::NAME;
    for (nans, reverse) in [("last", false), ("last", true), ("first", false), ("first", true), ("total", true)] {
        for count in [0, 1, 300] {
            let keys = random.keys::<K>(count);
            let keys = gathered(&keys, &sorted_places_by(&keys, nans, reverse));
            folder.write(&format!("in.{name}"), &keys);
            let mut needles = [random.keys::<K>(40), keys.iter().step_by(9).copied().collect()].concat();
            needles.extend(K::SPECIAL);
            folder.write(&format!("needles.{name}"), &needles);
            let flags = format!("--nan {nans} {}", if reverse { "-r" } else { "" });
            let found: Vec<[usize; 2]> = needles.iter().map(|needle| counts(&keys, needle, nans, reverse)).collect();

            let lines: Vec<_> =
                needles.iter().zip(&found).filter_map(|(key, found)| Some((typed(key)?, *found))).collect();
            let arguments: Vec<&str> = lines.iter().map(|(text, _)| &**text).collect();
            assert_found(&folder.run(&format!("search {flags} in.{name} -- {}", arguments.join(" "))), &lines);

            let bounds = |right: bool| found.iter().map(move |[before, equal]| before + if right { *equal } else { 0 });
            folder.run(&format!("search in.{name} --needles needles.{name} {flags} -o out.bin")).succeeds();
            assert!(
                folder.read::<u64>("out.bin").into_iter().eq(bounds(false).map(|bound| bound as u64)),
                "{name} {flags}"
            );
            folder.run(&format!("search in.{name} --needles needles.{name} {flags} -o out.i32 --right")).succeeds();
            assert!(
                folder.read::<i32>("out.i32").into_iter().eq(bounds(true).map(|bound| bound as i32)),
                "{name} {flags}"
            );
        }
    }
}

#[test]
fn all_types_and_orders() {
    let mut random = Random::new();
    for_each_type!(K => all_orders::<K>(&mut random));
}

#[test]
fn exit_codes_and_the_keys_between() {
    let folder = Folder::new();
    folder.write("in.i16", &[-7i16, 0, 0, 5]);
    let run = |keys: &str| folder.run(&format!("search in.i16 {keys}"));
    assert_found(&run("0 -7"), &[("0".into(), [1, 2]), ("-7".into(), [0, 1])]);
    assert_found(&run("5 4"), &[("5".into(), [3, 1]), ("4".into(), [3, 0])]);
    assert_found(
        &run("32767 -32768 +5"),
        &[("32767".into(), [4, 0]), ("-32768".into(), [0, 0]), ("+5".into(), [3, 1])],
    );
    folder.shell("gmerge search in.i16 0 > /dev/full").fails(2, &["standard output: No space left on device"]);
    let json = folder.run("search in.i16 0 5 --stats json");
    assert!(json.stderr().contains(r#""op":"search","type":"i16","keys":2"#), "{}", json.stderr());
    let json = folder.run("search in.i16 --needles in.i16 -o /dev/null --stats json");
    assert!(json.stderr().contains(r#""op":"search","type":"i16","keys":8"#), "{}", json.stderr());
}

#[test]
fn a_file_is_not_read_as_a_whole() {
    let folder = Folder::new();
    let file = fs::File::create(folder.path("huge.u64")).unwrap();
    // If the file system does not support such a large file, there is nothing to test.
    if file.set_len(1 << 43).is_ok() {
        let count = 1 << 40;
        assert_found(&folder.run("search huge.u64 0 1"), &[("0".into(), [0, count]), ("1".into(), [count, 0])]);
        // The order of the file is unknown, too.
        assert_found(&folder.run("search huge.u64 0 -r"), &[("0".into(), [0, count])]);
    }
}

#[test]
fn prefixes_of_hashes() {
    let mut random = Random::new();
    let folder = Folder::new();
    // Hashes that have two digits in common with many others, and four with some.
    let mut hashes: Vec<Vec<u8>> = (0..400).map(|_| random.bytes(20)).collect();
    hashes.iter_mut().for_each(|hash| (hash[0], hash[1]) = (hash[0] & 3, hash[1] & 7));
    hashes.extend_from_within(..40);
    let digits = |hash: &[u8]| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let needles: Vec<String> = (1..=40).map(|count| digits(&hashes[count])[..count].to_owned()).collect();
    for (flag, reverse) in [("", false), ("-r", true)] {
        hashes.sort();
        if reverse {
            hashes.reverse();
        }
        folder.write(
            "in.dat",
            &hashes.iter().enumerate().flat_map(|(i, hash)| [&[i as u8], &hash[..]].concat()).collect::<Vec<u8>>(),
        );
        let needles = needles.iter().cloned().chain(["0000000000", "f", "FFFF", "03"].map(str::to_owned));
        let expected: Vec<_> = needles
            .map(|needle| {
                let prefixes: Vec<String> = hashes.iter().map(|hash| digits(hash)[..needle.len()].to_owned()).collect();
                let wanted = needle.to_lowercase();
                let before = prefixes
                    .iter()
                    .filter(|prefix| if reverse { **prefix > wanted } else { **prefix < wanted })
                    .count();
                let equal = prefixes.iter().filter(|prefix| **prefix == wanted).count();
                (needle, [before, equal])
            })
            .collect();
        let keys: Vec<&str> = expected.iter().map(|(text, _)| &**text).collect();
        let command = format!("search in.dat --record-size 21 --key 1:bytes20 {flag} {}", keys.join(" "));
        assert_found(&folder.run(&command), &expected);
        let descending = command.replace("bytes20 -r", "bytes20:desc");
        assert_found(&folder.run(&descending), &expected);
    }
}

#[test]
fn records_by_several_fields() {
    let mut random = Random::new();
    let folder = Folder::new();
    // A big-endian u16, a NaN or one of few numbers, and two bytes.
    let mut records: Vec<(u16, f32, [u8; 2])> = (0..500)
        .map(|_| {
            let number = [-1.5, 0.0, -0.0, 2.0, f32::NAN, f32::INFINITY][random.below(6)];
            (random.below(5) as u16, number, [0, random.below(4) as u8])
        })
        .collect();
    let order = |a: &(u16, f32, [u8; 2]), b: &(u16, f32, [u8; 2])| {
        a.0.cmp(&b.0).then(a.1.order_by(&b.1, "last", true)).then(a.2.cmp(&b.2))
    };
    records.sort_by(order);
    let bytes = |(number, float, bytes): &(u16, f32, [u8; 2])| {
        [&float.to_le_bytes()[..], bytes, &number.to_be_bytes()].concat()
    };
    folder.write("in.dat", &records.iter().flat_map(bytes).collect::<Vec<u8>>());
    let mut expected = Vec::new();
    for needle in (0..40)
        .map(|_| (random.below(6) as u16, [-1.5, 0.0, 7.5, f32::NAN][random.below(4)], [0, random.below(5) as u8]))
    {
        let text = format!("{},{:?},{:02x}{:02x}", needle.0, needle.1, needle.2[0], needle.2[1]);
        let before = records.iter().filter(|record| order(record, &needle).is_lt()).count();
        let equal = records.iter().filter(|record| order(record, &needle).is_eq()).count();
        expected.push((text, [before, equal]));
    }
    let keys: Vec<&str> = expected.iter().map(|(text, _)| &**text).collect();
    let keys = keys.join(" ");
    let raw = format!("search in.dat --record-size 8 --key 6:u16be,0:f32le:desc,4:bytes2 {keys}");
    assert_found(&folder.run(&raw), &expected);
    let dtype = "[('price', '<f4'), ('tag', 'S2'), ('day', '>u2')]";
    let array = npy(dtype, &format!("({},)", records.len()), &records.iter().flat_map(bytes).collect::<Vec<u8>>());
    folder.write("in.npy", &array);
    assert_found(&folder.run(&format!("search in.npy --key day,price:desc,tag {keys}")), &expected);
}

#[test]
fn dates_big_endian_files_and_rows() {
    let folder = Folder::new();
    let bytes = |keys: &[i64]| keys.iter().flat_map(|key| key.to_be_bytes()).collect::<Vec<u8>>();
    folder.write("days.npy", &npy("'>M8[D]'", "(4,)", &bytes(&[-3, 8, 8, i64::MIN])));
    let expected =
        [("8".into(), [1, 2]), ("NaT".into(), [3, 1]), ("-9223372036854775808".into(), [3, 1]), ("9".into(), [3, 0])];
    assert_found(&folder.run("search days.npy 8 NaT -9223372036854775808 9"), &expected);
    folder.write("first.npy", &npy("'>M8[D]'", "(2,)", &bytes(&[i64::MIN, 8])));
    assert_found(&folder.run("search first.npy NaT 8 --nan first"), &[("NaT".into(), [0, 1]), ("8".into(), [1, 1])]);
    folder.run("search days.npy --needles first.npy -o out.u64be").succeeds();
    assert_eq!(folder.read::<u8>("out.u64be"), bytes(&[3, 1]));
    folder.write("in.i64", &bytes(&[-3, 8]));
    assert_found(&folder.run("search in.i64 --endian big 8"), &[("8".into(), [1, 1])]);
    let rows = [1i32, 2, 1, 3, 4, 0].map(i32::to_le_bytes).concat();
    folder.write("rows.npy", &npy("'<i4'", "(3, 2)", &rows));
    assert_found(&folder.run("search rows.npy --rows 1,3 4,1"), &[("1,3".into(), [1, 1]), ("4,1".into(), [3, 0])]);
    folder.run("search rows.npy --rows 1").fails(2, &["KEY: expected 2 values", "found 1"]);
}

#[test]
fn bounds_in_a_file_of_several_parts() {
    let folder = Folder::new();
    // More than the 64 MiB that are read at once, with equal keys on both sides of the end of a part.
    let (count, end) = (9_000_000u64, (64 << 20) / 8);
    let keys: Vec<u64> = (0..count).map(|i| if i.abs_diff(end) < 1000 { 2 * end } else { 2 * i }).collect();
    folder.write("in.u64", &keys);
    let mut random = Random::new();
    let near = (2 * end - 2100..2 * end + 2100).step_by(7);
    let mut needles: Vec<u64> = near.chain((0..2000).map(|_| random.next() % (2 * count + 10))).collect();
    needles.extend([0, 1, 2 * end, 2 * count, u64::MAX, 2 * end]);
    (0..needles.len()).for_each(|i| needles.swap(i, random.below(i + 1)));
    folder.write("needles.u64", &needles);
    for (flag, right) in [("", false), ("--right", true)] {
        let before = |needle: &u64| keys.partition_point(|key| key < needle || right && key == needle) as u64;
        let expected: Vec<u64> = needles.iter().map(before).collect();
        for more in ["", "--assume-sorted --parallel 2"] {
            folder.run(&format!("search in.u64 --needles needles.u64 -o out.u64 {flag} {more}")).succeeds();
            assert_same(&folder.read::<u64>("out.u64"), &expected, &format!("{flag} {more}"));
        }
        let run = folder.shell(&format!("cat in.u64 | gmerge search - --needles needles.u64 -o - {flag}"));
        run.succeeds();
        assert_same(&bytemuck::pod_collect_to_vec::<u8, u64>(run.stdout()), &expected, "of a pipe");
    }
    let run = folder.shell("cat needles.u64 | gmerge search in.u64 --needles - --type u64 -o out.npy");
    run.succeeds();
    assert_eq!(folder.read::<u8>("out.npy").len(), 128 + 8 * needles.len());
    let mut unsorted = keys;
    unsorted[8_500_000] = 3;
    folder.write("in.u64", &unsorted);
    let parts = ["in.u64: not sorted at index 8500000: 3 after 16999998 (byte 68000000)"];
    folder.refuses("search in.u64 --needles needles.u64 -o out.u64", &parts);
    folder.run("search in.u64 --needles needles.u64 -o out.u64 --assume-sorted").succeeds();
}

/// Strings of characters, and complex numbers as Python writes them.
#[test]
fn characters_and_complex_numbers_are_found() {
    let folder = Folder::new();
    let finds = |file: &str, keys: &[(&str, &str)]| {
        let mut command = folder.command(GMERGE);
        let run = Run::of(command.args(["search", file, "--"]).args(keys.iter().map(|(key, _)| key)));
        let expected: String = keys.iter().map(|(key, found)| format!("{key}\t{found}\n")).collect();
        let code = i32::from(keys.iter().any(|(_, found)| found.ends_with("\t0")));
        assert_eq!((str::from_utf8(run.stdout()).unwrap(), run.code()), (&*expected, Some(code)), "{}", run.stderr());
    };
    let texts = ["", "a,b", "a,b", "ä"];
    let characters = texts.iter().flat_map(|text| text.chars().chain(iter::repeat('\0')).take(3));
    let bytes: Vec<u8> = characters.flat_map(|code| u32::from(code).to_be_bytes()).collect();
    folder.write("text.npy", &npy("'>U3'", "(4,)", &bytes));
    finds("text.npy", &[("a,b", "1\t2"), ("ä", "3\t1"), ("", "0\t1"), ("b", "3\t0")]);
    folder.refuses("search text.npy abcd", &["KEY: expected up to 3 characters, found abcd"]);

    let numbers: [[f64; 2]; 5] = [[-1.5, 0.0], [1e-5, -2.0], [1e-5, 2e3], [f64::INFINITY, 1.0], [0.0, f64::NAN]];
    let bytes: Vec<u8> = numbers.as_flattened().iter().flat_map(|part| part.to_le_bytes()).collect();
    folder.write("complex.npy", &npy("'<c16'", "(5,)", &bytes));
    let keys = [("-1.5", "0\t1"), ("1e-5-2j", "1\t1"), ("1e-5+2e+3j", "2\t1"), ("inf+1j", "3\t1"), ("nanj", "4\t1")];
    finds("complex.npy", &keys);
    finds("complex.npy", &[("2j", "1\t0"), ("1e+5", "3\t0")]);
    for wrong in ["1+2", "j", "1,2", "1+2i"] {
        let expected = format!("a complex number, such as 1.5-2j, with parts of type f64, found {wrong}");
        folder.refuses(&format!("search complex.npy {wrong}"), &[&expected]);
    }
}

#[test]
fn bad_input_is_named_and_nothing_is_written() {
    let folder = Folder::new();
    folder.write("in.u8", &[1u8, 2, 3]);
    folder.write("in.f32", &[1f32]);
    folder.write("odd.u32", &[0u8; 7]);
    folder.write("in.dat", &[0u8; 24]);
    folder.write("records.npy", &npy("[('a', '<u4')]", "(1,)", &[0; 4]));
    folder.write("out.u64", &[9u64]);
    let huge = fs::File::create(folder.path("huge.u8")).unwrap();
    for (arguments, parts) in [
        ("in.u8 256", &["KEY: expected a number of type u8, found 256"][..]),
        ("in.u8 1 -1", &["KEY: expected a number of type u8, found -1"]),
        ("in.u8 1,2", &["KEY: expected a number of type u8, found 1,2"]),
        ("in.u8 0x1", &["type u8, found 0x1"]),
        ("in.f32 1e39", &["type f32, found 1e39"]),
        ("in.u8", &["search needs <KEY>..."]),
        ("none.u8 1", &["none.u8: No such file"]),
        ("odd.u32 1", &["odd.u32: length is 7 bytes, expected a multiple of 4"]),
        ("odd.u32 --needles odd.u32", &["odd.u32: length is 7 bytes"]),
        ("in.dat 1", &["in.dat: ", "--type"]),
        ("- 1 --type u8", &["-: is a stream, expected a regular file"]),
        ("in.dat --record-size 7 --key 0:u8 1", &["in.dat: length is 24 bytes, expected a multiple of 7"]),
        ("in.dat --record-size 8 --key 0:u8,2:bytes3 1", &["KEY: expected 2 values", "each field of --key, found 1"]),
        ("in.dat --record-size 8 --key 0:u8,2:bytes3 1,", &["expected 1 to 6 hexadecimal digits as value 2, found 1,"]),
        ("in.dat --record-size 8 --key 0:u8,2:bytes3 1,abcdef0", &["1 to 6 hexadecimal digits as value 2"]),
        ("in.dat --record-size 8 --key 2:bytes3,0:u8 ab,1", &["expected 6 hexadecimal digits as value 1, found ab,1"]),
        ("in.dat --record-size 8 --key 2:bytes3 xy", &["1 to 6 hexadecimal digits, found xy"]),
        (
            "records.npy --needles records.npy",
            &["records.npy: holds records by its header: a file of needles holds keys"],
        ),
        ("in.u8 --needles in.f32", &["in.u8 holds u8", "in.f32 f32", "--type"]),
        ("in.u8 --needles in.u8 -o out.u16", &["out.u16: indices do not fit in u16", "with --needles"]),
        ("in.u8 --needles none.u8", &["none.u8: No such file"]),
    ] {
        folder.refuses(&format!("search {arguments}"), parts);
    }
    // Of a file with 2^31 keys, an upper bound does not fit.
    huge.set_len(1 << 31).unwrap();
    let most = "out.i32: i32 numbers hold the indices of at most 2147483647 keys, found at least 2147483648";
    folder.refuses("search huge.u8 --needles in.u8 -o out.i32", &[most, "expected an output of .u64 with --needles"]);
    folder.write("down.i32", &descending(&[1i32, 2]));
    folder.write("up.i32", &sorted(&[2i32, 1]));
    folder.refuses(
        "search up.i32 --needles up.i32 -r -o out.u64",
        &["up.i32: not sorted at index 1: 2 after 1", "--reverse"],
    );
    folder.refuses("search down.i32 --needles up.i32 -o out.u64", &["down.i32: not sorted at index 1"]);
}
