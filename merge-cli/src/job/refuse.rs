//! Flags that cannot be used together.

use crate::say::error::{Failure, Result};

/// A flag as the user types it, and whether it was given.
pub type Flag = (&'static str, bool);

/// The first of `flags` that was given.
pub fn first(flags: &[Flag]) -> Option<&'static str> {
    flags.iter().find_map(|&(flag, given)| given.then_some(flag))
}

/// An error if two flags of `tasks` were given. The text of a task says what the program does with the flag.
pub fn more_than_one(tasks: &[(Flag, &str)]) -> Result<()> {
    let mut given = tasks.iter().filter(|((_, given), _)| *given);
    match (given.next(), given.next()) {
        (Some(((a, _), does)), Some(((b, _), other))) => Err(together(a, b, &format!("{a} {does}, and {b} {other}"))),
        _ => Ok(()),
    }
}

/// An error if the first flag and one of `others` were given. `why` is the reason why they exclude each other.
pub fn beside((flag, given): Flag, others: &[Flag], why: &str) -> Result<()> {
    match others.iter().find(|(_, other)| given && *other) {
        Some((other, _)) => Err(together(flag, other, why)),
        None => Ok(()),
    }
}

fn together(a: &str, b: &str, why: &str) -> Failure {
    Failure::new(format!("{a} and {b} cannot be used together: {why}"))
}
