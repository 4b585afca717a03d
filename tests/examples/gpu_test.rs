//! Compares all operations of the GPU engine with the CPU engine, also on arrays in device memory, and tests that these
//! arrays cannot be misused. Then prints a short timing table.
//!
//! ```text
//! gpu_test [--seed S] [--sorts | --groups | [--frequent] [--many-runs] [--segments] [--sets] [--small] [--top]
//!           [--top-segments] [--widths]]
//!          [--keys TYPE] [--large] [--no-check] [--no-time] [--lg-n L]
//! ```
//!
//! `--seed` determines the keys of comparisons. By default, the seed is the time. The keys of the table are always the
//! same as in `cargo bench` and in benches/peers. A row of a sort ends with the digest of its keys, which all three
//! programs print. The distributions are sorted with 2^L keys, by default 2^28.
//!
//! `--sorts` compares only sorts that may divide keys, and sorts with values. `--groups` compares only operations of
//! groups of GPUs. Eight options select operations to compare and time. `--frequent` selects sorts of keys with
//! frequent values, `--many-runs` merges of the runs of an array and of groups of runs, and `--segments` sorts of
//! segments. `--sets` selects operations on sorted keys, and `--top` the first k keys. They have 2^L keys of type
//! `u32`, and 2^L / 2 of type `u64`. `benches/peers/run operations` prints the same rows for peers in C++.
//! `--top-segments` selects the first k keys of segments, and times matrices of `f32`: a row's name has k, the number
//! of rows of the matrix, and their length. `--widths` selects sorts of keys of 1, 2 and 16 bytes, with 2^L keys of 1
//! and 2 bytes, and 2^L / 2 of 16. `--small` selects sorts by one block, and operations on elements whose number only
//! the GPU knows; it times 2^8 to 2^14 keys, and up to 2^24. `--keys` compares keys of one type, so that a process for
//! each type takes less time than one process for all types. `--sorts` and `--keys` exclude `--no-check`. `--large`
//! adds operations on more than 2^32 keys: a sort and merges, also with `--sorts`. It adds sorts of segments,
//! operations on sorted keys and the first k keys, also with `--segments`, `--sets` and `--top`.
//!
//! Ends with 0 if everything agrees. A machine without a GPU is a failure, because nothing can be tested there.

use merge_host::{
    BatchKernel, Descending, DeviceArray, DeviceOffsets, Engine, Error, Event, Gpu, GpuKey, Key, MergeKernel, NanFirst,
    NanLast, NanOrder, SortKernel, SortOptions, SortOrder, Stream, Timing, f16, first_unsorted, workspace,
};
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;
use tests::bank_conflicts::conflicting;
use tests::course_sort::{CourseSort, FirstPasses};
use tests::distribution::{Distribution, digest, key, mix};
use tests::parts::part;

#[path = "gpu_test/counted.rs"]
mod counted;
#[path = "gpu_test/cuda.rs"]
mod cuda;
#[path = "gpu_test/frequent.rs"]
mod frequent;
#[path = "gpu_test/groups.rs"]
mod groups;
#[path = "gpu_test/large.rs"]
mod large;
#[path = "gpu_test/many_ragged.rs"]
mod many_ragged;
#[path = "gpu_test/many_runs.rs"]
mod many_runs;
#[path = "gpu_test/segments.rs"]
mod segments;
#[path = "gpu_test/sets.rs"]
mod sets;
#[path = "gpu_test/small.rs"]
mod small;
#[path = "gpu_test/streams.rs"]
mod streams;
#[path = "gpu_test/table.rs"]
mod table;
#[path = "gpu_test/top_k.rs"]
mod top_k;
#[path = "gpu_test/top_k_segments.rs"]
mod top_k_segments;
#[path = "gpu_test/widths.rs"]
mod widths;

/// Calls a generic method for each type of keys of the GPU.
macro_rules! of_all_types {
    ($test:ident.$method:ident, $what:literal) => {
        of_all_types!($test.$method, $what: u32 i32 f32 u64 i64 f64);
    };
    ($test:ident.$method:ident, $what:literal: $($K:ident)*) => {
        $(
            if $test.takes::<$K>() {
                $test.$method::<$K>();
                $test.report(concat!($what, " of ", stringify!($K)));
            }
        )*
    };
}

/// A part of the test: its option, its comparisons, its comparisons with more than 2^32 keys, and its timings with a
/// number of keys of type `u32`.
struct Part {
    option: &'static str,
    check: fn(&mut Test),
    check_large: fn(&mut Test),
    time: fn(&Test, usize) -> Result<(), Error>,
}

const PARTS: [Part; 8] = [
    Part {
        option: "--frequent",
        check: |test| {
            of_all_types!(test.check_frequent, "sorts of keys with frequent values");
        },
        check_large: |_| (),
        time: |test, n| test.time_frequent::<u32>(n).and_then(|()| test.time_frequent::<u64>(n / 2)),
    },
    Part {
        option: "--many-runs",
        check: |test| {
            of_all_types!(test.check_many_runs, "merges of the runs of an array");
            of_all_types!(test.check_many_runs_graph, "graphs of merges of runs": u32 f64);
            of_all_types!(test.check_many_ragged, "merges of groups of runs");
            of_all_types!(test.check_many_ragged_graph, "graphs of merges of groups of runs": u32 f64);
        },
        check_large: |_| (),
        time: |test, n| {
            test.time_many_runs::<u32>(n)?;
            test.time_many_runs::<u64>(n / 2)?;
            test.time_many_ragged::<u32>(n)?;
            test.time_many_ragged::<u64>(n / 2)
        },
    },
    Part {
        option: "--segments",
        check: |test| {
            of_all_types!(test.check_segments, "sorts of segments");
            of_all_types!(test.check_segments_graph, "graphs of sorts of segments": u32 f64);
        },
        check_large: Test::check_large_segments,
        time: |test, n| test.time_segments::<u32>(n).and_then(|()| test.time_segments::<u64>(n / 2)),
    },
    Part {
        option: "--sets",
        check: |test| {
            of_all_types!(test.check_sets, "operations on sorted keys");
            of_all_types!(test.check_sets_graph, "graphs of operations on sorted keys": u32 f64);
        },
        check_large: Test::check_large_sets,
        time: |test, n| test.time_sets::<u32>(n).and_then(|()| test.time_sets::<u64>(n / 2)),
    },
    Part {
        option: "--small",
        check: |test| {
            of_all_types!(test.check_small, "sorts by one block");
            of_all_types!(test.check_counted, "elements whose number the GPU knows");
            of_all_types!(test.check_counted, "narrow keys whose number the GPU knows": u8 f16);
            of_all_types!(test.check_counted_selections, "selections from keys whose number the GPU knows");
            of_all_types!(test.check_counted_selections, "narrow keys to select from": u8 f16);
            of_all_types!(test.check_counted_groups, "segments whose number the GPU knows");
            of_all_types!(test.check_counted_groups, "narrow keys in such segments": u8 f16);
        },
        check_large: |_| (),
        // The numbers of keys belong to the rows.
        time: |test, _| {
            test.time_small::<u32>()?;
            test.time_small::<u64>()?;
            test.time_counted::<u32>()?;
            test.time_counted::<u64>()
        },
    },
    Part {
        option: "--top",
        check: |test| {
            of_all_types!(test.check_top_k, "the first k keys");
            of_all_types!(test.check_top_k_graph, "graphs of the first k keys": u32 f64);
        },
        check_large: Test::check_large_top_k,
        time: |test, n| test.time_top_k::<u32>(n).and_then(|()| test.time_top_k::<u64>(n / 2)),
    },
    Part {
        option: "--top-segments",
        check: |test| {
            of_all_types!(test.check_top_k_segments, "the first k keys of segments");
            of_all_types!(test.check_top_k_segments_graph, "graphs of the first k keys of segments": u32 f64);
        },
        check_large: |_| (),
        // The numbers of keys belong to the shapes.
        time: |test, _| test.time_top_k_segments::<f32>(),
    },
    Part {
        option: "--widths",
        check: |test| {
            of_all_types!(test.check_widths, "sorts by width": u8 i8 u16 i16 f16 u128 i128);
            of_all_types!(test.check_top_k, "the first k narrow keys": u16);
            of_all_types!(test.check_top_k_segments, "the first k narrow keys of segments": u8);
            of_all_types!(test.check_sets, "operations on sorted narrow keys": u16);
            of_all_types!(test.check_segments, "sorts of segments of narrow keys": f16);
            of_all_types!(test.check_many_runs, "merges of runs of narrow keys": i16);
        },
        check_large: |_| (),
        time: |test, n| {
            test.time_widths::<u8>(n)?;
            test.time_widths::<u16>(n)?;
            test.time_widths::<u128>(n / 2)
        },
    },
];

/// The arguments of the program.
struct Options(Vec<String>);

impl Options {
    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|option| option == name)
    }

    /// The argument after this one.
    fn after(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|option| option == name)?;
        Some(self.0.get(at + 1).map_or("", String::as_str))
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.after(name).map(|number| number.parse().unwrap_or_else(|_| panic!("{name} takes a number")))
    }

    /// The one type of keys that is compared.
    fn keys(&self) -> Option<&'static str> {
        let find = |name| TYPES.into_iter().find(|of| *of == name);
        self.after("--keys").map(|name| find(name).unwrap_or_else(|| panic!("--keys takes one of {TYPES:?}")))
    }

    fn chosen(&self) -> Vec<Part> {
        PARTS.into_iter().filter(|part| self.has(part.option)).collect()
    }

    /// Why these options exclude each other.
    fn conflict(&self) -> Option<&'static str> {
        let [sorts, groups, no_check] = ["--sorts", "--groups", "--no-check"].map(|name| self.has(name));
        if groups && (sorts || no_check) {
            Some("--groups compares what groups of GPUs do, and nothing else")
        } else if !self.chosen().is_empty() && (sorts || groups) {
            Some(
                "--frequent, --many-runs, --segments, --sets, --small, --top, --top-segments and --widths go with \
                 each other, and not with --sorts or --groups",
            )
        } else if (sorts || self.has("--keys")) && no_check {
            Some("--sorts and --keys say what is compared, and --no-check that nothing is")
        } else {
            None
        }
    }
}

fn main() -> ExitCode {
    let options = Options(std::env::args().skip(1).collect());
    if let Some(why) = options.conflict() {
        eprintln!("gpu_test: {why}");
        return ExitCode::FAILURE;
    }
    let now = || std::time::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_nanos() as u64);
    let (keys, seed) = (options.keys(), options.number("--seed").unwrap_or_else(now));
    let gpu = match Engine::gpu(0) {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("gpu_test: nothing was tested: {error}");
            return ExitCode::FAILURE;
        }
    };
    let devices = merge_host::devices().expect("there is a GPU");
    let (major, minor) = merge_host::driver_version().expect("there is a driver");
    println!("{} GPUs, of which only the part for groups uses more than the first", devices.len());
    println!("{}, driver for CUDA {major}.{minor}, seed {seed}", devices[0].name);
    let mut test =
        Test { gpu, cpu: Engine::cpu(), keys, random: Random(seed), start: Instant::now(), checks: 0, failures: 0 };
    let (n, chosen) = (1 << options.number("--lg-n").unwrap_or(28), options.chosen());
    if !options.has("--no-check") {
        if chosen.is_empty() {
            test.check_all(&options)
        } else {
            test.check_parts(&chosen, options.has("--large"))
        }
        println!("{} checks, {} failed", test.checks, test.failures);
    }
    if test.failures == 0 && !options.has("--no-time") {
        if chosen.is_empty() {
            test.time(n).expect("the GPU works");
        } else {
            table::head();
            chosen.iter().for_each(|part| (part.time)(&test, n).expect("the GPU works"));
        }
    }
    test.verdict()
}

/// The types of keys of the GPU.
const TYPES: [&str; 13] = ["u8", "i8", "u16", "i16", "f16", "u32", "i32", "f32", "u64", "i64", "f64", "u128", "i128"];

/// SplitMix64 (Steele, Lea and Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
}

/// A kind of input: its name, and the function from a random word to a key's bits.
type Kind = (&'static str, fn(u64) -> u64);

/// Kinds of input; `key` maps the bits to a key.
const KINDS: [Kind; 3] = [
    // Every bit pattern. For floats, it includes NaNs of both signs with many payloads.
    ("uniform", |word| word),
    // 16 values. For floats, they are zeros, NaNs and infinities of both signs.
    ("dups16", |word| (word & 3).wrapping_mul(0x7ff0_0000_7f80_0000) ^ ((word & 12) << 60) ^ ((word >> 2 & 3) << 30)),
    ("equal", |_| 0x8000_0000_8000_0000),
];

/// Kinds of keys of 8 bytes. Few keys of the first kind, and many of the second, differ only in bits that a packed key
/// does not hold.
const KINDS_BY_LOW_BITS: [Kind; 2] = [
    ("1024 upper halves", |word| mix(word & 1023) >> 32 << 32 | word >> 44),
    ("low bits", |word| if word.is_multiple_of(1 << 12) { word } else { word >> 51 }),
];

/// Kinds of keys for the MSD radix sort. They cover all its decisions about whether keys are divided, and how often.
const KINDS_TO_DIVIDE: [Kind; 8] = [
    ("uniform", |word| word),
    ("in a narrow range", |word| 5_000_000_000 + word % 1000),
    ("half zeros", |word| if word & 1 == 0 { 0 } else { mix(word) }),
    ("one bucket a bit", |word| mix(word) >> (word % 64)),
    ("in 256 clusters", |word| mix(word & 255) ^ word >> 52),
    ("bits ANDed", |word| word & mix(word)),
    // A float of 4 bytes in each half.
    ("from 0 to 1", |word| ((word >> 40) as f32 / 16_777_216.0).to_bits() as u64 * 0x1_0000_0001),
    (
        "all but a few in one bucket",
        |word| if word.is_multiple_of(100_003) { mix(word) } else { 77_000_000 + (word >> 44) },
    ),
];

fn bytes<K: Key>(keys: &[K]) -> &[u8] {
    bytemuck::cast_slice(keys)
}

struct Test {
    gpu: Engine,
    cpu: Engine,
    /// The type of the compared keys, or `None` for all types.
    keys: Option<&'static str>,
    random: Random,
    start: Instant,
    checks: usize,
    failures: usize,
}

impl Test {
    fn verdict(&self) -> ExitCode {
        if self.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    /// The comparisons of these parts.
    fn check_parts(&mut self, parts: &[Part], with_large: bool) {
        parts.iter().for_each(|part| (part.check)(self));
        if with_large {
            parts.iter().for_each(|part| (part.check_large)(self));
        }
    }

    /// All comparisons but those that options leave out.
    fn check_all(&mut self, options: &Options) {
        let test = self;
        let [sorts, groups, large] = ["--sorts", "--groups", "--large"].map(|name| options.has(name));
        if !sorts {
            of_all_types!(test.check_groups, "groups of GPUs": u32 f32 i64 f64);
        }
        if !sorts && !groups {
            of_all_types!(test.check_through, "calls through functions": u32 f64);
            of_all_types!(test.check_order, "orders": u32 f64);
            of_all_types!(test.check_prepared, "prepared work": u32 f64);
            of_all_types!(test.check_course_sort, "the course's sort");
            test.check_uploads();
            of_all_types!(test.check_streams, "arrays of streams": u32 f64);
            test.check_misuse();
            test.report("arrays that are misused");
            of_all_types!(test.check_addresses, "arrays by address": i32 u64);
            test.check_excessive_lengths();
            of_all_types!(test.check_graph, "graphs": u32 f64);
            of_all_types!(test.check_sort_graph, "graphs of sorts");
            of_all_types!(test.check, "all operations on keys");
            of_all_types!(test.check_pairs, "merges with values");
            of_all_types!(test.check_many, "merges of many runs");
            of_all_types!(test.check_descending, "descending keys": f32 i64);
            of_all_types!(test.check_nans, "keys with NaNs at one end": f32 f64);
            test.check_long_runs();
            test.report("merges of long runs");
            test.check_parts(&PARTS, false);
        }
        if !groups {
            of_all_types!(test.check_ordered, "sorts of keys in order");
            of_all_types!(test.check_displaced, "sorts of displaced keys");
            of_all_types!(test.check_divisions, "divisions");
            of_all_types!(test.check_sort_pairs, "sorts with values");
            of_all_types!(test.check_many_divisions, "divisions of many keys");
        }
        if large {
            test.large();
            if !sorts && !groups {
                PARTS.iter().for_each(|part| (part.check_large)(test));
            }
        }
    }

    /// Whether keys of this type are compared.
    fn takes<K: Key>(&self) -> bool {
        self.keys.is_none_or(|name| name == K::NAME)
    }

    /// The GPU that is tested.
    fn device(&self) -> &Gpu {
        self.gpu.as_gpu_group().and_then(|group| group.gpus().next()).expect("this is the GPU engine")
    }

    fn keys<K: Key>(&mut self, n: usize, kind: fn(u64) -> u64) -> Vec<K> {
        (0..n).map(|_| key(kind(self.random.next()))).collect()
    }

    fn sorted<K: Key>(&mut self, n: usize, kind: fn(u64) -> u64) -> Vec<K> {
        let mut keys = self.keys(n, kind);
        self.cpu.sort(&mut keys).expect("the CPU sorts");
        keys
    }

    /// Prints the number of checks so far, so that an interrupted run shows what it has checked.
    fn report(&self, up_to: &str) {
        let seconds = self.start.elapsed().as_secs();
        println!("up to {up_to}: {} checks, {} failed, {seconds} s", self.checks, self.failures);
    }

    fn expect<K: Key>(&mut self, what: impl Fn() -> String, found: Result<Vec<K>, Error>, expected: &[K]) {
        self.checks += 1;
        let problem = match found {
            Err(error) => error.to_string(),
            Ok(found) => match bytes(&found)
                .chunks(size_of::<K>())
                .zip(bytes(expected).chunks(size_of::<K>()))
                .position(|(x, y)| x != y)
            {
                None if found.len() == expected.len() => return,
                at => format!("differs from the CPU's result at key {at:?} of {}", expected.len()),
            },
        };
        self.failures += 1;
        eprintln!("FAILED {} {}: {problem}", K::NAME, what());
    }

    fn check<K: Key>(&mut self) {
        let tile = kernels_gpu::tuning::merge(size_of::<K>(), 0).keys();
        let block = kernels_gpu::tuning::block(size_of::<K>()).keys();
        let sizes =
            [0, 1, 2, 3, 31, 32, 33, 1000, 1023, 1024, 1025, 2047, 2048, 2049, tile - 1, tile, tile + 1, 2 * tile - 1];
        let sizes: Vec<usize> = sizes
            .into_iter()
            .chain([block - 1, block, block + 1, 2 * block, 3 * block + 17, 4 * block - 1])
            .chain([100_003, 1 << 20, 3_000_017])
            .collect();
        for (name, kind) in KINDS {
            for &n in &sizes {
                let keys: Vec<K> = self.keys(n, kind);
                let mut expected = keys.clone();
                self.cpu.sort(&mut expected).expect("the CPU sorts");
                let mut found = keys;
                let result = self.gpu.sort(&mut found).map(|_| found);
                self.expect(|| format!("sort of {n} {name}"), result, &expected);
                expected.reverse();
                let mut found = expected.clone();
                found.rotate_left(n / 3);
                let result = self.gpu.sort_with(SortOrder::Descending, &mut found).map(|_| found);
                self.expect(|| format!("descending sort of {n} {name}"), result, &expected);
                for nans in [NanOrder::Last, NanOrder::First] {
                    let mut found = expected.clone();
                    found.rotate_left(n / 3);
                    self.cpu.sort_with(nans, &mut expected).expect("the CPU sorts");
                    let result = self.gpu.sort_with(nans, &mut found).map(|_| found);
                    self.expect(|| format!("sort of {n} {name}, NaNs {nans}"), result, &expected);
                }

                for m in [0, n.min(1), n / 3, n / 2, n - n / 1000, n] {
                    let (a, b): (Vec<K>, Vec<K>) = (self.sorted(m, kind), self.sorted(n - m, kind));
                    self.check_merges(&format!("{name}, {m} + {}", n - m), &a, &b);
                }
            }
        }
        // All keys of one side precede all keys of the other.
        let both: Vec<K> = self.sorted(50_021, |word| word);
        let (low, high) = both.split_at(20_011);
        self.check_merges("A before B", low, high);
        self.check_merges("B before A", high, low);

        // Unsorted input: any order is accepted, but the call must return and the engine must stay usable.
        let (a, b): (Vec<K>, Vec<K>) = (self.keys(30_011, |word| word), self.keys(40_009, |word| word));
        for kernel in MergeKernel::ALL {
            let mut out = vec![K::zeroed(); 70_020];
            let result = self.gpu.merge_with(kernel, &a, &b, &mut out).map(|_| Vec::<K>::new());
            self.expect(|| format!("{kernel} merge of unsorted input"), result, &[]);
        }

        for d in (1..=40).chain([63, 64, 65, 100, 127, 128, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024]) {
            for a_len in [0, 1, d / 2, d / 3, d - 1, d] {
                for pairs in [0, 1, 2, 1000] {
                    let runs = |test: &mut Self, len: usize| -> Vec<K> {
                        (0..pairs).flat_map(|_| test.sorted::<K>(len, |word| word)).collect()
                    };
                    let (a, b) = (runs(self, a_len), runs(self, d - a_len));
                    let (mut found, mut expected) = (poison::<K>(pairs * d), vec![K::zeroed(); pairs * d]);
                    self.cpu.merge_batch(&a, &b, &mut expected, d, a_len).expect("the CPU merges");
                    let result = self.gpu.merge_batch(&a, &b, &mut found, d, a_len).map(|_| found);
                    self.expect(|| format!("batch of {pairs} pairs, d {d}, a_len {a_len}"), result, &expected);
                }
            }
        }
    }

    /// Sorts of enough keys to be divided, once and several times, alone and with values.
    fn check_divisions<K: Key>(&mut self) {
        for (name, kind) in KINDS_TO_DIVIDE {
            for n in [150_001, 500_009, (1 << 21) + 1, 1 << 22, (1 << 22) + 1, 9_000_011, 20_000_003] {
                let keys: Vec<K> = self.keys(n, kind);
                let order = if n % 2 == 0 { SortOrder::Ascending } else { SortOrder::Descending };
                let (mut expected, mut found, mut merged) = (keys.clone(), keys.clone(), keys.clone());
                self.cpu.sort_with(order, &mut expected).expect("the CPU sorts");
                let result = self.gpu.sort_with(order, &mut found).map(|_| found);
                self.expect(|| format!("sort of {n} {name}, {order:?}"), result, &expected);
                let result = self
                    .gpu
                    .sort_with(SortOptions::from(order).kernel(SortKernel::MergePath), &mut merged)
                    .map(|_| merged);
                self.expect(|| format!("merge-path sort of {n} {name}, {order:?}"), result, &expected);
                self.check_sort_values(&format!("sort of {n} {name}, {order:?}"), order, &keys, |i| i as u32);
                self.check_sort_values(&format!("sort of {n} {name}, {order:?}"), order, &keys, |i| i as u64);
                self.check_argsort(&format!("{n} {name}, {order:?}"), order, &keys);
            }
        }
    }

    /// Sorts of enough keys to be divided that look sorted by a sample.
    fn check_ordered<K: Key>(&mut self) {
        for n in [150_001, 1 << 20, 5_000_011, 20_000_003] {
            let ascending: Vec<K> = self.sorted(n, |word| word);
            let descending: Vec<K> = ascending.iter().rev().copied().collect();
            let (mut two_runs, mut one_descent) = (ascending.clone(), ascending.clone());
            two_runs.rotate_left(n / 3);
            one_descent.swap(n - 2, n - 1);
            let all = [
                (ascending, "ascending"),
                (descending, "descending"),
                (two_runs, "in two runs"),
                (one_descent, "but the last"),
            ];
            for (keys, name) in all {
                let order = if n % 2 == 0 { SortOrder::Ascending } else { SortOrder::Descending };
                for order in [SortOrder::Ascending, order] {
                    self.check_sort(&format!("sort of {n} {name}, {order:?}"), order, &keys);
                    self.check_sort_values(&format!("sort of {n} {name}, {order:?}"), order, &keys, |i| i as u32);
                    self.check_argsort(&format!("{n} {name}, {order:?}"), order, &keys);
                }
            }
        }
    }

    /// Sorts of keys that are nearly in their places, or all but one of them. They are enough for the sort by windows.
    fn check_displaced<K: Key>(&mut self) {
        let n = (1 << 25) + 12_345;
        let mut keys: Vec<K> = self.sorted(n, |word| word);
        for window in keys.chunks_mut(1000) {
            for i in (1..window.len()).rev() {
                window.swap(i, self.random.next() as usize % (i + 1));
            }
        }
        for name in ["displaced", "displaced but one"] {
            for order in [SortOrder::Ascending, SortOrder::Descending] {
                if order == SortOrder::Descending {
                    keys.reverse();
                }
                self.check_sort(&format!("sort of {n} {name}, {order:?}"), order, &keys);
                self.check_sort_values(&format!("sort of {n} {name}, {order:?}"), order, &keys, |i| i as u32);
                self.check_argsort(&format!("{n} {name}, {order:?}"), order, &keys);
            }
            keys.reverse();
            keys[n / 3..n / 2].rotate_left(1);
        }
    }

    /// Sorts of enough keys to count the digits of two levels at once.
    fn check_many_divisions<K: Key>(&mut self) {
        let kinds: [Kind; 3] = [
            ("uniform", |word| word),
            ("of leading zeros", |word| word & 0x7ff_ffff_07ff_ffff),
            // Digits of two levels are counted at once, and the zeros are too many for a block.
            frequent::FREQUENT[0],
        ];
        for (name, kind) in kinds {
            for (n, order) in [((1 << 26) + 5, SortOrder::Ascending), ((1 << 26) + 70_001, SortOrder::Descending)] {
                let keys: Vec<K> = self.keys(n, kind);
                self.check_sort(&format!("sort of {n} {name}, {order:?}"), order, &keys);
                self.check_sort_values(&format!("sort of {n} {name}, {order:?}"), order, &keys, |i| i as u64);
                self.check_argsort(&format!("{n} {name}, {order:?}"), order, &keys);
            }
        }
    }

    /// Sorts keys alone.
    fn check_sort<K: Key>(&mut self, what: &str, order: SortOrder, keys: &[K]) {
        let (mut expected, mut found) = (keys.to_vec(), keys.to_vec());
        self.cpu.sort_with(order, &mut expected).expect("the CPU sorts");
        let result = self.gpu.sort_with(order, &mut found).map(|_| found);
        self.expect(|| what.to_owned(), result, &expected);
    }

    fn check_argsort<K: Key>(&mut self, what: &str, order: SortOrder, keys: &[K]) {
        let argsort = |engine: &Engine| {
            let mut indices = vec![u32::MAX; keys.len()];
            engine.argsort(order, keys, &mut indices).map(|_| indices)
        };
        let (found, expected) = (argsort(&self.gpu), argsort(&self.cpu).expect("the CPU sorts"));
        self.expect(|| format!("argsort of {what}"), found, &expected);
    }

    /// Sorts with values, and argsorts.
    fn check_sort_pairs<K: Key>(&mut self) {
        let block = kernels_gpu::tuning::sort_pairs(size_of::<K>(), size_of::<u32>()).0.keys();
        for (name, kind) in KINDS.into_iter().chain(KINDS_BY_LOW_BITS) {
            for n in [0, 1, 2, block - 1, block, block + 1, 2 * block, 7 * block + 5, 100_003, 1 << 20, 3_000_017] {
                for order in [SortOrder::Ascending, SortOrder::Descending] {
                    let keys: Vec<K> = self.keys(n, kind);
                    let what = format!("{order:?} sort of {n} {name}");
                    self.check_sort_values(&what, order, &keys, |i| i as u32);
                    self.check_sort_values(&what, order, &keys, |i| i as f64);
                    self.check_sort_values(&what, order, &keys, |i| [i as u16, (i >> 16) as u16, 7]);
                    self.check_argsort(&format!("{n} {name}, {order:?}"), order, &keys);
                }
            }
        }
    }

    /// Sorts with functions that read and write keys, through buffers of 2 MiB.
    fn check_through<K: Key>(&mut self) {
        let block = (2 << 20) / size_of::<K>();
        for n in [0, 1, 1000, block - 1, block, block + 1, 2 * block, 33 * block + 5] {
            let keys: Vec<K> = self.keys(n, |word| word);
            let mut expected = keys.clone();
            self.cpu.sort(&mut expected).expect("the CPU sorts");
            let read = |begin: usize, part: &mut [K]| {
                part.copy_from_slice(&keys[begin..][..part.len()]);
                Ok::<_, Error>(())
            };
            let sorted = Mutex::new(vec![key::<K>(u64::MAX / 3); n]);
            let write = |begin: usize, part: &[K]| {
                sorted.lock().expect("no thread panics")[begin..][..part.len()].copy_from_slice(part);
                Ok(())
            };
            let result = self.gpu.sort_streamed(SortOrder::Ascending, n, read, write);
            let found = sorted.into_inner().expect("no thread panics");
            self.expect(|| format!("sort of {n} keys from a function to another"), result.map(|_| found), &expected);

            let fails = |begin: usize, len: usize| {
                let index = n / 2;
                if (begin..begin + len).contains(&index) { Err(Error::NoOffsets) } else { Ok(()) }
            };
            let reading = self.gpu.sort_streamed(
                SortOrder::Ascending,
                n,
                |begin, part: &mut [K]| fails(begin, part.len()),
                |_, _| Err(Error::NoGpuSupport),
            );
            let writing = self.gpu.sort_streamed(SortOrder::Ascending, n, read, |begin, part| fails(begin, part.len()));
            let expected = if n == 0 { None } else { Some(Error::NoOffsets) };
            self.checks += 1;
            if reading.err() != expected || writing.err() != expected {
                self.failures += 1;
                eprintln!("FAILED {} sort of {n} keys by functions that fail", K::NAME);
            }
        }
    }

    /// Sorts of enough keys for the GPU to detect runs first: sorted and nearly sorted keys.
    fn check_order<K: Key>(&mut self) {
        let n = (1 << 26) + 5;
        let ascending: Vec<K> = self.sorted(n, |word| word >> 24 << 24);
        let mut strict = ascending.clone();
        strict.dedup_by_key(|key| key.to_ordered());
        let swapped = |keys: &[K], at: usize| {
            let mut keys = keys.to_vec();
            keys.swap(at, at + 1);
            keys
        };
        let reversed = |keys: &[K]| keys.iter().rev().copied().collect::<Vec<K>>();
        let runs = |test: &mut Self, count: usize, differ: bool| -> Vec<K> {
            let end = |i: usize| if differ { (n * i / count) * i / count } else { n * i / count };
            (0..count).flat_map(|i| test.sorted::<K>(end(i + 1) - end(i), |word| word)).collect()
        };
        let inputs = [
            ("ascending", ascending.clone()),
            ("strictly ascending", strict.clone()),
            ("descending", reversed(&ascending)),
            ("strictly descending", reversed(&strict)),
            ("ascending but for the first two", swapped(&strict, 0)),
            ("ascending but for the last two", swapped(&strict, strict.len() - 2)),
            ("descending but for the last two", swapped(&reversed(&strict), strict.len() - 2)),
            ("equal", vec![ascending[n / 2]; n]),
            ("3 runs", runs(self, 3, false)),
            ("32 runs of different lengths", runs(self, 32, true)),
            ("33 runs", runs(self, 33, false)),
        ];
        for (i, (name, keys)) in inputs.into_iter().enumerate() {
            let orders = [SortOrder::Ascending, SortOrder::Descending];
            let order = orders[i % 2];
            for &order in orders.iter().filter(|&&other| size_of::<K>() == 4 || other == order) {
                let what = format!("{order:?} sort of {} keys, {name},", keys.len());
                let (mut found, mut expected) = (keys.clone(), keys.clone());
                self.cpu.sort_with(order, &mut expected).expect("the CPU sorts");
                let result = self.gpu.sort_with(order, &mut found).map(|_| found);
                self.expect(|| what.clone(), result, &expected);
            }
            if i < 4 {
                self.check_sort_values(&format!("{order:?} sort, {name},"), order, &keys, |i| i as u32);
            }
        }
    }

    fn check_sort_values<K: Key, V: Copy + PartialEq + Send + Sync + 'static>(
        &mut self,
        what: &str,
        order: SortOrder,
        keys: &[K],
        value: impl Fn(usize) -> V,
    ) {
        let run = |engine: &Engine, kernel| {
            let (mut keys, mut values) = (keys.to_vec(), (0..keys.len()).map(&value).collect::<Vec<V>>());
            let options = SortOptions::from(order).kernel(kernel);
            engine.sort_with(options, (&mut keys, &mut values)).map(|_| (keys, values))
        };
        let expected = run(&self.cpu, SortKernel::Auto).expect("the CPU sorts");
        for kernel in SortKernel::ALL {
            let (found, same) = match run(&self.gpu, kernel) {
                Ok((keys, values)) => (Ok(keys), values == expected.1),
                Err(error) => (Err(error), true),
            };
            self.expect(|| format!("{kernel}, {what} with values"), found, &expected.0);
            self.expect(|| format!("{kernel}, values of the {what}"), Ok(vec![u32::from(same)]), &[1]);
        }
    }

    /// Merges with values. The GPU moves values that are numbers, and moves indices for other values.
    fn check_pairs<K: Key>(&mut self) {
        for (name, kind) in KINDS {
            for (m, n) in
                [(0, 0), (0, 3), (3, 0), (1, 1), (3840, 3839), (7680, 7681), (100_003, 99), (500_000, 700_001)]
            {
                let (a, b): (Vec<K>, Vec<K>) = (self.sorted(m, kind), self.sorted(n, kind));
                let what = format!("merge of pairs, {name}, {m} + {n}");
                self.check_values(&what, &a, &b, |i| i as u32, |e, a, b, out| e.merge(a, b, out));
                self.check_values(&what, &a, &b, |i| i as f64, |e, a, b, out| e.merge(a, b, out));
                self.check_values(&what, &a, &b, |i| [i as u16; 3], |e, a, b, out| e.merge(a, b, out));
            }
            for d in (1..20).chain([31, 64, 100, 511, 1000, 1024]) {
                for (a_len, pairs) in [(0, 7), (d / 2, 1), (d / 3, 2000), (d, 300)] {
                    let mut runs =
                        |len: usize| -> Vec<K> { (0..pairs).flat_map(|_| self.sorted::<K>(len, kind)).collect() };
                    let (a, b) = (runs(a_len), runs(d - a_len));
                    let what = format!("batch of pairs, {name}, {pairs} of d {d}, a_len {a_len}");
                    self.check_values(&what, &a, &b, |i| i as u32, |e, a, b, out| e.merge_batch(a, b, out, d, a_len));
                    self.check_values(&what, &a, &b, |i| i as u64, |e, a, b, out| e.merge_batch(a, b, out, d, a_len));
                }
            }
            for (pairs, most) in [(1, 0), (1, 1_000_000), (30_000, 40), (100, 9_000), (500_000, 1), (3, 300_000)] {
                let mut side = || -> (Vec<K>, Vec<usize>) {
                    let (mut keys, mut offsets) = (Vec::new(), vec![0]);
                    for _ in 0..pairs {
                        let len = self.random.next() as usize % (most + 1);
                        keys.extend(self.sorted::<K>(len, kind));
                        offsets.push(keys.len());
                    }
                    (keys, offsets)
                };
                let ((a, ao), (b, bo)) = (side(), side());
                let what = format!("ragged batch, {name}, {pairs} pairs of up to {most}");
                let (mut found, mut expected) = (poison::<K>(a.len() + b.len()), vec![K::zeroed(); a.len() + b.len()]);
                self.cpu.merge_ragged((&a, &ao), (&b, &bo), &mut expected).expect("the CPU merges");
                let result = self.gpu.merge_ragged((&a, &ao), (&b, &bo), &mut found).map(|_| found);
                self.expect(|| what.clone(), result, &expected);
                let with = |e: &Engine, a: (&[K], &[u32]), b: (&[K], &[u32]), out: (&mut [K], &mut [u32])| {
                    e.merge_ragged(((a.0, a.1), &ao), ((b.0, b.1), &bo), out)
                };
                self.check_values(&format!("{what}, with values"), &a, &b, |i| i as u32, with);
            }
        }
    }

    /// Merges of descending keys.
    fn check_descending<K: Key>(&mut self) {
        self.check::<Descending<K>>();
        self.check_pairs::<Descending<K>>();
        self.check_many::<Descending<K>>();
    }

    /// Merges of keys whose NaNs are last or first.
    fn check_nans<K: Key>(&mut self) {
        self.check::<NanLast<K>>();
        self.check_pairs::<NanFirst<K>>();
        self.check_many::<NanLast<K>>();
    }

    /// Merges of many runs: keys alone, where one pass merges up to 32 runs, and keys with values.
    fn check_many<K: Key>(&mut self) {
        for (name, kind) in KINDS {
            for (count, most) in [
                (0, 0),
                (1, 1000),
                (2, 1),
                (3, 5),
                (16, 200_000),
                (31, 7),
                (32, 50_000),
                (33, 50_000),
                (100, 300),
                (1025, 40),
                (4096, 500),
            ] {
                let mut run = || {
                    let len = self.random.next() as usize % (most + 1);
                    self.sorted::<K>(len, kind)
                };
                let runs: Vec<Vec<K>> = (0..count).map(|_| run()).collect();
                let runs: Vec<&[K]> = runs.iter().map(|run| &run[..]).collect();
                let what = format!("merge of {count} runs of up to {most}, {name}");
                let merge = |engine: &Engine| {
                    let mut out = poison::<K>(runs.iter().map(|run| run.len()).sum());
                    engine.merge_many(&runs, &mut out).map(|_| out)
                };
                let (found, expected) = (merge(&self.gpu), merge(&self.cpu).expect("the CPU merges"));
                self.expect(|| what.clone(), found, &expected);
                self.check_many_values(&what, &runs, |i| i as u32);
                self.check_many_values(&what, &runs, |i| i as f64);
                self.check_many_values(&what, &runs, |i| [i as u16, (i >> 16) as u16, 7]);
            }
        }
    }

    /// Gives each key its index as a value, and compares the merges of the runs by the GPU and the CPU.
    fn check_many_values<K: Key, V: Copy + PartialEq + Send + Sync + 'static>(
        &mut self,
        what: &str,
        runs: &[&[K]],
        value: impl Fn(usize) -> V,
    ) {
        let total = runs.iter().map(|run| run.len()).sum();
        let values: Vec<V> = (0..total).map(value).collect();
        let mut rest = &values[..];
        let with_values = |run: &&[K]| {
            let values;
            (values, rest) = rest.split_at(run.len());
            values
        };
        let values_of: Vec<&[V]> = runs.iter().map(with_values).collect();
        let pairs: Vec<(&[K], &[V])> = runs.iter().copied().zip(values_of).collect();
        let run = |engine: &Engine| {
            let (mut keys, mut out) = (poison::<K>(total), values.clone());
            out.reverse();
            engine.merge_many(&pairs, (&mut keys, &mut out)).map(|_| (keys, out))
        };
        let expected = run(&self.cpu).expect("the CPU merges");
        let (found, same) = match run(&self.gpu) {
            Ok((keys, values)) => (Ok(keys), values == expected.1),
            Err(error) => (Err(error), true),
        };
        self.expect(|| format!("{what} with values"), found, &expected.0);
        self.expect(|| format!("values of the {what}"), Ok(vec![u32::from(same)]), &[1]);
    }

    /// Gives each key its index as a value, and compares the merges by the GPU and the CPU.
    fn check_values<K: Key, V: Copy + PartialEq + Send + Sync + 'static>(
        &mut self,
        what: &str,
        a: &[K],
        b: &[K],
        value: impl Fn(usize) -> V,
        merge: impl Fn(&Engine, (&[K], &[V]), (&[K], &[V]), (&mut [K], &mut [V])) -> Result<Timing, Error>,
    ) {
        let total = a.len() + b.len();
        let values: Vec<V> = (0..total).map(value).collect();
        let (a_values, b_values) = values.split_at(a.len());
        let run = |engine: &Engine| {
            let (mut keys, mut out) = (poison::<K>(total), values.clone());
            out.reverse();
            merge(engine, (a, a_values), (b, b_values), (&mut keys, &mut out)).map(|_| (keys, out))
        };
        let expected = run(&self.cpu).expect("the CPU merges");
        let (found, same) = match run(&self.gpu) {
            Ok((keys, values)) => (Ok(keys), values == expected.1),
            Err(error) => (Err(error), true),
        };
        self.expect(|| what.to_owned(), found, &expected.0);
        self.expect(|| format!("values of {what}"), Ok(vec![u32::from(same)]), &[1]);
    }

    fn check_merges<K: Key>(&mut self, what: &str, a: &[K], b: &[K]) {
        let mut expected = vec![K::zeroed(); a.len() + b.len()];
        self.cpu.merge(a, b, &mut expected).expect("the CPU merges");
        for kernel in MergeKernel::ALL {
            let mut found = poison(expected.len());
            let result = self.gpu.merge_with(kernel, a, b, &mut found).map(|_| found);
            self.expect(|| format!("{kernel} merge of {what}"), result, &expected);
        }
    }

    /// A graph of one sort, launched with keys that are divided, with keys that are sorted by all bits, and with sorted
    /// keys. The work depends on the present keys, and not on the keys of the capture.
    fn check_sort_graph<K: GpuKey>(&mut self) {
        let kinds: [Kind; 2] = [("uniform", |word| word), ("bits ANDed", |word| word & mix(word) & mix(!word))];
        let gpu = Gpu::new(0).expect("there is a GPU");
        gpu.prepare::<K>().expect("kernels load");
        let stream = gpu.stream().expect("the device makes streams");
        for n in [300_007, 5_000_011] {
            let mut keys = stream.zeroed::<K>(n).expect("the device has memory");
            let mut workspace = stream.zeroed(workspace::sort::<K, ()>(n)).expect("the device has memory");
            let graph = graph::capture(&stream, || stream.sort(SortOrder::Ascending, &mut keys, &mut workspace));
            let graph = match graph {
                Ok(graph) => graph,
                Err(error) => return self.expect::<K>(|| format!("capture of a sort of {n}"), Err(error), &[]),
            };
            let mut inputs: Vec<(&str, Vec<K>)> = kinds.map(|(name, kind)| (name, self.keys(n, kind))).into();
            inputs.push(("in order", self.sorted(n, |word| word)));
            for (name, input) in inputs {
                keys.upload(&input).expect("the device copies");
                // SAFETY: the arrays of the capture belong to this stream, and live until the download below has waited
                // for it.
                unsafe { graph.launch(&stream) };
                let found = keys.download();
                let mut expected = input;
                self.cpu.sort(&mut expected).expect("the CPU sorts");
                self.expect(|| format!("graph of a sort of {n} {name}"), found, &expected);
            }
        }
    }

    /// Calls on a stream that another library owns, captured in one graph and replayed on other input.
    /// On a GPU whose kernels nothing but `prepare` has loaded.
    fn check_graph<K: GpuKey>(&mut self) {
        const D: usize = 100;
        let (n, values) = (50_000, (0..50_000).collect::<Vec<u32>>());
        let offsets: Vec<usize> = (0..=n / D).map(|i| i * D).collect();
        let inputs: Vec<[Vec<K>; 2]> = (0..2).map(|_| [0; 2].map(|_| self.keys(n, |word| word))).collect();
        let gpu = Gpu::new(0).expect("there is a GPU");
        gpu.prepare::<K>().expect("kernels load");
        let owner = gpu.stream().expect("the device makes streams");
        // SAFETY: the stream is of this GPU, and `owner` and `gpu` are dropped after `stream` and its arrays.
        let stream = unsafe { gpu.stream_from_handle(owner.handle()) };
        let buffer = |n| stream.zeroed::<K>(n).expect("the device has memory");
        let workspace = || stream.zeroed::<u8>(workspace::sort::<K, u32>(n)).expect("the device has memory");
        let (mut a, mut b) = (buffer(n), buffer(n));
        let upload = |values: &[u32]| stream.upload(values).expect("the device has memory");
        let ends = DeviceOffsets::new(&stream, &offsets).expect("the device has memory");
        let (a_values, b_values) = (upload(&values), upload(&values));
        let kernels = MergeKernel::ALL;
        let mut merged: Vec<_> = kernels.iter().map(|_| buffer(2 * n)).collect();
        let mut others = [(); 5].map(|()| (buffer(2 * n), upload(&[&values[..], &values].concat())));
        let [mut for_sort, mut for_sort_pairs, mut for_merge, mut for_pairs, mut for_ragged, mut for_ragged_pairs] =
            [(); 6].map(|()| workspace());
        let (mut with_values, mut sorted_values) = (buffer(n), upload(&values));
        let graph = graph::capture(&stream, || {
            stream.sort(SortOrder::Descending, (&mut with_values, &mut sorted_values), &mut for_sort_pairs)?;
            stream.sort(SortOrder::Ascending, &mut a, &mut for_sort)?;
            stream.sort(SortOrder::Ascending, &mut b, &mut for_sort)?;
            for (&kernel, out) in kernels.iter().zip(&mut merged) {
                stream.merge(kernel, &a, &b, out, &mut for_merge)?;
            }
            let [pairs, batch, batch_pairs, ragged, ragged_pairs] = &mut others;
            let (av, bv) = ((&a, &a_values), (&b, &b_values));
            stream.merge(MergeKernel::Auto, av, bv, (&mut pairs.0, &mut pairs.1), &mut for_pairs)?;
            // Runs of a sorted array are sorted.
            let kernel = BatchKernel::Auto;
            stream.merge_batch(kernel, &a, &b, &mut batch.0, 2 * D, D)?;
            stream.merge_batch(kernel, av, bv, (&mut batch_pairs.0, &mut batch_pairs.1), 2 * D, D)?;
            stream.merge_ragged((&a, &ends), (&b, &ends), &mut ragged.0, &mut for_ragged)?;
            let out = (&mut ragged_pairs.0, &mut ragged_pairs.1);
            stream.merge_ragged((av, &ends), (bv, &ends), out, &mut for_ragged_pairs)
        });
        let graph = match graph {
            Ok(graph) => graph,
            Err(error) => return self.expect::<K>(|| "capture in a graph".to_owned(), Err(error), &[]),
        };
        for [x, y] in inputs {
            for (array, keys) in [(&mut a, &x), (&mut b, &y), (&mut with_values, &y)] {
                array.upload(keys).expect("the device copies");
            }
            sorted_values.upload(&values).expect("the device copies");
            // SAFETY: the arrays of the capture belong to this stream, and live until it has been waited for below.
            unsafe { graph.launch(&stream) };
            stream.synchronize().expect("the graph ends well");
            let (mut x, mut y) = (x, y);
            let (mut y_descending, mut permutation) = (y.clone(), values.clone());
            self.cpu.sort_with(SortOrder::Descending, (&mut y_descending, &mut permutation)).expect("the CPU sorts");
            self.expect(|| "sort of pairs in a graph".to_owned(), with_values.download(), &y_descending);
            let found = sorted_values.download();
            self.expect(|| "values of the sort of pairs in a graph".to_owned(), found, &permutation);
            self.cpu.sort(&mut x).expect("the CPU sorts");
            self.cpu.sort(&mut y).expect("the CPU sorts");
            let out = || (poison::<K>(2 * n), vec![0u32; 2 * n]);
            let (mut whole, mut pieces) = (out(), out());
            let (xv, yv) = ((&x[..], &values[..]), (&y[..], &values[..]));
            self.cpu.merge(xv, yv, (&mut whole.0, &mut whole.1)).expect("the CPU merges");
            self.cpu.merge_batch(xv, yv, (&mut pieces.0, &mut pieces.1), 2 * D, D).expect("the CPU merges");
            for (kernel, out) in kernels.iter().zip(&merged) {
                let found = out.download();
                self.expect(|| format!("sort and {kernel} merge, replayed from a graph"), found, &whole.0);
            }
            let calls = ["pairs", "batch", "batch of pairs", "ragged batch", "ragged batch of pairs"];
            for (i, (call, out)) in calls.into_iter().zip(&others).enumerate() {
                let expected = if i == 0 { &whole } else { &pieces };
                let found = out.0.download();
                self.expect(|| format!("{call}, replayed from a graph"), found, &expected.0);
                if call.ends_with("pairs") {
                    let found = out.1.download();
                    self.expect(|| format!("values of {call}, replayed from a graph"), found, &expected.1);
                }
            }
        }
    }

    /// Sorts of all sizes with separate kernels, captured in a graph. Only `prepare` has loaded the kernels of this
    /// GPU.
    fn check_prepared<K: GpuKey>(&mut self) {
        let gpu = Gpu::new(0).expect("there is a GPU");
        gpu.prepare::<K>().expect("kernels load");
        let stream = gpu.stream().expect("the device makes streams");
        let sizes = [100, 100_000, (1 << 22) + 3, (1 << 26) + 3];
        for (kernel, n) in SortKernel::ALL.into_iter().flat_map(|kernel| sizes.map(|n| (kernel, n))) {
            let mut expected: Vec<K> = self.keys(n, |word| word);
            let mut keys = stream.upload(&expected).expect("the device has memory");
            let mut workspace = stream.zeroed(workspace::sort::<K, ()>(n)).expect("the device has memory");
            let what = || format!("{kernel} sort of {n}, captured after `prepare` alone");
            let order = SortOrder::Ascending;
            match graph::capture(&stream, || {
                stream.sort(SortOptions::from(order).kernel(kernel), &mut keys, &mut workspace)
            }) {
                Err(error) => self.expect::<K>(what, Err(error), &[]),
                Ok(graph) => {
                    // SAFETY: the arrays of the capture belong to this stream, and live until the download below has
                    // waited for it.
                    unsafe { graph.launch(&stream) };
                    self.cpu.sort(&mut expected).expect("the CPU sorts");
                    self.expect(what, keys.download(), &expected);
                }
            }
        }
    }

    /// The course's sort, of sizes up to several tiles, and with batches for powers of two.
    fn check_course_sort<K: GpuKey>(&mut self) {
        let gpu = Gpu::new(0).expect("there is a GPU");
        let stream = gpu.stream().expect("the device makes streams");
        let of_any_size = [0, 1, 2, 3, 1000, 1025, 30_011].map(|d| (FirstPasses::MergePath, d));
        let of_powers = [0, 1, 5, 10, 11, 16].map(|lg| (FirstPasses::Batch, 1 << lg));
        for (first, d) in of_any_size.into_iter().chain(of_powers) {
            for (name, kind) in KINDS {
                let mut expected: Vec<K> = self.keys(d, kind);
                let found = (|| {
                    let (mut keys, mut sort) = (stream.upload(&expected)?, CourseSort::new(&stream, d)?);
                    sort.sort(first, &mut keys)?;
                    keys.download()
                })();
                self.cpu.sort(&mut expected).expect("the CPU sorts");
                self.expect(|| format!("course's sort of {d} {name}, first passes {first:?}"), found, &expected);
            }
        }
    }

    /// Uploads that kernels on another stream read immediately.
    fn check_uploads(&mut self) {
        let gpu = Gpu::new(0).expect("there is a GPU");
        let stream = gpu.stream().expect("the device makes streams");
        for round in 0..500 {
            let n = 1000 << (round % 8);
            let (a, b): (Vec<u32>, Vec<u32>) = (self.sorted(n, |word| word), self.sorted(n, |word| word));
            let mut expected = vec![0; 2 * n];
            self.cpu.merge(&a, &b, &mut expected).expect("the CPU merges");
            let found = (|| {
                let (mut out, a, b) = (stream.zeroed::<u32>(2 * n)?, stream.upload(&a)?, stream.upload(&b)?);
                let mut workspace = stream.zeroed(workspace::merge::<u32, ()>(MergeKernel::Auto, 2 * n))?;
                stream.merge(MergeKernel::Auto, &a, &b, &mut out, &mut workspace)?;
                out.download()
            })();
            self.expect(|| format!("merge of {n} + {n} keys that have just been uploaded"), found, &expected);
        }
    }

    /// Lengths with more than 2^64 bytes are errors, like other lengths that do not fit.
    fn check_excessive_lengths(&mut self) {
        for len in [usize::MAX, usize::MAX / 4 + 1, 1 << 61, 1 << 40] {
            let gpu = self.device();
            let buffer = gpu.stream().and_then(|stream| stream.zeroed::<u64>(len)).err();
            let sort =
                self.gpu.sort_streamed(SortOrder::Ascending, len, |_, _: &mut [f64]| Ok(()), |_, _| Ok(())).err();
            for error in [buffer, sort] {
                let is_refused = matches!(error, Some(Error::OutOfDeviceMemory { .. }));
                self.expect(|| format!("{len} keys: {error:?}"), Ok(vec![u32::from(is_refused)]), &[1]);
            }
        }
    }

    /// Merges of a run so long that its search takes steps beyond 2^32, with two runs of greater keys.
    fn check_long_runs(&mut self) {
        let below: Vec<u32> = (0..900_000_000).collect();
        let above: Vec<u32> = (3_100_000_000..3_150_000_000).collect();
        let n = below.len() + 2 * above.len();
        let is_merged = |out: &[u32]| {
            let (first, rest) = out.split_at(below.len());
            first == below && rest.chunks_exact(2).zip(&above).all(|(pair, &key)| pair == [key, key])
        };
        for (runs, what) in [([&below, &above, &above], "first"), ([&above, &above, &below], "last")] {
            let runs = runs.map(|run| &run[..]);
            let mut out = poison::<u32>(n);
            let result = self.gpu.merge_many(&runs, &mut out).map(|_| vec![u32::from(is_merged(&out))]);
            self.expect(|| format!("merge of three runs, a long one {what}"), result, &[1]);
        }
        // The sort detects the same three runs and merges them in the same way.
        let mut keys = [&below[..], &above, &above].concat();
        let result = self.gpu.sort(&mut keys).map(|_| vec![u32::from(is_merged(&keys))]);
        self.expect(|| "sort of three runs, one of them long".to_owned(), result, &[1]);
        // With values, the runs are sorted by key, and the values of equal keys keep their order.
        let order: Vec<u32> = (0..n as u32).collect();
        let (long, short) = order.split_at(below.len());
        let (first, second) = short.split_at(above.len());
        let pairs = [(&below[..], long), (&above[..], first), (&above[..], second)];
        let mut values = vec![u32::MAX; n];
        let result = self.gpu.merge_many(&pairs, (&mut keys, &mut values)).map(|_| {
            let in_order = values[..below.len()] == *long
                && values[below.len()..].chunks_exact(2).zip(first.iter().zip(second)).all(|(v, (&a, &b))| v == [a, b]);
            vec![u32::from(is_merged(&keys) && in_order)]
        });
        self.expect(|| "merge of three runs with values, one of them long".to_owned(), result, &[1]);
    }

    /// More keys than 32 bits count.
    fn large(&mut self) {
        let n = (1usize << 32) + 12_345;
        let seed = self.random.next();
        let sum = |keys: &[u32]| keys.iter().fold(0u64, |sum, &key| sum.wrapping_add(mix(key.into())));
        let mut keys: Vec<u32> = (0..n as u64).map(|i| mix(seed ^ i) as u32).collect();
        let before = sum(&keys);
        let result = self.gpu.sort(&mut keys).map(|_| Vec::<u32>::new());
        self.expect(|| format!("sort of {n}"), result, &[]);
        let verdict = if sum(&keys) == before { first_unsorted(&keys) } else { Some(0) };
        self.expect(|| format!("order after the sort of {n}: {verdict:?}"), Ok(vec![verdict.is_none() as u32]), &[1]);

        let (a, b) = keys.split_at(n / 2 + 99);
        for kernel in [MergeKernel::Circular, MergeKernel::MergePath] {
            let mut out = vec![0; n];
            let result = self.gpu.merge_with(kernel, a, b, &mut out).map(|_| Vec::<u32>::new());
            self.expect(|| format!("{kernel} merge to {n}"), result, &[]);
            self.expect(|| format!("keys after the {kernel} merge to {n}"), Ok(vec![(out == keys) as u32]), &[1]);
        }
    }

    /// Prints the table, with sorts of `n` keys of each distribution.
    fn time(&self, n: usize) -> Result<(), Error> {
        println!("\n{:<28} {:>8} {:>10} {:>9} {:>7}", "work, uniform keys", "keys", "ms", "GB/s", "of copy");
        for lg in [16, 18, 20, 22, 24, 26, 28, 30] {
            self.time_type::<u32>(1 << lg, Distribution::Uniform)?;
        }
        for lg in [24, 28] {
            self.time_type::<u64>(1 << lg, Distribution::Uniform)?;
            self.time_type::<f32>(1 << lg, Distribution::Unit)?;
        }
        // Computed while the distributions are measured, because it takes one core many seconds.
        let conflicts = [4, 8].map(|bytes| {
            let (block, runs) = (kernels_gpu::tuning::block(bytes), kernels_gpu::tuning::runs(bytes));
            thread::spawn(move || conflicting(n, block, runs, bytes))
        });
        self.time_sorts::<u32>(n, &Distribution::OF_INTEGERS)?;
        self.time_sorts::<u64>(n, &Distribution::OF_INTEGERS)?;
        self.time_sorts::<f32>(n, &Distribution::OF_FLOATS)?;
        self.time_sorts::<f64>(n, &Distribution::OF_FLOATS)?;
        let [of_4_bytes, of_8_bytes] = conflicts.map(|keys| keys.join().expect("it computes keys"));
        self.time_sort("bank conflicts", &of_4_bytes)?;
        self.time_sort("bank conflicts", &of_8_bytes.into_iter().map(u64::from).collect::<Vec<u64>>())?;
        table::head();
        PARTS.iter().try_for_each(|part| (part.time)(self, n))
    }

    fn time_type<K: GpuKey>(&self, n: usize, distribution: Distribution) -> Result<(), Error> {
        let stream = self.device().stream()?;
        let keys: Vec<K> = distribution.keys(n);
        let unsorted = stream.upload(&keys)?;
        let mut out = stream.zeroed::<K>(n)?;
        let mut workspace = stream.zeroed::<u8>(workspace::sort::<K, ()>(n).max(n))?;
        let bytes = (2 * n * size_of::<K>()) as f64;
        let copy = median_ms(&stream, |step| if step == Step::Launch { out.copy_from(&unsorted) } else { Ok(()) })?;
        let name = type_and_size::<K>(n);
        let row = |what: &str, ms: f64| {
            let (gbs, part) = (bytes / ms / 1e6, copy / ms);
            println!("{what:<28} {name:>8} {ms:>10.4} {gbs:>9.0} {part:>7.3}");
        };
        row("device copy", copy);

        let sort = median_ms(&stream, |step| match step {
            Step::Prepare => out.copy_from(&unsorted),
            Step::Launch => stream.sort(SortOrder::Ascending, &mut out, &mut workspace),
        })?;
        row("sort", sort);
        println!("{:48} {:>9.2} G keys/s  {:016x}", "", n as f64 / sort / 1e6, digest(&keys));
        self.time_sort_pairs::<K, u32>(distribution.name(), &keys, &unsorted, &mut out)?;
        self.time_sort_pairs::<K, u64>(distribution.name(), &keys, &unsorted, &mut out)?;
        self.time_argsort(&keys, &unsorted, &mut out)?;

        // Two sorted halves.
        let (low, high) = keys.split_at(n / 2);
        let (mut a, mut b) = (stream.upload(low)?, stream.upload(high)?);
        stream.sort(SortOrder::Ascending, &mut a, &mut workspace)?;
        stream.sort(SortOrder::Ascending, &mut b, &mut workspace)?;
        let kernels =
            [MergeKernel::Basic, MergeKernel::Tiled, MergeKernel::Circular, MergeKernel::MergePath, MergeKernel::Auto];
        for kernel in kernels {
            let ms = median_ms(&stream, |step| match step {
                Step::Prepare => Ok(()),
                Step::Launch => stream.merge(kernel, &a, &b, &mut out, &mut workspace),
            })?;
            row(&format!("merge, {kernel}"), ms);
        }
        if n == 1 << 28 && <K as Key>::NAME == "u32" {
            self.time_distributions(&stream, n, copy)?;
            // Ranges of a sorted array are sorted. They differ from the runs of a real batch only in their range of
            // keys.
            for d in [4, 8, 16, 30, 64, 100, 128, 256, 512, 1000, 1024] {
                let pairs = n / d;
                // SAFETY: the parts are of different arrays of this stream, which are dropped after its work.
                let (a, b, mut out) = unsafe {
                    let (of_a, of_b) = (0..pairs * (d / 2), 0..pairs * (d - d / 2));
                    (part(&stream, &a, of_a), part(&stream, &b, of_b), part(&stream, &out, 0..pairs * d))
                };
                for (name, kernel) in [("batch", BatchKernel::Auto), ("course's batch", BatchKernel::Small)] {
                    let ms = median_ms(&stream, |step| match step {
                        Step::Prepare => Ok(()),
                        Step::Launch => stream.merge_batch(kernel, &a, &b, &mut out, d, d / 2),
                    })?;
                    row(&format!("{name}, d {d}"), ms);
                }
            }
            // Lengths from 0 to 100 on each side, so about 100 keys for each problem.
            let side = |keys: usize, mut state: Random| {
                let mut offsets = vec![0];
                while offsets[offsets.len() - 1] < keys {
                    offsets.push((offsets[offsets.len() - 1] + state.next() as usize % 101).min(keys));
                }
                offsets
            };
            let (mut ao, mut bo) = (side(n / 2, Random(1)), side(n / 2, Random(2)));
            let pairs = ao.len().max(bo.len());
            ao.resize(pairs, n / 2);
            bo.resize(pairs, n / 2);
            let (ao, bo) = (DeviceOffsets::new(&stream, &ao)?, DeviceOffsets::new(&stream, &bo)?);
            let ms = median_ms(&stream, |step| match step {
                Step::Prepare => Ok(()),
                Step::Launch => stream.merge_ragged((&a, &ao), (&b, &bo), &mut out, &mut workspace),
            })?;
            row("ragged batch, mean 100", ms);
        }
        self.time_pairs::<K, u32>(&unsorted, &a, &b, &mut out)?;
        self.time_pairs::<K, u64>(&unsorted, &a, &b, &mut out)
    }

    /// Times the sort of `n` keys of each distribution.
    fn time_sorts<K: GpuKey>(&self, n: usize, distributions: &[Distribution]) -> Result<(), Error> {
        for &distribution in distributions {
            self.time_sort(distribution.name(), &distribution.keys::<K>(n))?;
        }
        Ok(())
    }

    fn time_sort<K: GpuKey>(&self, what: &str, keys: &[K]) -> Result<(), Error> {
        let gpu = self.device();
        let (stream, n) = (gpu.stream()?, keys.len());
        let (unsorted, mut out) = (stream.upload(keys)?, stream.zeroed::<K>(n)?);
        let mut workspace = stream.zeroed(workspace::sort::<K, ()>(n))?;
        let ms = median_ms(&stream, |step| match step {
            Step::Prepare => out.copy_from(&unsorted),
            Step::Launch => stream.sort(SortOrder::Ascending, &mut out, &mut workspace),
        })?;
        sort_row(&format!("sort, {what}"), keys, ms);
        self.time_sort_pairs::<K, u32>(what, keys, &unsorted, &mut out)
    }

    /// Times the sort of `keys`, which are also in `unsorted`, with their indices as values.
    fn time_sort_pairs<K: GpuKey, V: Key>(
        &self,
        what: &str,
        keys: &[K],
        unsorted: &DeviceArray<K>,
        out: &mut DeviceArray<K>,
    ) -> Result<(), Error> {
        let (stream, n) = (unsorted.stream(), keys.len());
        let mut values = stream.upload(&Distribution::Sorted.keys::<V>(n))?;
        let mut workspace = stream.zeroed(workspace::sort::<K, V>(n))?;
        let ms = median_ms(stream, |step| match step {
            Step::Prepare => out.copy_from(unsorted),
            Step::Launch => stream.sort(SortOrder::Ascending, (&mut *out, &mut values), &mut workspace),
        })?;
        sort_row(&format!("sort, {what}, with {} values", V::NAME), keys, ms);
        Ok(())
    }

    /// Times the argsort of `keys`, which are also in `unsorted`.
    fn time_argsort<K: GpuKey>(
        &self,
        keys: &[K],
        unsorted: &DeviceArray<K>,
        out: &mut DeviceArray<K>,
    ) -> Result<(), Error> {
        let (stream, n) = (unsorted.stream(), keys.len());
        let mut indices = stream.zeroed::<u32>(n)?;
        let mut workspace = stream.zeroed(workspace::argsort::<K, u32>(n))?;
        let ms = median_ms(stream, |step| match step {
            Step::Prepare => out.copy_from(unsorted),
            Step::Launch => stream.argsort(SortOrder::Ascending, &mut *out, &mut indices, &mut workspace),
        })?;
        sort_row("argsort, u32 indices", keys, ms);
        Ok(())
    }

    /// Times the merge of keys that are not uniform.
    fn time_distributions(&self, stream: &Stream, n: usize, copy: f64) -> Result<(), Error> {
        let (h, third) = (n / 2, n / 1001);
        let range =
            |from: usize, len: usize, step: usize| (from..from + len * step).step_by(step).map(|i| i as u32).collect();
        let sides: [(&str, Vec<u32>, Vec<u32>); 5] = [
            ("A before B", range(0, h, 1), range(h, h, 1)),
            ("alternating", range(0, h, 2), range(1, h, 2)),
            ("16 values", (0..h).map(|i| (i * 16 / h) as u32).collect(), (0..h).map(|i| (i * 16 / h) as u32).collect()),
            ("all equal", vec![7; h], vec![7; h]),
            ("lengths 1:1000", range(0, third, 1000), range(0, n - third, 1)),
        ];
        let mut out = stream.zeroed::<u32>(n)?;
        let mut workspace = stream.zeroed(workspace::merge::<u32, ()>(MergeKernel::Auto, n))?;
        for (what, a, b) in sides {
            let (a, b) = (stream.upload(&a)?, stream.upload(&b)?);
            let ms = median_ms(stream, |step| match step {
                Step::Prepare => Ok(()),
                Step::Launch => stream.merge(MergeKernel::Auto, &a, &b, &mut out, &mut workspace),
            })?;
            println!(
                "{:<28} {:>8} {ms:>10.4} {:>9.0} {:>7.3}",
                format!("merge, {what}"),
                "u32, 2^28",
                8e-6 * n as f64 / ms,
                copy / ms
            );
        }
        Ok(())
    }

    /// Times the merge of `a` and `b` with values, compared with a copy of the keys in `unsorted` and of values.
    fn time_pairs<K: GpuKey, V: Key>(
        &self,
        unsorted: &DeviceArray<K>,
        a: &DeviceArray<K>,
        b: &DeviceArray<K>,
        out: &mut DeviceArray<K>,
    ) -> Result<(), Error> {
        let (stream, n) = (unsorted.stream(), out.len());
        let (av, bv) = (stream.zeroed::<V>(a.len())?, stream.zeroed::<V>(b.len())?);
        let (from, mut values) = (stream.zeroed::<V>(n)?, stream.zeroed::<V>(n)?);
        let mut workspace = stream.zeroed(workspace::merge::<K, V>(MergeKernel::Auto, n))?;
        let copy = median_ms(stream, |step| {
            if step == Step::Launch {
                values.copy_from(&from)?;
                out.copy_from(unsorted)?;
            }
            Ok(())
        })?;
        let ms = median_ms(stream, |step| match step {
            Step::Prepare => Ok(()),
            Step::Launch => {
                let out = (&mut *out, &mut values);
                stream.merge(MergeKernel::Auto, (a, &av), (b, &bv), out, &mut workspace)
            }
        })?;
        let bytes = (2 * out.len() * (size_of::<K>() + size_of::<V>())) as f64;
        let what = format!("merge, with {} values", V::NAME);
        let name = type_and_size::<K>(n);
        println!("{what:<28} {name:>8} {ms:>10.4} {:>9.0} {:>7.3}", bytes / ms / 1e6, copy / ms);
        Ok(())
    }
}

/// Keys that no result is likely to have.
fn poison<K: Key>(n: usize) -> Vec<K> {
    vec![key(0xdead_beef_dead_beef); n]
}

/// The type and the number of keys, in a row.
fn type_and_size<K: Key>(n: usize) -> String {
    format!("{}, 2^{}", K::NAME, n.ilog2())
}

/// Prints a row for a sort of these keys.
fn sort_row<K: Key>(what: &str, keys: &[K], ms: f64) {
    let (n, digest) = (keys.len(), digest(keys));
    println!("{what:<28} {:>8} {ms:>10.4} {:>9.2} G keys/s  {digest:016x}", type_and_size::<K>(n), n as f64 / ms / 1e6);
}

/// A step of a timed closure.
#[derive(PartialEq)]
enum Step {
    /// Restore the input of the work. This is not timed.
    Prepare,
    /// Put the work on the stream.
    Launch,
}

/// The median time of a launch, by events, after three launches that are not timed.
fn median_ms(stream: &Stream, mut work: impl FnMut(Step) -> Result<(), Error>) -> Result<f64, Error> {
    let mut times = Vec::new();
    for repeat in 0..12 {
        let (start, end) = (Event::new(stream)?, Event::new(stream)?);
        work(Step::Prepare)?;
        start.record()?;
        work(Step::Launch)?;
        end.record()?;
        let elapsed = end.elapsed_since(&start)?;
        if repeat >= 3 {
            times.push(elapsed.as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

mod graph {
    //! As much of CUDA graphs as the test takes.
    use super::{DeviceArray, DeviceOffsets, Error, Stream, part};
    use crate::cuda::{cuGraphInstantiate_v2, cuGraphLaunch, cuStreamBeginCapture_v2, cuStreamEndCapture};
    use std::ffi::c_void;
    use std::ptr::null_mut;

    pub struct Graph(*mut c_void);

    /// Captures what `work` puts on the stream.
    pub fn capture(stream: &Stream, work: impl FnOnce() -> Result<(), Error>) -> Result<Graph, Error> {
        let handle = stream.handle();
        let (mut graph, mut executable) = (null_mut(), null_mut());
        // SAFETY: `stream` is borrowed, so that its handle is valid. cuStreamEndCapture writes `graph`, and
        // cuGraphInstantiate reads it and writes `executable`.
        unsafe {
            assert_eq!(cuStreamBeginCapture_v2(handle, 0), 0, "cuStreamBeginCapture");
            let worked = work();
            assert_eq!(cuStreamEndCapture(handle, &mut graph), 0, "cuStreamEndCapture");
            worked?;
            let instantiated = cuGraphInstantiate_v2(&mut executable, graph, null_mut(), null_mut(), 0);
            assert_eq!(instantiated, 0, "cuGraphInstantiate");
        }
        Ok(Graph(executable))
    }

    /// Offsets that change between launches of a graph: the elements of `array`, which gets them by uploads. They end
    /// with `end`.
    ///
    /// # Safety
    /// The array is dropped after the work of the graph. Whenever this is launched, the array has offsets as
    /// [`DeviceOffsets::from_array`] requires.
    pub unsafe fn changing_offsets(array: &DeviceArray<u64>, end: usize) -> DeviceOffsets {
        // SAFETY: the caller keeps the array, and no call writes offsets.
        let offsets = unsafe { part(array.stream(), array, 0..array.len()) };
        // SAFETY: the caller's offsets; every length is at most `usize::MAX`.
        unsafe { DeviceOffsets::from_array(offsets, end, usize::MAX) }.expect("there are offsets")
    }

    impl Graph {
        /// Puts the graph's work on the stream.
        ///
        /// # Safety
        /// The arrays and the `Gpu` that the graph was captured with live until the work is done, and nothing else uses
        /// the arrays until then.
        pub unsafe fn launch(&self, stream: &Stream) {
            // SAFETY: the graph is never destroyed, and `stream` is borrowed, so that both handles are valid. By the
            // contract of `launch`, the captured arrays live until the work is done, and nothing else uses them.
            assert_eq!(unsafe { cuGraphLaunch(self.0, stream.handle()) }, 0, "cuGraphLaunch");
        }
    }
}
