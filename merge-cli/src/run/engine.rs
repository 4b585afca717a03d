//! The engine of a job: chosen by the cost of the work, started while the input is read, and replaced by the CPU if the
//! GPU fails.

use crate::say::error::{Failure, Result};
use crate::say::{progress, report};
use crate::spec::{EngineChoice, KeyType, Processors};
use merge_host::external::{Engines, RunError};
use merge_host::{CostModel, Engine, EngineKind, Error, Gpus, SortKernel, Timing, Work};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// An engine that works or is being started.
#[derive(Debug)]
pub struct ChosenEngine {
    choice: EngineChoice,
    state: State,
    /// The kind of the engine in the last message about it.
    said: Option<EngineKind>,
    /// What did the work of the last run.
    last: Option<EngineKind>,
    /// The CPU engine, as soon as work needs it in addition to a GPU.
    cpu: Option<Box<Engine>>,
}

#[derive(Debug)]
enum State {
    Starting(JoinHandle<Result<Engine>>),
    Ready(Box<Engine>),
    /// Between these states, or after a failed start.
    Gone,
}

impl ChosenEngine {
    /// Starts the engine `choice` for keys of this type. `auto` chooses by `work` now. If `work` is unknown, it chooses
    /// when the engine works.
    pub fn start(choice: impl Into<Processors>, key_type: KeyType, work: Option<Work>) -> Result<Self> {
        Self::start_sort(choice, SortKernel::Auto, key_type, work)
    }

    /// Starts the engine of a sort. `kernel` is the kernel of a GPU.
    pub fn start_sort(
        choice: impl Into<Processors>,
        kernel: SortKernel,
        key_type: KeyType,
        work: Option<Work>,
    ) -> Result<Self> {
        let Processors { engine: choice, gpus } = choice.into();
        let has_kernels = key_type.size() <= 8;
        let mut said = None;
        let choice = match choice {
            EngineChoice::Auto if !has_kernels => {
                report::verbose(format_args!("engine: cpu, because GPUs have no kernels for {key_type} keys"));
                said = Some(EngineKind::Cpu);
                EngineChoice::Cpu
            }
            EngineChoice::Gpu if !has_kernels => return Err(no_gpu(kernel, Error::NoKernels { key: key_type.name() })),
            choice => choice,
        };
        let new = |state| Ok(Self { choice, state, said, last: None, cpu: None });
        let open: Arc<dyn Fn() -> Result<Engine> + Send + Sync> = match (choice, work) {
            (EngineChoice::Cpu, _) => return new(State::Ready(Box::new(cpu()))),
            (EngineChoice::Auto, None) => return new(State::Ready(Box::new(auto(gpus)))),
            (EngineChoice::Auto, Some(work)) if is_for_cpu(&work) => return new(State::Ready(Box::new(auto(gpus)))),
            (EngineChoice::Auto, Some(work)) => {
                let engine = auto(gpus);
                let size = key_type.size();
                Arc::new(move || {
                    // The engine gets encoded keys, which are unsigned.
                    match size {
                        1 => engine.start_for::<u8>(&work),
                        2 => engine.start_for::<u16>(&work),
                        4 => engine.start_for::<u32>(&work),
                        _ => engine.start_for::<u64>(&work),
                    }?;
                    Ok(engine.clone())
                })
            }
            (EngineChoice::Gpu, _) => Arc::new(move || {
                let engine = Engine::gpu(gpus.clone()).map_err(|error| no_gpu(kernel, error))?;
                Ok(engine.on_current_pool())
            }),
        };
        // Starting the driver of a GPU takes about as long as reading a large file. A thread starts it, so that both
        // overlap.
        let in_thread = Arc::clone(&open);
        match Builder::new().name("engine".to_owned()).spawn(move || in_thread()) {
            Ok(thread) => new(State::Starting(thread)),
            Err(_) => new(State::Ready(Box::new(open()?))),
        }
    }

    /// Says where a run was done, unless that was said last.
    fn say(&mut self, timing: &Timing) {
        let kind = timing.engine;
        self.last = Some(kind);
        if self.said.replace(kind) != Some(kind) {
            report::verbose(format_args!("engine: {kind}, because {}", timing.reason));
        }
    }

    /// "cpu" or "gpu": what did the work of the last run, or was to do it if there was none. An error if the engine
    /// that was asked for did not start.
    pub fn name(&mut self) -> Result<&'static str> {
        self.ready()?;
        let asked = if self.choice == EngineChoice::Gpu { EngineKind::Gpu } else { EngineKind::Cpu };
        Ok(self.last.unwrap_or(asked).name())
    }

    /// Runs `work` on `data`. If a GPU fails that the user did not name, runs `work` again on the CPU. `work` must not
    /// change its input in `data`, or must overwrite all of `data`.
    pub fn run<T>(
        &mut self,
        data: &mut T,
        work: impl Fn(&Engine, &mut T) -> std::result::Result<Timing, Error>,
    ) -> Result<Timing> {
        Engines::run(self, data, |engine, data| Ok(work(engine, data)?), |_| Ok(true)).map_err(failure)
    }

    /// The free bytes on the engine's GPU, or on the GPU with the least free memory of several. `None` for a CPU.
    pub fn memory_of_each_gpu(&mut self) -> Result<Option<u64>> {
        let engine = self.ready()?;
        #[cfg(feature = "gpu")]
        if let Some(group) = engine.as_gpu_group() {
            return Ok(Some(group.memory()?.0 / group.gpus().len() as u64));
        }
        let _ = engine;
        Ok(None)
    }

    /// Whether a GPU is running, which may be what failed.
    fn has_gpu(&self) -> bool {
        #[cfg(feature = "gpu")]
        return matches!(&self.state, State::Ready(engine) if engine.as_gpu_group().is_some());
        #[cfg(not(feature = "gpu"))]
        false
    }

    /// The engine, after waiting for its start.
    fn ready(&mut self) -> Result<&Engine> {
        if let State::Starting(_) = self.state
            && let State::Starting(thread) = std::mem::replace(&mut self.state, State::Gone)
        {
            self.state = State::Ready(Box::new(thread.join().unwrap_or_else(|_| Err(Failure::reported()))?));
        }
        match &self.state {
            State::Ready(engine) => Ok(engine),
            State::Starting(_) | State::Gone => Err(Failure::new("the engine did not start")),
        }
    }
}

/// What a run returns, or an error of the engine or of the program.
type RunResult<T> = std::result::Result<T, RunError<Failure>>;

/// The failure of a run.
pub fn failure(error: RunError<Failure>) -> Failure {
    match error {
        RunError::Engine(error) => error.into(),
        RunError::Other(failure) => failure,
    }
}

impl Engines<Failure> for ChosenEngine {
    fn run<T>(
        &mut self,
        data: &mut T,
        work: impl Fn(&Engine, &mut T) -> RunResult<Timing>,
        restore: impl FnOnce(&mut T) -> Result<bool>,
    ) -> RunResult<Timing> {
        progress::phase("compute");
        let error = match work(self.ready().map_err(RunError::Other)?, data) {
            Err(RunError::Engine(error)) => error,
            done => {
                let timing = done?;
                self.say(&timing);
                return Ok(timing);
            }
        };
        let may_go_on = self.choice == EngineChoice::Auto && self.has_gpu();
        if !may_go_on || !restore(data).map_err(RunError::Other)? {
            return Err(error.into());
        }
        report::warning(format_args!("{error}; continuing on the CPU"));
        self.state = State::Ready(Box::new(cpu()));
        self.last = Some(EngineKind::Cpu);
        work(self.ready().map_err(RunError::Other)?, data)
    }

    fn device_memory(&mut self) -> RunResult<Option<u64>> {
        let mut engine = self.ready().map_err(RunError::Other)?;
        Engines::<Failure>::device_memory(&mut engine)
    }

    fn cpu(&mut self) -> RunResult<&Engine> {
        if self.choice == EngineChoice::Cpu {
            return self.ready().map_err(RunError::Other);
        }
        if self.cpu.is_none() {
            self.cpu = Some(Box::new(cpu()));
        }
        self.cpu.as_deref().ok_or_else(|| RunError::Other(Failure::new("the engine did not start")))
    }
}

impl Drop for ChosenEngine {
    fn drop(&mut self) {
        // The program must not end during a call into the driver.
        if let State::Starting(thread) = std::mem::replace(&mut self.state, State::Gone) {
            let _ = thread.join();
        }
    }
}

/// The engine that chooses between the CPU and these GPUs, on the threads that the program has started.
fn auto(gpus: Gpus) -> Engine {
    // The environment variables have been checked.
    Engine::auto_with(CostModel::of_environment().unwrap_or_default(), gpus).on_current_pool()
}

/// The work that `of` returns for the number of keys, if known.
pub fn work_of(keys: Option<u64>, of: impl FnOnce(usize) -> Work) -> Option<Work> {
    keys.and_then(|keys| usize::try_from(keys).ok()).map(of)
}

fn no_gpu(kernel: SortKernel, error: Error) -> Failure {
    if kernel != SortKernel::Auto {
        return Failure::new(format!("--kernel {kernel} is for GPUs: {error}"));
    }
    let hint = if matches!(error, Error::NoKernels { .. }) { "" } else { "; --engine auto would take the CPU" };
    Failure::new(format!("--engine gpu: {error}{hint}"))
}

/// Whether one thread of the CPU does `work` in less time than it takes to start a GPU and do it there.
fn is_for_cpu(work: &Work) -> bool {
    let costs = CostModel::of_environment().unwrap_or_default();
    costs.on_cpu(work, 1) <= costs.on_gpu(work, false)
}

/// The CPU, on the threads that the program has started.
pub fn cpu() -> Engine {
    Engine::cpu().on_current_pool()
}
