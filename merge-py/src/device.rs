//! Operations on memory of a GPU. They put work on a stream of another library, and wait for nothing.
//!
//! Arrays are addresses of memory that the other library has allocated. The Python code of this package keeps it until
//! the call has put its work on the stream, and the other library then reuses it in the order of the stream.

use crate::call::{Format, check, is_child, no_gpu_after_fork};
use gmerge::*;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

/// The addresses of keys and values, the capacity, and the address of the number of elements, or 0 for all.
type Elements = (u64, u64, usize, u64);
/// The address of offsets, and the number of segments.
type Offsets = (u64, usize);
/// The address of memory, and its number of bytes.
type Workspace = (u64, usize);

/// A GPU with the kernels of this library. It lives until the process ends.
#[pyclass(frozen)]
pub struct Gpu(NonNull<gmerge_gpu>);

// SAFETY: the C interface permits calls with a GPU by several threads at the same time.
unsafe impl Send for Gpu {}
// SAFETY: several threads may call functions with a GPU at the same time.
unsafe impl Sync for Gpu {}

#[pymethods]
impl Gpu {
    #[new]
    fn new(ordinal: usize) -> PyResult<Self> {
        if is_child() {
            return Err(no_gpu_after_fork());
        }
        let mut gpu = ptr::null_mut();
        // SAFETY: `gpu` is valid for a write.
        check(unsafe { gmerge_gpu_open(ordinal, &mut gpu) })?;
        NonNull::new(gpu).map(Self).ok_or_else(|| PyValueError::new_err("there is no GPU"))
    }

    /// What this library needs for a stream, which lives until the process ends.
    fn stream(&self, handle: usize) -> PyResult<Stream> {
        let mut stream = ptr::null_mut();
        // SAFETY: the caller has a stream with this handle, and `stream` is valid for a write.
        check(unsafe { gmerge_stream_open(self.0.as_ptr(), ptr::with_exposed_provenance_mut(handle), &mut stream) })?;
        let stream = NonNull::new(stream).ok_or_else(|| PyValueError::new_err("there is no stream"))?;
        Ok(Stream(Mutex::new(Handle(stream))))
    }
}

struct Handle(NonNull<gmerge_stream>);

// SAFETY: any thread may call functions with a stream, one at a time.
unsafe impl Send for Handle {}

/// A stream of another library.
#[pyclass(frozen)]
pub struct Stream(Mutex<Handle>);

impl Stream {
    fn put(&self, call: impl FnOnce(*const gmerge_stream) -> gmerge_status) -> PyResult<()> {
        let stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        check(call(stream.0.as_ptr()))
    }
}

fn elements((keys, values, count, number): Elements) -> gmerge_device_elements {
    gmerge_device_elements { keys, values, count, number }
}

fn offsets((address, count): Offsets) -> gmerge_device_offsets {
    gmerge_device_offsets { address, count }
}

fn workspace((address, bytes): Workspace) -> gmerge_workspace {
    gmerge_workspace { address, bytes }
}

/// The address of the number of elements that a call writes, and its workspace.
type Counted = (u64, Workspace);

/// Bytes of a bound.
const BOUND: usize = size_of::<i64>();

// The Python code of this package calls these functions. It passes addresses of memory on the stream's GPU, of the
// given lengths. All libraries use this memory in the order of the stream.
#[pymethods]
impl Stream {
    #[pyo3(signature = (format, value_size, of, memory, segments=None))]
    fn sort(
        &self,
        format: Format,
        value_size: usize,
        of: Elements,
        memory: Workspace,
        segments: Option<Offsets>,
    ) -> PyResult<()> {
        let (format, of, memory) = (format.of_values(value_size), elements(of), workspace(memory));
        // SAFETY: the package passes addresses on this GPU that are used in the order of the stream.
        self.put(|stream| unsafe {
            match segments {
                None => gmerge_device_sort(stream, format, of, memory),
                Some(segments) => gmerge_device_sort_segments(stream, format, of, offsets(segments), memory),
            }
        })
    }

    #[pyo3(signature = (format, index_size, of, memory, segments=None))]
    fn argsort(
        &self,
        format: Format,
        index_size: usize,
        of: Elements,
        memory: Workspace,
        segments: Option<Offsets>,
    ) -> PyResult<()> {
        let (indices, of, format, memory) = (of.1, elements(of), format.of_values(0), workspace(memory));
        // SAFETY: the package passes addresses on this GPU that are used in the order of the stream.
        self.put(|stream| unsafe {
            match segments.map(offsets) {
                None => gmerge_device_argsort(stream, format, of, indices, index_size, memory),
                Some(ends) => gmerge_device_argsort_segments(stream, format, of, ends, indices, index_size, memory),
            }
        })
    }

    fn top_k(
        &self,
        format: Format,
        value_size: usize,
        from: Elements,
        out: Elements,
        memory: Workspace,
    ) -> PyResult<()> {
        let format = format.of_values(value_size);
        // SAFETY: the package passes addresses on this GPU that are used in the order of the stream.
        self.put(|stream| unsafe {
            gmerge_device_top_k(stream, format, elements(from), elements(out), workspace(memory))
        })
    }

    fn merge(&self, format: Format, a: Elements, b: Elements, out: Elements, memory: Workspace) -> PyResult<()> {
        let format = format.of_values(0);
        // SAFETY: the package passes addresses on this GPU that are used in the order of the stream.
        self.put(|stream| unsafe {
            gmerge_device_merge(stream, format, elements(a), elements(b), elements(out), workspace(memory))
        })
    }

    fn bounds(
        &self,
        format: Format,
        needles: Elements,
        keys: Elements,
        bounds: (u64, bool),
        memory: Workspace,
    ) -> PyResult<()> {
        let (format, needles, keys) = (format.of_values(0), elements(needles), elements(keys));
        let (bounds, is_upper) = bounds;
        // SAFETY: the package passes addresses on this GPU that are used in the order of the stream.
        self.put(|stream| unsafe {
            gmerge_device_bounds(stream, format, is_upper.into(), needles, keys, bounds, BOUND, workspace(memory))
        })
    }

    fn unique(
        &self,
        format: Format,
        value_size: usize,
        from: Elements,
        out: Elements,
        result: Counted,
    ) -> PyResult<()> {
        let format = format.of_values(value_size);
        // SAFETY: the package passes addresses on this GPU that are used in the order of the stream.
        self.put(|stream| unsafe {
            gmerge_device_unique(stream, format, elements(from), elements(out), result.0, workspace(result.1))
        })
    }

    fn run_lengths(&self, format: Format, from: Elements, out: Elements, result: Counted) -> PyResult<()> {
        let format = format.of_values(0);
        // SAFETY: the package passes addresses on this GPU that are used in the order of the stream.
        self.put(|stream| unsafe {
            gmerge_device_run_lengths(stream, format, elements(from), elements(out), result.0, workspace(result.1))
        })
    }

    fn set_operation(
        &self,
        format: Format,
        operation: u32,
        from: (Elements, Elements),
        out: Elements,
        result: Counted,
    ) -> PyResult<()> {
        let (format, a, b, memory) = (format.of_values(0), elements(from.0), elements(from.1), workspace(result.1));
        // SAFETY: the package passes addresses on this GPU that are used in the order of the stream.
        self.put(|stream| unsafe {
            gmerge_device_set(stream, format, operation, a, b, elements(out), result.0, memory)
        })
    }

    fn reduce_by_key(
        &self,
        format: Format,
        reduction: (u32, u32, usize),
        from: Elements,
        out: Elements,
        result: Counted,
    ) -> PyResult<()> {
        let (reduction, value_type, value_size) = reduction;
        let (format, from, out) = (format.of_values(value_size), elements(from), elements(out));
        // SAFETY: the package passes addresses on this GPU that are used in the order of the stream.
        self.put(|stream| unsafe {
            gmerge_device_reduce_by_key(stream, format, reduction, value_type, from, out, result.0, workspace(result.1))
        })
    }

    /// Bytes of workspace of an operation on `count` elements, for the first `k` of them or with values or indices.
    #[staticmethod]
    #[pyo3(signature = (operation, format, count, value_size=0, k=0))]
    fn workspace(operation: &str, format: Format, count: usize, value_size: usize, k: usize) -> PyResult<usize> {
        let (mut bytes, format) = (0, format.of_values(value_size));
        let to = &raw mut bytes;
        // SAFETY: `to` is valid for a write.
        check(unsafe {
            match operation {
                "sort" => gmerge_device_sort_bytes(format, count, to),
                "argsort" => gmerge_device_argsort_bytes(format, count, value_size, to),
                "sort_segments" => gmerge_device_sort_segments_bytes(format, count, to),
                "argsort_segments" => gmerge_device_argsort_segments_bytes(format, count, value_size, to),
                "top_k" => gmerge_device_top_k_bytes(format, count, k, to),
                "merge" => gmerge_device_merge_bytes(format, count, to),
                "bounds" => gmerge_device_bounds_bytes(format, count, to),
                "groups" => gmerge_device_unique_bytes(format, count, to),
                "set_operation" => gmerge_device_set_bytes(format, count, to),
                other => return Err(PyValueError::new_err(format!("there is no operation {other}"))),
            }
        })?;
        Ok(bytes)
    }
}
