//! Results as rows: one JSON object a line.

use crate::Failure;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

/// What one case took. `benches/peers` writes rows of the same form.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// What was done: `merge`, `merge_pairs`, `batch`, `batch_pairs`, `ragged`, `ragged_pairs`, `sort` or `copy`.
    pub op: String,
    /// Which kernel or function did it.
    pub kernel: String,
    /// Who did it: `gpu` or `cpu`, and of peers `cub`, `thrust`, `course` or `cuda`.
    pub engine: String,
    /// The type of the keys, or `keys+values`.
    #[serde(rename = "type")]
    pub key_type: String,
    /// Keys of the output.
    pub n: usize,
    /// How the keys lie to each other.
    pub dist: String,
    /// Keys of a pair, in a batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub d: Option<usize>,
    /// How long it took; nothing if it failed.
    #[serde(flatten)]
    pub time: Option<Times>,
    /// The sum of the mixed bits of all keys, modulo 2^64: tells whether two rows are of the same keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<String>,
    /// The GPU's name, or the number of cores.
    #[serde(default)]
    pub device: String,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How long a case took.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Times {
    /// The median, in milliseconds.
    pub ms: f64,
    /// The least.
    pub min_ms: f64,
    /// Bytes of input and output, divided by the median, in 10^9 a second.
    pub gbs: f64,
    /// Keys of the output, divided by the median, in 10^9 a second.
    pub gkeys: f64,
    /// The median of a copy of the same bytes, divided by this median.
    pub of_copy: Option<f64>,
}

impl Times {
    /// Those of several runs, of at least one, with so many bytes and keys.
    pub fn of(mut runs: Vec<Duration>, bytes: usize, keys: usize) -> Self {
        runs.sort_unstable();
        let ms = |run: Duration| run.as_secs_f64() * 1e3;
        let median = ms(runs[runs.len() / 2]);
        let rate = |amount: usize| amount as f64 / median / 1e6;
        Self { ms: median, min_ms: ms(runs[0]), gbs: rate(bytes), gkeys: rate(keys), of_copy: None }
    }
}

impl Row {
    /// The row of a copy that reads and writes so many bytes together.
    pub fn of_copy(bytes: usize, times: Times, device: String) -> Self {
        Self {
            op: "copy".to_owned(),
            kernel: "cuMemcpyDtoDAsync".to_owned(),
            engine: "gpu".to_owned(),
            key_type: "u8".to_owned(),
            n: bytes / 2,
            dist: "uniform".to_owned(),
            d: None,
            time: Some(times),
            sum: None,
            device,
            error: None,
        }
    }

    /// Whether another row is of the same work, by whatever engine and kernel.
    pub fn is_of_same_work(&self, other: &Row) -> bool {
        let work = |row: &Row| (row.op.clone(), row.key_type.clone(), row.n, row.dist.clone(), row.d);
        work(self) == work(other)
    }

    /// The row as a line of JSON, with times to six digits.
    pub fn to_json(&self) -> String {
        let digits = |x: f64| format!("{x:.5e}").parse().unwrap_or(x);
        let mut row = self.clone();
        if let Some(time) = &mut row.time {
            for value in [&mut time.ms, &mut time.min_ms, &mut time.gbs, &mut time.gkeys] {
                *value = digits(*value);
            }
            time.of_copy = time.of_copy.map(digits);
        }
        serde_json::to_string(&row).expect("a row is plain data")
    }
}

/// The file that rows are added to.
pub struct Rows(File);

impl Rows {
    /// The file at this path, or else where the environment says, or else `bench-rows.jsonl` in cargo's target folder.
    ///
    /// # Errors
    /// The file cannot be opened for writing.
    pub fn open(path: Option<PathBuf>) -> Result<Self, Failure> {
        let path = path.or_else(|| std::env::var_os("GMERGE_BENCH_ROWS").map(PathBuf::from)).unwrap_or_else(|| {
            let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
            // Cargo starts benchmarks in their package's folder, below the workspace's.
            let workspace = std::env::var_os("CARGO_MANIFEST_DIR").map(|package| PathBuf::from(package).join(".."));
            let target = target.unwrap_or_else(|| workspace.unwrap_or_default().join("target"));
            target.join("bench-rows.jsonl")
        });
        let said = |error| format!("{}: {error}", path.display());
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(said)?;
        }
        Ok(Self(File::options().create(true).append(true).open(&path).map_err(said)?))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, row: &Row) -> Result<(), Failure> {
        Ok(writeln!(self.0, "{}", row.to_json())?)
    }

    /// Reads a file of rows.
    ///
    /// # Errors
    /// The file cannot be read, or a line is no row.
    pub fn read(path: &std::path::Path) -> Result<Vec<Row>, Failure> {
        let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let rows = text.lines().enumerate().map(|(i, line)| {
            serde_json::from_str(line).map_err(|error| format!("{}, line {}: {error}", path.display(), i + 1).into())
        });
        rows.collect()
    }
}
