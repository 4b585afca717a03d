//! Outputs of numbers that are no keys: indices and counts.

use super::keys::KeyFlags;
use crate::coding::Coding;
use crate::file::{Form, Output, Target};
use crate::format::{self, Container, Format};
use crate::say::error::{Failure, Result};
use crate::spec::{KeyType, Kind};
use std::path::PathBuf;

/// The type of the numbers in an output, which limits them.
#[derive(Clone, Debug)]
pub struct NumberLimit {
    /// The output, for messages.
    pub path: PathBuf,
    /// The type of the numbers, an integer.
    pub key_type: KeyType,
}

impl NumberLimit {
    /// The most keys that have indices of the type.
    pub fn most(&self) -> u64 {
        let bits = 8 * self.key_type.size() - usize::from(self.key_type.kind() == Kind::Signed);
        1u64.checked_shl(bits as u32).unwrap_or(u64::MAX)
    }

    /// An error if `count` keys have indices that do not fit.
    pub fn check_indices(&self, count: u64) -> Result<()> {
        self.check(count, self.most(), "--argsort")
    }

    /// An error if bounds among `count` keys do not fit. The number of keys is one of them.
    pub fn check_bounds(&self, count: u64) -> Result<()> {
        self.check(count, self.most() - 1, "--needles")
    }

    /// An error if `count` keys are more than `most`, with this flag.
    fn check(&self, count: u64, most: u64, flag: &str) -> Result<()> {
        if count <= most {
            return Ok(());
        }
        let key_type = self.key_type;
        let found = format!("{key_type} numbers hold the indices of at most {most} keys, found at least {count}");
        Err(Failure::file(&self.path, format!("{found}: expected an output of .u64 with {flag}")))
    }

    /// An error if a number of equal keys does not fit.
    pub fn check_counts(&self, counts: &[u64]) -> Result<()> {
        let (most, key_type) = (self.most(), self.key_type);
        let most = if key_type.size() == size_of::<u64>() { most } else { most - 1 };
        match counts.iter().find(|count| **count > most) {
            None => Ok(()),
            Some(count) => {
                let found = format!("{key_type} numbers count up to {most} equal keys, found {count}");
                Err(Failure::file(&self.path, format!("{found}: expected a file of .u64 with --count")))
            }
        }
    }
}

/// The output of indices of keys by `flag`: integers of 4 or 8 bytes of the type in its extension, by default `u64`.
pub fn indices(target: Target, flags: KeyFlags, flag: &str) -> Result<(Output, NumberLimit)> {
    let format = format::of_output(&target.path, flags.format)?;
    let expected = "indices do not fit in {} numbers, expected .u64, .u32, .i64 or .i32 with ".to_owned() + flag;
    output(target, format, flags, 4, &expected)
}

/// The output of numbers of equal keys: integers of the type in its extension, by default `u64`.
pub fn counts(target: Target, flags: KeyFlags) -> Result<(Output, NumberLimit)> {
    let format = format::of_values(&target.path, flags.format)?;
    let expected = "{} numbers do not count keys, expected .u64, .u32 or another integer of up to 8 bytes with --count";
    output(target, format, flags, 1, expected)
}

/// An output of integers of `least` to 8 bytes. `expected` is the message about another type, `{}` its name.
fn output(
    target: Target,
    format: Format,
    flags: KeyFlags,
    least: usize,
    expected: &str,
) -> Result<(Output, NumberLimit)> {
    let path = &target.path;
    let named = KeyType::of_extension(path).map(|(key_type, _)| key_type);
    let key_type = named.unwrap_or(KeyType::U64);
    if key_type.kind() == Kind::Float || !(least..=size_of::<u64>()).contains(&key_type.size()) {
        return Err(Failure::file(path, expected.replace("{}", key_type.name())));
    }
    let endian = format::endian_of_output(path, format, flags.endian, None);
    let container = Container::of_keys(path, format, key_type, endian, None, None)?;
    // The numbers are not negative, so that their encoding is the identity of an unsigned type.
    let unsigned = match key_type.size() {
        1 => KeyType::U8,
        2 => KeyType::U16,
        4 => KeyType::U32,
        _ => KeyType::U64,
    };
    let limit = NumberLimit { path: path.to_owned(), key_type };
    let coding = Coding::total(unsigned, endian);
    Ok((Output::new(target, Form { container, coding, size: key_type.size() }), limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_hold_the_indices_of_so_many_keys() {
        for (key_type, most) in
            [(KeyType::I32, 1 << 31), (KeyType::U32, 1 << 32), (KeyType::I64, 1 << 63), (KeyType::U64, u64::MAX)]
        {
            let limit = NumberLimit { path: "out".into(), key_type };
            assert_eq!(limit.most(), most);
            assert!(limit.check_indices(0).is_ok() && limit.check_indices(most).is_ok(), "{key_type}");
            assert_eq!(limit.check_indices(most.saturating_add(1)).is_ok(), most == u64::MAX, "{key_type}");
            assert!(limit.check_bounds(0).is_ok() && limit.check_bounds(most - 1).is_ok(), "{key_type}");
            assert!(limit.check_bounds(most).is_err(), "{key_type}");
        }
    }

    #[test]
    fn counts_fit_or_are_an_error() {
        for (key_type, most) in [(KeyType::I8, 127), (KeyType::U8, 255), (KeyType::U32, u64::from(u32::MAX))] {
            let limit = NumberLimit { path: "out".into(), key_type };
            assert!(limit.check_counts(&[1, most]).is_ok() && limit.check_counts(&[1, most + 1]).is_err());
        }
        let limit = NumberLimit { path: "out".into(), key_type: KeyType::U64 };
        assert!(limit.check_counts(&[u64::MAX]).is_ok());
    }
}
