//! Sorting `N` keys in registers with Batcher's odd-even merge network.
//!
//! A network compares at fixed indices, independent of the data, so each comparison is one minimum and one maximum of two
//! registers, with no branch. Batcher's takes 63 of them for 16 keys (Knuth, volume 3, section 5.3.4). Here each half of the
//! keys is sorted for itself, however many they are: 207 comparisons for 33 keys, where the network for 64 without the wires
//! that nothing is on would take 246.
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

/// Most keys that a network sorts.
const MOST: usize = 72;

/// Room for the comparisons of the largest network.
const CAPACITY: usize = 1024;

/// Numbers of wires.
#[derive(Clone, Copy)]
struct Wires {
    numbers: [u8; MOST],
    len: usize,
}

impl Wires {
    const NONE: Self = Self { numbers: [0; MOST], len: 0 };

    const fn push(&mut self, number: u8) {
        self.numbers[self.len] = number;
        self.len += 1;
    }

    /// Every other one from `first` on.
    const fn every_other(&self, first: usize) -> Self {
        let (mut wires, mut i) = (Self::NONE, first);
        while i < self.len {
            wires.push(self.numbers[i]);
            i += 2;
        }
        wires
    }
}

/// Comparisons in order: of the keys on two wires, the lesser goes to the first.
struct Comparisons {
    list: [(u8, u8); CAPACITY],
    count: usize,
}

impl Comparisons {
    /// Sorts the keys on wires `first .. end`: the halves, then a merge. Gives the wires in the order of their keys.
    const fn sort(&mut self, first: usize, end: usize) -> Wires {
        if end - first == 1 {
            let mut one = Wires::NONE;
            one.push(first as u8);
            return one;
        }
        let middle = first + (end - first) / 2;
        let (a, b) = (self.sort(first, middle), self.sort(middle, end));
        self.merge(&a, &b)
    }

    /// Merges the keys on the wires of `a` and `b`, which are in order: the first, third, … of both, the second, fourth, …
    /// of both, and then each of the latter with the one of the former that may have to be swapped with it.
    const fn merge(&mut self, a: &Wires, b: &Wires) -> Wires {
        if a.len == 0 {
            return *b;
        }
        if b.len == 0 {
            return *a;
        }
        let mut merged = Wires::NONE;
        if a.len == 1 && b.len == 1 {
            self.compare(a.numbers[0], b.numbers[0], &mut merged);
            return merged;
        }
        let odd = self.merge(&a.every_other(0), &b.every_other(0));
        let even = self.merge(&a.every_other(1), &b.every_other(1));
        merged.push(odd.numbers[0]);
        let mut i = 0;
        while i < even.len || i + 1 < odd.len {
            if i < even.len && i + 1 < odd.len {
                self.compare(even.numbers[i], odd.numbers[i + 1], &mut merged);
            } else {
                merged.push(if i < even.len { even.numbers[i] } else { odd.numbers[i + 1] });
            }
            i += 1;
        }
        merged
    }

    /// The same in layers: first all comparisons that need none before them, then all that need these, and so on.
    const fn by_layers(&self) -> Self {
        let mut layered = Self { list: [(0, 0); CAPACITY], count: 0 };
        let mut layer = 1;
        while layered.count < self.count {
            // Comparisons behind a wire so far.
            let (mut depths, mut i) = ([0; MOST], 0);
            while i < self.count {
                let (a, b) = (self.list[i].0 as usize, self.list[i].1 as usize);
                let depth = 1 + if depths[a] > depths[b] { depths[a] } else { depths[b] };
                (depths[a], depths[b]) = (depth, depth);
                if depth == layer {
                    layered.list[layered.count] = self.list[i];
                    layered.count += 1;
                }
                i += 1;
            }
            layer += 1;
        }
        layered
    }

    /// Compares the keys on two wires, which then come next in order.
    const fn compare(&mut self, lesser: u8, greater: u8, order: &mut Wires) {
        self.list[self.count] = (lesser, greater);
        self.count += 1;
        order.push(lesser);
        order.push(greater);
    }
}

/// The network for `N` keys.
struct Network<const N: usize>;

impl<const N: usize> Network<N> {
    /// The comparisons, and the wires in order of their keys after these.
    const PARTS: (Comparisons, Wires) = {
        let mut comparisons = Comparisons { list: [(0, 0); CAPACITY], count: 0 };
        let order = comparisons.sort(0, N);
        (comparisons.by_layers(), order)
    };
}

/// Sorts `keys`.
#[inline(always)]
pub fn sort_registers<W: Wire, const N: usize>(keys: &mut [W; N]) {
    sort_registers_by(keys, |_, key, other| key.in_order(other));
}

/// Sorts `keys` by a function that returns the lesser of two and the greater, given the number of the comparison as well.
#[inline(always)]
pub fn sort_registers_by<W: Copy, const N: usize>(keys: &mut [W; N], in_order: impl Fn(usize, W, W) -> (W, W)) {
    let mut at = 0;
    while at < const { Network::<N>::PARTS.0.count } {
        let (first, second) = const { Network::<N>::PARTS.0.list }[at];
        let (lesser, greater) = in_order(at, keys[first as usize], keys[second as usize]);
        keys[first as usize] = lesser;
        keys[second as usize] = greater;
        at += 1;
    }
    let wires = *keys;
    for (index, key) in keys.iter_mut().enumerate() {
        *key = wires[const { Network::<N>::PARTS.1.numbers }[index] as usize];
    }
}
