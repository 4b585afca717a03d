//! Memory of Python objects, by the buffer protocol.

use pyo3::exceptions::PyValueError;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;

/// A number that has no invalid bits.
pub trait Number: Copy {}

impl Number for u16 {}
impl Number for u32 {}
impl Number for u64 {}
impl Number for i64 {}
impl Number for usize {}

/// The contiguous memory of an object, which the object keeps in place until this is dropped.
pub struct Buffer<'py> {
    view: Box<ffi::Py_buffer>,
    _py: Python<'py>,
}

impl<'py> Buffer<'py> {
    /// Memory that a call reads.
    pub fn read(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::new(object, ffi::PyBUF_SIMPLE)
    }

    /// Memory that a call writes. An object that is read-only is an error.
    pub fn write(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        Self::new(object, ffi::PyBUF_WRITABLE)
    }

    fn new(object: &Bound<'py, PyAny>, flags: c_int) -> PyResult<Self> {
        let mut view = Box::new(MaybeUninit::uninit());
        // SAFETY: the object is alive, and the call initialises `view` if it succeeds.
        if unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: the call has succeeded.
        Ok(Self { view: unsafe { view.assume_init() }, _py: object.py() })
    }

    /// The address of the memory.
    pub fn address(&self) -> *mut c_void {
        self.view.buf
    }

    /// The number of bytes.
    pub fn bytes(&self) -> usize {
        self.view.len.unsigned_abs()
    }

    /// The memory as elements of a number's type.
    pub fn elements<T: Number>(&self) -> PyResult<&[T]> {
        let count = self.checked_count::<T>()?;
        // SAFETY: the memory is aligned, has `count` numbers of any bits, and stays in place while this lives.
        Ok(if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(self.address().cast(), count) } })
    }

    /// The memory as elements of a number's type, which a call writes.
    pub fn elements_mut<T: Number>(&mut self) -> PyResult<&mut [T]> {
        let count = self.checked_count::<T>()?;
        // SAFETY: as above. The memory can be written, because the caller has asked for that, and by the rules of the
        // buffer protocol nothing else writes it meanwhile.
        Ok(if count == 0 { &mut [] } else { unsafe { std::slice::from_raw_parts_mut(self.address().cast(), count) } })
    }

    fn checked_count<T>(&self) -> PyResult<usize> {
        let (address, align) = (self.address().addr(), align_of::<T>());
        if self.bytes() > 0 && !address.is_multiple_of(align) {
            return Err(PyValueError::new_err(format!(
                "an array is at address {address:#x}, expected a multiple of {align}"
            )));
        }
        Ok(self.count(size_of::<T>()))
    }

    /// The number of elements of `size` bytes.
    pub fn count(&self, size: usize) -> usize {
        self.bytes() / size
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        // SAFETY: `new` has initialised the view, it is released once, and `_py` shows that the interpreter's lock is
        // held.
        unsafe { ffi::PyBuffer_Release(&mut *self.view) }
    }
}
