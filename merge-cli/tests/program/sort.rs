//! `gmerge sort`

use crate::common::{Folder, Random, TestKey, assert_same, engines, for_each_type, gpus_are_emulated, sorted};
use merge_host::f16;

#[test]
fn engine_auto_always_works() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    folder.run("sort in.u32 -o out.u32").succeeds();
    folder.run("sort in.u32 -o auto.u32 --engine auto --parallel 2").succeeds();
    assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3]);
    assert_eq!(folder.read::<u32>("auto.u32"), [1, 2, 3]);
}

#[test]
fn engine_gpu_names_the_types_that_it_has_no_kernels_for() {
    fn check<K: TestKey>() {
        let (folder, name) = (Folder::new(), K::NAME);
        folder.write(&format!("in.{name}"), &[K::from_bits(1), K::from_bits(0)]);
        folder.write("a.rows", b"ab");
        let parts = ["--engine gpu: ", &format!(" {name} keys"), "only for integers and floats of 1 to 8 bytes"];
        for command in ["sort", "sort --values a.rows --values-out out.rows"] {
            folder.refuses(&format!("{command} in.{name} -o out.{name} --engine gpu"), &parts);
        }
        folder.refuses(&format!("merge in.{name} in.{name} -o out.{name} --engine gpu --assume-sorted"), &parts);
        // By default, the program chooses the CPU and prints nothing.
        let run = folder.run(&format!("sort in.{name} -o out.{name} --stats json"));
        assert!(run.code() == Some(0) && run.stderr().contains(r#""engine":"cpu""#), "{}", run.stderr());
        assert_eq!(run.stderr().lines().count(), 1, "{}", run.stderr());
        assert_same(&folder.read::<K>(&format!("out.{name}")), &[K::from_bits(0), K::from_bits(1)], name);
    }
    for_each_type!(K => if !K::ON_GPU { check::<K>() });
}

#[test]
fn engine_gpu_without_a_gpu_says_why_there_is_none() {
    if engines().contains(&"gpu") {
        // With a GPU, `all_types_and_sizes` uses it.
        return;
    }
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    folder.refuses("sort in.u32 -o out.u32 --engine gpu", &["--engine gpu: ", "GPU"]);
    folder.refuses("merge out.u32 out.u32 -o out.u32 --engine gpu", &["out.u32: No such file or directory"]);
}

#[test]
fn any_number_of_threads() {
    let mut random = Random::new();
    let folder = Folder::new();
    let keys = random.keys::<u64>(1_000_003);
    folder.write("in.u64", &keys);
    let expected = sorted(&keys);
    for threads in [1, 2, 3, 64] {
        folder.run(&format!("sort in.u64 -o out.u64 --engine cpu --parallel {threads}")).succeeds();
        assert_same(&folder.read::<u64>("out.u64"), &expected, &format!("{threads} threads"));
    }
}

#[test]
fn a_header_is_copied() {
    let folder = Folder::new();
    let (header, keys) = (*b"a header", Random::new().keys::<u32>(100_003));
    let with_header = |keys: &[u32]| [&header, bytemuck::cast_slice::<_, u8>(keys)].concat();
    let sorted = with_header(&sorted(&keys));
    folder.write("in.u32", &with_header(&keys));
    for flags in ["", "--check", "-S 1M", "-S 1M --check", "--format raw"] {
        folder.run(&format!("sort in.u32 --skip 8 -o out.u32 {flags}")).succeeds();
        assert!(folder.read::<u8>("out.u32") == sorted, "{flags}");
        let run = folder.run_with_input("sort - --skip 8 --type u32", &with_header(&keys));
        assert!(run.stdout() == sorted, "{flags}");
    }
    folder.run("sort in.u32 --skip 8 --top 0 -o out.u32").succeeds();
    assert_eq!(folder.read::<u8>("out.u32"), header);
    folder.run_with_input("sort - --skip 8 --type u32 -u -o out.u32", &with_header(&[7, 5, 7])).succeeds();
    assert_eq!(
        folder.run_with_input("sort - --skip 8 --type u32 -u", &with_header(&[7, 7])).stdout(),
        with_header(&[7])
    );
    assert_eq!(folder.read::<u8>("out.u32"), with_header(&[5, 7]));
    folder.write("in.dat", &with_header(&[7, 1, 5, 2]));
    folder.run("sort in.dat --skip 8 --record-size 8 --key 0:u32 --check -o in.dat").succeeds();
    assert_eq!(folder.read::<u8>("in.dat"), with_header(&[5, 2, 7, 1]));
    // A header of several blocks, before it is known how many threads may run.
    let long = vec![5u8; 3_000_001];
    folder.write("long.u8", &[&long[..], &[9, 7, 8]].concat());
    for command in ["long.u8 --skip 3000001", "long.u8 --skip 3000001 --parallel 1 -S 1M --check"] {
        folder.run(&format!("sort {command} -o out.u8")).succeeds();
        assert!(folder.read::<u8>("out.u8") == [&long[..], &[7, 8, 9]].concat(), "{command}");
    }
    for (flags, parts) in [
        ("in.u32 --skip 9", &["in.u32: length is 400011 bytes, expected a multiple of 4"][..]),
        ("in.u32 --skip 500000", &["in.u32: has 400020 bytes, expected at least 500000, the header by --skip"]),
        ("in.u32 in.u32 --skip 8", &["--skip copies the header of one file IN, found 2"]),
        ("in.u32 --skip 8 --format npy", &["out: is in the format npy, expected a raw file with --skip"]),
        ("in.u32 --skip 8 --argsort", &["--argsort and --skip cannot be used together"]),
        ("-m in.u32 --skip 8", &["--merge and --skip cannot be used together"]),
    ] {
        folder.refuses(&format!("sort {flags} -o out"), parts);
    }
    folder.refuses("sort -c in.u32 --skip 8", &["-c and --skip cannot be used together"]);
    folder.run("sort in.u32 --skip 8 --top 9 -o x.npy --format raw").succeeds();
    folder.run("gen -n 9 -o a.npy --type u32").succeeds();
    folder.refuses("sort a.npy --skip 8 -o out", &["a.npy: has a header of its own by its format"]);
    folder.refuses_input("sort - --skip 8 --type u32 -o out", b"short", &["-: has 5 bytes, expected at least 8"]);
}

#[test]
fn type_beats_extension() {
    let folder = Folder::new();
    folder.write("in.u32", &[-1.5f64, 1.0, -2.0]);
    folder.run("sort in.u32 -o out.i32 --type f64").succeeds();
    assert_eq!(folder.read::<f64>("out.i32"), [-2.0, -1.5, 1.0]);
    // The extension of either file gives the type, in upper or lower case.
    folder.write("in", &[2i32, -1]);
    folder.run("sort in -o out.I32").succeeds();
    assert_eq!(folder.read::<i32>("out.I32"), [-1, 2]);
}

#[test]
fn special_floats_have_their_places() {
    fn check<K: TestKey>(sorted: [K; 8], disorder: &str) {
        let (folder, name) = (Folder::new(), format!("in.{}", K::NAME));
        let mut keys = sorted;
        keys.reverse();
        folder.write(&name, &keys);
        folder.run(&format!("check {name}")).fails(1, &[&format!("{name}: disorder at index 1: {disorder}")]);
        folder.run(&format!("sort {name} -o {name}")).succeeds();
        assert_same(&folder.read::<K>(&name), &sorted, "special floats");
        folder.run(&format!("check {name}")).succeeds();
    }
    let halves = [0xfc00u16, 0xbc00, 0x8000, 0, 0x3c00, 0x7c00, 0x7e00, 0xfe00].map(f16::from_bits);
    check(halves, "NaN (0x7e00) after NaN (0xfe00)");
    let nan = f32::NAN;
    let floats = [f32::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f32::INFINITY, nan, -nan];
    check(floats, "NaN (0x7fc00000) after NaN (0xffc00000)");
}

/// All ways to sort on a GPU.
const ON_GPU: [&str; 6] = [
    "in.f32 -o out.bin",
    "in.f32 -o out.bin -r -u --check",
    "in.f32 -o out.bin -S 1M",
    "in.f32 -o out.bin --values in.rows --values-out out.rows",
    "in.f32 -o out.bin --argsort",
    "in.dat -o out.bin --record-size 8 --key 4:u32",
];

fn folder_of_many_keys() -> Folder {
    let (folder, mut random) = (Folder::new(), Random::new());
    let len = if gpus_are_emulated() { (1 << 18) + 3 } else { (1 << 21) + 3 };
    folder.write("in.f32", &random.keys::<f32>(len));
    folder.write("in.rows", &random.keys::<u32>(len));
    folder.write("in.dat", &random.keys::<u64>(1 << 16));
    folder
}

#[test]
fn all_kernels_write_the_same_file() {
    let folder = folder_of_many_keys();
    let kernels = if engines().contains(&"gpu") { &["auto", "merge-path"][..] } else { &["auto"] };
    for arguments in ON_GPU {
        folder.run(&format!("sort {arguments} --engine cpu")).succeeds();
        let expected = folder.read::<u8>("out.bin");
        for kernel in kernels {
            let engine = engines()[engines().len() - 1];
            let run = folder.run(&format!("sort {arguments} --kernel {kernel} --engine {engine} --stats json"));
            let asked = if *kernel == "auto" { "null" } else { "\"merge-path\"" };
            let said = [format!(r#""kernel":{asked}"#), format!(r#""engine":"{engine}""#)];
            assert!(run.code() == Some(0) && said.iter().all(|part| run.stderr().contains(part)), "{}", run.stderr());
            assert_same(&folder.read::<u8>("out.bin"), &expected, &format!("{arguments} --kernel {kernel}"));
        }
    }
}

#[test]
fn a_kernel_that_is_named_needs_a_gpu() {
    if engines().contains(&"gpu") {
        // With a GPU, `all_kernels_write_the_same_file` uses it.
        return;
    }
    let folder = folder_of_many_keys();
    for arguments in ON_GPU {
        for engine in ["auto", "gpu"] {
            let command = format!("sort {arguments} --engine {engine} --kernel merge-path");
            folder.refuses(&command, &["--kernel merge-path is for GPUs: ", "no GPU"]);
        }
    }
}

#[test]
fn a_kernel_is_refused_where_the_gpu_sorts_nothing() {
    let folder = Folder::new();
    folder.write("in.u32", &[3u32, 1, 2]);
    folder.write("in.u128", &[3u128, 1, 2]);
    let refused = |arguments: &str, parts: &[&str]| {
        folder.refuses(&format!("sort in.u32 {arguments} --kernel merge-path"), parts);
    };
    for flag in ["--engine cpu", "--top 2", "--segment-len 2", "--segments in.u32", "--merge"] {
        let name = if flag == "--engine cpu" { flag } else { flag.split(' ').next().unwrap_or_default() };
        refused(&format!("-o out.u32 {flag}"), &[name, "--kernel merge-path", "cannot be used together"]);
    }
    refused("-c", &["-c and --kernel merge-path cannot be used together"]);
    refused("-C", &["-C and --kernel merge-path cannot be used together"]);
    let parts = ["--kernel merge-path is for GPUs: ", " u128 keys"];
    folder.refuses("sort in.u128 -o out.u128 --kernel merge-path", &parts);
    for flag in ["--engine cpu", "--top 3", "--segment-len 3"] {
        folder.run(&format!("sort in.u32 -o out.u32 {flag} --kernel auto")).succeeds();
        assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3], "{flag}");
    }
}
