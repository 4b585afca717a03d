//! Runs a command line in a separate folder, and judges the result.
//!
//! Either an error that names two of the flags refuses them, and no file changes. Or every flag has its effect, and the
//! output equals the output of the [model](super::model), byte for byte. No list prescribes which case applies.

use super::input::Input;
use super::model::{Expected, encoded, expected};
use super::samples::{Request, Subject, Usage};
use crate::common::GMERGE;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// The time after which a run is killed.
const LIMIT: Duration = Duration::from_secs(10);

/// The judgement on one command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The run gave the result of the model.
    Honoured,
    /// The run was refused with this message.
    Refused(String),
    /// The run was refused, and already a part of its flags does not work.
    Unjudged,
    /// A defect, in short and in detail.
    Wrong { cause: String, detail: String },
}

impl Verdict {
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused(_))
    }
}

/// Earlier verdicts, by their samples. A refusal of three flags counts only if two of the flags are refused.
pub type Known<'a> = HashMap<BTreeSet<&'a Usage>, Verdict>;

fn verdict<'a>(known: &'a Known<'a>, usages: &[&'a Usage]) -> Option<&'a Verdict> {
    known.get(&usages.iter().copied().collect::<BTreeSet<_>>())
}

/// A command line to judge.
pub struct Case<'a> {
    pub subject: &'a Subject,
    pub usages: Vec<&'a Usage>,
    pub seed: u64,
    /// Whether flags are given as letters.
    pub short: bool,
}

impl Case<'_> {
    pub fn judge(&self, known: &Known) -> Verdict {
        let request = self.subject.request(&self.usages, self.seed);
        let input = Input::new(&request);
        let outcome = match self.subject.parse(&request) {
            // The program prints the same message, from the same declaration.
            Err(error) => Ok(Some(merge_cli::shared::usage::message(&error))),
            Ok(()) => {
                let run = Run::new(self.subject.words(&request, self.short), &request, &input);
                run.outcome(&request, &input)
                    .map_err(|(cause, detail)| (cause, format!("{detail}\n    {}", run.words.join(" "))))
            }
        };
        match outcome {
            Ok(None) => Verdict::Honoured,
            Ok(Some(message)) => self.refused(&request, &input, message, known),
            Err((cause, detail)) => Verdict::Wrong { cause, detail },
        }
    }

    /// The verdict on a refusal of this request with this message.
    fn refused(&self, request: &Request, input: &Input, message: String, known: &Known) -> Verdict {
        let is_named = |id: &str| self.subject.names(request, id).iter().any(|name| mentions(&message, name));
        if let Expected::Refusal(flags) = expected(request, input)
            && flags.iter().all(|id| is_named(id))
        {
            return Verdict::Refused(message);
        }
        let wrong = |cause: &str| Verdict::Wrong { cause: cause.to_owned(), detail: message.clone() };
        if self.usages.len() < 2 {
            return wrong("does not work alone");
        }
        if self.usages.iter().any(|usage| matches!(verdict(known, &[usage]), Some(Verdict::Wrong { .. }))) {
            return Verdict::Unjudged;
        }
        let named: Vec<&Usage> =
            self.usages.iter().copied().filter(|usage| self.bundle(usage).iter().any(|id| is_named(id))).collect();
        if named.len() < 2 {
            return wrong("refused without naming two flags");
        }
        if named.len() == self.usages.len() {
            return Verdict::Refused(message);
        }
        match verdict(known, &named) {
            Some(Verdict::Honoured) => wrong("refused for two flags that work together"),
            Some(Verdict::Refused(_)) | None => Verdict::Refused(message),
            Some(_) => Verdict::Unjudged,
        }
    }

    /// The flag, with the flags that it needs.
    fn bundle(&self, usage: &Usage) -> BTreeSet<String> {
        let needed =
            |usages: &[&Usage]| self.subject.request(usages, self.seed).given.into_keys().collect::<BTreeSet<_>>();
        let mut bundle = &needed(&[usage]) - &needed(&[]);
        bundle.retain(|id| self.usages.iter().all(|other| other.id != *id));
        bundle.insert(usage.id.clone());
        bundle
    }
}

/// Whether the program refuses the request, and changes nothing.
pub fn is_refused(subject: &Subject, request: &Request) -> bool {
    let input = Input::new(request);
    let run = || Run::new(subject.words(request, false), request, &input);
    subject.parse(request).is_err() || matches!(run().outcome(request, &input), Ok(Some(_)))
}

/// Whether the text has the name as a word.
fn mentions(text: &str, name: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '-');
    let is_word = |at: usize| {
        let ends = name.ends_with(|c: char| !c.is_alphanumeric()) || !is_part(text[at + name.len()..].chars().next());
        ends && !is_part(text[..at].chars().next_back())
    };
    !name.is_empty() && text.match_indices(name).any(|(at, _)| is_word(at))
}

/// A defect, in short and in detail.
type Wrong = (String, String);

fn wrong<T>(cause: impl Into<String>, detail: impl Into<String>) -> Result<T, Wrong> {
    Err((cause.into(), detail.into()))
}

type Files = BTreeMap<String, Vec<u8>>;

/// A run that ended, and the files before and after it.
struct Run {
    words: Vec<String>,
    output: Output,
    before: Files,
    after: Files,
}

impl Run {
    fn new(words: Vec<String>, request: &Request, input: &Input) -> Self {
        let folder = folder();
        let before = input.files(request);
        for (name, bytes) in &before {
            fs::write(folder.path().join(name), bytes).unwrap();
        }
        fs::create_dir(folder.path().join("tmp")).unwrap();
        let output = run(folder.path(), &words, &input.stdin(request));
        let mut after = Files::new();
        list(folder.path(), "", &mut after);
        Self { words, output, before, after }
    }

    fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// `None` if the result equals the model's, or the message of a refusal.
    fn outcome(&self, request: &Request, input: &Input) -> Result<Option<String>, Wrong> {
        match self.output.status.code() {
            Some(2) => self.refusal(request).map(Some),
            None => wrong("does not end", format!("ended by a signal, or killed after {LIMIT:?}")),
            Some(code) => self.result(code, request, input).map(|()| None),
        }
    }

    fn refusal(&self, request: &Request) -> Result<String, Wrong> {
        let text = self.stderr();
        if self.before != self.after || !self.output.stdout.is_empty() {
            return wrong("refused, and something was written", text);
        }
        let one_line = !request.has("verbose") && !request.is("progress", "always");
        match text.lines().last().and_then(|line| line.find("gmerge: ").map(|at| &line[at..])) {
            Some(line) if !line.contains("internal error") && (!one_line || line.len() + 1 == text.len()) => {
                Ok(line.to_owned())
            }
            _ => wrong("refused by other than one line", text),
        }
    }

    fn result(&self, code: i32, request: &Request, input: &Input) -> Result<(), Wrong> {
        let expected = match expected(request, input) {
            Expected::Generated => generated(request),
            other => other,
        };
        let is_missing = matches!(expected, Expected::Lines { all_found: false, .. });
        let disorder = match &expected {
            Expected::Refusal([a, b]) => {
                return wrong("done, though two flags make no sense together", format!("{a}, {b}"));
            }
            Expected::Order(index) => *index,
            _ => None,
        };
        if code != i32::from(disorder.is_some() || is_missing) {
            return wrong(format!("exit code {code}"), format!("expected {expected:.200?}: {}", self.stderr()));
        }
        match &expected {
            Expected::Output { files, stdout } => {
                let files =
                    self.before.iter().chain(files).map(|(name, bytes)| (name.clone(), bytes.clone())).collect();
                compare_files(&self.after, &files)?;
                compare("standard output", &self.output.stdout, stdout)?;
            }
            Expected::Lines { text, all_found: _ } => {
                compare_files(&self.after, &self.before)?;
                compare("standard output", &self.output.stdout, text.as_bytes())?;
            }
            Expected::Text if self.output.stdout.is_empty() == (self.before == self.after) => {
                return wrong("no text, or twice", self.stderr());
            }
            Expected::Text => {}
            Expected::Order(_) | Expected::Generated | Expected::Refusal(_) => {
                compare_files(&self.after, &self.before)?;
                compare("standard output", &self.output.stdout, b"")?;
            }
        }
        self.check_stderr(request, input, disorder)
    }

    /// Checks that standard error has the requested text and no more.
    fn check_stderr(&self, request: &Request, input: &Input, disorder: Option<usize>) -> Result<(), Wrong> {
        let text = self.stderr();
        let lines: Vec<&str> = text.lines().collect();
        let json =
            lines.iter().find_map(|line| serde_json::from_str::<serde_json::Value>(&line[line.find('{')?..]).ok());
        match request.given.get("stats").map(String::as_str) {
            Some("json") => check_statistics(&json.ok_or(("no statistics".to_owned(), text.clone()))?, request, input)?,
            Some(_) if !lines.iter().any(|line| line.contains("total")) => return wrong("no statistics", text),
            _ => {}
        }
        if let Some(index) = disorder
            && text.contains(&format!("index {index}:")) == request.has("C")
        {
            return wrong("the index of the first key out of order", format!("expected index {index}: {text}"));
        }
        if request.is("progress", "always") {
            return Ok(());
        }
        let said = lines.iter().filter(|line| line.starts_with("gmerge: ")).count();
        let results = usize::from(disorder.is_some() && !request.has("C"));
        let decides = !matches!(&*request.command, "info" | "completions" | "man");
        if said < results + usize::from(decides && request.has("verbose")) {
            return wrong("--verbose says nothing", text);
        }
        if !request.has("verbose") && said > results || !request.has("stats") && lines.len() > said {
            return wrong("says what was not asked for", text);
        }
        Ok(())
    }
}

/// Checks the figures of `--stats json` that do not depend on time.
fn check_statistics(found: &serde_json::Value, request: &Request, input: &Input) -> Result<(), Wrong> {
    let reads_all = request.inputs() > 0 && request.command != "check" && !request.has_any(&["c", "C"]);
    let reads_all = reads_all && !request.looks_up();
    if reads_all && found["keys"].as_u64() != Some(input.count() as u64) {
        return wrong("statistics: keys", format!("expected {}: {found}", input.count()));
    }
    if let Some(most) = request.number("parallel")
        && found["threads"].as_u64().is_none_or(|threads| threads > most as u64)
    {
        return wrong("statistics: threads", found.to_string());
    }
    if request.is("engine", "cpu") && found["engine"] != "cpu" {
        return wrong("statistics: engine", found.to_string());
    }
    let kernel = request.given.get("kernel").filter(|kernel| *kernel != "auto");
    if kernel.is_some_and(|kernel| found["kernel"] != **kernel) {
        return wrong("statistics: kernel", found.to_string());
    }
    Ok(())
}

/// The files of a request of `gen`: the output of a plain run with the same distribution, in the requested encoding.
fn generated(request: &Request) -> Expected {
    static MADE: Mutex<BTreeMap<String, Vec<u8>>> = Mutex::new(BTreeMap::new());
    let flags =
        ["count", "seed", "dist", "record-size"].iter().filter_map(|id| Some(format!("--{id} {}", request.value(id)?)));
    let mut flags = flags.collect::<Vec<_>>().join(" ");
    if !request.is_records() {
        flags += &format!(" --type {}", request.key_type());
    }
    let made = MADE.lock().unwrap().get(&flags).cloned();
    let made = made.unwrap_or_else(|| {
        let folder = folder();
        run(folder.path(), &format!("gen {flags} -o made").split(' ').map(str::to_owned).collect::<Vec<_>>(), b"");
        let made = fs::read(folder.path().join("made")).unwrap_or_default();
        MADE.lock().unwrap().insert(flags, made.clone());
        made
    });
    let count = request.number("count").unwrap_or(0);
    let bytes = encoded(request, made, count, None);
    let name = request.value("output").unwrap_or_default();
    if name == "-" {
        return Expected::Output { files: Files::new(), stdout: bytes };
    }
    Expected::Output { files: Files::from([(name, bytes)]), stdout: Vec::new() }
}

/// A folder, in memory if possible, because runs wait until outputs are on their medium.
fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Runs the program in a folder, and kills it if it does not end.
fn run(folder: &Path, words: &[String], stdin: &[u8]) -> Output {
    let mut command = Command::new(GMERGE);
    command.args(words).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let process = Pid::from_child(&child);
    // A pipe holds all of `stdin`. A program that does not read it is judged by its output.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let (end, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if ended.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout) {
                let _ = kill_process(process, Signal::KILL);
            }
        });
        let output = child.wait_with_output().unwrap();
        drop(end);
        output
    })
}

/// Adds all files below a folder.
fn list(folder: &Path, prefix: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_string_lossy());
        if path.is_dir() {
            list(&path, &format!("{name}/"), files);
        } else {
            files.insert(name, fs::read(path).unwrap());
        }
    }
}

fn compare_files(found: &Files, expected: &Files) -> Result<(), Wrong> {
    let names = |files: &Files| files.keys().cloned().collect::<Vec<_>>();
    if names(found) != names(expected) {
        return wrong("other files", format!("expected {:?}, found {:?}", names(expected), names(found)));
    }
    found.iter().try_for_each(|(name, bytes)| compare(name, bytes, &expected[name]))
}

fn compare(name: &str, found: &[u8], expected: &[u8]) -> Result<(), Wrong> {
    if found == expected {
        return Ok(());
    }
    let at = found.iter().zip(expected).position(|(a, b)| a != b).unwrap_or(found.len().min(expected.len()));
    let show = |bytes: &[u8]| {
        bytes[at.min(bytes.len())..].iter().take(24).map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let (lengths, here, there) = ((found.len(), expected.len()), show(found), show(expected));
    let cause = format!("{} differs", if name.starts_with("out.") { "output" } else { name });
    wrong(cause, format!("{name}, at byte {at} of {lengths:?}: {here}, expected {there}"))
}
