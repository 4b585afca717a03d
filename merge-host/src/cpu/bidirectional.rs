//! Merge from both ends at once.

use super::run::{Run, RunMut};
use crate::Key;

/// The least number of steps that justifies a round of steps without bounds checks.
pub(super) const MIN_STEPS: usize = 4;

/// A merge whose front and back are complete, and whose middle is not.
pub(super) struct BidirectionalMerge<'a, K, V> {
    a: Run<'a, K, V>,
    b: Run<'a, K, V>,
    out: RunMut<'a, K, V>,
    /// The remaining input is `a[a_front..a_back]` and `b[b_front..b_back]`. Its merge belongs in
    /// `out[a_front + b_front..a_back + b_back]`.
    a_front: usize,
    a_back: usize,
    b_front: usize,
    b_back: usize,
}

impl<'a, K: Key, V: Copy> BidirectionalMerge<'a, K, V> {
    /// Nothing is merged yet. The length of `out` is the sum of those of `a` and `b`.
    #[inline(always)]
    pub fn new(a: Run<'a, K, V>, b: Run<'a, K, V>, out: RunMut<'a, K, V>) -> Self {
        let (m, n) = (a.keys.len(), b.keys.len());
        assert!(m + n == out.keys.len());
        assert!(a.values.len() == m && b.values.len() == n && out.values.len() == m + n);
        BidirectionalMerge { a, b, out, a_front: 0, a_back: m, b_front: 0, b_back: n }
    }

    /// The number of steps that cannot exhaust A or B: a step takes at most two keys of each.
    #[inline(always)]
    pub fn steps_without_bounds(&self) -> usize {
        (self.a_back - self.a_front).min(self.b_back - self.b_front) / 2
    }

    /// Moves the first and the last of the remaining keys, with their values.
    ///
    /// # Safety
    /// At least two keys of A and two of B remain. This is the case for `n` consecutive steps, whatever the keys are,
    /// if `steps_without_bounds` returned `n` before the first.
    #[inline(always)]
    pub unsafe fn step(&mut self) {
        debug_assert!(self.steps_without_bounds() > 0);
        // SAFETY: a_front < a_back <= |a| and b_front < b_back <= |b| hold for the first key, and for the second
        // because two keys of each remain. Both slots lie in a_front + b_front..a_back + b_back, and |out| = |a| + |b|.
        // `new` has checked that each run has as many values as keys.
        unsafe {
            let (i, j) = (self.a_front, self.b_front);
            // Of equal keys, A's come first: take A's at the front, and B's at the back.
            let from_b = self.b_is_less(i, j);
            self.take(from_b, i, j, i + j);
            self.a_front += usize::from(!from_b);
            self.b_front += usize::from(from_b);

            let (i, j) = (self.a_back - 1, self.b_back - 1);
            let from_b = !self.b_is_less(i, j);
            self.take(from_b, i, j, i + j + 1);
            self.a_back -= usize::from(!from_b);
            self.b_back -= usize::from(from_b);
        }
    }

    /// Merges the remaining keys.
    pub fn finish(mut self) {
        loop {
            let steps = self.steps_without_bounds();
            if steps < MIN_STEPS {
                break;
            }
            for _ in 0..steps {
                // SAFETY: `steps_without_bounds` returned `steps` before the first.
                unsafe { self.step() };
            }
        }
        while self.a_front < self.a_back && self.b_front < self.b_back {
            let (i, j) = (self.a_front, self.b_front);
            // SAFETY: i < a_back <= |a|, j < b_back <= |b|, and i + j < |a| + |b| = |out|.
            let from_b = unsafe {
                let from_b = self.b_is_less(i, j);
                self.take(from_b, i, j, i + j);
                from_b
            };
            self.a_front += usize::from(!from_b);
            self.b_front += usize::from(from_b);
        }
        // A or B is exhausted: the rest of the other follows.
        let (a, b) = (self.a.part(self.a_front..self.a_back), self.b.part(self.b_front..self.b_back));
        let out = self.out.part(self.a_front + self.b_front..self.a_back + self.b_back);
        let (mut from_a, mut from_b) = out.split_at(a.keys.len());
        from_a.copy_from(a);
        from_b.copy_from(b);
    }

    /// Whether B's key `j` is less than A's key `i`.
    ///
    /// # Safety
    /// `i < |a|` and `j < |b|`.
    #[inline(always)]
    unsafe fn b_is_less(&self, i: usize, j: usize) -> bool {
        // SAFETY: by the contract above.
        unsafe { self.b.keys.get_unchecked(j).to_ordered() < self.a.keys.get_unchecked(i).to_ordered() }
    }

    /// Copies A's key `i` or B's key `j`, with its value, to slot `k` of the output.
    ///
    /// # Safety
    /// `i < |a|`, `j < |b|` and `k < |out|`.
    #[inline(always)]
    unsafe fn take(&mut self, from_b: bool, i: usize, j: usize, k: usize) {
        // SAFETY: by the contract above, and because each run has as many values as keys.
        unsafe {
            let key = choose(from_b, *self.b.keys.get_unchecked(j), *self.a.keys.get_unchecked(i));
            *self.out.keys.get_unchecked_mut(k) = key;
            // The choice is between addresses: a value may be large, and only one of the two needs to be loaded.
            let (a, b) = (self.a.values.as_ptr().add(i), self.b.values.as_ptr().add(j));
            *self.out.values.get_unchecked_mut(k) = *std::hint::select_unpredictable(from_b, b, a);
        }
    }
}

/// `then` if `condition`, and `otherwise` if not.
///
/// The choice is between unsigned integers, which a processor makes without a branch. For floats the compiler emits a
/// branch, which is mispredicted every second time.
#[inline(always)]
fn choose<K: Key>(condition: bool, then: K, otherwise: K) -> K {
    let (then, otherwise) = (bytemuck::cast::<K, K::Bits>(then), bytemuck::cast::<K, K::Bits>(otherwise));
    bytemuck::cast(if condition { then } else { otherwise })
}
