//! The files of values.

use super::Input;
use crate::say::error::{Failure, Result, name};

/// A file of keys, or several files that are read as one, and the file of their values, with its length in bytes.
#[derive(Clone, Copy, Debug)]
struct Side<'a> {
    inputs: &'a [Input],
    keys: u64,
    values: &'a Input,
    bytes: u64,
}

impl Side<'_> {
    /// Bytes of a value, if there are keys. A value is one row of an array, or several.
    fn width(&self) -> Result<Option<u64>> {
        let Self { inputs, keys, values, bytes } = *self;
        let (keys_name, have) = match inputs {
            [input] => (name(input.path()), "has"),
            _ => ("all inputs".to_owned(), "have"),
        };
        let failure = |expected| Err(Failure::file(values.path(), expected));
        if keys == 0 {
            if bytes > 0 {
                return failure(format!("has {bytes} bytes, expected none: {keys_name} {have} no keys"));
            }
            return Ok(None);
        }
        if bytes == 0 {
            return failure(format!("has no bytes, expected a value for each of the {keys} keys of {keys_name}"));
        }
        if let Some(size) = values.value_size() {
            let expected = u128::from(keys) * size as u128;
            if u128::from(bytes) != expected {
                let each = format!("{size} by --value-size for each of the {keys} keys of {keys_name}");
                return failure(format!("has {bytes} bytes, expected {expected}, {each}"));
            }
            return Ok(Some(size as u64));
        }
        let (count, unit) = match values.rows() {
            Some(rows) if rows.shape.is_empty() => (bytes / rows.bytes(), "items"),
            Some(rows) => (bytes / rows.bytes(), "rows"),
            None => (bytes, "bytes"),
        };
        if !count.is_multiple_of(keys) {
            return failure(format!(
                "has {count} {unit}, expected a multiple of {keys}, the number of keys of {keys_name}"
            ));
        }
        Ok(Some(bytes / keys))
    }
}

/// Bytes of a value, which all files have in common. If there are no keys, those of `--value-size` or 0. `keys` has the
/// number of keys of each input, and `bytes` the length of each file of values. One file may hold the values of all
/// inputs.
pub fn width(inputs: &[Input], keys: &[u64], values: &[Input], bytes: &[u64]) -> Result<usize> {
    let without_keys = || given(values).unwrap_or(0);
    if let ([values], [bytes], [_, ..]) = (values, bytes, inputs) {
        let side = Side { inputs, keys: keys.iter().sum(), values, bytes: *bytes };
        return Ok(side.width()?.map_or_else(without_keys, |width| width as usize));
    }
    let sides = inputs.chunks(1).zip(values).zip(keys.iter().zip(bytes));
    let mut found: Option<(Side, u64)> = None;
    for ((inputs, values), (&keys, &bytes)) in sides {
        let b = Side { inputs, keys, values, bytes };
        match (found, b.width()?) {
            (Some((a, of_a)), Some(of_b)) if of_a != of_b => {
                return Err(Failure::new(format!(
                    "{}: has values of {of_a} bytes ({} bytes for {} keys), expected values as long as in {}: {of_b} \
                     bytes ({} bytes for {} keys)",
                    name(a.values.path()),
                    a.bytes,
                    a.keys,
                    name(b.values.path()),
                    b.bytes,
                    b.keys
                )));
            }
            (None, Some(width)) => found = Some((b, width)),
            _ => {}
        }
    }
    Ok(found.map_or_else(without_keys, |(_, width)| width as usize))
}

/// Bytes of a value that the command line gives.
fn given(values: &[Input]) -> Option<usize> {
    values.first().and_then(Input::value_size)
}

/// `width` for `inputs` of keys of `size` bytes, if all lengths are known. Otherwise, the width of `--value-size`,
/// which is checked when the values are read. Where there are no keys, they would not be read.
pub fn known_width(inputs: &[Input], size: usize, values: &[Input]) -> Result<Option<usize>> {
    let lengths = |inputs: &[Input]| inputs.iter().map(Input::length).collect::<Option<Vec<u64>>>();
    let (Some(keys), Some(bytes)) = (lengths(inputs), lengths(values)) else {
        return Ok(given(values).filter(|_| inputs.iter().all(|input| input.length() != Some(0))));
    };
    let counts: Vec<u64> = keys.into_iter().map(|bytes| bytes / size as u64).collect();
    width(inputs, &counts, values, &bytes).map(Some)
}
