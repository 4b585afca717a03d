//! Merge of two runs from both ends at once.

use super::run::{Run, RunMut};
use crate::Key;

/// The least number of steps that is worth a loop without bounds checks.
pub(super) const MIN_STEPS: usize = 4;

/// The state of a merge: front and back of the output are complete, and the middle is not.
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
    /// A merge that has not begun. `out` has the sum of the lengths of `a` and `b`.
    #[inline(always)]
    pub fn new(a: Run<'a, K, V>, b: Run<'a, K, V>, out: RunMut<'a, K, V>) -> Self {
        let (m, n) = (a.keys.len(), b.keys.len());
        assert!(m + n == out.keys.len());
        assert!(a.values.len() == m && b.values.len() == n && out.values.len() == m + n);
        BidirectionalMerge { a, b, out, a_front: 0, a_back: m, b_front: 0, b_back: n }
    }

    /// A number of steps that cannot exhaust A or B: a step takes at most two keys from each run.
    #[inline(always)]
    pub fn steps_without_bounds(&self) -> usize {
        (self.a_back - self.a_front).min(self.b_back - self.b_front) / 2
    }

    /// Moves the first and the last of the remaining keys, with their values.
    ///
    /// # Safety
    /// At least two keys of A and two of B remain. If `steps_without_bounds` returns `n`, this holds for the next `n`
    /// steps with any keys.
    #[inline(always)]
    pub unsafe fn step(&mut self) {
        debug_assert!(self.steps_without_bounds() > 0);
        // SAFETY: two keys of each run remain. For the first key `a_front < a_back <= |a|` and `b_front < b_back <=
        // |b|`. After it at least one key of each run remains, so the same holds for `a_back - 1` and `b_back - 1`.
        // Both slots are in `a_front + b_front..a_back + b_back`, at most `|a| + |b| = |out|`.
        unsafe {
            let (i, j) = (self.a_front, self.b_front);
            // Of equal keys, A's keys come first: take A's key at the front, and B's key at the back.
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
                // SAFETY: `steps_without_bounds` returned `steps` before the loop, so at least two keys of each run
                // remain at each step.
                unsafe { self.step() };
            }
        }
        while self.a_front < self.a_back && self.b_front < self.b_back {
            let (i, j) = (self.a_front, self.b_front);
            // SAFETY: `i < a_back <= |a|` and `j < b_back <= |b|`, so `i + j < |a| + |b| = |out|`.
            let from_b = unsafe {
                let from_b = self.b_is_less(i, j);
                self.take(from_b, i, j, i + j);
                from_b
            };
            self.a_front += usize::from(!from_b);
            self.b_front += usize::from(from_b);
        }
        // A or B is exhausted: the rest of the other run follows.
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
        // SAFETY: the caller ensures `i < |a|` and `j < |b|`.
        unsafe { self.b.keys.get_unchecked(j).to_ordered() < self.a.keys.get_unchecked(i).to_ordered() }
    }

    /// Copies A's key `i` or B's key `j`, with its value, to slot `k` of the output.
    ///
    /// # Safety
    /// `i < |a|`, `j < |b|` and `k < |out|`.
    #[inline(always)]
    unsafe fn take(&mut self, from_b: bool, i: usize, j: usize, k: usize) {
        // SAFETY: the caller ensures `i < |a|`, `j < |b|` and `k < |out|`; `new` has checked that each run has equal
        // numbers of keys and values.
        unsafe {
            let key = choose(from_b, *self.b.keys.get_unchecked(j), *self.a.keys.get_unchecked(i));
            *self.out.keys.get_unchecked_mut(k) = key;
            // The choice is between addresses, so only one value is loaded: a value may be large.
            let (a, b) = (self.a.values.as_ptr().add(i), self.b.values.as_ptr().add(j));
            *self.out.values.get_unchecked_mut(k) = *std::hint::select_unpredictable(from_b, b, a);
        }
    }
}

/// `then` if `condition`, and `otherwise` if not.
///
/// The choice is between unsigned integers, and the compiler emits a conditional move. For floats it emits a branch,
/// which is mispredicted every second time.
#[inline(always)]
fn choose<K: Key>(condition: bool, then: K, otherwise: K) -> K {
    let (then, otherwise) = (bytemuck::cast::<K, K::Bits>(then), bytemuck::cast::<K, K::Bits>(otherwise));
    bytemuck::cast(if condition { then } else { otherwise })
}
