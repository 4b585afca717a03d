//! Flags that cannot be used together.

use crate::say::error::{Failure, Result};

/// A flag as it is typed, and whether it was given.
pub type Flag = (&'static str, bool);

/// An error if two of these flags were given.
pub fn more_than_one(flags: &[Flag]) -> Result<()> {
    let mut given = flags.iter().filter(|(_, given)| *given);
    match (given.next(), given.next()) {
        (Some((a, _)), Some((b, _))) => Err(together(a, b, "each asks for something else")),
        _ => Ok(()),
    }
}

/// An error if one of these flags was given beside `flag`. `why` says why they do not go together.
pub fn beside(flag: &str, others: &[Flag], why: &str) -> Result<()> {
    match others.iter().find(|(_, given)| *given) {
        Some((other, _)) => Err(together(flag, other, why)),
        None => Ok(()),
    }
}

fn together(a: &str, b: &str, why: &str) -> Failure {
    Failure::new(format!("{a} and {b} cannot be used together: {why}"))
}
