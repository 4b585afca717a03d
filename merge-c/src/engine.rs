//! Engines.

use crate::arrays::Memory;
use crate::objects::{free, make, object};
use crate::status::{Outcome, gmerge_status};
use merge_host::{Engine, Gpus};

/// An engine: what does the work. It may be used by several threads at the same time.
pub struct gmerge_engine(Engine);

/// Makes an engine that chooses the CPU or GPU 0 for each call. It opens the CUDA driver at the first call that is
/// worth a GPU, and uses the CPU if there is none. If the call fails, `*engine` is null, as for all functions that make
/// something.
///
/// # Safety
/// `engine` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_engine_auto(engine: *mut *mut gmerge_engine) -> gmerge_status {
    // SAFETY: `engine` is null or valid for a write, by `# Safety`.
    unsafe { make("engine", engine, || Ok(gmerge_engine(Engine::auto()))) }
}

/// Makes an engine that uses the CPU, with this number of threads, at most 4096, or with one thread for each core if it
/// is 0.
///
/// # Safety
/// `engine` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_engine_cpu(threads: usize, engine: *mut *mut gmerge_engine) -> gmerge_status {
    let new = || if threads == 0 { Ok(Engine::cpu()) } else { Engine::cpu_with_threads(threads) };
    // SAFETY: `engine` is null or valid for a write, by `# Safety`.
    unsafe { make("engine", engine, || Ok(gmerge_engine(new()?))) }
}

/// Makes an engine that uses the GPU with this number, counted from 0. Every call uses this GPU or fails.
///
/// # Safety
/// `engine` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_engine_gpu(ordinal: usize, engine: *mut *mut gmerge_engine) -> gmerge_status {
    // SAFETY: `engine` is null or valid for a write, by `# Safety`.
    unsafe { make("engine", engine, || Ok(gmerge_engine(Engine::gpu(ordinal)?))) }
}

/// Makes an engine that uses the `count` GPUs with these numbers, counted from 0, or all GPUs if `count` is 0. Each GPU
/// does a part of every sort and merge. Results do not depend on the number of GPUs or on their order.
///
/// # Safety
/// `ordinals` is null or has `count` elements. `engine` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_engine_gpus(
    ordinals: *const usize,
    count: usize,
    engine: *mut *mut gmerge_engine,
) -> gmerge_status {
    let new = || {
        // SAFETY: `ordinals` is null or has `count` elements, by `# Safety`.
        let ordinals = unsafe { Memory::new() }.read::<usize>("ordinals", ordinals.cast(), count)?;
        Ok(gmerge_engine(if count == 0 { Engine::gpu(Gpus::All)? } else { Engine::gpu(ordinals)? }))
    };
    // SAFETY: `engine` is null or valid for a write, by `# Safety`.
    unsafe { make("engine", engine, new) }
}

/// Frees an engine. Does nothing if it is null.
///
/// # Safety
/// `engine` is null, or comes from a function of this library, has not been freed, and no call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gmerge_engine_free(engine: *mut gmerge_engine) {
    // SAFETY: `engine` is null or an engine that nothing uses any more, by `# Safety`.
    unsafe { free(engine) }
}

/// Returns the memory that sorts on the CPU have kept for later calls to the system: up to 64 MiB in the whole
/// process.
#[unsafe(no_mangle)]
pub extern "C" fn gmerge_release_memory() {
    merge_host::release_memory();
}

/// The engine of a call.
///
/// # Safety
/// `engine` is null, or an engine that is not freed during `'a`.
pub(crate) unsafe fn engine_of<'a>(engine: *const gmerge_engine) -> Outcome<&'a Engine> {
    // SAFETY: `engine` is null or an engine that lives long enough, by `# Safety`.
    Ok(&unsafe { object("engine", engine) }?.0)
}
