//! Sorts `N` keys in registers with Batcher's odd-even merge network.
//!
//! A network compares at fixed indices, independent of the data: each comparison is one minimum and one maximum of two
//! registers, without a branch. Batcher's network for 16 keys has 63 comparisons (Knuth, volume 3, section 5.3.4). Here
//! any number of keys is divided into two halves, which are sorted separately and merged. This takes 207 comparisons
//! for 33 keys; the network for 64 keys, with its unused wires removed, would take 246.
//!
//! ```text
//!   0 ──●─────●──●─────  …
//!   1 ──●──●──│──●──●──
//!   2 ──●──│──●──●──●──      ● ─ ● the lesser key goes to the upper wire
//!   3 ──●──●─────●─────
//! ```

/// A value on a wire of a network.
pub trait Wire: Copy {
    /// The lesser and the greater of the two.
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

/// Maximum number of keys of a network.
const MOST: usize = 72;

/// Capacity for the comparisons of the largest network.
const CAPACITY: usize = 1024;

/// A list of wires, by number.
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

    /// Every second wire, from index `first`.
    const fn every_other(&self, first: usize) -> Self {
        let (mut wires, mut i) = (Self::NONE, first);
        while i < self.len {
            wires.push(self.numbers[i]);
            i += 2;
        }
        wires
    }
}

/// Comparisons in order of execution: the lesser key goes to the first wire of each.
struct Comparisons {
    list: [(u8, u8); CAPACITY],
    count: usize,
}

impl Comparisons {
    /// Sorts the keys on wires `first .. end`: both halves, then a merge. Returns the wires in the order of their keys.
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

    /// Merges the sorted keys on the wires of `a` and `b`. The keys at odd positions (first, third, …) of both are
    /// merged, and so are the keys at even positions. Each key of the even merge is then compared with its one
    /// neighbour in the odd merge.
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

    /// The same comparisons in layers: layer 1 depends on no other comparison, and layer k on layer k - 1.
    const fn by_layers(&self) -> Self {
        let mut layered = Self { list: [(0, 0); CAPACITY], count: 0 };
        let mut layer = 1;
        while layered.count < self.count {
            // The depth of each wire: the number of layers before its next comparison.
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

    /// Compares the keys on two wires, which are the next two in `order`.
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
    /// The comparisons, and the wires in the order of their sorted keys.
    const PARTS: (Comparisons, Wires) = {
        let mut comparisons = Comparisons { list: [(0, 0); CAPACITY], count: 0 };
        let order = comparisons.sort(0, N);
        (comparisons.by_layers(), order)
    };
}

/// Sorts `keys` in ascending order. Not stable.
#[inline(always)]
pub fn sort_registers<W: Wire, const N: usize>(keys: &mut [W; N]) {
    sort_registers_by(keys, |_, key, other| key.in_order(other));
}

/// Sorts `keys` with `in_order`, which returns the lesser and the greater of two keys. Its first argument is the number
/// of the comparison.
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
