//! Steps that succeed on all ranks, or end all ranks.
//!
//! A rank that fails in a step still reaches the end of the step. There all ranks learn the number of the first rank
//! that has failed. This rank returns its failure with a message, and all others return a failure without one. So no
//! rank waits for a rank that has ended, and one message is printed.

use crate::exchange::{Exchange, Reduction};
use merge_cli::shared::{Failure, Result};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Ends a step with the `result` of this rank.
///
/// # Errors
/// If ranks have failed: the first of these ranks returns its failure, and the others a failure without a message.
pub fn agree<T>(exchange: &impl Exchange, result: Result<T>) -> Result<T> {
    let own = if result.is_err() { exchange.rank() as u64 } else { u64::MAX };
    let mut first = [own];
    exchange.all_reduce(Reduction::Min, &mut first);
    match result {
        Ok(value) if first[0] == u64::MAX => Ok(value),
        Err(failure) if first[0] == own => Err(failure),
        _ => Err(Failure::reported()),
    }
}

/// A step: runs `work`, with a panic as an ordinary failure, and ends with [`agree`].
///
/// # Errors
/// The errors of [`agree`].
pub fn step<T>(exchange: &impl Exchange, work: impl FnOnce() -> Result<T>) -> Result<T> {
    agree(exchange, guarded(work))
}

/// Turns a panic into a failure.
///
/// # Errors
/// The errors of `work`, and a panic as an error.
pub fn guarded<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // No state that `work` leaves incomplete is used again, because all ranks end.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(internal_error(&*panic)))
}

/// The failure of a panic.
pub fn internal_error(panic: &(dyn Any + Send)) -> Failure {
    let message = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    Failure::new(format!("internal error: {}", message.unwrap_or("panic")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::Threads;

    #[test]
    fn the_first_rank_that_fails_has_the_message() {
        let messages = Threads::run(4, false, |exchange| {
            assert_eq!(step(exchange, || Ok(7)).unwrap(), 7);
            let failed = step(exchange, || match exchange.rank() {
                1 => panic!("out of cheese"),
                3 => Err(Failure::new("too late")),
                _ => Ok(()),
            });
            failed.unwrap_err().message().map(str::to_owned)
        });
        assert_eq!(messages, [None, Some("internal error: out of cheese".to_owned()), None, None]);
    }
}
