//! The choice between the CPU and GPUs, one or several, that are started when that is first worth it.

use super::Gpus;
use super::costs::{CostModel, Work};
use crate::{Error, GpuGroup, Reason};
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The GPUs, which are started by the first call that they are worth starting for. "The GPU" stands for all GPUs of the
/// engine.
pub(super) struct Choice {
    costs: CostModel,
    gpus: Gpus,
    /// The error is [`Reason::NoGpu`].
    gpu: OnceLock<Result<GpuGroup, Reason>>,
    /// The CPU does any work with this number of bytes in less time than a call of a running GPU takes.
    few_bytes: usize,
    /// Nanoseconds that calls would have taken less if the GPU had been running.
    missed: AtomicU64,
}

impl Choice {
    pub fn new(costs: CostModel, gpus: Gpus) -> Self {
        let few_bytes = costs.few_bytes();
        Self { costs, gpus, gpu: OnceLock::new(), few_bytes, missed: AtomicU64::new(0) }
    }

    /// A number of bytes with which no choice is necessary: the CPU does any work with them in less time than a call of
    /// a running GPU takes.
    #[inline]
    pub fn few_bytes(&self) -> usize {
        self.few_bytes
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
    pub fn choose(&self, work: &Work, threads: usize, is_call: bool) -> (Option<&GpuGroup>, Reason) {
        if let Some(Err(reason)) = self.gpu.get() {
            return (None, *reason);
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
        let estimate = Reason::Estimate { cpu: on_cpu, gpu: on_gpu, gpus };
        let missed = on_cpu.saturating_sub(self.costs.on_gpus(work, gpus, true));
        if on_cpu <= on_gpu && (is_running || !is_call || !self.is_worth_starting(missed)) {
            return (None, estimate);
        }
        match self.gpu.get_or_init(|| GpuGroup::new(self.gpus.clone()).map_err(Reason::no_gpu)) {
            Err(reason) => (None, *reason),
            Ok(gpu) => match memory_for(work, gpu) {
                Ok(free) if (free as f64) < work.device_bytes() => {
                    (None, Reason::DeviceMemory { needed: work.bytes() as u64, free })
                }
                Err(error) => (None, Reason::no_gpu(error)),
                Ok(_) => (Some(gpu), estimate),
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

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_running = self.running().is_some();
        f.debug_struct("Choice").field("gpus", &self.gpus).field("is_running", &is_running).finish_non_exhaustive()
    }
}
