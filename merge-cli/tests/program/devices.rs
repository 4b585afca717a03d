//! `--device`

use crate::common::{Folder, Random, engines, sorted};
use crate::oracle::samples::Subject;
use crate::set_operations;

/// A command for two inputs on GPUs, to `out.u32`.
const COMMANDS: [&str; 7] = [
    "sort a.u32 b.u32 -o out.u32",
    "sort --merge a.u32 b.u32 -o out.u32",
    "merge a.u32 b.u32 -o out.u32",
    "batch a.u32 b.u32 -d 2 -o out.u32",
    "sort --segment-len 4 a.u32 b.u32 -o out.u32",
    "sort --top 9 a.u32 b.u32 -o out.u32",
    "union a.u32 b.u32 -o out.u32",
];

/// Two sorted inputs, and an output of an earlier run.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("a.u32", &[1u32, 3]);
    folder.write("b.u32", &[2u32, 4]);
    folder.write("out.u32", &[7u32; 3]);
    folder
}

#[test]
fn lists_of_devices_that_are_none_are_refused() {
    const EXPECTED: &str = "expected all, or numbers of GPUs like 0 or 0,1";
    let folder = folder();
    for command in COMMANDS {
        for (list, found) in [
            ("", EXPECTED),
            ("x", EXPECTED),
            ("-1", EXPECTED),
            ("0,", EXPECTED),
            ("all,0", EXPECTED),
            ("99999999999999999999", EXPECTED),
            ("0,0", "GPU 0 is there twice"),
            ("1,0,1", "GPU 1 is there twice"),
        ] {
            folder.shell(&format!("gmerge {command} --device '{list}'")).fails(2, &["--device", found]);
            folder.refuses(&format!("{command} --device={list}"), &["--device", found]);
        }
        folder.refuses(&format!("{command} --device"), &["--device"]);
    }
}

#[test]
fn devices_are_refused_for_the_cpu() {
    let folder = folder();
    for command in COMMANDS {
        for list in ["0", "0,1", "all"] {
            let parts = ["--device and --engine cpu cannot be used together", "the CPU needs no GPU"];
            folder.refuses(&format!("{command} --device {list} --engine cpu"), &parts);
        }
    }
    // This error comes before any file is opened, and before a list of names is read.
    for command in [
        "merge none.u32 a.u32",
        "merge --files0-from none",
        "batch none.u32 a.u32 -d 2",
        "sort none.u32",
        "intersect none.u32 a.u32",
    ] {
        let parts = ["--device and --engine cpu cannot be used together"];
        folder.refuses(&format!("{command} -o out.u32 --device 0 --engine cpu"), &parts);
    }
    for flag in ["-c", "-C"] {
        for list in ["0", "all"] {
            let parts = [&*format!("{flag} and --device cannot be used together"), "CPU"];
            folder.refuses(&format!("sort a.u32 {flag} --device {list}"), &parts);
        }
    }
}

#[test]
fn commands_without_an_engine_have_no_devices() {
    let (mut with, folder) = (vec![], folder());
    for subject in Subject::all(|_, _| false) {
        assert_eq!(subject.has_flag("device"), subject.has_flag("engine"), "{}", subject.name());
        if subject.has_flag("device") {
            with.push(subject.name().to_owned());
        } else {
            folder.refuses(&format!("{} --device 0", subject.name()), &["--device"]);
        }
    }
    assert_eq!(with, [["sort", "merge", "batch"].as_slice(), &set_operations::COMMANDS].concat());
}

#[test]
fn engine_auto_works_with_any_devices() {
    let folder = folder();
    for command in COMMANDS {
        for list in ["0", "all", "0,1", "1,0", "1000"] {
            folder.write("out.u32", &[7u32; 3]);
            folder.run(&format!("{command} --device {list}")).succeeds();
            assert_eq!(folder.read::<u32>("out.u32"), [1, 2, 3, 4], "{command} --device {list}");
        }
    }
    // With the constants in the environment, this number of keys would start a GPU.
    let (mut random, folder) = (Random::new(), Folder::new());
    let keys = random.keys::<f32>(300_000);
    folder.write("in.f32", &keys);
    for (list, memory) in [("0", ""), ("all", ""), ("0,1000", ""), ("all", "-S 1M")] {
        let sort = format!("gmerge sort in.f32 -o out.f32 --device {list} {memory} --stats json");
        let run =
            folder.shell(&format!("export MERGE_HOST_COSTS=gpu_start_ms=0,gpu_call_ms=0,sort4_thread=1000\n{sort}"));
        let expected = if engines().contains(&"gpu") && list != "0,1000" { "gpu" } else { "cpu" };
        let said = format!(r#""engine":"{expected}""#);
        assert!(run.code() == Some(0) && run.stderr().contains(&said), "{sort}: {}", run.stderr());
        assert!(folder.read::<u32>("out.f32") == bytemuck::cast_slice::<_, u32>(&sorted(&keys)), "{sort}");
    }
}

#[test]
fn a_device_that_does_not_exist_is_an_error() {
    let folder = folder();
    let named = ["--engine gpu", "--engine gpu --kernel merge-path", "--kernel merge-path"];
    let lists = if engines().contains(&"gpu") { &["1000", "0,1000"][..] } else { &["0", "5", "1000", "0,1000", "all"] };
    for list in lists {
        for flags in named {
            let named = if flags == "--engine gpu" { flags } else { "--kernel merge-path" };
            folder.refuses(&format!("sort a.u32 -o out.u32 {flags} --device {list}"), &[named, "GPU"]);
        }
        for command in COMMANDS {
            folder.refuses(&format!("{command} --engine gpu --device {list}"), &["--engine gpu: ", "GPU"]);
        }
    }
}
