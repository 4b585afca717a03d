//! Sorts vectors: keys alone, from the greatest to the least, with values, and by places.
//!
//! ```sh
//! cargo run --release --example sort_vec
//! ```

use merge_host::{Engine, Error, SortOrder};

/// Sorts, and checks what has become of it.
pub fn main() -> Result<(), Error> {
    // The GPU if there is one that can be used, and all CPU cores otherwise. An engine is for many calls.
    let engine = Engine::auto();
    println!("sorts on the {}: {}", engine.kind(), engine.why());

    // Floats are in total order, so that NaN is no trouble, and -0.0 comes before 0.0.
    let mut numbers = vec![2.5, f64::NAN, -1.0, 0.0, -0.0, f64::NEG_INFINITY];
    engine.sort(&mut numbers)?;
    println!("ascending: {numbers:?}");
    assert_eq!(numbers[..5], [f64::NEG_INFINITY, -1.0, -0.0, 0.0, 2.5]);
    assert!(numbers[2].is_sign_negative() && numbers[5].is_nan());

    // A value goes along with each key. It may be anything that can be copied: a word, an index, a record.
    let mut words = vec!["pear", "fig", "apple", "kiwi"];
    let mut lengths: Vec<u32> = words.iter().map(|word| word.len() as u32).collect();
    engine.sort_pairs(SortOrder::Descending, &mut lengths, &mut words)?;
    println!("by length, the longest first: {words:?}");
    // Words of one length keep their order.
    assert_eq!(words, ["apple", "pear", "kiwi", "fig"]);

    // Of large records it may be enough to know where they are in order.
    let ages = vec![39u8, 7, 81, 7];
    let mut places = vec![0u32; ages.len()];
    engine.argsort(SortOrder::Ascending, &ages, &mut places)?;
    println!("places by age: {places:?}");
    assert_eq!(places, [1, 3, 0, 2]);

    // The middle key of many.
    let mut keys: Vec<u64> = (0..1_000_001).map(|i: u64| i * 0x9e37_79b9 % 1_000_003).collect();
    let timing = engine.sort(&mut keys)?;
    println!("{} keys took {:?}, their middle is {}", keys.len(), timing.compute, keys[keys.len() / 2]);
    assert!(keys.windows(2).all(|pair| pair[0] < pair[1]));
    Ok(())
}
