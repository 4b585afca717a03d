//! The engine of a rank: the GPU with its number on the machine, or its share of the cores.

use merge_cli::shared::{EngineChoice, Failure, KeyType, Result, report};
use merge_host::external::{Engines, RunError};
use merge_host::{CostModel, Engine, EngineKind, Timing, Work, devices};

/// A rank among the ranks of its machine.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The number of the rank on the machine.
    pub rank: usize,
    /// The number of ranks on the machine.
    pub size: usize,
}

/// The engine that a rank sorts with.
#[derive(Debug)]
pub struct RankEngine {
    engine: Engine,
    cpu: Engine,
    /// Whether the CPU may continue if the GPU fails.
    is_free: bool,
    /// The number of ranks that share the GPU.
    sharing: usize,
}

impl RankEngine {
    /// The engine `choice` for `work` on keys that are encoded as numbers of `size` bytes. Threads have been started.
    ///
    /// # Errors
    /// If a GPU was requested, and there is none or it does not start.
    pub fn start(choice: EngineChoice, size: usize, work: Work, place: Place) -> Result<Self> {
        let cpu = Engine::cpu().on_current_pool();
        let has_kernels = matches!(size, 4 | 8);
        let wants_gpu = match choice {
            EngineChoice::Cpu => false,
            EngineChoice::Gpu if has_kernels => true,
            EngineChoice::Gpu => {
                let key = [KeyType::U8, KeyType::U16, KeyType::U128].into_iter().find(|key| key.size() == size);
                let error = merge_host::Error::NoKernels { key: key.map_or("such", KeyType::name) };
                return Err(Failure::new(format!("--engine gpu: {error}")));
            }
            EngineChoice::Auto => has_kernels && is_worth_a_gpu(&work)?,
        };
        let is_free = choice == EngineChoice::Auto;
        let mut this = Self { engine: cpu.clone(), cpu, is_free, sharing: 1 };
        if wants_gpu {
            match gpu(place) {
                Ok((engine, sharing)) => (this.engine, this.sharing) = (engine, sharing),
                Err(error) if is_free => report::verbose(format_args!("the GPU cannot be used: {error}")),
                Err(error) => {
                    return Err(Failure::new(format!("--engine gpu: {error}; --engine auto would take the CPU")));
                }
            }
        }
        report::verbose(format_args!("engine: {}", if this.has_gpu() { EngineKind::Gpu } else { EngineKind::Cpu }));
        Ok(this)
    }

    /// Whether a GPU sorts.
    fn has_gpu(&self) -> bool {
        #[cfg(feature = "gpu")]
        return self.engine.as_gpu_group().is_some();
        #[cfg(not(feature = "gpu"))]
        false
    }
}

/// Whether a GPU, including its start, takes less time than this rank's threads by the cost model.
fn is_worth_a_gpu(work: &Work) -> Result<bool> {
    let costs = CostModel::of_environment()?;
    let is_shorter = costs.on_gpu(work, false) < costs.on_cpu(work, rayon::current_num_threads());
    Ok(is_shorter && devices().is_ok_and(|devices| !devices.is_empty()))
}

/// The GPU of a rank, and the number of ranks that share it.
fn gpu(place: Place) -> std::result::Result<(Engine, usize), merge_host::Error> {
    let count = devices()?.len().max(1);
    let engine = Engine::gpu(place.rank % count)?.on_current_pool();
    Ok((engine, place.size.div_ceil(count)))
}

impl Engines<Failure> for RankEngine {
    fn run<T>(
        &mut self,
        data: &mut T,
        work: impl Fn(&Engine, &mut T) -> std::result::Result<Timing, RunError<Failure>>,
        restore: impl FnOnce(&mut T) -> Result<bool>,
    ) -> std::result::Result<Timing, RunError<Failure>> {
        let error = match work(&self.engine, data) {
            Err(RunError::Engine(error)) => error,
            done => return done,
        };
        let may_go_on = self.is_free && self.has_gpu();
        if !may_go_on || !restore(data).map_err(RunError::Other)? {
            return Err(error.into());
        }
        report::warning(format_args!("{error}; continuing on the CPU"));
        self.engine = self.cpu.clone();
        work(&self.engine, data)
    }

    fn device_memory(&mut self) -> std::result::Result<Option<u64>, RunError<Failure>> {
        #[cfg(feature = "gpu")]
        if let Some(group) = self.engine.as_gpu_group() {
            return Ok(Some(group.memory()?.0 / self.sharing as u64));
        }
        let _ = self.sharing;
        Ok(None)
    }

    fn cpu(&mut self) -> std::result::Result<&Engine, RunError<Failure>> {
        Ok(&self.cpu)
    }
}
