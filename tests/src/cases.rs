//! The cases that tests with many cases try: random ones, so that each run tries others, or all of them with
//! `GMERGE_TESTS=all`. Packages that this one depends on include this file.
#![allow(dead_code, reason = "not all packages use all of it")]

/// Whether tests try all their cases, which takes much longer.
pub fn tries_all() -> bool {
    let Ok(tests) = std::env::var("GMERGE_TESTS") else { return false };
    assert_eq!(tests, "all", "GMERGE_TESTS");
    true
}

/// Picks a third of the cases, rounded up, or all cases. `below` draws a random number below its argument.
pub fn tried<T>(cases: impl IntoIterator<Item = T>, mut below: impl FnMut(usize) -> usize) -> Vec<T> {
    let mut cases = Vec::from_iter(cases);
    let count = if tries_all() { cases.len() } else { cases.len().div_ceil(3) };
    while cases.len() > count {
        cases.remove(below(cases.len()));
    }
    cases
}

/// Calls a generic function with each list of types whose number is in `$tried`.
#[macro_export]
macro_rules! for_tried_types {
    ($tried:expr, [$(($($T:ty),+))*], $function:ident $arguments:tt) => {{
        let (tried, mut number) = ($tried, 0..);
        $(if number.next().is_some_and(|number| tried.contains(&number)) {
            $function::<$($T),+> $arguments;
        })*
    }};
}
