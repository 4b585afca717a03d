//! The limit on vector instructions that the environment sets.

use crate::{Error, VECTORS};
use std::env;
use std::sync::OnceLock;

/// The limit that the environment variable [`VECTORS`] sets, as an index of its values, or `None` if it is not set. The
/// variable is read once.
///
/// # Errors
/// [`Error::Vectors`] if the variable has another value.
#[inline]
fn of_environment() -> &'static Result<Option<usize>, Error> {
    static LIMIT: OnceLock<Result<Option<usize>, Error>> = OnceLock::new();
    LIMIT.get_or_init(|| {
        let (name, values) = VECTORS;
        let Some(said) = env::var_os(name) else { return Ok(None) };
        match values.iter().position(|value| said == *value) {
            Some(limit) => Ok(Some(limit)),
            None => Err(Error::Vectors { found: said.to_string_lossy().into_owned() }),
        }
    })
}

/// Checks the value of the environment variable.
#[inline]
pub(super) fn check() -> Result<(), Error> {
    of_environment().as_ref().map_or_else(|error| Err(error.clone()), |_| Ok(()))
}

/// The limit, or `None` if there is none. An invalid value counts as none; [`check`] reports it.
#[cfg(target_arch = "x86_64")]
pub(super) fn vectors() -> Option<usize> {
    of_environment().as_ref().ok().copied().flatten()
}
