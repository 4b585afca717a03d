//! The test programs of the copy, and the tests in them.

use crate::tree::{Excluded, Tree};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

/// A test of a program.
pub struct Test {
    program: PathBuf,
    folder: PathBuf,
    pub name: String,
    pub seconds: f64,
    /// The first numbers of the places that it reaches.
    pub reached: BTreeSet<u32>,
}

/// How a test has ended.
pub enum Ended {
    Passed,
    Failed,
    TimedOut,
}

/// Builds the test programs with `arguments` of cargo. Returns them with their packages' folders, or the places that do
/// not compile.
pub fn build(tree: &Tree, arguments: &[String]) -> io::Result<Result<Vec<(PathBuf, PathBuf)>, Excluded>> {
    let mut command = Command::new("cargo");
    command.args(["test", "--no-run", "--message-format=json", "--config", "build.rustflags=['--cap-lints=allow']"]);
    command.args(arguments).current_dir(&tree.root).env("CARGO_TARGET_DIR", tree.root.with_file_name("build"));
    let output = command.env("CUDA_BUILDER_SM", "").stderr(Stdio::inherit()).output()?;
    let (mut programs, mut wrong) = (Vec::new(), Excluded::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let Ok(message) = serde_json::from_str::<Value>(line) else { continue };
        if let (Some(program), Some(manifest)) = (message["executable"].as_str(), message["manifest_path"].as_str())
            && message["profile"]["test"] == true
        {
            let folder = Path::new(manifest).parent().expect("a manifest is in a folder");
            programs.push((PathBuf::from(program), folder.to_owned()));
        }
        if message["message"]["level"] == "error" {
            let spans: Vec<_> =
                message["message"]["spans"].as_array().into_iter().flatten().filter_map(start).collect();
            let mut found: Excluded = spans.iter().flat_map(|(file, at)| tree.places(file, *at)).collect();
            let bytes = spans.iter().map(|(_, at)| *at);
            if found.is_empty()
                && let (Some((file, _)), Some(first), Some(last)) = (spans.first(), bytes.clone().min(), bytes.max())
            {
                found = tree.places_in(file, first..last + 1);
            }
            if found.is_empty() && !spans.is_empty() {
                return Err(io::Error::other(message["message"]["rendered"].to_string()));
            }
            wrong.extend(found);
        }
    }
    if output.status.success() {
        return Ok(Ok(programs));
    }
    if wrong.is_empty() { Err(io::Error::other("cargo failed")) } else { Ok(Err(wrong)) }
}

/// The file of a part of a compiler's message, and its first byte there.
fn start(span: &Value) -> Option<(&str, usize)> {
    Some((span["file_name"].as_str()?, span["byte_start"].as_u64()? as usize))
}

/// The tests of a program, which have not run.
pub fn tests((program, folder): &(PathBuf, PathBuf)) -> io::Result<Vec<Test>> {
    let listed = Command::new(program).args(["--list", "--format=terse"]).current_dir(folder).output()?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = listed.lines().filter_map(|line| line.strip_suffix(": test"));
    let test = |name: &str| Test {
        program: program.clone(),
        folder: folder.clone(),
        name: name.to_owned(),
        seconds: 0.0,
        reached: BTreeSet::new(),
    };
    Ok(names.map(test).collect())
}

impl Test {
    /// Runs the test without an error, and records its time and what it reaches.
    pub fn measure(&mut self, scratch: &Path, limit: Duration) -> io::Result<Ended> {
        let _ = fs::remove_file(scratch);
        let begun = Instant::now();
        let ended = self.run("MUTANTS_REACHED", &scratch.display().to_string(), limit)?;
        self.seconds = begun.elapsed().as_secs_f64();
        let reached = fs::read_to_string(scratch).unwrap_or_default();
        self.reached = reached.lines().filter_map(|line| line.parse().ok()).collect();
        Ok(ended)
    }

    /// Runs the test with an environment variable.
    pub fn run(&self, variable: &str, value: &str, limit: Duration) -> io::Result<Ended> {
        let mut command = Command::new(&self.program);
        command.args([&self.name, "--exact"]).env(variable, value).env("CARGO_MANIFEST_DIR", &self.folder);
        command.env("RUST_BACKTRACE", "0").env("PROPTEST_MAX_SHRINK_ITERS", "0");
        command.current_dir(&self.folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let (mut child, begun) = (command.spawn()?, Instant::now());
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(if status.success() { Ended::Passed } else { Ended::Failed });
            }
            if begun.elapsed() > limit {
                child.kill()?;
                child.wait()?;
                return Ok(Ended::TimedOut);
            }
            thread::sleep(Duration::from_millis(if begun.elapsed().as_millis() < 200 { 2 } else { 20 }));
        }
    }
}
