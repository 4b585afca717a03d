//! Sorts vectors: keys alone, key-value pairs in descending order, and indices.
//!
//! ```sh
//! cargo run --release --example sort_vec
//! ```

use merge_host::{Engine, Error, SortOrder};

/// Sorts some vectors, and checks the results.
pub fn main() -> Result<(), Error> {
    // The GPU if it is usable, and otherwise all CPU cores. Create an engine once and use it for many calls.
    let engine = Engine::auto();

    // Floats are in total order: NaN is allowed, and -0.0 precedes 0.0.
    let mut numbers = vec![2.5, f64::NAN, -1.0, 0.0, -0.0, f64::NEG_INFINITY];
    let timing = engine.sort(&mut numbers)?;
    println!("engine: {} ({})", timing.engine, timing.reason);
    println!("ascending: {numbers:?}");
    assert_eq!(numbers[..5], [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 2.5]);
    assert!(numbers[2].is_sign_negative() && numbers[5].is_nan());

    // Each key has a value of any type that implements `Copy`: a word, an index, a record.
    let mut words = vec!["pear", "fig", "apple", "kiwi"];
    let mut lengths: Vec<u32> = words.iter().map(|word| word.len() as u32).collect();
    engine.sort_with(SortOrder::Descending, (&mut lengths, &mut words))?;
    println!("by length, the longest first: {words:?}");
    // Words of the same length keep their order.
    assert_eq!(words, ["apple", "pear", "kiwi", "fig"]);

    // `argsort` finds the sorting permutation and moves nothing, which suits large records.
    let ages = vec![39u8, 7, 81, 7];
    let mut permutation = vec![0u32; ages.len()];
    engine.argsort(SortOrder::Ascending, &ages, &mut permutation)?;
    println!("indices by age: {permutation:?}");
    assert_eq!(permutation, [1, 3, 0, 2]);

    // The median of many keys.
    let mut keys: Vec<u64> = (0..1_000_001).map(|i: u64| i * 0x9e37_79b9 % 1_000_003).collect();
    let timing = engine.sort(&mut keys)?;
    println!("{} keys took {:?}, the median is {}", keys.len(), timing.compute, keys[keys.len() / 2]);
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    Ok(())
}
