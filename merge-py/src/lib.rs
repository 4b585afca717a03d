//! The native part of the Python package `gmerge`: calls of the C interface with the memory of Python objects.
//!
//! | file | contents |
//! | --- | --- |
//! | `buffer` | memory of Python objects |
//! | `call` | formats, engines, errors, and calls without the interpreter's lock |
//! | `host` | operations on memory of the host |
//! | `device` | operations on memory of a GPU |
//! | `ties` | floats that Python's libraries hold to be equal, and this library does not |
//! | `program` | the program `gmerge` |

mod buffer;
mod call;
mod device;
mod host;
mod program;
mod ties;

/// Calls of the library `gmerge` with the memory of Python objects. Private: use `gmerge`.
#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::call::forget_engines;
    #[pymodule_export]
    use crate::device::{Gpu, Stream};
    #[pymodule_export]
    use crate::host::{
        argsort, bounds, have_ties, merge, reduce_by_key, set_operation, sort, sort_unique, top_k, top_k_indices,
        unique,
    };
    #[pymodule_export]
    use crate::program::{progress, run};
}
