//! Failures of the system at every call on a file, kills at any moment, and power cuts.
//!
//! After each fault, every output is the old file or the new one. Keys and values belong together. The inputs are
//! unchanged, and the folder has no other file. An error is one line.
//!
//! By default, each test tries random faults of some command lines for some seconds. The variable `GMERGE_TESTS=all`
//! makes it try all faults, and 10,000 kills:
//! `GMERGE_TESTS=all cargo test -p merge-cli --test program -- faults --nocapture`.

use super::disk::Disk;
use super::tracer::{self, Call, Fault, Watch};
use crate::common::{Folder, GMERGE, Random, Run, cases, tried};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a test tries random faults.
const TIME: Duration = Duration::from_secs(2);

/// The number of kills of a run of all faults.
const KILLS: usize = 10_000;

/// The runs: the arguments, and the outputs.
const CASES: &[(&str, &[&str])] = &[
    ("sort in.u32 -o out.u32", &["out.u32"]),
    ("sort in.u32 -o out.u32 --sync --check", &["out.u32"]),
    ("sort in.u32 --values in.rows -o out.u32 --values-out out.rows", &["out.u32", "out.rows"]),
    ("sort in.u32 --argsort -o out.u64", &["out.u64"]),
    ("sort in.u32 --segment-len 100 -o out.u32", &["out.u32"]),
    ("sort in.rows --record-size 8 --key 2:u32 -o out.records", &["out.records"]),
    ("sort in.u32 -u -o out.npy", &["out.npy"]),
    ("sort in.u32 -o out.arrow", &["out.arrow"]),
    ("sort in.u32 --top 10 -o out.u32", &["out.u32"]),
    ("sort in.arrow --key keys -o out.arrows --sync --compression lz4", &["out.arrows"]),
    ("sort large.arrow --key keys -S 1M -T . -o out.arrow", &["out.arrow"]),
    ("sort large.u64 -S 1M -T . -o out.u64", &["out.u64"]),
    ("sort large.u64 --values large.rows -S 1M -T . -o out.u64 --values-out out.rows", &["out.u64", "out.rows"]),
    ("merge a.u32 b.u32 -o out.u32", &["out.u32"]),
    ("merge sorted.u64 sorted.u64 -S 1M -T . -o out.u64", &["out.u64"]),
    ("batch a.u32 b.u32 -d 10 -o out.u32", &["out.u32"]),
    ("union a.u32 b.u32 -o out.u32", &["out.u32"]),
    ("gen -n 1000 --seed 1 -o out.u32", &["out.u32"]),
];

/// A run, the folder that it runs in, and what its outputs are before and after it.
struct Case {
    arguments: &'static str,
    folder: Folder,
    inputs: Vec<(String, Vec<u8>)>,
    outputs: Vec<Output>,
}

struct Output {
    name: &'static str,
    /// None if there is no file before.
    old: Option<Vec<u8>>,
    new: Vec<u8>,
}

/// The content of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Old,
    New,
}

impl Output {
    /// The state of the output if its file has this content, or if there is none.
    fn state(&self, what: &str, found: Option<&[u8]>) -> State {
        if found == Some(&self.new) {
            return State::New;
        }
        assert!(found == self.old.as_deref(), "{what}: {} is neither old nor new", self.name);
        State::Old
    }
}

/// Watches nothing.
impl Watch for () {}

impl Case {
    /// The cases that are tried, with outputs that exist before if `old`.
    fn tried(old: bool) -> Vec<Self> {
        tried(CASES).into_iter().map(|&(arguments, outputs)| Self::new(arguments, outputs, old)).collect()
    }

    fn new(arguments: &'static str, outputs: &[&'static str], old: bool) -> Self {
        let folder = Folder::new();
        let mut random = Random::of(1);
        for (name, bytes) in [("in.u32", 12_000), ("in.rows", 24_000), ("large.u64", 1_600_000)] {
            fs::write(folder.path(name), random.bytes(bytes)).unwrap();
        }
        fs::copy(folder.path("large.u64"), folder.path("large.rows")).unwrap();
        for name in ["a", "b"] {
            folder.write(&format!("{name}.u32"), &random.sorted::<u32>(1000));
        }
        folder.write("sorted.u64", &(0..100_000u64).collect::<Vec<_>>());
        folder.run("sort in.u32 -o in.arrow --engine cpu").succeeds();
        folder.run("sort large.u64 -r -o large.arrow --engine cpu").succeeds();
        let read = |name: String| (name.clone(), fs::read(folder.path(&name)).unwrap());
        let inputs = folder.files().into_iter().map(read).collect();
        let mut case = Case { arguments, folder, inputs, outputs: Vec::new() };
        case.run(&mut ()).succeeds();
        let old = |name: &str| old.then(|| format!("the old {name}").into_bytes());
        let output = |&name| Output { name, old: old(name), new: fs::read(case.path(name)).unwrap() };
        case.outputs = outputs.iter().map(output).collect();
        case
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    fn command(&self) -> Command {
        let mut command = self.folder.command(GMERGE);
        command.args(self.arguments.split_whitespace()).env("TMPDIR", self.path(""));
        if !self.arguments.starts_with("gen") {
            command.args(["--engine", "cpu"]);
        }
        command
    }

    fn root(&self) -> PathBuf {
        self.path("").canonicalize().unwrap()
    }

    /// Runs with the old outputs in place.
    fn run(&self, watch: &mut dyn Watch) -> Run {
        self.restore();
        tracer::run(&mut self.command(), &self.root(), watch)
    }

    /// Runs with one fault. Returns the call that had it, too.
    fn run_with(&self, at: At) -> (Run, String) {
        let mut once = Once { at, call: None };
        let run = self.run(&mut once);
        (run, once.call.unwrap_or_else(|| "no call".to_owned()))
    }

    /// The files that are not inputs.
    fn made(&self) -> impl Iterator<Item = String> {
        let is_input = |name: &String| self.inputs.iter().any(|(input, _)| input == name);
        self.folder.files().into_iter().filter(move |name| !is_input(name))
    }

    /// Puts the old outputs in place, and removes all other files that are not inputs.
    fn restore(&self) {
        self.made().for_each(|name| fs::remove_file(self.path(&name)).unwrap());
        for Output { name, old, .. } in &self.outputs {
            old.iter().for_each(|old| fs::write(self.path(name), old).unwrap());
        }
    }

    /// The faults of a run, which must succeed.
    fn faults(&self) -> Faults {
        let mut faults = Faults::default();
        self.run(&mut faults).succeeds();
        faults
    }

    /// The state of each output. Fails with `what` if one is neither the old file nor the new one, or an input has
    /// changed.
    fn states(&self, what: &str) -> Vec<State> {
        for (name, bytes) in &self.inputs {
            assert!(fs::read(self.path(name)).is_ok_and(|found| found == *bytes), "{what}: {name} has changed");
        }
        let state = |output: &Output| output.state(what, fs::read(self.path(output.name)).ok().as_deref());
        self.outputs.iter().map(state).collect()
    }

    /// The files that are neither inputs nor outputs.
    fn others(&self) -> Vec<String> {
        self.made().filter(|name| self.outputs.iter().all(|output| output.name != name)).collect()
    }

    /// Checks what a run has left after an error of a call.
    fn check_error(&self, call: &str, fault: Fault, mut run: Run) {
        run.what = format!("{}: {call}: {fault:?}", self.arguments);
        let what = format!("{}: exit code {:?}: {}", run.what, run.code(), run.stderr());
        let states = self.states(&what);
        let is_removal = call.starts_with("unlink");
        assert!(is_removal || self.others().is_empty(), "{what}: left behind: {:?}", self.others());
        let expected = if run.code() == Some(0) {
            assert!(run.stderr().lines().all(|line| line.starts_with("gmerge: ")), "{what}");
            assert!(!run.stderr().contains("internal error") && !run.stderr().contains("os error"), "{what}");
            State::New
        } else {
            run.fails(2, &[]);
            // An error after the outputs are in their places says so.
            if run.stderr().contains("is complete") { State::New } else { State::Old }
        };
        assert!(states.iter().all(|&state| state == expected), "{what}: {states:?}");
    }

    /// Checks what a run has left that was killed.
    fn check_killed(&self, what: &str) {
        let others = self.others();
        let states = self.states(what);
        let is_temporary = |name: &String| name.starts_with(".gmerge-") && name.ends_with(".tmp");
        assert!(others.iter().all(is_temporary), "{what}: {others:?}");
        self.check_together(what, &states, || others.iter().map(|name| fs::read(self.path(name)).unwrap()).collect());
    }

    /// Checks that outputs are all old or all new. Between the renames of two files, the other halves are among
    /// `others`, so that both the old and the new pair exist.
    fn check_together(&self, what: &str, states: &[State], others: impl Fn() -> Vec<Vec<u8>>) {
        if states.windows(2).all(|pair| pair[0] == pair[1]) {
            return;
        }
        let others = others();
        for (output, state) in self.outputs.iter().zip(states) {
            let kept = match state {
                State::New => output.old.as_ref(),
                State::Old => Some(&output.new),
            };
            assert!(kept.is_none_or(|kept| others.contains(kept)), "{what}: {} is lost", output.name);
        }
    }
}

/// A fault of one call. The threads of a run make their calls in an order that varies, so that it is the first call of
/// its kind from a number on.
#[derive(Clone)]
struct At {
    number: usize,
    kind: &'static str,
    fault: Fault,
}

/// Applies one fault, and remembers the call.
struct Once {
    at: At,
    call: Option<String>,
}

impl Watch for Once {
    fn begins(&mut self, number: usize, call: &Call) -> Option<Fault> {
        if number < self.at.number || call.kind.name != self.at.kind || self.call.is_some() {
            return None;
        }
        self.call = Some(format!("{} of {}, call {number}", call.kind.name, call.path.display()));
        Some(self.at.fault)
    }
}

/// Lists the faults that each call of a run can have.
#[derive(Default)]
struct Faults {
    errors: Vec<At>,
    kills: Vec<At>,
}

impl Watch for Faults {
    fn begins(&mut self, number: usize, call: &Call) -> Option<Fault> {
        let kind = call.kind.name;
        let short: &[Fault] = if call.kind.count.is_some() { &[Fault::OneByte, Fault::Half] } else { &[] };
        let errors = call.kind.errors.iter().map(|&error| Fault::Error(error)).chain(short.iter().copied());
        self.errors.extend(errors.map(|fault| At { number, kind, fault }));
        self.kills.push(At { number, kind, fault: Fault::Kill });
        None
    }
}

/// Makes every read and write a short one.
struct AllShort;

impl Watch for AllShort {
    fn begins(&mut self, _number: usize, call: &Call) -> Option<Fault> {
        call.kind.count.map(|_| Fault::Half)
    }
}

/// Calls `each` with all items, or with random ones for [`TIME`]. Returns the number of calls. A call that panics does
/// not end the others. This function panics after them.
fn each<T>(mut items: Vec<T>, mut each: impl FnMut(T)) -> usize {
    let (begin, mut random) = (Instant::now(), Random::new());
    let (tries_all, mut calls, mut failed) = (cases::tries_all(), 0, 0);
    while !items.is_empty() && (tries_all || begin.elapsed() < TIME) {
        let item = items.swap_remove(random.below(items.len()));
        failed += usize::from(catch_unwind(AssertUnwindSafe(|| each(item))).is_err());
        calls += 1;
    }
    assert_eq!(failed, 0, "of {calls} calls");
    calls
}

#[test]
fn every_call_on_a_file_may_fail_or_be_short() {
    for old in [true, false] {
        let cases = Case::tried(old);
        let mut items = Vec::new();
        for case in &cases {
            items.extend(case.faults().errors.into_iter().map(|at| (case, at)));
        }
        let all = items.len();
        let tried = each(items, |(case, at)| {
            let fault = at.fault;
            let (run, call) = case.run_with(at);
            case.check_error(&call, fault, run);
        });
        println!("old outputs: {old}: {tried} of {all} faults");
    }
}

#[test]
fn every_read_and_write_may_be_short() {
    let cases = Case::tried(true);
    let is_small = |case: &&Case| !case.arguments.contains("-S");
    each(cases.iter().filter(is_small).collect(), |case| {
        let run = case.run(&mut AllShort);
        assert_eq!(run.code(), Some(0), "{}: {}", case.arguments, run.stderr());
        case.check_error("all reads and writes", Fault::Half, run);
    });
}

#[test]
fn a_kill_before_any_call_leaves_the_old_files_or_the_new_ones() {
    let cases: Vec<Case> = [true, false].into_iter().flat_map(Case::tried).collect();
    let mut items = Vec::new();
    for case in &cases {
        items.extend(case.faults().kills.into_iter().map(|at| (case, at)));
    }
    let all = items.len();
    let tried = each(items, |(case, at)| {
        let (run, call) = case.run_with(at);
        // The order of the calls of several threads varies, and so can their number.
        assert!(matches!(run.code(), None | Some(0)), "{}: {:?}", case.arguments, run.code());
        case.check_killed(&format!("{}: killed before {call}", case.arguments));
    });
    println!("{tried} of {all} kills");
}

#[test]
fn a_kill_at_any_time_leaves_the_old_files_or_the_new_ones() {
    let cases: Vec<Case> = [true, false].into_iter().flat_map(Case::tried).collect();
    let spawn = |case: &Case| {
        case.restore();
        case.command().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let time = |case: &Case| {
        let begin = Instant::now();
        assert!(spawn(case).wait().unwrap().success());
        begin.elapsed()
    };
    let times: Vec<Duration> = cases.iter().map(time).collect();
    let mut random = Random::new();
    let mut killed = 0;
    let tried = each((0..KILLS).collect(), |_: usize| {
        let chosen = random.below(cases.len());
        let case = &cases[chosen];
        let delay = times[chosen] * random.below(1100) as u32 / 1000;
        let mut child = spawn(case);
        std::thread::sleep(delay);
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        case.check_killed(&format!("{}: killed after {delay:?}", case.arguments));
    });
    println!("{tried} runs, {killed} of them killed");
    assert!(killed > 0);
}

#[test]
fn a_power_cut_leaves_the_old_files_or_the_new_ones() {
    for old in [true, false] {
        // A new file is not waited for, unless the user asks for it.
        let cases = Case::tried(old).into_iter().filter(|case| old || case.arguments.contains("--sync"));
        for case in cases {
            case.restore();
            let mut disk = Disk::new(&case.root());
            tracer::run(&mut case.command(), &case.root(), &mut disk).succeeds();
            let cuts = disk.after_power_cuts(|what, files| {
                let what = format!("{}: {what}", case.arguments);
                let state = |output: &Output| {
                    let found = files.get(output.name);
                    assert!(found != Some(&None), "{what}: the content of {} is not certain", output.name);
                    output.state(&what, found.and_then(Option::as_ref).map(|content| &content[..]))
                };
                let states: Vec<State> = case.outputs.iter().map(state).collect();
                case.check_together(&what, &states, || {
                    files.values().flatten().map(|content| content.to_vec()).collect()
                });
            });
            println!("{}: {cuts} power cuts", case.arguments);
        }
    }
}
