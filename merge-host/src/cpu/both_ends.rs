//! A merge from both ends at once.

use super::run::{Run, RunMut};
use crate::Key;

/// Steps that make the round without bounds worth entering.
pub(super) const LEAST_STEPS: usize = 4;

/// A merge that is done at the front and at the back, and not yet in between.
pub(super) struct BothEnds<'a, K, V> {
    a: Run<'a, K, V>,
    b: Run<'a, K, V>,
    out: RunMut<'a, K, V>,
    /// What is left: `a[a_front..a_back]` and `b[b_front..b_back]`. It belongs into
    /// `out[a_front + b_front..a_back + b_back]`.
    a_front: usize,
    a_back: usize,
    b_front: usize,
    b_back: usize,
}

impl<'a, K: Key, V: Copy> BothEnds<'a, K, V> {
    #[inline(always)]
    pub fn new(a: Run<'a, K, V>, b: Run<'a, K, V>, out: RunMut<'a, K, V>) -> Self {
        let (m, n) = (a.keys.len(), b.keys.len());
        assert!(m + n == out.keys.len());
        assert!(a.values.len() == m && b.values.len() == n && out.values.len() == m + n);
        BothEnds { a, b, out, a_front: 0, a_back: m, b_front: 0, b_back: n }
    }

    /// How many steps can be taken without looking whether A or B is used up: a step takes at most two keys of each.
    #[inline(always)]
    pub fn steps_without_bounds(&self) -> usize {
        (self.a_back - self.a_front).min(self.b_back - self.b_front) / 2
    }

    /// Takes the first key of what is left, and the last, with their values.
    ///
    /// # Safety
    /// Two keys at least are left of each of A and B. So it is for as many steps in a row as `steps_without_bounds`
    /// gave before the first, whatever the keys are.
    #[inline(always)]
    pub unsafe fn step(&mut self) {
        debug_assert!(self.steps_without_bounds() > 0);
        // SAFETY: what is left of A and B lies inside them, is not empty before the first of the two keys is taken, and
        // not before the second. Where they go lies inside `out`, which is as long as A and B together. There are as
        // many values as keys in each, as `new` has checked.
        unsafe {
            let (i, j) = (self.a_front, self.b_front);
            // Of equal keys, A's first at the front, and B's last at the back.
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

    /// Merges what is left.
    pub fn finish(mut self) {
        loop {
            let steps = self.steps_without_bounds();
            if steps < LEAST_STEPS {
                break;
            }
            for _ in 0..steps {
                // SAFETY: there are that many steps.
                unsafe { self.step() };
            }
        }
        while self.a_front < self.a_back && self.b_front < self.b_back {
            let (i, j) = (self.a_front, self.b_front);
            // SAFETY: a key is left of each of A and B, and so there is room for one in `out`.
            let from_b = unsafe {
                let from_b = self.b_is_less(i, j);
                self.take(from_b, i, j, i + j);
                from_b
            };
            self.a_front += usize::from(!from_b);
            self.b_front += usize::from(from_b);
        }
        // One of the two is used up: the rest of the other follows.
        let (a, b) = (self.a.part(self.a_front..self.a_back), self.b.part(self.b_front..self.b_back));
        let out = self.out.part(self.a_front + self.b_front..self.a_back + self.b_back);
        let (from_a, from_b) = out.split_at(a.keys.len());
        from_a.keys.copy_from_slice(a.keys);
        from_a.values.copy_from_slice(a.values);
        from_b.keys.copy_from_slice(b.keys);
        from_b.values.copy_from_slice(b.values);
    }

    /// Whether B's key `j` is less than A's key `i`.
    ///
    /// # Safety
    /// There are these keys.
    #[inline(always)]
    unsafe fn b_is_less(&self, i: usize, j: usize) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.b.keys.get_unchecked(j).to_ordered() < self.a.keys.get_unchecked(i).to_ordered() }
    }

    /// Copies A's key `i` with its value, or B's key `j` with its value, to `out[k]`.
    ///
    /// # Safety
    /// There are these keys, and there is this place.
    #[inline(always)]
    unsafe fn take(&mut self, from_b: bool, i: usize, j: usize, k: usize) {
        // SAFETY: the caller's promise, and there are as many values as keys.
        unsafe {
            let key = choose(from_b, *self.b.keys.get_unchecked(j), *self.a.keys.get_unchecked(i));
            *self.out.keys.get_unchecked_mut(k) = key;
            // The choice is between addresses: a value may be of any size, and only one of the two need be loaded.
            let (a, b) = (self.a.values.as_ptr().add(i), self.b.values.as_ptr().add(j));
            *self.out.values.get_unchecked_mut(k) = *std::hint::select_unpredictable(from_b, b, a);
        }
    }
}

/// One key or the other.
///
/// As unsigned integers, because a processor chooses between integers without a branch. For floats the compiler makes
/// a branch, which is mispredicted every second time.
#[inline(always)]
fn choose<K: Key>(condition: bool, then: K, otherwise: K) -> K {
    let (then, otherwise) = (bytemuck::cast::<K, K::Bits>(then), bytemuck::cast::<K, K::Bits>(otherwise));
    bytemuck::cast(if condition { then } else { otherwise })
}
