//! The argument of `--memory`: a size.

use std::str::FromStr;

/// An amount of memory: a number of bytes, or a share of the machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySize {
    /// A number of bytes.
    Bytes(u64),
    /// A percentage of the machine's memory, from 0 to 100.
    Percent(u64),
}

impl MemorySize {
    /// The size in bytes on a machine with `total` bytes of memory, rounded down.
    pub fn bytes(self, total: u64) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Percent(percent) => (u128::from(total) * u128::from(percent.min(100)) / 100) as u64,
        }
    }
}

impl FromStr for MemorySize {
    type Err = String;

    /// Reads a size as sort(1) does. The suffixes K, M, G, T, P and E are powers of 1024. `b` stands for bytes, and `%`
    /// for a percentage of the machine's memory. A number without a suffix counts units of 1024 bytes.
    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a size like 8G, 500M, 64K or 50%".to_owned();
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let number: u64 = text[..end].parse().map_err(|_| expected())?;
        let shift = match &text[end..] {
            "%" if number <= 100 => return Ok(Self::Percent(number)),
            "%" => return Err("expected at most 100%".to_owned()),
            "b" => 0,
            "" | "k" | "K" => 10,
            "m" | "M" => 20,
            "g" | "G" => 30,
            "t" | "T" => 40,
            "p" | "P" => 50,
            "e" | "E" => 60,
            _ => return Err(expected()),
        };
        number.checked_mul(1 << shift).map(Self::Bytes).ok_or_else(|| "expected less than 16E".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_sort() {
        for (text, bytes) in
            [("8G", 8 << 30), ("500M", 500 << 20), ("64k", 64 << 10), ("3", 3 << 10), ("100b", 100), ("15E", 15 << 60)]
        {
            assert_eq!(text.parse(), Ok(MemorySize::Bytes(bytes)), "{text}");
        }
        assert_eq!("50%".parse(), Ok(MemorySize::Percent(50)));
        for text in ["", "G", "8GB", "-1", "1.5G", "101%", "16E", "99999999999E", "8 G", "10X"] {
            assert!(text.parse::<MemorySize>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_share_is_taken_of_the_total() {
        assert_eq!(MemorySize::Percent(50).bytes(1001), 500);
        assert_eq!(MemorySize::Percent(100).bytes(u64::MAX), u64::MAX);
        assert_eq!(MemorySize::Bytes(7).bytes(1), 7);
    }
}
