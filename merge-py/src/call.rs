//! Formats, engines, errors, and calls without the interpreter's lock.

use gmerge::*;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::SeqCst};

/// The type of keys in the lowest 8 bits, their order in the next 8 bits, and then the engine: 0 for `auto`, 1 for the
/// CPU, and 2 for the first GPU.
#[derive(Clone, Copy)]
pub struct Format(u32);

impl<'py> FromPyObject<'_, 'py> for Format {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(Self(object.extract()?))
    }
}

impl Format {
    pub fn key_type(self) -> gmerge_type {
        self.0 & 0xff
    }

    pub fn order(self) -> gmerge_order {
        self.0 >> 8 & 0xff
    }

    /// The format as the C interface takes it.
    pub fn of_values(self, value_size: usize) -> gmerge_format {
        gmerge_format { key_type: self.key_type(), order: self.order(), value_size }
    }

    /// Bytes of a key.
    pub fn key_size(self) -> usize {
        match self.key_type() {
            GMERGE_U8 | GMERGE_I8 => 1,
            GMERGE_U16 | GMERGE_I16 | GMERGE_F16 => 2,
            GMERGE_U64 | GMERGE_I64 | GMERGE_F64 => 8,
            GMERGE_U128 | GMERGE_I128 => 16,
            _ => 4,
        }
    }

    /// The engine, which is made at its first use and lives until the process ends.
    pub fn engine(self) -> PyResult<*const gmerge_engine> {
        let kind = (self.0 >> 16).min(2) as usize;
        let made = ENGINES[kind].load(SeqCst);
        if !made.is_null() {
            return Ok(made);
        }
        let mut engine = ptr::null_mut();
        // SAFETY: `engine` is valid for a write.
        check(unsafe {
            match kind {
                2 if is_child() => return Err(no_gpu_after_fork()),
                2 => gmerge_engine_gpu(0, &mut engine),
                // The threads of the parent's engines do not exist in a child, so this engine has threads of its own.
                _ if is_child() => gmerge_engine_cpu(threads(), &mut engine),
                1 => gmerge_engine_cpu(0, &mut engine),
                _ => gmerge_engine_auto(&mut engine),
            }
        })?;
        match ENGINES[kind].compare_exchange(ptr::null_mut(), engine, SeqCst, SeqCst) {
            Ok(_) => Ok(engine),
            Err(other) => {
                // SAFETY: nothing else has this engine.
                unsafe { gmerge_engine_free(engine) };
                Ok(other)
            }
        }
    }
}

static ENGINES: [AtomicPtr<gmerge_engine>; 3] = [const { AtomicPtr::new(ptr::null_mut()) }; 3];
static IS_CHILD: AtomicBool = AtomicBool::new(false);

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The error of a call that needs a GPU in a process that `fork` has made.
pub fn no_gpu_after_fork() -> PyErr {
    PyRuntimeError::new_err("a process made by fork() cannot use a GPU: start it by the method 'spawn' or 'forkserver'")
}

/// Whether `fork` has made this process while its parent had this module.
pub fn is_child() -> bool {
    IS_CHILD.load(SeqCst)
}

/// Makes new engines in a process that `fork` has made. The old ones are not freed, because their threads are gone.
#[pyfunction]
pub fn forget_engines() {
    IS_CHILD.store(true, SeqCst);
    ENGINES.iter().for_each(|engine| engine.store(ptr::null_mut(), SeqCst));
    CHILD_POOL.store(ptr::null_mut(), SeqCst);
}

/// The pool of a process that `fork` has made. It replaces rayon's global pool, which has lost its threads.
static CHILD_POOL: AtomicPtr<ThreadPool> = AtomicPtr::new(ptr::null_mut());

/// The pool of such a process, which starts at its first use and lives until the process ends.
fn child_pool() -> Option<&'static ThreadPool> {
    if !is_child() {
        return None;
    }
    if CHILD_POOL.load(SeqCst).is_null() {
        let pool = Box::into_raw(Box::new(ThreadPoolBuilder::new().num_threads(threads()).build().ok()?));
        if CHILD_POOL.compare_exchange(ptr::null_mut(), pool, SeqCst, SeqCst).is_err() {
            // SAFETY: nothing else has this pool.
            drop(unsafe { Box::from_raw(pool) });
        }
    }
    // SAFETY: it is null, or a pool that is never freed.
    unsafe { CHILD_POOL.load(SeqCst).as_ref() }
}

/// The exception of a call that has failed.
pub fn check(status: gmerge_status) -> PyResult<()> {
    if status == GMERGE_OK {
        return Ok(());
    }
    // SAFETY: the message is valid until the next call of this thread that fails.
    let message = unsafe { CStr::from_ptr(gmerge_last_error()) }.to_string_lossy().into_owned();
    Err(match status {
        GMERGE_INVALID_ARGUMENT => PyValueError::new_err(message),
        GMERGE_OUT_OF_MEMORY => PyMemoryError::new_err(message),
        _ => PyRuntimeError::new_err(message),
    })
}

/// Bytes of arrays from which on a call leaves the interpreter to other threads.
const WORTH_LEAVING: usize = 1 << 14;

/// Makes a call on arrays of this many bytes. The call must not use the interpreter.
pub fn call<T>(py: Python, bytes: usize, call: impl FnOnce() -> T) -> T {
    struct Everything<T>(T);
    // SAFETY: `detach` runs its closure on the calling thread, and `install` on another one while this one waits. A
    // call has addresses of memory and of engines, which any thread may use.
    unsafe impl<T> Send for Everything<T> {}
    impl<T, F: FnOnce() -> T> Everything<F> {
        fn call(self) -> Everything<T> {
            Everything((self.0)())
        }
    }
    if bytes < WORTH_LEAVING {
        return call();
    }
    let call = Everything(call);
    py.detach(|| match child_pool() {
        Some(pool) => pool.install(|| call.call()),
        None => call.call(),
    })
    .0
}
