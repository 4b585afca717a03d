//! Plants errors in the sources, one at a time, and reports those that no test finds.
//!
//! ```sh
//! cargo run -p mutants -- --sources kernels-gpu/src --sample 300 -- -p kernels-gpu
//! ```
//!
//! The chosen errors are compiled at once, into a copy of the repository below `target/mutants`. A test program gets a
//! number in an environment variable, by which each place chooses between its text and the wrong ones. So an error
//! costs only the tests that reach it. Each test first runs alone, to record what it reaches. For each error, its tests
//! run from the shortest to the longest, until one fails. A test that takes much longer than without the error has
//! failed, too.
//!
//! Results are appended to `target/mutants/results.tsv`. Errors that are in it are not tried again, so that a run can
//! be stopped at any time. `--line FILE:LINE` tries those of one line again.

mod find;
mod programs;
#[cfg(test)]
mod tests;
mod tree;
mod weave;

use clap::Parser;
use programs::{Ended, Test, build, tests};
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, thread};
use tree::{Excluded, Sources, Tree};
use weave::Mutant;

/// Plants errors in the sources, one at a time, and reports those that no test finds.
#[derive(Parser)]
struct Options {
    /// A folder with the sources of a library, relative to the root of the repository; may be given several times.
    #[arg(long, required_unless_present = "packed")]
    sources: Vec<String>,
    /// Samples errors in files whose paths begin so: in all of the sources by default.
    #[arg(long, conflicts_with = "line")]
    below: Vec<String>,
    /// Tries this many errors, chosen at random, 300 by default. Compiling takes the longer the more there are.
    #[arg(long)]
    sample: Option<usize>,
    /// The seed of the choice. A new one by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Tries the errors of this line, also if they are in the results, and no sample unless `--sample` is given:
    /// `FILE:LINE`.
    #[arg(long)]
    line: Vec<String>,
    /// Compiles, and puts the test programs and the list of errors into this folder, for a machine without Rust.
    #[arg(long, conflicts_with_all = ["seconds", "threads"])]
    pack: Option<PathBuf>,
    /// Tries the errors in a folder that `--pack` has made, except those in its `results.tsv`. Results are added to
    /// this file.
    #[arg(long, conflicts_with_all = ["sources", "below", "sample", "line", "pack", "cargo"])]
    packed: Option<PathBuf>,
    /// Leaves out tests that take longer than this many seconds without an error.
    #[arg(long, default_value_t = 3600)]
    at_most: u64,
    /// Stops after this many seconds of trying.
    #[arg(long)]
    seconds: Option<u64>,
    /// Threads that run tests.
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Arguments of `cargo test`, such as `-p kernels-gpu`.
    #[arg(last = true)]
    cargo: Vec<String>,
}

fn main() -> io::Result<()> {
    let options = Options::parse();
    let seed = options.seed.unwrap_or_else(|| rand::rng().random());
    println!("seed {seed}");
    let work = options.packed.as_deref().unwrap_or(Path::new("target/mutants"));
    if options.packed.is_none() {
        fs::create_dir_all(work)?;
    }
    let work = fs::canonicalize(work)?;
    let results = Results::open(&work.join("results.tsv"))?;
    let mut plan = match &options.packed {
        Some(folder) => Plan::unpack(folder)?,
        None => compile(&options, seed, &results, &work)?,
    };
    if options.packed.is_some() {
        plan.mutants.retain(|mutant| !results.known.contains(&key(mutant)));
    }
    if let Some(folder) = &options.pack {
        return plan.pack(folder);
    }
    let tests = measured(&plan.programs, &options, &work)?;
    plan.mutants.shuffle(&mut StdRng::seed_from_u64(seed));
    let seconds: f64 = tests.iter().map(|test| test.seconds).sum();
    let reached: BTreeSet<u32> = tests.iter().flat_map(|test| test.reached.iter().copied()).collect();
    let count = plan.mutants.iter().filter(|mutant| reached.contains(&mutant.place)).count();
    println!("{} errors, {count} reached; {} tests, {seconds:.0} s", plan.mutants.len(), tests.len());
    try_all(&options, &plan.mutants, &tests, &results)
}

/// The errors to try, and the test programs that have them, each with the folder where it runs.
struct Plan {
    mutants: Vec<Mutant>,
    programs: Vec<(PathBuf, PathBuf)>,
}

impl Plan {
    fn pack(&self, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for (program, _) in &self.programs {
            fs::copy(program, folder.join(program.file_name().expect("a program is a file")))?;
        }
        let line =
            |m: &Mutant| format!("{}\t{}\t{}\t{}\t{}\t{}\n", m.number, m.place, m.file, m.line, m.column, m.what);
        fs::write(folder.join("errors.tsv"), self.mutants.iter().map(line).collect::<String>())
    }

    fn unpack(folder: &Path) -> io::Result<Self> {
        let parse = |line: &str| {
            let mut fields = line.splitn(6, '\t');
            let mut next = || fields.next();
            let (number, place) = (next()?.parse().ok()?, next()?.parse().ok()?);
            let (file, line, column) = (next()?.to_owned(), next()?.parse().ok()?, next()?.parse().ok()?);
            Some(Mutant { number, place, file, line, column, what: next()?.to_owned() })
        };
        let mutants = fs::read_to_string(folder.join("errors.tsv"))?.lines().filter_map(parse).collect();
        let folder = fs::canonicalize(folder)?;
        let files = fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<io::Result<Vec<_>>>()?;
        let programs = files.into_iter().filter(|file| file.extension().is_none() && file.is_file());
        Ok(Self { mutants, programs: programs.map(|program| (program, folder.clone())).collect() })
    }
}

/// The tests of all programs, from the shortest to the longest. Names those that are left out.
fn measured(programs: &[(PathBuf, PathBuf)], options: &Options, work: &Path) -> io::Result<Vec<Test>> {
    let mut all = Vec::new();
    for program in programs {
        all.extend(tests(program)?);
    }
    let limit = Duration::from_secs(options.at_most);
    let (waiting, measured) = (Mutex::new(all.into_iter()), Mutex::new(Vec::new()));
    let worker = |number: usize| -> io::Result<()> {
        let scratch = work.join(format!("reached{number}.txt"));
        loop {
            let test = waiting.lock().expect("no thread panics while it takes a test").next();
            let Some(mut test) = test else { return Ok(()) };
            match test.measure(&scratch, limit)? {
                Ended::Passed => measured.lock().expect("no thread panics while it adds a test").push(test),
                Ended::Failed => println!("left out, as it fails without an error: {}", test.name),
                Ended::TimedOut => println!("left out, as it takes too long: {}", test.name),
            }
        }
    };
    let worker = &worker;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..options.threads.max(1)).map(|number| scope.spawn(move || worker(number))).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let mut tests = measured.into_inner().expect("no thread has panicked");
    tests.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
    Ok(tests)
}

/// Chooses errors, and compiles until all that are left compile.
fn compile(options: &Options, seed: u64, results: &Results, work: &Path) -> io::Result<Plan> {
    let kept = work.join("excluded.tsv");
    let mut excluded: Excluded = fs::read_to_string(&kept).unwrap_or_default().lines().filter_map(parse).collect();
    loop {
        let mut sources = Sources::read(Path::new("."), &options.sources, &excluded)?;
        sources.keep(&choose(options, seed, sources.mutants(), results));
        let mutants = sources.mutants();
        let tree = Tree::make(sources, &work.join("tree"))?;
        match build(&tree, &options.cargo)? {
            Ok(programs) => return Ok(Plan { mutants, programs }),
            Err(wrong) => {
                println!("{} places do not compile with an error", wrong.len());
                excluded.extend(wrong);
                let lines: String = excluded.iter().map(|(file, a, b)| format!("{file}\t{a}\t{b}\n")).collect();
                fs::write(&kept, lines)?;
            }
        }
    }
}

fn parse(line: &str) -> Option<(String, usize, usize)> {
    let mut fields = line.split('\t');
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// The numbers of the errors to try.
fn choose(options: &Options, seed: u64, mut mutants: Vec<Mutant>, results: &Results) -> BTreeSet<u32> {
    let is_named = |mutant: &&Mutant| options.line.contains(&format!("{}:{}", mutant.file, mutant.line));
    let mut numbers: BTreeSet<u32> = mutants.iter().filter(is_named).map(|mutant| mutant.number).collect();
    mutants.retain(|mutant| {
        let is_below = options.below.is_empty() || options.below.iter().any(|path| mutant.file.starts_with(path));
        is_below && !results.known.contains(&key(mutant))
    });
    mutants.shuffle(&mut StdRng::seed_from_u64(seed));
    let sample = options.sample.unwrap_or(if options.line.is_empty() { 300 } else { 0 });
    numbers.extend(mutants.iter().take(sample).map(|mutant| mutant.number));
    numbers
}

fn key(mutant: &Mutant) -> String {
    format!("{}:{}:{}\t{}", mutant.file, mutant.line, mutant.column, mutant.what)
}

/// The file of results: the error, and what has become of it.
struct Results {
    file: Mutex<fs::File>,
    known: BTreeSet<String>,
}

impl Results {
    fn open(path: &Path) -> io::Result<Self> {
        let old = fs::read_to_string(path).unwrap_or_default();
        let known = old.lines().filter_map(|line| Some(line.rsplit_once('\t')?.0.to_owned())).collect();
        let file = fs::OpenOptions::new().append(true).create(true).open(path)?;
        Ok(Self { file: Mutex::new(file), known })
    }

    fn add(&self, mutant: &Mutant, outcome: &str) -> io::Result<()> {
        let mut file = self.file.lock().expect("no thread panics while it writes");
        writeln!(file, "{}\t{outcome}", key(mutant))
    }
}

/// Tries the errors and prints those that survive.
fn try_all(options: &Options, chosen: &[Mutant], tests: &[Test], results: &Results) -> io::Result<()> {
    let (next, begun) = (AtomicUsize::new(0), Instant::now());
    let counts = [const { AtomicUsize::new(0) }; 3];
    let worker = || -> io::Result<()> {
        while let Some(mutant) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
            if options.seconds.is_some_and(|seconds| begun.elapsed() > Duration::from_secs(seconds)) {
                return Ok(());
            }
            let reaching: Vec<&Test> = tests.iter().filter(|test| test.reached.contains(&mutant.place)).collect();
            let outcome = outcome(mutant, &reaching)?;
            let kind = match outcome.as_str() {
                "not reached" => 2,
                "survived" => 1,
                _ => 0,
            };
            counts[kind].fetch_add(1, Ordering::Relaxed);
            if kind > 0 {
                println!("{outcome}: {}", key(mutant));
            }
            results.add(mutant, &outcome)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..options.threads.max(1)).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker does not panic"))
    })?;
    let [caught, survived, not_reached] = counts.map(AtomicUsize::into_inner);
    println!("{caught} caught, {survived} survived, {not_reached} not reached, {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// What becomes of an error with the tests that reach it.
fn outcome(mutant: &Mutant, tests: &[&Test]) -> io::Result<String> {
    if tests.is_empty() {
        return Ok("not reached".to_owned());
    }
    for test in tests {
        let limit = Duration::from_secs_f64(10.0 + 10.0 * test.seconds);
        match test.run("MUTANT", &mutant.number.to_string(), limit)? {
            Ended::Passed => {}
            Ended::Failed => return Ok(format!("caught by {}", test.name)),
            Ended::TimedOut => return Ok(format!("caught by the time of {}", test.name)),
        }
    }
    Ok("survived".to_owned())
}
