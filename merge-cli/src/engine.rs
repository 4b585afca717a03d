//! The engine that a command runs on: started while the input is read, and replaced by the CPU where the GPU fails.

use crate::args::EngineChoice;
use crate::error::{Failure, Result};
use crate::key_type::FileKey;
use crate::{progress, report};
use merge_host::{Engine, EngineKind, Error, Timing};
use std::thread::{Builder, JoinHandle};

/// Starts the threads that everything but the GPU runs on: `count` of them, or one for each core.
pub fn start_threads(count: Option<usize>) -> Result<()> {
    // 0 stands for one for each core.
    let result = rayon::ThreadPoolBuilder::new().num_threads(count.unwrap_or(0)).build_global();
    let why = if count.is_some() { "--parallel asks for that" } else { "one for each core" };
    let result = result.inspect(|()| {
        report::verbose(format_args!("threads to read, write and check: {}, {why}", rayon::current_num_threads()));
    });
    result.map_err(|error| match count {
        Some(count) => Failure::new(format!("--parallel {count}: cannot start that many threads: {error}")),
        None => Failure::new(format!("cannot start a thread for each core: {error}; fewer may do: --parallel 1")),
    })
}

/// Why an engine did not do its work.
#[derive(Debug)]
pub enum Trouble {
    /// It could not. Another one may.
    Engine(Error),
    /// What it called failed: a file could not be read, say.
    Failure(Failure),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Engine(error) => error.into(),
            Trouble::Failure(failure) => failure,
        }
    }
}

/// An engine, or one that is being started.
#[derive(Debug)]
pub struct ChosenEngine {
    choice: EngineChoice,
    threads: Option<usize>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The first call into a GPU's driver takes about as long as reading a large file, so that both are done at once.
    Starting(Option<JoinHandle<Result<Engine>>>),
    Ready(Box<Engine>),
}

impl ChosenEngine {
    /// Starts the engine of that choice, for keys of type `K`.
    pub fn start<K: FileKey>(choice: EngineChoice, threads: Option<usize>) -> Result<Self> {
        let choice = match choice {
            EngineChoice::Auto if !K::ON_GPU => {
                report::verbose(format_args!("engine: cpu, because GPUs have no kernels for {} keys", K::NAME));
                EngineChoice::Cpu
            }
            EngineChoice::Gpu if !K::ON_GPU => return Err(no_gpu(Error::NoKernels { key: K::NAME })),
            choice => choice,
        };
        let state = if choice == EngineChoice::Cpu {
            State::Ready(Box::new(open(choice, threads)?))
        } else {
            match Builder::new().name("engine".to_owned()).spawn(move || open(choice, threads)) {
                Ok(thread) => State::Starting(Some(thread)),
                Err(_) => State::Ready(Box::new(open(choice, threads)?)),
            }
        };
        Ok(Self { choice, threads, state })
    }

    /// Runs `work` on `data`. Where the GPU fails and nobody insisted on it, runs it again on the CPU, after `restore`
    /// has made `data` again what it was.
    pub fn run<T, E: Into<Trouble>>(
        &mut self,
        data: &mut T,
        work: impl Fn(&Engine, &mut T) -> std::result::Result<Timing, E>,
        restore: impl FnOnce(&mut T) -> Result<bool>,
    ) -> Result<Timing> {
        progress::phase("compute");
        let error = match work(self.ready()?, data).map_err(Into::into) {
            Ok(timing) => return Ok(timing),
            Err(Trouble::Failure(failure)) => return Err(failure),
            Err(Trouble::Engine(error)) => error,
        };
        if self.choice != EngineChoice::Auto || self.ready()?.kind() != EngineKind::Gpu || !restore(data)? {
            return Err(error.into());
        }
        report::warning(format_args!("{error}; continuing on the CPU"));
        self.state = State::Ready(Box::new(cpu(self.threads)?));
        Ok(work(self.ready()?, data).map_err(Into::into)?)
    }

    /// "cpu" or "gpu": what the last run was on.
    pub fn name(&mut self) -> Result<&'static str> {
        Ok(self.ready()?.kind().name())
    }

    /// Bytes of memory that are free on the GPU, if it is one that works.
    pub fn device_memory(&mut self) -> Result<Option<u64>> {
        #[cfg(feature = "gpu")]
        if let Some(gpu) = self.ready()?.as_gpu() {
            return Ok(Some(gpu.memory()?.0));
        }
        Ok(None)
    }

    /// This engine if it is the CPU, or else the CPU in its place.
    pub fn into_cpu(mut self) -> Result<Engine> {
        self.ready()?;
        match std::mem::replace(&mut self.state, State::Starting(None)) {
            State::Ready(engine) if engine.kind() == EngineKind::Cpu => Ok(*engine),
            _ => cpu(self.threads),
        }
    }

    /// The engine, as soon as it is there.
    fn ready(&mut self) -> Result<&Engine> {
        if let State::Starting(thread) = &mut self.state {
            let thread = thread.take().ok_or_else(|| Failure::new("the engine did not start"))?;
            let engine = thread.join().map_err(|_| Failure::new("the engine did not start"))??;
            self.state = State::Ready(Box::new(engine));
        }
        match &self.state {
            State::Ready(engine) => Ok(engine),
            State::Starting(_) => Err(Failure::new("the engine did not start")),
        }
    }
}

impl Drop for ChosenEngine {
    fn drop(&mut self) {
        // The program must not end in the middle of a call into the driver.
        if let State::Starting(thread) = &mut self.state {
            let _ = thread.take().map(JoinHandle::join);
        }
    }
}

fn open(choice: EngineChoice, threads: Option<usize>) -> Result<Engine> {
    let engine = match choice {
        EngineChoice::Cpu => cpu(threads),
        EngineChoice::Gpu => Engine::gpu(0).map_err(no_gpu),
        EngineChoice::Auto => match (Engine::auto(), threads) {
            (engine, Some(_)) if engine.kind() == EngineKind::Cpu => cpu(threads),
            (engine, _) => Ok(engine),
        },
    }?;
    report::verbose(format_args!("engine: {}, {}", engine.kind(), engine.why()));
    Ok(engine)
}

fn no_gpu(error: Error) -> Failure {
    let hint = if matches!(error, Error::NoKernels { .. }) { "" } else { "; --engine auto would take the CPU" };
    Failure::new(format!("--engine gpu: {error}{hint}"))
}

/// The CPU, with so many threads or one for each core.
pub fn cpu(threads: Option<usize>) -> Result<Engine> {
    threads.map_or_else(|| Ok(Engine::cpu()), |threads| Ok(Engine::cpu_with_threads(threads)?))
}
