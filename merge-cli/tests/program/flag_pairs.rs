//! Every pair of flags of every command, from clap's declaration. A new flag of the program is tested without a change
//! of this file. Each pair is refused, or gives the output of [`model`](crate::oracle::model). A third of the pairs is
//! tried, at random, or all with `GMERGE_TESTS=all`.

use crate::common::{Folder, Random, engines, tried};
use crate::oracle::judge::{self, Case, Known, Verdict};
use crate::oracle::samples::{OPERANDS, PARTNERS, Subject, Usage};
use crate::set_operations;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

/// The most random triples of a command. Commands with few flags have one triple for two pairs.
const MOST_TRIPLES: usize = 75;
/// From this number of samples on, not all samples of a flag are paired with all samples of other flags.
const MANY: usize = 4;
/// Flags that can be combined with all other flags, each with its exceptions. There are no .npy files of u128
/// and i128.
const UNIVERSAL: [(&str, &[&str]); 7] = [
    ("type", &["record-size", "key", "output", "format", OPERANDS]),
    ("stats", &[]),
    ("quiet", &["verbose"]),
    ("verbose", &["quiet"]),
    ("progress", &[]),
    ("parallel", &[]),
    ("stable", &[]),
];

/// Whether a sample is skipped: this machine does not support it, or it concerns Arrow files, tables or arrays with
/// rows, which have separate tests.
fn is_left_out(command: &str, usage: &Usage) -> bool {
    let is = |id, value: &str| usage.id == id && usage.value.as_deref() == Some(value);
    let no_gpu = needs_gpu(command, usage) && !engines().contains(&"gpu");
    let is_of_other_files = ["compression", "axis", "rows"].contains(&&*usage.id);
    no_gpu || is_of_other_files || ["arrow", "arrows", "parquet"].iter().any(|format| is("format", format))
}

/// Whether a sample asks for a GPU.
fn needs_gpu(command: &str, usage: &Usage) -> bool {
    let is = |id, value: &str| usage.id == id && usage.value.as_deref() == Some(value);
    is("engine", "gpu") || command == "sort" && is("kernel", "merge-path")
}

#[test]
fn every_pair_of_flags_is_refused_or_honoured() {
    let seed = Random::new().next();
    let mut failures = String::new();
    // The set operations have the same flags and share their code. The seed chooses the one that is tried.
    let of_sets = set_operations::COMMANDS[seed as usize % set_operations::COMMANDS.len()];
    let is_tried = |subject: &Subject| !set_operations::COMMANDS.contains(&subject.name()) || subject.name() == of_sets;
    for subject in Subject::all(is_left_out).into_iter().filter(is_tried) {
        let known = verdicts(&subject, seed);
        failures += &report(&subject, &known);
        check_shares(&subject, &known, &mut failures);
    }
    assert!(failures.is_empty(), "{failures}");
}

/// Judges single flags, then pairs, then triples. The verdict on a refusal depends on the verdicts on its parts.
fn verdicts(subject: &Subject, seed: u64) -> Known<'_> {
    let usages: Vec<&Usage> = subject.usages.iter().collect();
    let mut known = Known::new();
    known.insert(BTreeSet::new(), Case { subject, usages: Vec::new(), seed, short: false }.judge(&known));
    add(&mut known, subject, seed, usages.iter().map(|usage| vec![*usage]).collect());
    let pairs = tried(pairs(&usages, seed as usize));
    let triples = triples(&usages, seed, (pairs.len() / 2).min(MOST_TRIPLES));
    add(&mut known, subject, seed, pairs);
    add(&mut known, subject, seed, tried(pairs_on_streams(&usages, seed)));
    add(&mut known, subject, seed, triples);
    known
}

/// All pairs of samples of different flags, with an exception for flags that have [`MANY`] samples or are universal.
/// Each sample of another flag is paired with two samples of such a flag, or with one. The seed determines them. Of two
/// such flags, the flag with fewer samples is tried with all its samples.
fn pairs<'a>(usages: &[&'a Usage], seed: usize) -> Vec<Vec<&'a Usage>> {
    let groups = |i: usize| {
        let id = &usages[i].id;
        let samples = usages.iter().filter(|usage| usage.id == *id).count();
        match UNIVERSAL.iter().any(|(universal, _)| id == universal) {
            true => samples,
            false if samples >= MANY => samples / 2,
            false => 1,
        }
    };
    let is_tried = |i: usize, j: usize| {
        let (many, few) = if groups(i) < groups(j) { (j, i) } else { (i, j) };
        many % groups(many) == (few ^ seed) % groups(many)
    };
    let all = (0..usages.len()).flat_map(|i| (i + 1..usages.len()).map(move |j| (i, j)));
    let pairs = all.filter(|&(i, j)| usages[i].id != usages[j].id && is_tried(i, j));
    pairs.map(|(i, j)| vec![usages[i], usages[j]]).collect()
}

/// All pairs of flags, with one sample each, with input and output through pipes.
fn pairs_on_streams<'a>(usages: &[&'a Usage], seed: u64) -> Vec<Vec<&'a Usage>> {
    let is_stream = |usage: &&&Usage| matches!(usage.value.as_deref(), Some("stdin" | "-"));
    let streams: Vec<&Usage> = usages.iter().filter(is_stream).copied().collect();
    if streams.is_empty() {
        return Vec::new();
    }
    let mut random = Random::of(seed);
    let mut flags: BTreeMap<&str, Vec<&Usage>> = BTreeMap::new();
    for usage in usages.iter().filter(|usage| usage.id != OPERANDS && usage.id != "output") {
        flags.entry(&usage.id).or_default().push(usage);
    }
    let flags: Vec<_> = flags.into_values().collect();
    let mut sample = |i: usize| flags[i][random.below(flags[i].len())];
    let pairs = (0..flags.len()).flat_map(|i| (i + 1..flags.len()).map(move |j| (i, j)));
    pairs.map(|(i, j)| [vec![sample(i), sample(j)], streams.clone()].concat()).collect()
}

/// `count` random triples of flags, or none if there are fewer than three flags.
fn triples<'a>(usages: &[&'a Usage], seed: u64, count: usize) -> Vec<Vec<&'a Usage>> {
    let mut random = Random::of(seed);
    let ids = |usages: &[&Usage]| usages.iter().map(|usage| usage.id.clone()).collect::<BTreeSet<_>>().len();
    if ids(usages) < 3 {
        return Vec::new();
    }
    let triple = || (0..3).map(|_| usages[random.below(usages.len())]).collect::<Vec<_>>();
    std::iter::repeat_with(triple).filter(|triple| ids(triple) == 3).take(count).collect()
}

/// Judges these samples, and adds the verdicts to `known`. A single flag with two names is tried with each name.
fn add<'a>(known: &mut Known<'a>, subject: &'a Subject, seed: u64, samples: Vec<Vec<&'a Usage>>) {
    let seeds = (seed % (1 << 48)..).step_by(7);
    let cases = samples.into_iter().zip(seeds).map(|(usages, seed)| Case { subject, usages, seed, short: false });
    let by_letter = |case: &Case<'a>| case.usages.len() == 1 && subject.has_short(case.usages[0]);
    let again = |case: Case<'a>| {
        let letter = by_letter(&case).then(|| Case { usages: case.usages.clone(), short: true, ..case });
        [Some(case), letter]
    };
    let cases: Vec<Case> = cases.flat_map(again).flatten().collect();
    for (case, verdict) in cases.iter().zip(judge_all(&cases, known)) {
        let entry = known.entry(case.usages.iter().copied().collect()).or_insert_with(|| verdict.clone());
        if matches!(verdict, Verdict::Wrong { .. }) {
            *entry = verdict;
        }
    }
}

/// Judges the cases, one on each core at a time.
fn judge_all(cases: &[Case], known: &Known) -> Vec<Verdict> {
    let verdicts: Vec<OnceLock<Verdict>> = cases.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((case, verdict)) =
                    Some(next.fetch_add(1, Relaxed)).and_then(|i| cases.get(i).zip(verdicts.get(i)))
                {
                    let _ = verdict.set(case.judge(known));
                }
            });
        }
    });
    verdicts.into_iter().filter_map(OnceLock::into_inner).collect()
}

/// Writes a table of all verdicts to a file, and returns the defects.
fn report(subject: &Subject, known: &Known) -> String {
    let mut table = String::new();
    let mut defects: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut rows: Vec<_> = known.iter().collect();
    rows.sort_by(|a, b| (a.0.len(), a.0).cmp(&(b.0.len(), b.0)));
    for (usages, verdict) in rows {
        let names: Vec<_> = usages.iter().map(|usage| usage.to_string()).collect();
        let row = format!("{} {}", subject.name(), names.join(" × "));
        let _ = match verdict {
            Verdict::Honoured => writeln!(table, "{row}: honoured"),
            Verdict::Refused(message) => writeln!(table, "{row}: refused: {}", message.trim_end()),
            Verdict::Unjudged => writeln!(table, "{row}: refused, and a part does not work"),
            Verdict::Wrong { cause, detail } => {
                defects.entry(cause.clone()).or_default().push(format!("{row}: {}", detail.trim_end()));
                writeln!(table, "{row}: WRONG: {cause}: {}", detail.trim_end())
            }
        };
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flag-pairs");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{}.txt", subject.name())), table).unwrap();
    let mut text = String::new();
    for (cause, rows) in defects {
        let _ = writeln!(text, "{}: {cause}: {} command lines, such as", subject.name(), rows.len());
        rows.iter().take(4).for_each(|row| text += &format!("  {row}\n"));
    }
    text
}

/// Checks that universal flags are never refused, and that most pairs of a command on keys are accepted.
fn check_shares(subject: &Subject, known: &Known, failures: &mut String) {
    let pairs: Vec<_> = known.iter().filter(|(usages, _)| usages.len() == 2).collect();
    let refused: Vec<_> = pairs.iter().filter(|(_, verdict)| verdict.is_refused()).collect();
    println!("{}: {} of {} pairs refused", subject.name(), refused.len(), pairs.len());
    for (usages, verdict) in refused.iter() {
        let has = |id: &str| usages.iter().any(|usage| usage.id == id);
        let is_wrong = |(id, except): &(&str, &[&str])| has(id) && !except.iter().any(|id| has(id));
        let is_refused_alone = usages.iter().any(|usage| known[&BTreeSet::from([*usage])].is_refused());
        // GPUs have kernels for some types alone, and the type of the keys is chosen at random.
        let needs_gpu = usages.iter().any(|usage| needs_gpu(subject.name(), usage));
        if let Some((id, _)) = UNIVERSAL.iter().find(|universal| is_wrong(universal))
            && !is_refused_alone
            && !needs_gpu
        {
            let _ = writeln!(failures, "{}: --{id} is refused: {verdict:?}", subject.name());
        }
    }
    if subject.has_flag("stats") && 2 * refused.len() > pairs.len() {
        let _ = writeln!(failures, "{}: {} of {} pairs refused", subject.name(), refused.len(), pairs.len());
    }
}

#[test]
fn a_flag_without_the_one_that_it_needs_is_refused_beside_every_other() {
    let mut dropped = Vec::new();
    for subject in Subject::all(is_left_out) {
        for (id, partner) in tried(PARTNERS) {
            let requests = subject.usages.iter().filter_map(|usage| subject.without_partner(usage, id, partner));
            let honoured = requests.filter(|request| !judge::is_refused(&subject, request));
            dropped.extend(honoured.map(|request| subject.words(&request, false).join(" ")));
        }
    }
    assert!(dropped.is_empty(), "dropped in silence:\n{}", dropped.join("\n"));
}

#[test]
fn flags_that_change_no_byte_have_their_effect() {
    let folder = Folder::new();
    let keys: Vec<u32> = Random::new().keys(1 << 19);
    folder.write("in.u32", &keys);
    folder.write("in.rows", &keys);
    // Keys that exceed 1 MiB are spilled to the named folder.
    for flags in [
        "",
        "--reverse",
        "--unique",
        "--check",
        "--argsort",
        "--values in.rows --values-out out.rows",
        "--record-size 8 --key 4:u32",
    ] {
        let run = folder.run(&format!("sort in.u32 -o out.bin -S 1M -T nowhere {flags}"));
        run.fails(2, &["nowhere"]);
        folder.run(&format!("sort in.u32 -o out.bin -S 1M --batch-size 2 {flags}")).succeeds();
    }
    // Unsorted input is an error without --assume-sorted.
    folder.write("in.offsets", &[0u64, 1 << 19]);
    for subject in Subject::all(is_left_out).iter().filter(|subject| subject.has_flag("assume-sorted")) {
        let runs = if subject.has_flag("offsets") { "--offsets in.offsets in.offsets" } else { "" };
        let second = if subject.has_flag("needles") { "--needles in.u32" } else { "in.u32" };
        let command = format!("{} in.u32 {second} {runs} -o out.u32", subject.name());
        folder.run(&command).fails(2, &["in.u32", "sorted"]);
        folder.run(&format!("{command} --assume-sorted")).succeeds();
    }
}
