//! The program on GPUs that fail: at any call, with too little memory, too old, or not there.
//!
//! With `--engine gpu` the program ends with one error and writes nothing, or has not needed the call. With `--engine
//! auto` the CPU goes on, and the output is right. In either case nothing else is left.
//!
//! `GMERGE_TESTS=all` tries every call of every command line. Otherwise random ones are tried for some seconds.

use super::{ended, example, faults, on_emulated_gpus, random};
use rand::Rng;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Command lines, with the number of GPUs that they use. The output is `out`, and with values also `out.values`.
const COMMANDS: [(&str, usize); 12] = [
    ("sort --type u32 keys.u32 -o out", 1),
    ("sort --type f64 keys.f64 -o out --reverse", 1),
    ("sort --type u32 keys.u32 -o out --values values --values-out out.values", 1),
    ("sort --type u32 keys.u32 -o out --unique", 1),
    ("sort --type u32 keys.u32 -o out --device all", 2),
    ("merge --type u32 a.u32 b.u32 -o out", 1),
    ("merge --type u32 a.u32 b.u32 a.u32 -o out --device all", 2),
    ("batch --type u32 a.u32 b.u32 -o out -d 200", 1),
    ("union --type u32 a.u32 b.u32 -o out", 1),
    ("sort --type u32 keys.u32 -o out --top 30", 1),
    ("sort --type u32 keys.u32 -o out --segment-len 100", 1),
    ("sort --type u32 keys.u32 -o out --check", 1),
];

/// Number of keys of an input.
const KEYS: u32 = 3000;

/// Constants with which `--engine auto` takes the GPU for any keys.
const GPU_COSTS_NOTHING: &str = "gpu_start_ms=0,gpu_call_ms=0,gpu_up=0,gpu_down=0,gpu_sort=0,gpu_merge=0,gpu_file=0,\
    gpu_exchange=0";

/// A folder with inputs.
struct Inputs(tempfile::TempDir);

/// The files of a folder.
type Files = BTreeMap<String, Vec<u8>>;

impl Inputs {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let keys: Vec<u32> = (0..KEYS).map(|i| i.wrapping_mul(0x9e37_79b9) >> 9).collect();
        let (mut a, mut b) = (keys[..KEYS as usize / 2].to_vec(), keys[KEYS as usize / 2..].to_vec());
        a.sort();
        b.sort();
        let floats: Vec<f64> = keys.iter().map(|&key| f64::from(key) - 1e6).collect();
        let values: Vec<u32> = (0..KEYS).collect();
        let write = |name: &str, bytes: &[u8]| fs::write(folder.path().join(name), bytes).unwrap();
        write("keys.f64", bytemuck::cast_slice(&floats));
        for (name, numbers) in [("keys.u32", &keys), ("values", &values), ("a.u32", &a), ("b.u32", &b)] {
            write(name, bytemuck::cast_slice(numbers));
        }
        Self(folder)
    }

    fn files(&self) -> Files {
        let entries = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap());
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
    }

    fn remove_outputs(&self) {
        for name in ["out", "out.values"] {
            let _ = fs::remove_file(self.0.path().join(name));
        }
    }
}

/// A run of the program that has ended, and the files that it has left.
struct Ended {
    what: String,
    output: Output,
    files: Files,
    log: PathBuf,
}

/// Runs a command line on emulated GPUs.
fn run(inputs: &Inputs, log: &Path, arguments: &str, engine: &str, settings: &str) -> Ended {
    inputs.remove_outputs();
    let _ = fs::remove_file(log);
    let mut command = Command::new(example("gmerge"));
    command.args(arguments.split(' ')).args(["--engine", engine, "--progress", "never"]);
    command.current_dir(inputs.0.path()).env("MERGE_HOST_COSTS", GPU_COSTS_NOTHING);
    on_emulated_gpus(&mut command, settings, log);
    let what = format!("{arguments} --engine {engine}, with {settings}");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = ended(&what, command.spawn().unwrap());
    Ended { what, output, files: inputs.files(), log: log.to_owned() }
}

impl Ended {
    fn stderr(&self) -> String {
        String::from_utf8(self.output.stderr.clone()).unwrap()
    }

    /// The run's calls of the driver, with a launch among them.
    fn launches(&self) -> String {
        let calls = fs::read_to_string(&self.log).unwrap();
        assert!(calls.contains("cuLaunchKernel"), "{}: {}", self.what, self.stderr());
        calls
    }

    /// Checks that the run has ended as it must: with the expected files, or with an error and the inputs alone.
    fn check(&self, may_fail: bool, inputs: &Files, expected: &Files) {
        let Self { what, .. } = self;
        let (code, stderr) = (self.output.status.code(), self.stderr());
        assert_eq!(faults(&self.log), "", "{what}");
        assert!(stderr.lines().count() <= 1, "{what}: {stderr}");
        if code == Some(0) {
            assert!(self.files == *expected, "{what}: the output is wrong");
            return;
        }
        assert!(may_fail && code == Some(2), "{what}: {code:?}, {stderr}");
        assert!(stderr.starts_with("gmerge: ") && !stderr.contains("internal error"), "{what}: {stderr}");
        assert!(self.files == *inputs, "{what}: files are left or changed");
    }
}

/// The statuses that a call of the driver can fail with: too little memory, bad code, and errors that a GPU does not
/// recover from, of this call or of earlier work.
fn statuses(call: &str) -> &'static [i32] {
    match call {
        "cuInit" => &[100, 999],
        "cuModuleLoadData" => &[2, 218, 700],
        "cuMemAlloc_v2" | "cuMemAllocHost_v2" | "cuDevicePrimaryCtxRetain" => &[2, 46, 700],
        "cuStreamCreateWithPriority" | "cuEventCreate" | "cuLaunchKernel" => &[2, 700, 719],
        _ => &[700, 999],
    }
}

/// A failing call of a command line: of a function, counted from 1.
struct Failure {
    command: usize,
    function: String,
    call: usize,
    status: i32,
}

#[test]
fn whatever_call_fails_the_cpu_goes_on_or_there_is_one_error() {
    let inputs = Inputs::new();
    let before = inputs.files();
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let (mut failures, mut expected) = (Vec::new(), Vec::new());
    for (command, (arguments, devices)) in COMMANDS.into_iter().enumerate() {
        let settings = format!("devices={devices},seed=1");
        let on_gpu = run(&inputs, &log, arguments, "gpu", &settings);
        let calls = on_gpu.launches();
        let on_cpu = run(&inputs, &log, &arguments.replace(" --device all", ""), "cpu", &settings);
        assert_eq!(on_cpu.output.status.code(), Some(0), "{}: {}", on_cpu.what, on_cpu.stderr());
        on_gpu.check(false, &before, &on_cpu.files);
        let chosen = run(&inputs, &log, arguments, "auto", &settings);
        chosen.launches();
        chosen.check(false, &before, &on_cpu.files);
        expected.push(on_cpu.files);
        let mut counts = HashMap::<&str, usize>::new();
        for function in calls.lines() {
            let call = *counts.entry(function).and_modify(|count| *count += 1).or_insert(1);
            let failure = |&status| Failure { command, function: function.to_owned(), call, status };
            failures.extend(statuses(function).iter().map(failure));
        }
    }
    let (all, mut tried, mut stopped, begin) = (failures.len(), 0, 0, Instant::now());
    let tries_all = tests::cases::tries_all();
    let mut random = random();
    while !failures.is_empty() && (tries_all || begin.elapsed() < Duration::from_secs(5)) {
        let Failure { command, function, call, status } = failures.swap_remove(random.random_range(0..failures.len()));
        let (arguments, devices) = COMMANDS[command];
        let settings = format!("devices={devices},fail={function}:{call}:{status}");
        for (engine, may_fail) in [("gpu", true), ("auto", false)] {
            let ended = run(&inputs, &log, arguments, engine, &settings);
            ended.check(may_fail, &before, &expected[command]);
            stopped += usize::from(may_fail && ended.output.status.code() == Some(2));
        }
        tried += 1;
    }
    println!("{tried} of {all} failing calls were tried, of which {stopped} stopped --engine gpu");
    assert!(stopped > 0, "no failing call has had an effect");
}

#[test]
fn gpus_that_cannot_do_the_work() {
    let (inputs, folder) = (Inputs::new(), tempfile::tempdir().unwrap());
    let (before, log) = (inputs.files(), folder.path().join("log"));
    let arguments = COMMANDS[2].0;
    let expected = run(&inputs, &log, arguments, "cpu", "devices=1").files;
    for (settings, reason) in [
        ("devices=0", "no GPU"),
        ("capability=75", "cuModuleLoadData"),
        ("memory=8192", "memory"),
        ("memory=20000", "memory"),
    ] {
        let on_gpu = run(&inputs, &log, arguments, "gpu", settings);
        on_gpu.check(true, &before, &expected);
        let stderr = on_gpu.stderr();
        assert!(on_gpu.output.status.code() == Some(2) && stderr.contains(reason), "{}: {stderr}", on_gpu.what);
        run(&inputs, &log, arguments, "auto", settings).check(false, &before, &expected);
    }
}
