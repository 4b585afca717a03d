//! Insertion, for a few keys that are nearly in order.

/// Sorts the elements of ranks `first` to `last` by their keys, by insertion. Stable. O(n²) for n keys, O(n) if they
/// are in order.
#[inline(always)]
#[track_caller]
pub fn insert<T: Copy, B: Ord>(
    (first, last): (u32, u32),
    get: impl Fn(u32) -> T,
    set: impl Fn(u32, T),
    key: impl Fn(T) -> B,
) {
    for next in first + 1..=last {
        let (own, mut at) = (get(next), next);
        let own_key = key(own);
        while at > first && key(get(at - 1)) > own_key {
            set(at, get(at - 1));
            at -= 1;
        }
        set(at, own);
    }
}
