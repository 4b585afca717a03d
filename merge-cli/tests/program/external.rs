//! `gmerge sort` beyond the memory limit, `--unique` and `--check`.

use crate::common::{
    Folder, GMERGE, Random, Run, TestKey, assert_same, for_each_type, gathered, sorted_places, spawn, tried,
};
use crate::reference::Files;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::process::Stdio;
use std::time::Duration;

/// The number of keys of `size` bytes in this number of chunks, with memory of 1 MiB.
fn keys_in(chunks: usize, size: usize) -> usize {
    chunks * ((1 << 18) / size)
}

/// A folder with an empty folder `tmp` in it.
fn folder() -> Folder {
    let folder = Folder::new();
    fs::create_dir(folder.path("tmp")).unwrap();
    folder
}

#[track_caller]
fn nothing_is_left(folder: &Folder, files: &[&str]) {
    assert_eq!(folder.files(), files);
    assert_eq!(fs::read_dir(folder.path("tmp")).unwrap().count(), 0);
}

fn sorted<K: TestKey>(keys: &[K], reverse: bool) -> Vec<K> {
    gathered(keys, &sorted_places(keys, reverse))
}

#[test]
fn all_types_in_both_orders() {
    fn check<K: TestKey>(random: &mut Random) {
        let count = keys_in(5, size_of::<K>()) + random.next() as usize % 1000;
        let files = Files::new(&[random.keys::<K>(count)], 0);
        fs::create_dir(files.folder.path("tmp")).unwrap();
        for (flag, reverse) in [("", false), ("-r", true)] {
            let command = format!("sort {flag} --engine cpu --memory 1M --tmp-dir tmp --check");
            files.check(&command, &files.sorted(reverse));
        }
        assert_eq!(fs::read_dir(files.folder.path("tmp")).unwrap().count(), 0);
    }
    let mut random = Random::new();
    for_each_type!(K => check::<K>(&mut random));
}

#[test]
fn sizes_around_the_edges_of_chunks() {
    let mut random = Random::new();
    let folder = folder();
    let keys = random.keys::<u32>(keys_in(7, 4));
    for chunks in [1, 2, 3, 6] {
        for size in [keys_in(chunks, 4) - 1, keys_in(chunks, 4), keys_in(chunks, 4) + 1] {
            let keys = &keys[..size];
            folder.write("in.u32", keys);
            let expected = sorted(keys, false);
            folder.run("sort in.u32 -o out.u32 --engine cpu -S 1M -T tmp").succeeds();
            assert_same(&folder.read::<u32>("out.u32"), &expected, &format!("{size}"));
            let input = bytemuck::cast_slice(keys);
            folder.run_with_input("sort - -o out.u32 --engine cpu -S 1M -T tmp", input).succeeds();
            assert_same(&folder.read::<u32>("out.u32"), &expected, &format!("{size} from a pipe"));
        }
    }
    nothing_is_left(&folder, &["in.u32", "out.u32", "tmp"]);
}

#[test]
fn several_passes_of_merges() {
    let mut random = Random::new();
    let folder = folder();
    // Runs of nearly sorted keys do not overlap, and equal keys are in many runs.
    let mut inputs = [random.keys::<u64>(keys_in(30, 8)), random.sorted(keys_in(20, 8)), vec![7; keys_in(20, 8)]];
    inputs[1].rotate_left(12345);
    for keys in &inputs {
        for batch_size in [2, 3, 16] {
            folder.write("in.u64", keys);
            folder
                .run(&format!("sort in.u64 -o in.u64 -S 1M -T tmp --batch-size {batch_size} --engine cpu"))
                .succeeds();
            assert_same(&folder.read::<u64>("in.u64"), &sorted(keys, false), &format!("{batch_size}"));
        }
    }
    nothing_is_left(&folder, &["in.u64", "tmp"]);
}

/// Keys with few distinct values and values of `width` bytes, in a folder with an empty folder `tmp`.
fn few_distinct(random: &mut Random, count: usize, width: usize) -> Files<i16> {
    let files = Files::new(&[(0..count).map(|_| (random.next() % 1000) as i16 - 500).collect()], width);
    fs::create_dir(files.folder.path("tmp")).unwrap();
    files
}

/// Calls `check` with flags and their permutation: in either order, all keys and the first of equal keys.
fn in_every_order(files: &Files<i16>, check: impl Fn(&str, &[usize])) {
    for (flags, reverse) in [("", false), ("-r --batch-size 3", true)] {
        let mut places = files.sorted(reverse);
        check(flags, &places);
        places.dedup_by_key(|place| files.keys[*place]);
        check(&format!("{flags} --unique"), &places);
    }
    assert_eq!(fs::read_dir(files.folder.path("tmp")).unwrap().count(), 0);
}

#[test]
fn values_of_any_width_go_along() {
    let mut random = Random::new();
    for (width, chunks) in tried([(1, 20), (4, 20), (8, 10), (13, 10), (1000, 2)]) {
        let files = few_distinct(&mut random, keys_in(chunks, 2 + width) + 17, width);
        in_every_order(&files, |flags, places| {
            for memory in ["1M", "1G"] {
                files.check(&format!("sort -T tmp --engine cpu --check -S {memory} {flags}"), places);
            }
        });
    }
}

#[test]
fn several_folders() {
    let (mut random, folder) = (Random::new(), folder());
    ["a", "b"].iter().for_each(|name| fs::create_dir(folder.path(name)).unwrap());
    let keys = random.keys::<u64>(keys_in(12, 8) + 5);
    folder.write("in.u64", &keys);
    for flags in ["", "--batch-size 2", "-u"] {
        let run = folder.run(&format!("sort in.u64 -o out.u64 -S 1M --engine cpu -T a --tmp-dir b -v {flags}"));
        assert_eq!(run.code(), Some(0), "{}", run.stderr());
        let text = run.stderr();
        assert!(text.contains("temporary files: in a\n") && text.contains("temporary files: in b\n"), "{text}");
        let mut expected = sorted(&keys, false);
        if flags == "-u" {
            expected.dedup();
        }
        assert_same(&folder.read::<u64>("out.u64"), &expected, flags);
    }
    for flags in ["-T a -T nowhere", "-T nowhere -T a", "-T a -T nowhere -S 1M"] {
        let run = folder.run(&format!("sort in.u64 -o out.u64 {flags}"));
        run.fails(2, &["gmerge: --tmp-dir nowhere: cannot create a temporary file"]);
    }
    nothing_is_left(&folder, &["a", "b", "in.u64", "out.u64", "tmp"]);
}

#[test]
fn places_of_keys() {
    let mut random = Random::new();
    let files = few_distinct(&mut random, keys_in(12, 10) + 5, 0);
    in_every_order(&files, |flags, places| {
        for memory in ["1M", "1G"] {
            let command = format!("sort {flags} -S {memory} -T tmp --engine cpu");
            files.check_indices(&command, places);
            let (run, input) = (format!("{command} - --type i16 --argsort -o out"), bytemuck::cast_slice(&files.keys));
            files.folder.run_with_input(&run, input).succeeds();
            assert!(
                files.folder.read::<u64>("out").iter().map(|&place| place as usize).eq(places.iter().copied()),
                "{run}"
            );
        }
    });
}

#[test]
fn unique_keys() {
    let mut random = Random::new();
    let folder = folder();
    let keys = random.keys::<f64>(keys_in(6, 8));
    folder.write("in.f64", &keys);
    for (flags, reverse) in [("-u", false), ("--unique -r --batch-size 2", true)] {
        let mut expected = sorted(&keys, reverse);
        expected.dedup_by_key(|key| key.to_bits());
        assert!(expected.len() < keys.len());
        for memory in ["1M", "1G"] {
            let arguments = format!("sort {flags} in.f64 -o out.f64 -S {memory} -T tmp --check");
            folder.run(&arguments).succeeds();
            assert_same(&folder.read::<f64>("out.f64"), &expected, &arguments);
        }
    }
}

#[test]
fn to_a_pipe() {
    let mut random = Random::new();
    let folder = folder();
    let keys = random.keys::<u32>(keys_in(6, 4));
    folder.write("in.u32", &keys);
    let run = folder.run("sort in.u32 -o - -S 1M -T tmp");
    run.succeeds();
    let found: Vec<u32> = bytemuck::pod_collect_to_vec(run.stdout());
    assert_same(&found, &sorted(&keys, false), "standard output");
    folder.shell("gmerge sort in.u32 -o - -S 1M -T tmp | true").succeeds();
    nothing_is_left(&folder, &["in.u32", "tmp"]);
}

#[test]
fn what_cannot_work_is_said_before_anything_is_written() {
    let folder = folder();
    let values = "--values in.rows --values-out out.rows";
    let keys = vec![1u64; keys_in(8, 8)];
    folder.write("in.u64", &keys);
    folder.write("in.rows", &keys);
    folder.write("one.u64", &[1u64]);
    folder.run("sort in.u64 -o out.u64 -S 64K").fails(2, &["--memory: is 65536 bytes", "1M"]);
    folder.run("sort in.u64 -o out.u64 -S 8X").fails(2, &["8X", "expected a size like 8G"]);
    folder.run("sort in.u64 -o out.u64 --batch-size 1").fails(2, &["--batch-size", "2"]);
    folder.run("sort in.u64 -o out.u64 -S 1M -T none").fails(2, &["--tmp-dir none: ", "No such file"]);
    folder.run("sort in.u64 -o out.u64 -S 1M -T in.u64").fails(2, &["--tmp-dir in.u64: ", "Not a directory"]);
    folder.run("sort in.u64 -o - --check").fails(2, &["-: --check cannot read this --output back"]);
    folder.run("sort in.u64 -o out --argsort --check").fails(2, &["--check", "--argsort"]);
    let run = folder.run_with_input(&format!("sort - {values} -o out.u64 -S 1M"), bytemuck::cast_slice(&keys));
    run.fails(2, &["-: with its values, does not fit in the memory", "no pipes"]);
    folder
        .run(&format!("sort one.u64 {values} -o out.u64 -S 1M"))
        .fails(2, &["--memory: 1048576 bytes of memory are too few for keys of 8 bytes with payloads of 2097152"]);
    nothing_is_left(&folder, &["in.rows", "in.u64", "one.u64", "tmp"]);
}

#[test]
fn the_least_memory_that_an_error_names_suffices() {
    let (mut random, folder) = (Random::new(), folder());
    let records: Vec<u64> = (0..2_000_000).map(|_| random.next()).collect();
    folder.write("in", &records);
    // A key of up to 16 bytes is sorted at once, a longer one in parts.
    for key in ["0:bytes16", "0:bytes30"] {
        let flags = format!("--record-size 40000 --key {key}");
        folder.run(&format!("sort in {flags} -o sorted")).succeeds();
        for command in ["sort in", "merge sorted sorted sorted", "union sorted sorted"] {
            let run = |memory: u64| folder.run(&format!("{command} {flags} -o out -S {memory}b"));
            let refused = run(1 << 20);
            refused.fails(2, &["--memory: 1048576 bytes of memory are too few", "expected at least "]);
            let least = refused.stderr().trim().rsplit(' ').next().unwrap().parse().unwrap();
            run(least - 1).fails(2, &[&format!("--memory: {} bytes", least - 1), &format!("at least {least}")]);
            run(least).succeeds();
            folder.run(&format!("check out {flags}")).succeeds();
        }
    }
}

#[test]
fn no_space_for_runs_or_for_the_output() {
    let folder = folder();
    folder.write("in.u64", &vec![1u64; keys_in(8, 8)]);
    folder.write("out.u64", &[7u64]);
    folder
        .shell("ulimit -f 1000; gmerge sort in.u64 -o out.u64 -S 1M -T tmp")
        .fails(2, &["tmp: temporary file for sorted runs: File too large"]);
    folder.run("sort in.u64 -o /dev/full -S 1M -T tmp").fails(2, &["/dev/full: No space left on device"]);
    if fs::File::create(folder.path("huge.u32")).unwrap().set_len(1 << 43).is_ok() {
        let run = folder.run("sort huge.u32 -o /dev/null -S 1M -T tmp");
        run.fails(
            2,
            &["huge.u32: does not fit in memory", "8796093022208 bytes in folder tmp", "--tmp-dir", "--memory"],
        );
    }
    assert_eq!(folder.read::<u64>("out.u64"), [7]);
    nothing_is_left(&folder, &["huge.u32", "in.u64", "out.u64", "tmp"]);
}

#[test]
fn an_input_that_shrinks_is_an_error() {
    let folder = folder();
    let keys = vec![1u64; keys_in(400, 8)];
    let mut shrank = 0;
    for i in 0..8 {
        folder.write("in.u64", &keys);
        folder.write("out.u64", &[7u64]);
        let mut command = folder.command(GMERGE);
        command.args("sort in.u64 -o out.u64 -S 1M -T tmp --engine cpu --parallel 1".split(' ')).stderr(Stdio::piped());
        let child = spawn(&mut command);
        std::thread::sleep(Duration::from_millis(3 * i));
        fs::File::options().write(true).open(folder.path("in.u64")).unwrap().set_len(4000).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        match output.status.code() {
            Some(2) => {
                assert!(stderr.contains("in.u64: shrank while being read"), "{stderr}");
                assert_eq!(folder.read::<u64>("out.u64"), [7]);
                shrank += 1;
            }
            // The file shrank before it was opened or after it was read.
            Some(0) => assert!([500, keys.len()].contains(&folder.read::<u64>("out.u64").len())),
            code => panic!("{code:?}: {stderr}"),
        }
    }
    assert!(shrank > 0);
    nothing_is_left(&folder, &["in.u64", "out.u64", "tmp"]);
}

#[test]
fn killed_at_any_moment() {
    let mut random = Random::new();
    let folder = folder();
    let keys = random.keys::<u32>(keys_in(40, 4));
    let expected = sorted(&keys, false);
    let mut killed = 0;
    for i in 0..16 {
        let signal = [Signal::TERM, Signal::INT, Signal::HUP, Signal::KILL][i % 4];
        folder.write("in.u32", &keys);
        let mut command = folder.command(GMERGE);
        command.args("sort in.u32 -o in.u32 -S 1M -T tmp --batch-size 4 --engine cpu".split(' '));
        let mut child = spawn(command.stderr(Stdio::null()));
        std::thread::sleep(Duration::from_millis(random.next() % 100));
        kill_process(Pid::from_child(&child), signal).unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        assert_eq!(fs::read_dir(folder.path("tmp")).unwrap().count(), 0);
        // While it is written, the output has a temporary name. SIGKILL does not remove it.
        let left: Vec<String> = folder.files().into_iter().filter(|name| name.ends_with(".tmp")).collect();
        assert!(left.is_empty() || signal == Signal::KILL, "{left:?}");
        left.iter().for_each(|name| fs::remove_file(folder.path(name)).unwrap());
        let found = folder.read::<u32>("in.u32");
        assert!(found == keys || found == expected);
    }
    assert!(killed > 0);
}

#[test]
fn resident_memory_stays_within_bounds() {
    let folder = folder();
    folder.run("gen -n 12000000 -o in.u64").succeeds();
    let script = "\
        $0 sort in.u64 -o out.u64 -S 16M -T tmp --engine cpu & \
        while grep VmHWM /proc/$!/status 2> /dev/null; do sleep 0.02; done; wait $!";
    let run = Run::of(folder.command("sh").args(["-c", script, GMERGE]));
    run.succeeds();
    let text = std::str::from_utf8(run.stdout()).unwrap();
    let peaks = text.lines().filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    let kilobytes = peaks.max().unwrap();
    assert!(kilobytes < (16 + 64) << 10, "{kilobytes}");
    folder.run("check out.u64").succeeds();
}
