//! Operations on memory of the host. Arrays are contiguous and have the type of the format.

use crate::buffer::Buffer;
use crate::call::{Format, call, check};
use crate::ties::{self, with_float};
use gmerge::*;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::ffi::c_void;
use std::ptr;

type Object<'a, 'py> = &'a Bound<'py, PyAny>;

/// Sorts keys, with their values, in place: all, or each segment between two of the `offsets`, which are of type
/// `usize`. Equal floats get the order of `original`, if it is given. Returns whether there are equal floats of several
/// bits.
#[pyfunction]
#[pyo3(signature = (format, keys, values=None, original=None, offsets=None))]
pub fn sort(
    format: Format,
    keys: Object,
    values: Option<Object>,
    original: Option<Object>,
    offsets: Option<Object>,
) -> PyResult<bool> {
    let py = keys.py();
    let (mut keys, values) = (Buffer::write(keys)?, values.map(Buffer::write).transpose()?);
    let offsets = offsets.map(Buffer::read).transpose()?;
    let count = keys.count(format.key_size());
    let elements = output(&keys, values.as_ref(), count);
    let of_call = format.of_values(value_size(values.as_ref(), count)?);
    let engine = format.engine()?;
    // SAFETY: the buffers have the lengths that the call is told.
    check(call(py, keys.bytes(), || unsafe {
        match &offsets {
            None => gmerge_sort(engine, of_call, elements),
            Some(offsets) => {
                let count = offsets.count(size_of::<usize>());
                gmerge_sort_segments(engine, of_call, elements, offsets.address().cast(), count.saturating_sub(1))
            }
        }
    }))?;
    let original = original.map(Buffer::read).transpose()?;
    with_float!(format, Ok(false), B => {
        let whole = [0, count];
        let ends = match &offsets {
            None => &whole[..],
            Some(offsets) => offsets.elements()?,
        };
        let keys = keys.elements_mut::<B>()?;
        let original = original.as_ref().map(|original| original.elements::<B>()).transpose()?;
        let mut are_mixed = false;
        for ends in ends.windows(2) {
            let range = ends[0]..ends[1];
            match original.and_then(|original| original.get(range.clone())) {
                None => are_mixed |= ties::are_mixed(format, &keys[range]),
                Some(original) => ties::mend_keys(format, original, &mut keys[range]),
            }
        }
        Ok(are_mixed)
    })
}

/// Writes to `indices` the permutation that sorts `keys`, or those that sort the segments. An index counts from the
/// beginning of its segment.
#[pyfunction]
#[pyo3(signature = (format, keys, indices, offsets=None))]
pub fn argsort(format: Format, keys: Object, indices: Object, offsets: Option<Object>) -> PyResult<()> {
    let py = keys.py();
    let (keys, mut indices) = (Buffer::read(keys)?, Buffer::write(indices)?);
    let engine = format.engine()?;
    let count = expect_same(&indices, keys.count(format.key_size()))?;
    let Some(offsets) = offsets else {
        let input = input(&keys, None, count);
        // SAFETY: the buffers have the lengths that the call is told.
        let work =
            || unsafe { gmerge_argsort(engine, format.of_values(0), input, indices.address(), size_of::<i64>()) };
        check(call(py, keys.bytes(), work))?;
        return with_float!(format, Ok(()), B => {
            ties::mend_indices(format, keys.elements::<B>()?, indices.elements_mut()?);
            Ok(())
        });
    };
    let offsets = Buffer::read(offsets)?;
    let ends = offsets.elements::<usize>()?;
    let all = indices.elements_mut::<i64>()?;
    let segments = || ends.windows(2).map(|ends| ends[0]..ends[1]).filter(|range| range.start <= range.end);
    segments().for_each(|range| all.get_mut(range).into_iter().for_each(number));
    // The keys are sorted with their indices as values, in memory with the alignment of every number.
    let mut copy = vec![0u64; keys.bytes().div_ceil(size_of::<u64>())];
    // SAFETY: the copy has room for the bytes of the keys.
    unsafe { ptr::copy_nonoverlapping(keys.address().cast::<u8>(), copy.as_mut_ptr().cast(), keys.bytes()) };
    let elements = gmerge_output { keys: copy.as_mut_ptr().cast(), values: all.as_mut_ptr().cast(), count };
    // SAFETY: the arrays have the lengths that the call is told.
    check(call(py, keys.bytes(), || unsafe {
        let (at, segments) = (ends.as_ptr(), ends.len().saturating_sub(1));
        gmerge_sort_segments(engine, format.of_values(size_of::<i64>()), elements, at, segments)
    }))?;
    with_float!(format, Ok(()), B => {
        let keys = keys.elements::<B>()?;
        segments().for_each(|range| ties::mend_indices(format, &keys[range.clone()], &mut all[range]));
        Ok(())
    })
}

fn number(indices: &mut [i64]) {
    indices.iter_mut().zip(0..).for_each(|(index, i)| *index = i);
}

/// Writes the first keys of `keys` to `out`, sorted. Returns whether there are equal floats of several bits, among them
/// or also behind them.
#[pyfunction]
pub fn top_k(format: Format, keys: Object, out: Object) -> PyResult<bool> {
    let py = keys.py();
    let (keys, out) = (Buffer::read(keys)?, Buffer::write(out)?);
    let (from, to) = (of_keys(format, &keys), output(&out, None, out.count(format.key_size())));
    let engine = format.engine()?;
    // SAFETY: the buffers have the lengths that the call is told.
    check(call(py, keys.bytes(), || unsafe { gmerge_top_k(engine, format.of_values(0), from, to) }))?;
    with_float!(format, Ok(false), B => {
        let first = out.elements::<B>()?;
        Ok(ties::are_mixed(format, first) || ties::are_cut(first, keys.elements()?))
    })
}

/// Writes the indices of the first keys of `keys` to `indices`, in order. Returns whether there are equal floats of
/// several bits, among them or also behind them.
#[pyfunction]
pub fn top_k_indices(format: Format, keys: Object, indices: Object) -> PyResult<bool> {
    let py = keys.py();
    let (keys, indices) = (Buffer::read(keys)?, Buffer::write(indices)?);
    let (from, k) = (of_keys(format, &keys), indices.count(size_of::<i64>()));
    let engine = format.engine()?;
    // SAFETY: the buffers have the lengths that the call is told.
    let work =
        || unsafe { gmerge_top_k_indices(engine, format.of_values(0), from, indices.address(), size_of::<i64>(), k) };
    check(call(py, keys.bytes(), work))?;
    with_float!(format, Ok(false), B => {
        let keys = keys.elements::<B>()?;
        let found: Vec<B> = indices.elements::<i64>()?.iter().map(|&i| keys[i as usize]).collect();
        Ok(ties::are_mixed(format, &found) || ties::are_cut(&found, keys))
    })
}

/// Merges sorted arrays.
#[pyfunction]
pub fn merge(format: Format, arrays: Vec<Bound<PyAny>>, out: Object) -> PyResult<()> {
    let py = out.py();
    let arrays = arrays.iter().map(Buffer::read).collect::<PyResult<Vec<_>>>()?;
    let runs: Vec<gmerge_input> = arrays.iter().map(|array| of_keys(format, array)).collect();
    let out = Buffer::write(out)?;
    let to = output(&out, None, out.count(format.key_size()));
    let engine = format.engine()?;
    // SAFETY: the buffers have the lengths that the call is told.
    let work = || unsafe { gmerge_merge(engine, format.of_values(0), runs.as_ptr(), runs.len(), to) };
    check(call(py, out.bytes(), work))
}

/// Whether sorted arrays together have equal floats of several bits.
#[pyfunction]
pub fn have_ties(format: Format, arrays: Vec<Bound<PyAny>>) -> PyResult<bool> {
    with_float!(format, Ok(false), B => {
        let arrays = arrays.iter().map(Buffer::read).collect::<PyResult<Vec<_>>>()?;
        let arrays = arrays.iter().map(|array| array.elements::<B>()).collect::<PyResult<Vec<_>>>()?;
        Ok(ties::are_mixed_together(format, &arrays))
    })
}

/// Writes to `bounds` the number of `keys` before each of the sorted `needles`, or before or equal to it. Needles that
/// are zeros or NaNs change.
#[pyfunction]
pub fn bounds(format: Format, keys: Object, needles: Object, bounds: Object, is_upper: bool) -> PyResult<()> {
    let py = keys.py();
    let (keys, mut needles, bounds) = (Buffer::read(keys)?, Buffer::write(needles)?, Buffer::write(bounds)?);
    with_float!(format, (), B => ties::widen(format, needles.elements_mut::<B>()?, is_upper));
    let (from, of) = (of_keys(format, &needles), of_keys(format, &keys));
    expect_same(&bounds, from.count)?;
    let engine = format.engine()?;
    let of_call = format.of_values(0);
    // SAFETY: the buffers have the lengths that the call is told.
    check(call(py, keys.bytes(), || unsafe {
        gmerge_bounds(engine, of_call, is_upper.into(), from, of, bounds.address(), size_of::<i64>())
    }))
}

/// Sorts keys in place, and keeps the first of equal ones. Returns their number.
#[pyfunction]
pub fn sort_unique(format: Format, keys: Object) -> PyResult<usize> {
    let py = keys.py();
    let keys = Buffer::write(keys)?;
    let elements = output(&keys, None, keys.count(format.key_size()));
    let engine = format.engine()?;
    let mut kept = 0;
    // SAFETY: the buffer has the length that the call is told.
    check(call(py, keys.bytes(), || unsafe { gmerge_sort_unique(engine, format.of_values(0), elements, &mut kept) }))?;
    Ok(kept)
}

/// Writes the different keys of the sorted `keys` to `out`, and how often each occurs to `lengths`. Returns their
/// number.
#[pyfunction]
pub fn unique(format: Format, keys: Object, out: Object, lengths: Object) -> PyResult<usize> {
    let py = keys.py();
    let (keys, out, lengths) = (Buffer::read(keys)?, Buffer::write(out)?, Buffer::write(lengths)?);
    let (from, count) = (of_keys(format, &keys), out.count(format.key_size()));
    expect_same(&lengths, count)?;
    let to = output(&out, None, count);
    let engine = format.engine()?;
    let mut kept = 0;
    // SAFETY: the buffers have the lengths that the call is told.
    check(call(py, keys.bytes(), || unsafe {
        gmerge_unique(engine, format.of_values(0), from, to, lengths.address().cast(), &mut kept)
    }))?;
    Ok(kept)
}

/// Writes the result of a set operation on sorted keys to `out`. Returns their number.
#[pyfunction]
pub fn set_operation(format: Format, operation: u32, a: Object, b: Object, out: Object) -> PyResult<usize> {
    let py = a.py();
    let (a, b, out) = (Buffer::read(a)?, Buffer::read(b)?, Buffer::write(out)?);
    let (of_a, of_b) = (of_keys(format, &a), of_keys(format, &b));
    let to = output(&out, None, out.count(format.key_size()));
    let engine = format.engine()?;
    let mut kept = 0;
    // SAFETY: the buffers have the lengths that the call is told.
    check(call(py, a.bytes() + b.bytes(), || unsafe {
        gmerge_set(engine, format.of_values(0), operation, of_a, of_b, to, &mut kept)
    }))?;
    Ok(kept)
}

/// Writes the different keys of sorted ones to `out`, with the reduction of their values. `reduction` is what to do,
/// the type of the values, and their size. Returns the number of keys.
#[pyfunction]
pub fn reduce_by_key(
    format: Format,
    reduction: (u32, u32, usize),
    from: (Bound<PyAny>, Bound<PyAny>),
    out: (Bound<PyAny>, Bound<PyAny>),
) -> PyResult<usize> {
    let py = from.0.py();
    let (keys, values) = (Buffer::read(&from.0)?, Buffer::read(&from.1)?);
    let out = (Buffer::write(&out.0)?, Buffer::write(&out.1)?);
    let count = keys.count(format.key_size());
    let of_call = format.of_values(reduction.2);
    let from = input(&keys, Some(&values), count);
    let to = output(&out.0, Some(&out.1), out.0.count(format.key_size()));
    for (values, count) in [(&values, count), (&out.1, to.count)] {
        if values.bytes() != count.saturating_mul(reduction.2) {
            let bytes = values.bytes();
            return Err(PyValueError::new_err(format!("there are {bytes} bytes of values for {count} keys")));
        }
    }
    let engine = format.engine()?;
    let mut kept = 0;
    // SAFETY: the buffers have the lengths that the call is told.
    check(call(py, keys.bytes(), || unsafe {
        gmerge_reduce_by_key(engine, of_call, reduction.0, reduction.1, from, to, &mut kept)
    }))?;
    Ok(kept)
}

fn address(values: Option<&Buffer>) -> *mut c_void {
    values.map_or(ptr::null_mut(), Buffer::address)
}

fn input(keys: &Buffer, values: Option<&Buffer>, count: usize) -> gmerge_input {
    gmerge_input { keys: keys.address(), values: address(values), count }
}

fn of_keys(format: Format, keys: &Buffer) -> gmerge_input {
    input(keys, None, keys.count(format.key_size()))
}

fn output(keys: &Buffer, values: Option<&Buffer>, count: usize) -> gmerge_output {
    gmerge_output { keys: keys.address(), values: address(values), count }
}

/// Bytes of each of `count` values.
fn value_size(values: Option<&Buffer>, count: usize) -> PyResult<usize> {
    let bytes = values.map_or(0, Buffer::bytes);
    match bytes.checked_rem(count) {
        None | Some(0) => Ok(bytes.checked_div(count).unwrap_or(0)),
        Some(_) => Err(PyValueError::new_err(format!("there are {bytes} bytes of values for {count} keys"))),
    }
}

/// Checks that there are `count` numbers of 8 bytes.
fn expect_same(numbers: &Buffer, count: usize) -> PyResult<usize> {
    match numbers.count(size_of::<i64>()) {
        found if found == count => Ok(count),
        found => Err(PyValueError::new_err(format!("there are {found} numbers for {count} keys"))),
    }
}
