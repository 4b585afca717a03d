//! Sorting `N` keys in registers with Batcher's odd-even merge network.
//!
//! A network compares at fixed places whatever the data is, so each comparison is one minimum and one maximum of two
//! registers, with no branch. Batcher's takes 63 of them for 16 keys, 56 for 15 (Knuth, volume 3, algorithm 5.2.2 M).
//!
//! ```text
//!   0 ──●─────●──●─────  …
//!   1 ──●──●──│──●──●──
//!   2 ──●──│──●──●──●──      ● ─ ● the lesser to the upper wire
//!   3 ──●──●─────●─────
//! ```

/// What the wires of a network carry.
pub trait Wire: Copy {
    /// The lesser of the two and the greater.
    fn in_order(self, other: Self) -> (Self, Self);
}

impl Wire for u32 {
    #[inline(always)]
    fn in_order(self, other: Self) -> (Self, Self) {
        (self.min(other), self.max(other))
    }
}

impl Wire for u64 {
    #[inline(always)]
    fn in_order(self, other: Self) -> (Self, Self) {
        (self.min(other), self.max(other))
    }
}

/// Room for the comparisons of the largest network.
const CAPACITY: usize = 1024;

/// The comparisons of the network for `N` keys, in order.
struct Network<const N: usize>;

impl<const N: usize> Network<N> {
    const COMPARISONS: ([(u8, u8); CAPACITY], usize) = {
        let mut list = [(0, 0); CAPACITY];
        let mut count = 0;
        let mut p = 1;
        while p < N {
            // Sorted groups of p are merged to groups of 2 p: compare at distances k = p, p / 2, … 1.
            let mut k = p;
            while k >= 1 {
                let mut j = k % p;
                while j + k < N {
                    let mut i = 0;
                    while i < k && i + j + k < N {
                        if (i + j) / (2 * p) == (i + j + k) / (2 * p) {
                            list[count] = ((i + j) as u8, (i + j + k) as u8);
                            count += 1;
                        }
                        i += 1;
                    }
                    j += 2 * k;
                }
                k /= 2;
            }
            p *= 2;
        }
        (list, count)
    };
}

/// Sorts `keys`.
#[inline(always)]
pub fn sort_registers<W: Wire, const N: usize>(keys: &mut [W; N]) {
    let mut at = 0;
    while at < Network::<N>::COMPARISONS.1 {
        let (upper, lower) = Network::<N>::COMPARISONS.0[at];
        let (lesser, greater) = keys[upper as usize].in_order(keys[lower as usize]);
        keys[upper as usize] = lesser;
        keys[lower as usize] = greater;
        at += 1;
    }
}
