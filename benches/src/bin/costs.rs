//! Measures the constants of [`CostModel`] on this machine and prints them, for the environment variable
//! `MERGE_HOST_COSTS`.
//!
//! ```text
//! costs GMERGE FOLDER        the program, and the folder of two temporary files of 1 GiB
//! ```
//!
//! Without a GPU, the constants of a GPU keep their defaults. The measurements go to standard error.

use merge_host::{CostModel, Engine, Error, Key, SetOperation, SortOrder, Timing};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use tests::distribution::{key, random};

/// Bytes of the keys of one thread, and of all threads.
const BYTES: [usize; 2] = [1 << 26, 1 << 28];
/// Bytes of transfers to the GPU and back.
const GPU_BYTES: usize = 1 << 30;
/// Runs of each measurement. The median counts.
const RUNS: usize = 5;

fn main() {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [program, folder] = &arguments[..] else { panic!("expected two arguments: the program gmerge, and a folder") };
    let mut costs = CostModel::default();
    // This comes first, because the start of the driver is measured, too.
    let gpu = measure_gpu(&mut costs);
    if let Err(error) = &gpu {
        eprintln!("the constants of a GPU keep their defaults: {error}");
    }
    measure_cpu(&mut costs).expect("the CPU sorts and merges");
    measure_files(&mut costs, gpu.is_ok(), program, folder).expect("the program sorts files");
    println!("{costs}");
}

fn measure_gpu(costs: &mut CostModel) -> Result<(), Error> {
    let mut few = keys::<u32>(1000);
    let start = Instant::now();
    let gpu = Engine::gpu(0)?;
    gpu.sort(&mut few)?;
    drop(gpu);
    costs.gpu_start_ms = round(1e3 * start.elapsed().as_secs_f64());
    let gpu = Engine::gpu(0)?;
    costs.gpu_call_ms = round(1e3 * median(|| seconds(|| gpu.sort(&mut few).map(drop)))?);

    let input = keys::<u32>(GPU_BYTES / 4);
    let mut sorted = input.clone();
    gpu.sort(&mut sorted)?;
    let timings = times(|| {
        sorted.copy_from_slice(&input);
        gpu.sort(&mut sorted)
    })?;
    let a_byte = |of: fn(&Timing) -> Duration| {
        let mut all: Vec<f64> = timings.iter().map(|timing| of(timing).as_secs_f64()).collect();
        all.sort_by(f64::total_cmp);
        round(1e9 * all[RUNS / 2] / GPU_BYTES as f64)
    };
    costs.gpu_up = a_byte(|timing| timing.upload);
    costs.gpu_down = a_byte(|timing| timing.download);
    costs.gpu_sort = a_byte(|timing| timing.compute);
    let (a, b) = sorted.split_at(sorted.len() / 2);
    let mut out = input;
    gpu.merge(a, b, &mut out)?;
    let merge = median(|| Ok(gpu.merge(a, b, &mut out)?.compute.as_secs_f64()))?;
    costs.gpu_merge = round(1e9 * merge / GPU_BYTES as f64);
    Ok(())
}

fn measure_cpu(costs: &mut CostModel) -> Result<(), Error> {
    let engines = [Engine::cpu_with_threads(1)?, Engine::cpu()];
    (costs.sort4_thread, costs.sort4_shared) =
        fit("sort, u32", &engines, |engine, bytes| sort::<u32>(engine, bytes / 4))?;
    (costs.sort8_thread, costs.sort8_shared) =
        fit("sort, u64", &engines, |engine, bytes| sort::<u64>(engine, bytes / 8))?;
    (costs.sort_pairs_thread, costs.sort_pairs_shared) = mean([
        fit("sort, u32 with u32", &engines, |engine, bytes| sort_pairs::<u32>(engine, bytes / 8))?,
        fit("sort, u64 with u64", &engines, |engine, bytes| sort_pairs::<u64>(engine, bytes / 16))?,
    ]);
    (costs.segments_thread, costs.segments_shared) =
        fit("sort of segments of 100 keys, u32", &engines, |engine, bytes| sort_segments(engine, bytes / 4))?;
    (costs.merge_thread, costs.merge_shared) = fit("merge, u32", &engines, |engine, bytes| merge(engine, bytes / 4))?;
    (costs.set_thread, costs.set_shared) = fit("union, u32", &engines, |engine, bytes| union(engine, bytes / 4))?;
    (costs.top_k_thread, costs.top_k_shared) =
        fit("first 1000 keys, u32", &engines, |engine, bytes| top_k(engine, bytes / 4))?;
    Ok(())
}

/// The additional cost of files. It is computed from sorts of two sizes, so that costs independent of the size cancel.
fn measure_files(costs: &mut CostModel, has_gpu: bool, program: &Path, folder: &Path) -> Result<(), Error> {
    let a_byte = |engine| {
        let [few, many] = BYTES.map(|bytes| sort_file(program, engine, bytes, folder));
        Ok::<_, Error>(1e9 * (many? - few?) / (4 * (BYTES[1] - BYTES[0])) as f64)
    };
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get());
    costs.cpu_file = round((a_byte("cpu")? - costs.sort4_thread / threads as f64 - costs.sort4_shared).max(0.0));
    if has_gpu {
        costs.gpu_file = round((a_byte("gpu")? - costs.gpu_up - costs.gpu_sort - costs.gpu_down).max(0.0));
    }
    Ok(())
}

/// The costs of a thread and of shared resources, in ns per byte, from the times of `work` on one thread and on all
/// threads.
fn fit(
    name: &str,
    engines: &[Engine; 2],
    work: impl Fn(&Engine, usize) -> Result<f64, Error>,
) -> Result<(f64, f64), Error> {
    let threads = thread::available_parallelism().map_or(1, |threads| threads.get());
    let one = 1e9 * work(&engines[0], BYTES[0])? / BYTES[0] as f64;
    let all = 1e9 * work(&engines[1], BYTES[1])? / BYTES[1] as f64;
    eprintln!("{name}: {one:.3} ns a byte on one thread, {all:.3} on {threads}");
    if threads == 1 {
        return Ok((round(one), 0.0));
    }
    let thread = ((one - all) / (1.0 - 1.0 / threads as f64)).clamp(0.0, one);
    Ok((round(thread), round(one - thread)))
}

fn sort<K: Key>(engine: &Engine, n: usize) -> Result<f64, Error> {
    let input = keys::<K>(n);
    let mut sorted = input.clone();
    median(|| {
        sorted.copy_from_slice(&input);
        seconds(|| engine.sort(&mut sorted).map(drop))
    })
}

fn sort_pairs<K: Key>(engine: &Engine, n: usize) -> Result<f64, Error> {
    let input = keys::<K>(n);
    let (mut sorted, mut values) = (input.clone(), input.clone());
    median(|| {
        sorted.copy_from_slice(&input);
        seconds(|| engine.sort_with(SortOrder::Ascending, (&mut sorted, &mut values)).map(drop))
    })
}

fn sort_segments(engine: &Engine, n: usize) -> Result<f64, Error> {
    let input = keys::<u32>(n);
    let (mut sorted, offsets) = (input.clone(), (0..n).step_by(100).chain([n]).collect::<Vec<_>>());
    median(|| {
        sorted.copy_from_slice(&input);
        seconds(|| engine.sort_segments(SortOrder::Ascending, &mut sorted, &offsets).map(drop))
    })
}

fn merge(engine: &Engine, n: usize) -> Result<f64, Error> {
    let ([a, b], mut out) = (sorted_halves(n), vec![0; n]);
    median(|| seconds(|| engine.merge(&a, &b, &mut out).map(drop)))
}

fn union(engine: &Engine, n: usize) -> Result<f64, Error> {
    let ([a, b], mut out) = (sorted_halves(n), Vec::with_capacity(n));
    median(|| seconds(|| engine.set_operation(SetOperation::Union, &a, &b, &mut out).map(drop)))
}

/// `n` keys in two sorted arrays.
fn sorted_halves(n: usize) -> [Vec<u32>; 2] {
    let mut sides = [keys(n / 2), keys(n - n / 2)];
    sides.iter_mut().for_each(|side| side.sort_unstable());
    sides
}

fn top_k(engine: &Engine, n: usize) -> Result<f64, Error> {
    let (input, mut out) = (keys::<u32>(n), [0; 1000]);
    median(|| seconds(|| engine.top_k(SortOrder::Ascending, &input, &mut out).map(drop)))
}

/// The time in which the program sorts a file of `keys` keys on an engine, in seconds. It includes the start and the
/// end of the program.
fn sort_file(program: &Path, engine: &str, keys: usize, folder: &Path) -> Result<f64, Error> {
    let paths = ["in", "out"].map(|name| folder.join(format!("merge-host-costs.{name}.u32")));
    let run = |arguments: &[&OsStr]| {
        let done = Command::new(program).args(arguments).status();
        let part = || format!("{} {arguments:?}", program.display());
        done.is_ok_and(|status| status.success())
            .then_some(())
            .ok_or_else(|| Error::Costs { part: part(), expected: "success" })
    };
    run(&["gen".as_ref(), "-n".as_ref(), keys.to_string().as_ref(), "-o".as_ref(), paths[0].as_ref()])?;
    let sort =
        ["sort".as_ref(), paths[0].as_ref(), "-o".as_ref(), paths[1].as_ref(), "--engine".as_ref(), engine.as_ref()];
    let measured = median(|| {
        let _ = fs::remove_file(&paths[1]);
        seconds(|| run(&sort))
    });
    paths.iter().for_each(|path| drop(fs::remove_file(path)));
    measured
}

fn keys<K: Key>(n: usize) -> Vec<K> {
    (0..n as u64).map(|i| key(random(i, 1))).collect()
}

fn seconds(work: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

fn times(mut work: impl FnMut() -> Result<Timing, Error>) -> Result<Vec<Timing>, Error> {
    (0..RUNS).map(|_| work()).collect()
}

fn median(mut work: impl FnMut() -> Result<f64, Error>) -> Result<f64, Error> {
    let mut all = (0..RUNS).map(|_| work()).collect::<Result<Vec<_>, _>>()?;
    all.sort_by(f64::total_cmp);
    Ok(all[RUNS / 2])
}

fn mean(of: [(f64, f64); 2]) -> (f64, f64) {
    (round((of[0].0 + of[1].0) / 2.0), round((of[0].1 + of[1].1) / 2.0))
}

/// Rounds to four digits after the point.
fn round(number: f64) -> f64 {
    (number * 1e4).round() / 1e4
}
