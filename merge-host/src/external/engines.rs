//! The engines that an external sort works with.

use super::error::RunError;
use crate::{Engine, Timing};

/// What sorts: an engine, or one with another to fall back to. `E` is the error of the sort's sources and targets.
///
/// `&Engine` is an implementation that falls back to nothing.
pub trait Engines<E> {
    /// Runs `work` on `data` with an engine. If that engine fails, an implementation may run it again with another,
    /// after `restore` has made `data` what it was and returned `true`. If it returns `false`, `data` is lost.
    ///
    /// # Errors
    /// Those of `work` and `restore`.
    fn run<T>(
        &mut self,
        data: &mut T,
        work: impl Fn(&Engine, &mut T) -> Result<Timing, RunError<E>>,
        restore: impl FnOnce(&mut T) -> Result<bool, E>,
    ) -> Result<Timing, RunError<E>>;

    /// Bytes of memory that are free for a sort on the GPU, or on all of several GPUs, if the engine is of GPUs.
    ///
    /// # Errors
    /// Those of an engine that did not start, or of its driver.
    fn device_memory(&mut self) -> Result<Option<u64>, RunError<E>>;

    /// The engine that merges runs, which is best a CPU's: parts of runs are merged as they are read, and copying each
    /// to a GPU takes longer than merging it.
    ///
    /// # Errors
    /// Those of an engine that did not start.
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
