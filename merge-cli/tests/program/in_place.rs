//! `sort --in-place`: the same file with the same header has the sorted keys, or is unchanged after an error. A kill
//! leaves either, as soon as no process has the file open.

use crate::common::{
    Folder, GMERGE, Random, Run, SIZES, TestKey, assert_same, cases, descending, engine_for, engines, for_each_type,
    fortran_npy, npy, npy_header, sizes, sorted, spawn, wait_until,
};
use crate::records::{Layout, assert_records};
use bytemuck::Pod;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Runs `gmerge sort in ... --in-place` on a file `in` with these bytes, and returns the bytes that it has then. Checks
/// that it is the same file with the same names, and that there is no other.
#[track_caller]
fn sort(folder: &Folder, name: &str, bytes: &[u8], flags: &str) -> Vec<u8> {
    folder.write(name, bytes);
    fs::set_permissions(folder.path(name), Permissions::from_mode(0o640)).unwrap();
    fs::hard_link(folder.path(name), folder.path("link")).unwrap();
    let facts = || {
        let metadata = fs::metadata(folder.path(name)).unwrap();
        (metadata.ino(), metadata.nlink(), metadata.mode(), metadata.len(), folder.files())
    };
    let before = facts();
    folder.run(&format!("sort {name} --in-place {flags}")).succeeds();
    assert_eq!(facts(), before, "{flags}");
    let found = folder.read::<u8>("link");
    fs::remove_file(folder.path("link")).unwrap();
    fs::remove_file(folder.path(name)).unwrap();
    found
}

/// The bytes of keys, with the most significant byte first if `big`.
fn bytes<K: Pod>(keys: &[K], big: bool) -> Vec<u8> {
    let mut bytes = bytemuck::cast_slice(keys).to_vec();
    if big {
        bytes.chunks_mut(size_of::<K>()).for_each(<[u8]>::reverse);
    }
    bytes
}

#[test]
fn every_type_in_either_byte_order() {
    fn check<K: TestKey>(folder: &Folder, random: &mut Random, count: usize, engine: &str) {
        let keys: Vec<K> = random.keys(count);
        let (engine, name) = (engine_for::<K>(engine), K::NAME);
        for (big, order) in [(false, "le"), (true, "be")] {
            let found = sort(folder, &format!("in.{name}{order}"), &bytes(&keys, big), &format!("--engine {engine}"));
            assert!(found == bytes(&sorted(&keys), big), "{name} {count} {order} {engine}");
        }
        let flags = format!("--type {name} --skip 13 -r --engine {engine} --parallel 3 --sync -T . --stable");
        let found = sort(folder, "in", &[b"thirteen byte", &*bytes(&keys, false)].concat(), &flags);
        assert!(found == [b"thirteen byte", &*bytes(&descending(&keys), false)].concat(), "{name} {count} {engine}");
    }
    let (folder, mut random) = (Folder::new(), Random::new());
    for engine in engines() {
        for &count in sizes(engine) {
            for_each_type!(K => check::<K>(&folder, &mut random, count, engine));
        }
    }
}

#[test]
fn many_blocks() {
    let (folder, keys) = (Folder::new(), Random::new().keys::<f64>(1_000_003));
    assert!(sort(&folder, "in.f64", &bytes(&keys, false), "") == bytes(&sorted(&keys), false));
}

#[test]
fn records() {
    let (folder, mut random) = (Folder::new(), Random::new());
    for round in 0..20 {
        let (layout, count) = (Layout::random(&mut random), SIZES[round % SIZES.len()]);
        let records = layout.records(&mut random, count);
        for reverse in [false, true] {
            let flags = format!("{} {}", layout.arguments(), if reverse { "-r" } else { "" });
            let found = sort(&folder, "in", &[b"head", &*records].concat(), &format!("{flags} --skip 4"));
            assert_eq!(found[..4], *b"head");
            assert_records(&found[4..], &layout.sorted(&records, reverse), &layout);
        }
    }
}

#[test]
fn the_header_of_an_npy_file_stays() {
    let (folder, mut random) = (Folder::new(), Random::new());
    let keys: Vec<i32> = random.keys(10_007);
    // A version and blanks that this program would not write.
    let header = npy_header(2, "{'shape':(10007,),  'descr': '>i4', 'fortran_order':False}   \n\n");
    let found = sort(&folder, "in.npy", &[&header[..], &bytes(&keys, true)].concat(), "");
    assert!(found == [&header[..], &bytes(&sorted(&keys), true)].concat());
    let mut strings: Vec<[u8; 5]> = (0..1000).map(|_| random.bytes(5).try_into().unwrap()).collect();
    let file = |strings: &[[u8; 5]]| npy("'|V5'", "(1000,)", strings.as_flattened());
    let before = file(&strings);
    strings.sort();
    assert!(sort(&folder, "in.bin", &before, "") == file(&strings));
    // The last two bytes of a record are no part of its key.
    let dtype = "[('a', '<i2'), ('b', '|u1'), ('c', '|V2')]";
    let file = |records: &[[u8; 5]]| npy(dtype, "(1000,)", records.as_flattened());
    strings.sort_by_key(|record| [record[3], record[4]]);
    let before = file(&strings);
    strings.sort_by_key(|record| (record[2], i16::from_le_bytes([record[0], record[1]])));
    assert!(sort(&folder, "in.npy", &before, "--key b,a") == file(&strings));
}

#[test]
fn rows_of_an_array() {
    let folder = Folder::new();
    let array = |rows: [[i16; 2]; 3]| npy("'<i2'", "(3, 2)", &bytes(rows.as_flattened(), false));
    let (before, after) = (array([[3, 1], [-1, 9], [3, 0]]), array([[-1, 9], [3, 0], [3, 1]]));
    assert_eq!(sort(&folder, "in.npy", &before, "--rows"), after);
    folder.write("fortran.npy", &fortran_npy("'<i2'", "(3, 2)", &[0; 12]));
    folder
        .refuses("sort fortran.npy --rows --in-place", &["fortran.npy: holds an array in Fortran order", "--in-place"]);
}

#[test]
fn what_cannot_be_sorted_in_place_is_unchanged() {
    let folder = Folder::new();
    let keys: Vec<u32> = Random::new().keys(1 << 18);
    folder.write("in.u32", &keys);
    folder.write("odd.u32", &[1u8, 2, 3]);
    folder.run("gen -n 9 --type u32 -o in.arrow").succeeds();
    fs::create_dir(folder.path("folder")).unwrap();
    assert!(folder.command("mkfifo").arg("pipe.u32").status().unwrap().success());
    for (arguments, parts) in [
        ("in.u32 -S 1M", &["in.u32: --in-place sorts in memory", "2097152 bytes, of 1048576"][..]),
        (
            "in.u32 --record-size 8 --key 4:u8 -S 1M",
            &["in.u32: --in-place sorts in memory", "3145728 bytes, of 1048576"],
        ),
        ("odd.u32", &["odd.u32: length is 3 bytes, expected a multiple of 4"]),
        ("in.arrow", &["in.arrow: is an Arrow or Parquet file", "--in-place"]),
        ("in.arrow --key keys", &["in.arrow: is an Arrow or Parquet file", "--in-place"]),
        ("missing.u32", &["missing.u32: No such file"]),
        ("folder --type u8", &["folder: expected the name of a regular file for --in-place"]),
        ("pipe.u32", &["pipe.u32: expected the name of a regular file for --in-place"]),
        ("/dev/null --type u8", &["/dev/null: expected the name of a regular file for --in-place"]),
        ("in.u32 --skip 5", &["in.u32: length is 1048571 bytes, expected a multiple of 4"]),
        ("in.u32 --axis 1", &["--in-place and --axis cannot be used together"]),
        ("in.u32 --compression zstd", &["--in-place and --compression cannot be used together"]),
    ] {
        folder.refuses(&format!("sort {arguments} --in-place"), parts);
    }
    folder.shell("ulimit -f 9; gmerge sort in.u32 --in-place").fails(2, &["in.u32: 1048576 bytes", "ulimit -f"]);
    assert_same(&folder.read::<u32>("in.u32"), &keys, "ulimit");
}

/// A file of this many keys is written in several milliseconds.
const KEYS: usize = 2_000_000;

fn start(folder: &Folder) -> Child {
    let mut command = folder.command(GMERGE);
    command.args(["sort", "in.u64", "--in-place", "--engine", "cpu"]).stderr(Stdio::piped());
    spawn(&mut command)
}

/// Random keys of which the first is not the least, and the sorted keys.
fn keys() -> [Vec<u64>; 2] {
    let mut keys = Random::new().keys::<u64>(KEYS);
    (keys[0], keys[1]) = (7, 0);
    let sorted = sorted(&keys);
    [keys, sorted]
}

/// Waits until the first block has been written to the file.
fn wait_until_written(folder: &Folder) {
    let file = File::open(folder.path("in.u64")).unwrap();
    let mut first = [0; 8];
    wait_until("the first key is written", || {
        file.read_exact_at(&mut first, 0).unwrap();
        first == [0; 8]
    });
}

#[test]
fn a_kill_leaves_the_old_keys_or_the_sorted_ones() {
    let (folder, [keys, sorted]) = (Folder::new(), keys());
    let (mut random, mut counts) = (Random::new(), [0, 0]);
    let runs = if cases::tries_all() { 50 } else { 16 };
    for i in 0..runs {
        folder.write("in.u64", &keys);
        let child = start(&folder);
        let is_writing = i % 2 == 0;
        if is_writing {
            wait_until_written(&folder);
        } else {
            std::thread::sleep(Duration::from_micros(random.next() % 400_000));
        }
        // The program may have ended.
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        // The second process has the standard error of the first one, which is read to its end.
        let run = Run::until_end("sort --in-place".to_owned(), child);
        assert!(run.stderr().is_empty(), "{}", run.stderr());
        let found = folder.read::<u64>("in.u64");
        assert!(found == sorted || !is_writing && found == keys, "run {i}: neither the old keys nor the sorted ones");
        counts[usize::from(found == sorted)] += 1;
    }
    println!("old and sorted: {counts:?}");
    assert!(counts[1] >= runs / 2);
}

#[test]
fn a_signal_ends_the_program_when_the_file_is_complete() {
    let (folder, [keys, sorted]) = (Folder::new(), keys());
    let mut interrupted = 0;
    for signal in [Signal::TERM, Signal::INT, Signal::HUP].into_iter().cycle().take(12) {
        folder.write("in.u64", &keys);
        let mut child = start(&folder);
        wait_until_written(&folder);
        // As a terminal does.
        let _ = kill_process_group(Pid::from_child(&child), signal);
        let code = child.wait().unwrap().code();
        assert!(folder.read::<u64>("in.u64") == sorted, "{signal:?}");
        assert!(code == Some(0) || code == Some(128 + signal.as_raw()), "{code:?}");
        interrupted += u32::from(code != Some(0));
    }
    assert!(interrupted > 0);
}

#[test]
fn a_second_run_waits_for_the_lock() {
    let folder = Folder::new();
    folder.write("in.u64", &[9u64, 8]);
    let file = File::options().write(true).open(folder.path("in.u64")).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    let child = start(&folder);
    std::thread::sleep(Duration::from_millis(300));
    // The program reads the file when it has the lock.
    file.write_all_at(bytemuck::bytes_of(&[3u64, 1]), 0).unwrap();
    flock(&file, FlockOperation::Unlock).unwrap();
    let run = Run::until_end("sort --in-place".to_owned(), child);
    assert!(run.code() == Some(0) && run.stderr().contains("in.u64: waiting for another program"), "{}", run.stderr());
    assert_eq!(folder.read::<u64>("in.u64"), [1, 3]);
}

#[test]
fn a_file_that_another_program_changes_is_left_as_it_is() {
    let (folder, [keys, sorted]) = (Folder::new(), keys());
    for replaced in [true, false] {
        let mut refused = 0;
        for _ in 0..20 {
            folder.write("in.u64", &keys);
            folder.write("new.u64", &[2u64, 1]);
            let child = start(&folder);
            wait_until("the file is open", || is_open(&folder, &child));
            if replaced {
                fs::rename(folder.path("new.u64"), folder.path("in.u64")).unwrap();
            } else {
                let file = File::options().write(true).open(folder.path("in.u64")).unwrap();
                file.write_all_at(&[1; 8], 0).unwrap();
            }
            let run = Run::until_end("sort --in-place".to_owned(), child);
            if run.code() == Some(0) {
                continue;
            }
            let found = folder.read::<u64>("in.u64");
            run.fails(2, &["in.u64: was "]);
            assert!(if replaced { found == [2, 1] } else { found[1..] == keys[1..] && found != sorted });
            refused += usize::from(run.stderr().contains("was changed while it was sorted"));
        }
        assert!(refused > 0, "{replaced}");
    }
}

/// Whether the program has the file open, or has ended.
fn is_open(folder: &Folder, child: &Child) -> bool {
    let path = folder.path("in.u64").canonicalize().unwrap();
    let Ok(open) = fs::read_dir(format!("/proc/{}/fd", child.id())) else { return true };
    open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).any(|open| open == path)
}
