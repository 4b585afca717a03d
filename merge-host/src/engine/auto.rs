//! The choice between the CPU and GPUs, one or several, that are started when that is first worth it.

use super::Gpus;
use super::costs::{CostModel, Work};
use crate::{Error, GpuGroup};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The GPUs, which are started by the first call that they are worth starting for. Where the text says "the GPU", it
/// means all of them.
pub(super) struct Choice {
    costs: CostModel,
    gpus: Gpus,
    gpu: OnceLock<Result<GpuGroup, Error>>,
    /// Nanoseconds that calls would have taken less if the GPU had been running.
    missed: AtomicU64,
}

/// A processor, and why it was chosen.
pub(super) struct Chosen<'a> {
    pub gpu: Option<&'a GpuGroup>,
    pub why: String,
}

impl Choice {
    pub fn new(costs: CostModel, gpus: Gpus) -> Self {
        Self { costs, gpus, gpu: OnceLock::new(), missed: AtomicU64::new(0) }
    }

    /// The GPU, if it is running.
    pub fn running(&self) -> Option<&GpuGroup> {
        self.gpu.get().and_then(|gpu| gpu.as_ref().ok())
    }

    /// Chooses for `work` between a GPU and `threads` threads of the CPU, and starts the GPU if it is chosen.
    ///
    /// A call that does the work (`is_call`) counts for later ones: what the CPU takes longer than a running GPU would
    /// have taken adds up. When that is as much as starting it takes, it is started: all calls together take at most
    /// about twice the time that they would have taken by the better choice for all.
    pub fn choose(&self, work: &Work, threads: usize, is_call: bool) -> Chosen<'_> {
        let cpu = |why| Chosen { gpu: None, why };
        if let Some(Err(error)) = self.gpu.get() {
            return cpu(format!("the GPU cannot be used: {error}"));
        }
        let is_running = self.gpu.get().is_some();
        let gpus = match (self.running(), &self.gpus) {
            _ if work.is_of_one_gpu() => 1,
            (Some(group), _) => group.len(),
            (None, Gpus::Of(ordinals)) => ordinals.len(),
            // To ask the driver how many there are takes about as long as to start one.
            (None, Gpus::All) => 1,
        };
        let (on_cpu, on_gpu) = (self.costs.on_cpu(work, threads), self.costs.on_gpus(work, gpus, is_running));
        let named = if gpus > 1 { format!("{gpus} GPUs") } else { "the GPU".to_owned() };
        let estimate = format!("{} on the CPU and {} on {named} are estimated", shown(on_cpu), shown(on_gpu));
        let missed = on_cpu.saturating_sub(self.costs.on_gpus(work, gpus, true));
        if on_cpu <= on_gpu && (is_running || !is_call || !self.is_worth_starting(missed)) {
            return cpu(estimate);
        }
        match self.gpu.get_or_init(|| self.gpus.start()) {
            Err(error) => cpu(format!("the GPU cannot be used: {error}")),
            Ok(gpu) => match memory_for(work, gpu) {
                // Keys and values, as much again, and some more.
                Ok(free) if (free as f64) < 2.05 * work.bytes() as f64 => {
                    cpu(format!("{} bytes do not fit the GPU's memory, of which {free} are free", work.bytes()))
                }
                Err(error) => cpu(format!("the GPU cannot be used: {error}")),
                Ok(_) => Chosen { gpu: Some(gpu), why: estimate },
            },
        }
    }

    /// Adds what this call misses, and tells whether all that was missed is as much as starting the GPU takes.
    fn is_worth_starting(&self, missed: Duration) -> bool {
        if missed.is_zero() {
            return false;
        }
        let missed = u64::try_from(missed.as_nanos()).unwrap_or(u64::MAX / 2);
        let before = self.missed.fetch_add(missed, Ordering::Relaxed);
        before.saturating_add(missed) as f64 >= self.costs.gpu_start_ms * 1e6
    }
}

/// Bytes that are free for this work in the memory of the GPUs that do it.
fn memory_for(work: &Work, gpus: &GpuGroup) -> Result<u64, Error> {
    match gpus.gpus().next() {
        Some(first) if work.is_of_one_gpu() => Ok(first.memory()?.0),
        _ => gpus.memory_to_sort(),
    }
}

/// A time with two or three digits.
fn shown(time: Duration) -> String {
    match time.as_secs_f64() {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{:.1} ms", s * 1e3),
        s => format!("{s:.2} s"),
    }
}
