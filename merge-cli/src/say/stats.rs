//! Statistics of a run: measuring and printing times.

use super::progress;
use crate::spec::StatsFormat;
use merge_host::external::{self, Observer};
use merge_host::{EngineKind, Timing};
use std::io::Write;
use std::time::{Duration, Instant};

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Reading the input.
    Read,
    /// Checking whether keys are in order.
    Check,
    /// Copying keys to the GPU.
    Upload,
    /// Sorting, merging or generating.
    Compute,
    /// Exchanging keys between GPUs.
    Exchange,
    /// Copying keys from the GPU.
    Download,
    /// Writing the output, until it is on its medium.
    Write,
}

impl Phase {
    const ALL: [(Self, &'static str); 7] = [
        (Self::Read, "read"),
        (Self::Check, "check"),
        (Self::Upload, "upload"),
        (Self::Compute, "compute"),
        (Self::Exchange, "exchange"),
        (Self::Download, "download"),
        (Self::Write, "write"),
    ];
}

/// The work of a run, and the time of each phase.
#[derive(Debug)]
pub struct Stats {
    op: &'static str,
    key_type: &'static str,
    /// The engine of the run, "cpu" or "gpu".
    pub engine: &'static str,
    /// The requested kernel of a merge or a sort.
    pub kernel: Option<&'static str>,
    /// The number of keys.
    pub keys: u64,
    /// Bytes of a key's value, if there are values.
    pub value_size: Option<usize>,
    /// Bytes of all rows, if they differ in size.
    pub bytes: Option<u64>,
    key_size: usize,
    format: Option<StatsFormat>,
    begin: Instant,
    phases: [Duration; Phase::ALL.len()],
}

impl Stats {
    /// Starts the clock of work on items with the name `key_type` and `key_size` bytes. `format` is the format to
    /// print.
    pub fn begin(op: &'static str, key_type: &'static str, key_size: usize, format: Option<StatsFormat>) -> Self {
        Self {
            op,
            key_type,
            engine: "cpu",
            kernel: None,
            keys: 0,
            value_size: None,
            bytes: None,
            key_size,
            format,
            begin: Instant::now(),
            phases: Default::default(),
        }
    }

    /// Runs `work` as a part of `phase`.
    pub fn time<T>(&mut self, phase: Phase, work: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        progress::phase(Phase::ALL[phase as usize].1);
        let result = work();
        self.phases[phase as usize] += begin.elapsed();
        result
    }

    /// Adds the times that an engine measured.
    pub fn add(&mut self, timing: Timing) {
        self.phases[Phase::Upload as usize] += timing.upload;
        self.phases[Phase::Compute as usize] += timing.compute;
        self.phases[Phase::Exchange as usize] += timing.exchange;
        self.phases[Phase::Download as usize] += timing.download;
    }

    /// Adds the times of an engine that read and wrote by itself. On a GPU, reading and writing count as upload and
    /// download.
    pub fn add_streamed(&mut self, timing: Timing) {
        let on_gpu = timing.engine == EngineKind::Gpu;
        let phases = if on_gpu { [Phase::Upload, Phase::Download] } else { [Phase::Read, Phase::Write] };
        self.phases[phases[0] as usize] += timing.upload;
        self.phases[Phase::Compute as usize] += timing.compute;
        self.phases[Phase::Exchange as usize] += timing.exchange;
        self.phases[phases[1] as usize] += timing.download;
    }

    /// Stops the clock and prints the statistics, if requested.
    pub fn print(&self) {
        let total = self.begin.elapsed();
        progress::finish();
        match self.format {
            None => {}
            Some(StatsFormat::Json) => self.print_json(total),
            Some(StatsFormat::Text) => self.print_text(total),
        }
    }

    /// Bytes of keys and values.
    fn bytes(&self) -> u64 {
        self.bytes.unwrap_or(self.keys * (self.key_size + self.value_size.unwrap_or(0)) as u64)
    }

    fn rate(&self, time: Duration) -> f64 {
        if time.is_zero() { 0.0 } else { self.bytes() as f64 / 1e9 / time.as_secs_f64() }
    }

    /// Prints an object on one line. Its strings are names, which need no escapes.
    fn print_json(&self, total: Duration) {
        let Self { op, key_type, keys, engine, .. } = self;
        let values = self.value_size.map_or("null".to_owned(), |size| size.to_string());
        let kernel = self.kernel.map_or("null".to_owned(), |kernel| format!("\"{kernel}\""));
        let phase = |&(phase, name): &(Phase, &str)| {
            let time = self.phases[phase as usize];
            format!(r#""{name}":{{"ms":{:?},"gb_per_s":{:?}}}"#, milliseconds(time), rounded(self.rate(time)))
        };
        let phases = Phase::ALL.iter().map(phase).collect::<Vec<_>>().join(",");
        let (bytes, threads, total) = (self.bytes(), rayon::current_num_threads(), milliseconds(total));
        let data = format!(r#""op":"{op}","type":"{key_type}","keys":{keys},"value_bytes":{values},"bytes":{bytes}"#);
        let means = format!(r#""engine":"{engine}","kernel":{kernel},"threads":{threads}"#);
        let times = format!(r#""phases":{{{phases}}},"total_ms":{total:?}"#);
        let _ = writeln!(std::io::stderr(), "{{{data},{means},{times}}}");
    }

    fn print_text(&self, total: Duration) {
        let (op, keys, key_type, bytes) = (self.op, self.keys, self.key_type, self.bytes());
        let (engine, threads) = (self.engine, rayon::current_num_threads());
        let kernel = self.kernel.map(|kernel| format!(", kernel {kernel}")).unwrap_or_default();
        let values = self.value_size.map(|size| format!(" with values of {size} bytes")).unwrap_or_default();
        let mut text = format!(
            "{op}: {keys} {key_type} keys{values}, {bytes} bytes, engine {engine}{kernel}, threads {threads}\n"
        );
        text += &format!("{:<10}{:>12}{:>14}\n", "phase", "ms", "GB/s");
        let rows = Phase::ALL.iter().map(|&(phase, name)| (name, self.phases[phase as usize]));
        for (name, time) in rows.chain([("total", total)]) {
            let rate = if time.is_zero() { "-".to_owned() } else { format!("{:.3}", self.rate(time)) };
            text += &format!("{name:<10}{:>12.3}{rate:>14}\n", time.as_secs_f64() * 1e3);
        }
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

impl Observer for Stats {
    fn time<T>(&mut self, phase: external::Phase, work: impl FnOnce() -> T) -> T {
        let phase = match phase {
            external::Phase::Read => Phase::Read,
            external::Phase::Write => Phase::Write,
            _ => Phase::Compute,
        };
        Self::time(self, phase, work)
    }

    fn add(&mut self, timing: Timing) {
        Self::add(self, timing);
    }
}

fn milliseconds(time: Duration) -> f64 {
    rounded(time.as_secs_f64() * 1e3)
}

/// Rounds to three digits after the point, because further digits would be noise.
fn rounded(number: f64) -> f64 {
    (number * 1e3).round() / 1e3
}
