//! Engines for an external sort.

use super::error::RunError;
use crate::{Engine, Timing};

/// An engine, or an engine with another one to fall back to. `E` is the error of the sort's sources and targets.
///
/// `&Engine` implements the trait without a fallback.
pub trait Engines<E> {
    /// Runs `work` on `data` with an engine. If that engine fails, an implementation may run `work` again with another
    /// engine. Before, `restore` must restore `data` and return `true`. If `restore` returns `false`, `data` is lost.
    ///
    /// # Errors
    /// The errors of `work` and `restore`.
    fn run<T>(
        &mut self,
        data: &mut T,
        work: impl Fn(&Engine, &mut T) -> Result<Timing, RunError<E>>,
        restore: impl FnOnce(&mut T) -> Result<bool, E>,
    ) -> Result<Timing, RunError<E>>;

    /// Free bytes of memory for a sort on the GPU, or on all GPUs of the engine; `None` if the engine has no GPU.
    ///
    /// # Errors
    /// The error of an engine that did not start, or of its driver.
    fn device_memory(&mut self) -> Result<Option<u64>, RunError<E>>;

    /// The engine that merges runs, which is best a CPU engine: parts of runs are merged as they are read, and to copy
    /// a part to a GPU takes longer than to merge it.
    ///
    /// # Errors
    /// The error of an engine that did not start.
    fn cpu(&mut self) -> Result<&Engine, RunError<E>>;
}

impl<E> Engines<E> for &Engine {
    fn run<T>(
        &mut self,
        data: &mut T,
        work: impl Fn(&Engine, &mut T) -> Result<Timing, RunError<E>>,
        _restore: impl FnOnce(&mut T) -> Result<bool, E>,
    ) -> Result<Timing, RunError<E>> {
        work(self, data)
    }

    fn device_memory(&mut self) -> Result<Option<u64>, RunError<E>> {
        #[cfg(feature = "gpu")]
        if let Some(gpus) = self.as_gpu_group() {
            return Ok(Some(gpus.memory_to_sort()?));
        }
        Ok(None)
    }

    fn cpu(&mut self) -> Result<&Engine, RunError<E>> {
        Ok(self)
    }
}
