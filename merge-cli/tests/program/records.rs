//! `--record-size` and `--key`: records are compared with the standard library's stable sort, which compares the
//! fields' values.

use crate::common::{Folder, Random, Run, TestKey, engines, tried};
use merge_host::f16;
use std::cmp::Ordering;
use std::fs;

/// A field of a key.
#[derive(Clone, Debug)]
pub struct Field {
    pub offset: usize,
    pub kind: &'static str,
    /// The size of the field in bytes: for a number, the size of its type.
    pub bytes: usize,
    pub descending: bool,
}

/// Every kind of field, and its size in bytes, which varies for byte strings.
const KINDS: [(&str, usize); 13] = [
    ("u8", 1),
    ("i8", 1),
    ("u16", 2),
    ("i16", 2),
    ("f16", 2),
    ("u32", 4),
    ("i32", 4),
    ("f32", 4),
    ("u64", 8),
    ("i64", 8),
    ("f64", 8),
    ("u128", 16),
    ("bytes", 0),
];

impl Field {
    pub fn new(offset: usize, kind: &'static str, bytes: usize) -> Self {
        Self { offset, kind, bytes, descending: false }
    }

    fn argument(&self) -> String {
        let bytes = if self.kind == "bytes" { self.bytes.to_string() } else { String::new() };
        format!("{}:{}{bytes}{}", self.offset, self.kind, if self.descending { ":desc" } else { "" })
    }

    fn compare(&self, a: &[u8], b: &[u8], nans: &str, reverse: bool) -> Ordering {
        let reverse = self.descending != reverse;
        fn ordered<K: TestKey>(a: &[u8], b: &[u8], nans: &str, reverse: bool) -> Ordering {
            bytemuck::pod_read_unaligned::<K>(a).order_by(&bytemuck::pod_read_unaligned::<K>(b), nans, reverse)
        }
        let (a, b) = (&a[self.offset..][..self.bytes], &b[self.offset..][..self.bytes]);
        match self.kind {
            "u8" => ordered::<u8>(a, b, nans, reverse),
            "i8" => ordered::<i8>(a, b, nans, reverse),
            "u16" => ordered::<u16>(a, b, nans, reverse),
            "i16" => ordered::<i16>(a, b, nans, reverse),
            "f16" => ordered::<f16>(a, b, nans, reverse),
            "u32" => ordered::<u32>(a, b, nans, reverse),
            "i32" => ordered::<i32>(a, b, nans, reverse),
            "f32" => ordered::<f32>(a, b, nans, reverse),
            "u64" => ordered::<u64>(a, b, nans, reverse),
            "i64" => ordered::<i64>(a, b, nans, reverse),
            "f64" => ordered::<f64>(a, b, nans, reverse),
            "u128" => ordered::<u128>(a, b, nans, reverse),
            _ if reverse => b.cmp(a),
            _ => a.cmp(b),
        }
    }
}

/// Records of `size` bytes and the fields that order them.
#[derive(Debug)]
pub struct Layout {
    pub size: usize,
    pub fields: Vec<Field>,
}

impl Layout {
    pub fn arguments(&self) -> String {
        let fields: Vec<_> = self.fields.iter().map(Field::argument).collect();
        format!("--record-size {} --key {}", self.size, fields.join(","))
    }

    pub fn compare(&self, a: &[u8], b: &[u8], nans: &str, reverse: bool) -> Ordering {
        let orders = self.fields.iter().map(|field| field.compare(a, b, nans, reverse));
        orders.fold(Ordering::Equal, Ordering::then)
    }

    pub fn sorted(&self, bytes: &[u8], reverse: bool) -> Vec<u8> {
        self.sorted_by(bytes, "last", reverse)
    }

    /// The records as `--nan` and `--reverse` order them.
    fn sorted_by(&self, bytes: &[u8], nans: &str, reverse: bool) -> Vec<u8> {
        let mut records: Vec<_> = bytes.chunks(self.size).collect();
        records.sort_by(|a, b| self.compare(a, b, nans, reverse));
        records.concat()
    }

    /// A few fields without overlaps, in any order and with gaps.
    pub fn random(random: &mut Random) -> Self {
        let mut below = |count: usize| random.next() as usize % count;
        let (mut fields, mut offset) = (Vec::new(), 0);
        for _ in 0..1 + below(4) {
            let (kind, bytes) = KINDS[below(KINDS.len())];
            let bytes = if kind == "bytes" { 1 + below(30) } else { bytes };
            offset += below(3) * below(5);
            fields.push(Field { descending: below(3) == 0, ..Field::new(offset, kind, bytes) });
            offset += bytes;
        }
        for i in 0..fields.len() {
            let other = i + below(fields.len() - i);
            fields.swap(i, other);
        }
        Self { size: offset + below(3) * below(40), fields }
    }

    /// Random records, many with equal keys, or keys that are equal up to some byte.
    pub fn records(&self, random: &mut Random, count: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..count * self.size).map(|_| random.next() as u8).collect();
        // Bytes with few distinct values, so that keys have common prefixes.
        let few = random.next().is_multiple_of(2);
        if few {
            bytes.iter_mut().for_each(|byte| *byte = [0, 0, 0, 0, 1, 0x7f, 0x80, 0xff][usize::from(*byte % 8)]);
        }
        for i in 1..count {
            if random.next().is_multiple_of(2) {
                let (from, field) = (random.next() as usize % i, random.next() as usize % self.fields.len());
                for field in &self.fields[..=field] {
                    let range = field.offset..field.offset + field.bytes;
                    bytes.copy_within(
                        from * self.size + range.start..from * self.size + range.end,
                        i * self.size + range.start,
                    );
                }
            }
        }
        bytes
    }
}

/// Checks a file of records. A failure names the first record that differs.
#[track_caller]
pub fn assert_records(found: &[u8], expected: &[u8], layout: &Layout) {
    assert_eq!(found.len(), expected.len(), "{layout:?}");
    let place = found.chunks(layout.size).zip(expected.chunks(layout.size)).position(|(x, y)| x != y);
    assert_eq!(place, None, "{layout:?}");
}

/// Sorts and checks `records`, and compares with the oracle.
#[track_caller]
fn sorts(folder: &Folder, layout: &Layout, records: &[u8], more: &str) {
    let arguments = layout.arguments();
    folder.write("in", records);
    let run = folder.run(&format!("check in {arguments}"));
    let unsorted = |pair: &[&[u8]]| layout.compare(pair[0], pair[1], "last", false).is_gt();
    match records.chunks(layout.size).collect::<Vec<_>>().windows(2).position(unsorted) {
        None => run.succeeds(),
        Some(i) => run.fails(1, &[&format!("in: disorder at index {}: ", i + 1)]),
    }
    folder.run(&format!("sort in -o out {arguments} {more}")).succeeds();
    let reverse = more.contains("-r");
    assert_records(&folder.read("out"), &layout.sorted(records, reverse), layout);
    if !reverse {
        folder.run(&format!("check out {arguments}")).succeeds();
    }
}

#[test]
fn nans_of_fields_lie_where_the_flag_says() {
    let (mut random, folder) = (Random::new(), Folder::new());
    let cases = ["last", "first", "total"].into_iter().flat_map(|nans| [(nans, ""), (nans, "-r")]);
    for (i, (nans, more)) in cases.cycle().take(60).enumerate() {
        let kinds = KINDS.iter().filter(|(kind, _)| kind.starts_with('f')).collect::<Vec<_>>();
        // A word of the key ends within the second field.
        let (first, (kind, bytes)) = (Field::new(0, "bytes", 1 + i % 9), *kinds[i % kinds.len()]);
        let second = Field { descending: i % 2 == 0, ..Field::new(first.bytes, kind, bytes) };
        let layout = Layout { size: first.bytes + bytes, fields: vec![first, second] };
        let records = layout.records(&mut random, 500);
        folder.write("in", &records);
        let arguments = format!("{} --nan {nans} {more}", layout.arguments());
        folder.run(&format!("sort in -o out {arguments} --check")).succeeds();
        assert_records(&folder.read("out"), &layout.sorted_by(&records, nans, more == "-r"), &layout);
        folder.run(&format!("check out {arguments}")).succeeds();
    }
}

#[test]
fn random_records_and_fields() {
    let mut random = Random::new();
    let folder = Folder::new();
    for engine in engines() {
        for i in 0..if *engine == "cpu" { 60 } else { 10 } {
            let layout = Layout::random(&mut random);
            let count = [0, 1, 2, 17, 1000, 5000][i % 6];
            let records = layout.records(&mut random, count);
            let reverse = if i % 2 == 0 { "" } else { "-r" };
            sorts(&folder, &layout, &records, &format!("--engine {engine} {reverse}"));
        }
    }
}

#[test]
fn every_type_by_itself() {
    let mut random = Random::new();
    let folder = Folder::new();
    for (kind, bytes) in KINDS {
        for descending in [false, true] {
            let bytes = if bytes == 0 { 13 } else { bytes };
            let layout = Layout { size: bytes + 3, fields: vec![Field { descending, ..Field::new(1, kind, bytes) }] };
            sorts(&folder, &layout, &layout.records(&mut random, 700), "");
        }
    }
}

#[test]
fn the_records_of_the_sort_benchmark() {
    let mut random = Random::new();
    let folder = Folder::new();
    let layout = Layout { size: 100, fields: vec![Field::new(0, "bytes", 10)] };
    // Several blocks of output, and input for more than one thread.
    let mut records: Vec<u8> = (0..3_000_000).map(|_| random.next() as u8).collect();
    for threads in [1, 2, 7] {
        sorts(&folder, &layout, &records, &format!("--parallel {threads}"));
    }
    // Keys with equal first 8 bytes.
    records.chunks_mut(100).for_each(|record| record[..8].fill(b' '));
    sorts(&folder, &layout, &records, "--parallel 3");
    // A key of many words. All words except the last are equal.
    let layout = Layout { size: 100, fields: vec![Field::new(0, "bytes", 100)] };
    records.chunks_mut(100).for_each(|record| record[..97].fill(7));
    sorts(&folder, &layout, &records, "-r");
}

/// Records of 16 bytes: a key of 12 bytes with the words of `word`, and the record's number.
fn numbered(count: u32, word: impl Fn(u32) -> [u32; 3]) -> Vec<u8> {
    let record = |i| word(i).into_iter().map(u32::to_be_bytes).chain([i.to_le_bytes()]).flatten();
    (0..count).flat_map(record).collect()
}

#[test]
fn groups_of_equal_words_of_any_size_are_stable() {
    let folder = Folder::new();
    let layout = Layout { size: 16, fields: vec![Field::new(0, "bytes", 12)] };
    let mixed = |i: u32| i.wrapping_mul(2_654_435_761) >> 7;
    // One group of all records, one large group among small groups, and many groups.
    for [a, b, c] in [[1, 1, 1], [1, 1, 1000], [1, 3, 50_000], [2, 1, 70_000], [300, 7, 5], [40_000, 2, 2]] {
        let records = numbered(200_000, |i| [mixed(i) % a, mixed(i + 1) % b, mixed(i + 2) % c]);
        sorts(&folder, &layout, &records, "--parallel 2");
    }
    let records = numbered(200_000, |i| [if i % 3 == 0 { mixed(i) % 5000 } else { 2500 }, 0, mixed(i) % 90_000]);
    sorts(&folder, &layout, &records, "-r --parallel 3");
}

#[test]
fn equal_records_stay_in_their_order_both_ways() {
    let folder = Folder::new();
    let layout = Layout { size: 16, fields: vec![Field::new(0, "u32", 4), Field::new(4, "f64", 8)] };
    let records = numbered(100_000, |_| [5, 6, 7]);
    for more in ["", "-r"] {
        sorts(&folder, &layout, &records, more);
        assert_eq!(folder.read::<u8>("out"), records);
    }
}

#[test]
fn records_larger_than_a_block() {
    let mut random = Random::new();
    let folder = Folder::new();
    let layout =
        Layout { size: (1 << 20) + 77, fields: vec![Field::new(1 << 20, "i16", 2), Field::new(3, "bytes", 9)] };
    let records = layout.records(&mut random, 7);
    sorts(&folder, &layout, &records, "");
    sorts(&folder, &layout, &records[..layout.size], "-r");
    let (a, b) = records.split_at(3 * layout.size);
    let parts = [layout.sorted(a, false), layout.sorted(b, false)];
    folder.write("a", &parts[0]);
    folder.write("b", &parts[1]);
    folder.run(&format!("merge a b -o out {}", layout.arguments())).succeeds();
    assert_records(&folder.read("out"), &layout.sorted(&parts.concat(), false), &layout);
}

#[test]
fn more_threads_than_a_file_in_main_memory_lets_write() {
    // Without such a file system, this is one more test with many threads.
    let place = if fs::metadata("/dev/shm").is_ok() { "/dev/shm" } else { "." };
    let mut random = Random::new();
    let folder = Folder::new();
    let out = tempfile::tempdir_in(place).unwrap();
    let layout = Layout { size: 27, fields: vec![Field::new(5, "u64", 8)] };
    let records = layout.records(&mut random, 200_000);
    folder.write("in", &records);
    let path = out.path().join("out");
    fs::write(&path, "longer than nothing").unwrap();
    let run = folder.run(&format!("sort in -o {} {} --parallel 9", path.display(), layout.arguments()));
    run.succeeds();
    assert_records(&fs::read(&path).unwrap(), &layout.sorted(&records, false), &layout);
    assert_eq!(fs::read_dir(out.path()).unwrap().count(), 1);
}

#[test]
fn from_a_pipe_to_a_pipe_and_in_place() {
    let mut random = Random::new();
    let folder = Folder::new();
    let layout = Layout { size: 37, fields: vec![Field::new(30, "i32", 4), Field::new(0, "f16", 2)] };
    for count in [0, 1, 1_000_003 / 37, 40_000_000 / 37] {
        let records = layout.records(&mut random, count);
        let run = folder.run_with_input(&format!("sort - -o - {}", layout.arguments()), &records);
        assert_records(run.stdout(), &layout.sorted(&records, false), &layout);
        run.succeeds();
    }
    let records = layout.records(&mut random, 1000);
    folder.write("file", &records);
    folder.run(&format!("sort file -o file {}", layout.arguments())).succeeds();
    assert_records(&folder.read("file"), &layout.sorted(&records, false), &layout);
    assert_eq!(folder.files(), ["file"]);
}

#[test]
fn raw_records_of_a_pipe_may_begin_like_a_header() {
    let folder = Folder::new();
    let records = b"\x93NUMPYxxAAAAAAAA";
    let arguments = "sort - -o sorted --record-size 8 --key 0:bytes8";
    folder.run_with_input(&format!("{arguments} --format raw"), records).succeeds();
    assert_eq!(folder.read::<u8>("sorted"), b"AAAAAAAA\x93NUMPYxx");
    folder.run_with_input(arguments, records).fails(2, &["version 120.120"]);
}

#[test]
fn check_finds_the_first_record_across_parts() {
    // The buffer of 64 MiB is not a whole number of records.
    let folder = Folder::new();
    let size = 1000;
    let (part, count) = ((64 << 20) / size, 2 * (64 << 20) / size + 5);
    let mut records = vec![0u8; count * size];
    for (i, record) in records.chunks_mut(size).enumerate() {
        record[4..8].copy_from_slice(&(i as i32 - 9).to_le_bytes());
    }
    let arguments = format!("--record-size {size} --key 4:i32");
    for place in [1, part - 1, part, part + 1, 2 * part, count - 1] {
        let mut field = (i32::MAX).to_le_bytes();
        records[(place - 1) * size + 4..][..4].swap_with_slice(&mut field);
        let (before, after, offset) = (i32::MAX, place as i32 - 9, place * size);
        let parts = format!("records: disorder at index {place}: {after} after {before} (byte {offset})");
        folder.write("records", &records);
        folder.run(&format!("check records {arguments}")).fails(1, &[&parts]);
        records[(place - 1) * size + 4..][..4].swap_with_slice(&mut field);
    }
    folder.write("records", &records);
    folder.run(&format!("check records {arguments}")).succeeds();
    folder.run_with_input(&format!("check - {arguments}"), &records).succeeds();
    folder.run(&format!("check records {arguments}:desc")).fails(1, &["records: disorder at index 1: -8 after -9"]);
}

#[test]
fn check_shows_keys() {
    let folder = Folder::new();
    let text = "b-second-\u{1}long enough to be cut,a-first--\0long enough to be cut,";
    folder.write("text", text.as_bytes());
    let run = folder.run("check text --record-size 32 --key 0:bytes1:desc,10:bytes20,1:bytes2");
    run.succeeds();
    let run = folder.run("check text --record-size 32 --key 10:bytes20,9:u8,0:bytes3");
    run.fails(1, &["index 1: 0x6c6f6e6720656e6f75676820746f2062...,0,0x612d66 after 0x6c6f6e", "2062...,1,0x622d73"]);
}

#[test]
fn statistics_count_records() {
    let folder = Folder::new();
    folder.write("in", &[3u8; 50]);
    let run = folder.run("sort in -o out --record-size 5 --key 0:u8 --stats json");
    assert_eq!(run.code(), Some(0));
    for part in [r#""op":"sort""#, r#""type":"record""#, r#""keys":10,"#, r#""bytes":50,"#] {
        assert!(run.stderr().contains(part), "{}", run.stderr());
    }
}

#[test]
fn errors() {
    let folder = Folder::new();
    folder.write("in", &[0u8; 1002]);
    folder.write("out", b"old");
    for command in ["sort in -o out", "check in"] {
        let odd = ["in: length is 1002 bytes", "multiple of 100, the size of a record"];
        folder.refuses(&format!("{command} --record-size 100 --key 0:u32"), &odd);
        let beyond = ["--key 3:u32: takes 4 bytes from byte 3 on", "within the 6 bytes of a record"];
        folder.refuses(&format!("{command} --record-size 6 --key 0:u16,3:u32"), &beyond);
        folder.refuses(&format!("{command} --record-size 6 --key 6:u8"), &["--key 6:u8: takes 1 bytes"]);
        let overlap = ["--key 1:bytes2:desc: overlaps 2:u32, expected fields that share no byte"];
        folder.refuses(&format!("{command} --record-size 6 --key 2:u32,0:u8,1:bytes2:desc"), &overlap);

        for (flags, parts) in [
            ("--record-size 6", &["--key"][..]),
            ("--key 0:u8", &["--record-size"]),
            ("--record-size 0 --key 0:u8", &["--record-size", "from 1 to ", "found 0"]),
            ("--record-size 6 --key 0:u8 --type u8", &["--type"]),
        ] {
            folder.refuses(&format!("{command} {flags}"), parts);
        }
        for key in ["u32", "0:u31", "0:bytes", "0:u8,,3:u8", "0:u8:down", "-1:u8"] {
            folder.refuses(&format!("{command} --record-size 6 --key={key}"), &["--key", "expected"]);
        }
    }
    for more in ["--segment-len 2", "--values in --values-out v"] {
        folder.refuses(&format!("sort in -o out --record-size 6 --key 0:u8 {more}"), &["--record-size"]);
    }
    let arguments = "--record-size 100 --key 0:u32";
    let odd = ["-: length is 1002 bytes", "multiple of 100, the size of a record"];
    folder.refuses_input(&format!("sort - -o out {arguments}"), &[0; 1002], &odd);
    folder.refuses_input(&format!("check - {arguments}"), &[0; 1002], &odd);
    folder.refuses(&format!("sort none -o out {arguments}"), &["none: No such file or directory"]);
    folder.refuses(&format!("check none {arguments}"), &["none: No such file or directory"]);
}

#[test]
fn more_records_than_there_is_room_for_is_an_error_before_they_are_read() {
    let folder = Folder::new();
    let file = fs::File::create(folder.path("huge")).unwrap();
    // If the file system does not support such a large file, there is nothing to test.
    if file.set_len(100 << 36).is_ok() {
        let run = folder.run("sort huge -o /dev/null --record-size 100 --key 0:bytes10 --engine cpu");
        run.fails(2, &["huge: does not fit in memory", "--tmp-dir"]);
        let run = folder.run("sort huge -o /dev/null --record-size 100 --key 0:bytes17 --engine cpu");
        run.fails(2, &["huge: does not fit in memory", "--tmp-dir"]);
    }
}

#[test]
fn records_that_do_not_fit_in_memory() {
    let mut random = Random::new();
    let folder = Folder::new();
    let layouts = [
        Layout { size: 100, fields: vec![Field::new(0, "bytes", 10)] },
        Layout { size: 8, fields: vec![Field::new(3, "i16", 2)] },
        Layout { size: 37, fields: vec![Field::new(30, "i32", 4), Field::new(0, "f32", 4), Field::new(5, "bytes", 8)] },
        Layout { size: 1000, fields: vec![Field::new(1, "u8", 1)] },
    ];
    for layout in tried(layouts) {
        let arguments = layout.arguments();
        for bytes in [300_000, 1_000_000, 5_000_000] {
            let records = layout.records(&mut random, bytes / layout.size);
            for more in ["", "-r --batch-size 2"] {
                sorts(&folder, &layout, &records, &format!("-S 1M {more}"));
                let want = layout.sorted(&records, !more.is_empty());
                let run = folder.run_with_input(&format!("sort - -o - -S 1M {arguments} {more}"), &records);
                run.succeeds();
                assert_records(run.stdout(), &want, &layout);
            }
        }
    }
    let run = folder.run_with_input("sort - -o out2 -S 1M --record-size 100 --key 0:bytes10", &vec![1; 4_000_001]);
    run.fails(2, &["-: ", "multiple of 100"]);
    assert_eq!(folder.files(), ["in", "out"]);
}

/// Keys that are longer than the numbers which are sorted, with groups of equal first bytes of all sizes: also groups
/// that do not fit in memory, several times.
#[test]
fn long_keys_of_records_that_do_not_fit_in_memory() {
    let mut random = Random::new();
    let folder = Folder::new();
    let layout = Layout { size: 60, fields: vec![Field::new(2, "bytes", 20), Field::new(30, "i64", 8)] };
    let wide = Layout { size: 90, fields: vec![Field::new(0, "bytes", 70)] };
    let cases = [(&layout, 0), (&layout, 15), (&layout, 17), (&layout, 22), (&wide, 0), (&wide, 69)];
    for (layout, alike) in tried(cases) {
        let mut records = layout.records(&mut random, 3_000_000 / layout.size);
        // The first `alike` bytes are equal in all records, or in every other record.
        for step in [1, 2] {
            records.chunks_mut(layout.size).step_by(step).for_each(|record| record[..alike].fill(0x20));
            for more in ["-S 2M", "-S 2M -r --batch-size 2 --parallel 1", "-S 2M --check"] {
                sorts(&folder, layout, &records, more);
            }
        }
    }
    assert_eq!(folder.files(), ["in", "out"]);
}

#[test]
fn a_full_disk_and_a_closed_pipe() {
    let folder = Folder::new();
    folder.write("in", &vec![1u8; 3_000_000]);
    let arguments = "--record-size 100 --key 0:bytes10";
    folder.run(&format!("sort in -o /dev/full {arguments}")).fails(2, &["/dev/full: No space left on device"]);
    let run = folder.shell(&format!("ulimit -f 1000; gmerge sort in -o out {arguments}"));
    run.fails(2, &["out: "]);
    let run = Run::of(
        folder
            .command("sh")
            .args(["-c", &format!("{} sort in -o - {arguments} | head -c 100 > part", crate::common::GMERGE)]),
    );
    assert_eq!(run.stderr(), "");
    assert_eq!(folder.files(), ["in", "part"]);
}
