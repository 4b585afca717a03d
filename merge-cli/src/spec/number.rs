//! Whole numbers as arguments of flags.

use std::ops::RangeInclusive;

/// A parser of whole numbers in `range`. Its errors name the range.
pub fn number<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| {
        let number =
            text.parse().ok().filter(|number| range.contains(number)).and_then(|number| number.try_into().ok());
        number.ok_or_else(|| format!("expected a whole number from {} to {}", range.start(), range.end()))
    }
}
