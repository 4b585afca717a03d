//! `--engine` of operations other than sorts and merges of whole files: segments, set operations, and the first keys.

use crate::common::{Folder, Random, Run, engines, sorted};

/// Commands on the files of [`folder`], each with constants of the cost model that make `auto` choose a GPU.
const COMMANDS: [(&str, &str); 8] = [
    ("sort a.u32 --segment-len 1000 -o out.u32", "segments_thread=1000"),
    ("sort a.u32 --segment-len 50000 -o out.u32", "sort4_thread=1000"),
    ("sort a.u32 --segments offsets.u64 --values a.u32 --values-out v.u32 -o out.u32", "sort_pairs_thread=1000"),
    ("sort a.u32 b.u32 --top 1000 -o out.u32", "top_k_thread=1000"),
    ("union a.u32 b.u32 -o out.u32", "set_thread=1000"),
    ("intersect a.u32 b.u32 -o out.u32", "set_thread=1000"),
    ("difference a.u32 b.u32 -o out.u32", "set_thread=1000"),
    ("symmetric-difference a.u32 b.u32 -o out.u32", "set_thread=1000"),
];

/// Two sorted files, where the second has every third key of the first, and offsets of segments.
fn folder() -> Folder {
    let (mut random, folder) = (Random::new(), Folder::new());
    let a = sorted(&random.keys::<u32>(100_000));
    let mut b = random.keys::<u32>(50_000);
    b.extend(a.iter().step_by(3));
    folder.write("a.u32", &a);
    folder.write("b.u32", &sorted(&b));
    folder.write("offsets.u64", &[0u64, 3, 3, 40_000, 100_000]);
    folder
}

/// Runs the command with these constants for the choice of `auto`.
fn run_with_costs(folder: &Folder, command: &str, costs: &str) -> Run {
    folder.shell(&format!("export MERGE_HOST_COSTS={costs}\ngmerge {command}"))
}

#[test]
fn engines_write_the_same_and_say_which_of_them_it_was() {
    let folder = folder();
    for (command, costs) in COMMANDS {
        folder.run(&format!("{command} --engine cpu")).succeeds();
        let expected = folder.read::<u32>("out.u32");
        assert!(!expected.is_empty(), "{command}");
        for engine in engines() {
            folder.write("out.u32", &[0u8; 0]);
            let run = folder.run(&format!("{command} --engine {engine} --stats json"));
            assert!(run.code() == Some(0) && run.stderr().contains(&format!(r#""engine":"{engine}""#)), "{command}");
            assert!(folder.read::<u32>("out.u32") == expected, "{command} --engine {engine}");
        }
        // By the default constants, this number of keys does not justify the start of a GPU.
        let run = folder.run(&format!("{command} -v"));
        let said = "engine: cpu, because ";
        assert!(run.code() == Some(0) && run.stderr().contains(said), "{command}: {}", run.stderr());
        assert!(run.stderr().contains(" on the GPU are estimated"), "{command}: {}", run.stderr());
        // A GPU without costs is chosen, if there is a GPU.
        folder.write("out.u32", &[0u8; 0]);
        let run = run_with_costs(&folder, &format!("{command} -v --stats json"), &format!("gpu_start_ms=0,{costs}"));
        let has_gpu = engines().contains(&"gpu");
        let (engine, why) = if has_gpu { ("gpu", "are estimated") } else { ("cpu", "the GPU cannot be used: ") };
        let stderr = run.stderr();
        assert!(run.code() == Some(0) && stderr.contains(&format!(r#""engine":"{engine}""#)), "{command}: {stderr}");
        let line = stderr.lines().find(|line| line.contains("engine: ")).expect("the engine is said");
        assert!(line.contains(&format!("engine: {engine}, because ")) && line.contains(why), "{command}: {stderr}");
        assert!(folder.read::<u32>("out.u32") == expected, "{command}");
    }
}

#[test]
fn without_a_driver_the_gpu_is_an_error() {
    if engines().contains(&"gpu") {
        return println!("not tested: there is a GPU");
    }
    let folder = folder();
    for (command, _) in COMMANDS {
        folder.refuses(&format!("{command} --engine gpu"), &["--engine gpu: ", "--engine auto would take the CPU"]);
    }
    // This also holds without work, and for input from a pipe.
    for command in ["sort - --type u32 --top 3", "sort - --type u32 --segment-len 2", "union - a.u32"] {
        folder.refuses(&format!("{command} -o out.u32 --engine gpu"), &["--engine gpu: "]);
    }
}

#[test]
fn types_without_kernels_are_an_error_on_the_gpu_and_for_the_cpu_otherwise() {
    let folder = Folder::new();
    folder.write("a.u128", &[1u128, 2, 3]);
    folder.write("b.u128", &[3u128, 4, 5]);
    for (command, expected) in [
        ("sort b.u128 a.u128 --segment-len 3", &[3, 4, 5, 1, 2, 3][..]),
        ("sort b.u128 a.u128 --top 4", &[1, 2, 3, 3]),
        ("intersect a.u128 b.u128", &[3]),
    ] {
        folder.refuses(&format!("{command} -o out.u128 --engine gpu"), &["--engine gpu: ", "no kernels for u128 keys"]);
        let run = folder.run(&format!("{command} -o out.u128 -v"));
        let said = "engine: cpu, because GPUs have no kernels for u128 keys";
        assert!(run.code() == Some(0) && run.stderr().contains(said), "{command}: {}", run.stderr());
        assert_eq!(folder.read::<u128>("out.u128"), expected, "{command}");
    }
}

#[test]
fn set_operations_that_do_not_fit_in_memory_are_for_the_cpu() {
    let folder = folder();
    let parts = ["--engine gpu: does set operations in memory", "of 1048576 that --memory allows", "--engine auto"];
    folder.refuses("union a.u32 b.u32 -o out.u32 -S 1M --engine gpu", &parts);
    folder.run("union a.u32 b.u32 -o want.u32").succeeds();
    let run =
        run_with_costs(&folder, "union a.u32 b.u32 -o out.u32 -S 1M -v --stats json", "gpu_start_ms=0,set_thread=9");
    let said = ["merged by the CPU while read", r#""engine":"cpu""#];
    assert!(run.code() == Some(0) && said.iter().all(|said| run.stderr().contains(said)), "{}", run.stderr());
    assert!(folder.read::<u32>("out.u32") == folder.read::<u32>("want.u32"));
}
