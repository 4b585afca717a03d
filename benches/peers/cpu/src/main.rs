//! Compares the CPU engine with other sorts on the same machine, and prints a table of nanoseconds per key, and then
//! the work that a peer does in less time.
//!
//! ```text
//! cargo run --release --manifest-path benches/peers/cpu/Cargo.toml -- \
//!     [KEYS,…] [--threads 1,2,all] [--types u32,f64] [--dists uniform,few] [--tasks sort,pairs] [--json]
//! ```
//!
//! # Contenders
//!
//! | contender | threads | what it is |
//! | --- | --- | --- |
//! | merge-host | any | this library; stable |
//! | merge-host sort_by | any | this library's sort of strings by comparison; stable |
//! | std sort, std sort_unstable | 1 | the standard library: driftsort, which is stable, and ipnsort |
//! | glidesort | 1 | a sort by comparison that looks for runs and for equal keys; stable |
//! | radsort | 1 | radix sort; stable |
//! | rdst | any | radix sort |
//! | voracious | any | radix sort |
//! | vqsort | 1 | Highway's quicksort with vectors, if built with the feature `vqsort` |
//! | numpy | 1 | numpy of `python3` on the PATH, if it has numpy; not stable |
//! | rayon | 2 or more | `par_sort` and the like |
//!
//! The table for one thread has only contenders that use one thread. Other tables give each contender a pool of the
//! given number of threads. Each call comes from a thread outside the pool.
//!
//! # vqsort
//!
//! `--features vqsort` includes vqsort. It needs a C++ compiler, pkg-config, and Highway 1.0.5 or later with its
//! headers, and is therefore off by default. Debian 13 has Highway in `libhwy-dev`, but the version in Debian 12 is too
//! old. For Highway in another folder, `PKG_CONFIG_PATH` is the folder of `libhwy-contrib.pc`, and `CPLUS_INCLUDE_PATH`
//! the folder of its headers. With `SYSTEM_DEPS_LIBHWY_CONTRIB_LINK=static`, the program contains Highway, and runs
//! where it is not installed. Debian's package has no static library. The speed of vqsort depends on the version of
//! Highway.
//!
//! # Keys
//!
//! `tests/src/distribution.rs` makes random keys. Floats are ordered by `total_cmp`. The distribution `normal-nans` has
//! NaNs of both signs. It excludes vqsort, voracious and numpy, which do not promise this order for NaNs. The other
//! distributions have no NaNs and no negative zeros.
//!
//! # Times
//!
//! A run sorts one array, or many different ones of the same length if that is small, so that the processor cannot
//! learn their order. A sample is the mean time of several runs, which take at least a millisecond together. Each run
//! has a fresh copy of the keys, and copying is not timed. The time of a contender is the median of its samples. The
//! contenders of a table alternate, so that a change of the machine's speed affects all contenders. Before its first
//! sample, each result is compared once with the standard library's stable sort. Copies of 4 MiB or more are in huge
//! pages if the system grants them, like numpy's arrays. Memory that a contender allocates itself is not.

mod contenders;
// Shared with the other benchmarks. This program uses only a part of it.
#[allow(dead_code)]
#[path = "../../../../tests/src/distribution.rs"]
mod distribution;
mod keys;
mod measure;
mod memory;
mod numpy;

use clap::{Parser, ValueEnum};
use contenders::{Arrays, Setup};
use keys::{Keys, Peer};
use measure::{Contender, Loss, Work};
use std::thread::available_parallelism;

/// A run sorts at least this number of keys.
const KEYS_OF_RUN: usize = 1 << 14;

/// Compares the CPU engine of merge-host with other sorts.
#[derive(Parser)]
struct Arguments {
    /// The number of keys, or several
    #[arg(default_value = "10000000", value_delimiter = ',', value_parser = positive)]
    keys: Vec<usize>,
    /// Numbers of threads; `all` is one for each core
    #[arg(long, default_value = "1,2,all", value_delimiter = ',', value_parser = threads)]
    threads: Vec<usize>,
    /// Types of keys
    #[arg(long, default_value = "u32,i32,f32,u64,i64,f64", value_delimiter = ',')]
    types: Vec<Type>,
    /// Distributions of keys; `normal-nans` is one of floats
    #[arg(long, default_value = "uniform,zipf,sorted,few,normal-nans", value_delimiter = ',')]
    dists: Vec<Keys>,
    /// What to do with the keys
    #[arg(long, default_value = "sort", value_delimiter = ',')]
    tasks: Vec<Task>,
    /// Samples of each contender
    #[arg(long, default_value_t = 7, value_parser = positive)]
    repeats: usize,
    /// Print a JSON object for each row instead of the table
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Type {
    U8,
    I16,
    U32,
    I32,
    F32,
    U64,
    I64,
    F64,
    U128,
}

#[derive(Clone, Copy, ValueEnum)]
enum Task {
    /// Keys alone
    Sort,
    /// Keys, each with a value of the same size
    Pairs,
    /// The permutation that sorts the keys, with indices of 4 bytes
    Argsort,
    /// Structs of a key and 16 bytes, by their keys
    Structs,
    /// The names of the keys' numbers in letters
    Strings,
    /// Two sorted halves
    Merge,
}

fn positive(argument: &str) -> Result<usize, String> {
    argument.parse().ok().filter(|&number| number > 0).ok_or_else(|| "expected a number greater than 0".to_owned())
}

fn threads(argument: &str) -> Result<usize, String> {
    match argument {
        "all" => Ok(available_parallelism().map_or(1, usize::from)),
        _ => positive(argument),
    }
}

impl Task {
    fn contenders<'a, K: Peer>(self, setup: &'a Setup, arrays: Arrays<'a, K>) -> (String, Vec<Contender<'a>>) {
        let name = K::NAME;
        match self {
            Task::Sort => (format!("sort, {name}"), contenders::sort(setup, arrays)),
            Task::Pairs => {
                (format!("sort, {name}, values of {} bytes", size_of::<K>()), contenders::pairs(setup, arrays))
            }
            Task::Argsort => (format!("argsort, {name}"), contenders::argsort(setup, arrays)),
            Task::Structs => (format!("structs, {name}"), contenders::structs(setup, arrays)),
            Task::Strings => (format!("strings of {name}"), contenders::strings(setup, arrays)),
            Task::Merge => (format!("merge, {name}"), contenders::merge(setup, arrays)),
        }
    }
}

/// Measures all tasks, distributions, lengths and numbers of threads for one type of keys. Returns what others do in
/// less time.
fn measure_type<K: Peer>(arguments: &Arguments, setups: &[Setup]) -> Vec<Loss> {
    let mut losses = vec![];
    for dist in arguments.dists.iter().filter(|dist| dist.suits::<K>()) {
        for &n in &arguments.keys {
            let all = dist.keys::<K>(n, KEYS_OF_RUN.div_ceil(n));
            for setup in setups {
                for task in &arguments.tasks {
                    let (task, contenders) = task.contenders(setup, Arrays { all: &all, n, dist: *dist });
                    let work = Work { task, dist: dist.name(), threads: setup.threads, keys: n };
                    let times = measure::times(contenders, all.len(), arguments.repeats);
                    for time in &times {
                        println!("{}", if arguments.json { work.json(time) } else { work.markdown(time) });
                    }
                    losses.extend(Loss::of(&work, &times));
                }
            }
        }
    }
    losses
}

fn main() {
    let mut arguments = Arguments::parse();
    arguments.threads.sort_unstable();
    arguments.threads.dedup();
    let numpy = numpy::version();
    match &numpy {
        Ok(version) => eprintln!("numpy {version}"),
        Err(reason) => eprintln!("numpy is left out: {reason}"),
    }
    let setups: Vec<Setup> = arguments.threads.iter().map(|&threads| Setup::new(threads, numpy.is_ok())).collect();
    if !arguments.json {
        println!("Medians of {} samples\n\n{}", arguments.repeats, Work::HEADER);
    }
    let measured = arguments.types.iter().flat_map(|kind| match kind {
        Type::U8 => measure_type::<u8>(&arguments, &setups),
        Type::I16 => measure_type::<i16>(&arguments, &setups),
        Type::U32 => measure_type::<u32>(&arguments, &setups),
        Type::I32 => measure_type::<i32>(&arguments, &setups),
        Type::F32 => measure_type::<f32>(&arguments, &setups),
        Type::U64 => measure_type::<u64>(&arguments, &setups),
        Type::I64 => measure_type::<i64>(&arguments, &setups),
        Type::F64 => measure_type::<f64>(&arguments, &setups),
        Type::U128 => measure_type::<u128>(&arguments, &setups),
    });
    let mut losses: Vec<Loss> = measured.collect();
    if !arguments.json {
        losses.sort_by(|a, b| b.factor.total_cmp(&a.factor));
        println!("\nWhere a peer takes less time\n\n{}", Work::LOSSES);
        losses.iter().for_each(|loss| println!("{}", loss.row));
    }
}
