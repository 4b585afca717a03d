//! Merge-path merge: as many pieces as the threads need, all of one size, each merged from both ends at once.
//!
//! A merge with two cursors spends its time waiting: which key comes next decides where the next one is read. So a
//! piece is cut once more, in the middle, and both halves are merged from both ends, without branches. That makes four
//! chains of steps which do not wait for each other:
//!
//! ```text
//!   out ├──1──►      ◄──2──┼──3──►      ◄──4──┤
//! ```

use super::{for_each_piece, split::parts};
use crate::Key;
use kernels_gpu::co_rank::co_rank;

/// Pieces for each thread: more than one, so that a thread that is held up leaves some to the others.
const PIECES_A_THREAD: usize = 4;
/// Keys that make it worth finding the middle.
const LEAST_TO_CUT: usize = 64;
/// Steps that make the round without bounds worth entering.
const LEAST_STEPS: usize = 4;

/// Merges `a` and `b` into `out`, which has room for just these.
pub(super) fn merge<K: Key>(a: &[K], b: &[K], out: &mut [K], threads: usize) {
    if threads == 1 {
        return merge_piece(a, b, out);
    }
    let piece = out.len().div_ceil(threads * PIECES_A_THREAD);
    for_each_piece(out, piece, threads, |begin, out| {
        let (a, b) = parts(a, b, begin, begin + out.len());
        merge_piece(a, b, out);
    });
}

/// Merges `a` and `b` into `out` on one thread.
pub(super) fn merge_piece<K: Key>(a: &[K], b: &[K], out: &mut [K]) {
    if out.len() < LEAST_TO_CUT {
        return BothEnds::new(a, b, out).finish();
    }
    let middle = out.len() / 2;
    let i = co_rank(middle, a, b);
    let (a_left, a_right) = a.split_at(i);
    let (b_left, b_right) = b.split_at(middle - i);
    let (out_left, out_right) = out.split_at_mut(middle);
    let mut left = BothEnds::new(a_left, b_left, out_left);
    let mut right = BothEnds::new(a_right, b_right, out_right);
    loop {
        let steps = left.steps_without_bounds().min(right.steps_without_bounds());
        if steps < LEAST_STEPS {
            break;
        }
        for _ in 0..steps {
            // SAFETY: both have that many steps.
            unsafe {
                left.step();
                right.step();
            }
        }
    }
    left.finish();
    right.finish();
}

/// A merge that is done at the front and at the back, and not yet in between.
struct BothEnds<'a, K> {
    a: &'a [K],
    b: &'a [K],
    out: &'a mut [K],
    /// What is left: `a[a_front..a_back]` and `b[b_front..b_back]`. It belongs into
    /// `out[a_front + b_front..a_back + b_back]`.
    a_front: usize,
    a_back: usize,
    b_front: usize,
    b_back: usize,
}

impl<'a, K: Key> BothEnds<'a, K> {
    #[inline(always)]
    fn new(a: &'a [K], b: &'a [K], out: &'a mut [K]) -> Self {
        assert!(a.len() + b.len() == out.len());
        BothEnds { a, b, out, a_front: 0, a_back: a.len(), b_front: 0, b_back: b.len() }
    }

    /// How many steps can be taken without looking whether A or B is used up: a step takes at most two keys of each.
    #[inline(always)]
    fn steps_without_bounds(&self) -> usize {
        (self.a_back - self.a_front).min(self.b_back - self.b_front) / 2
    }

    /// Takes the first key of what is left, and the last.
    ///
    /// # Safety
    /// Two keys at least are left of each of A and B. So it is for as many steps in a row as `steps_without_bounds`
    /// gave before the first, whatever the keys are.
    #[inline(always)]
    unsafe fn step(&mut self) {
        let (a, b) = (self.a, self.b);
        debug_assert!(self.steps_without_bounds() > 0);
        // SAFETY: what is left of A and B lies inside them, is not empty before the first of the two keys is taken, and
        // not before the second. Where they go lies inside `out`, which is as long as A and B together.
        unsafe {
            // Of equal keys, A's first at the front, and B's last at the back.
            let (key, from_b) = lesser(*a.get_unchecked(self.a_front), *b.get_unchecked(self.b_front));
            *self.out.get_unchecked_mut(self.a_front + self.b_front) = key;
            self.a_front += usize::from(!from_b);
            self.b_front += usize::from(from_b);

            let (key, from_a) = greater(*a.get_unchecked(self.a_back - 1), *b.get_unchecked(self.b_back - 1));
            *self.out.get_unchecked_mut(self.a_back + self.b_back - 1) = key;
            self.a_back -= usize::from(from_a);
            self.b_back -= usize::from(!from_a);
        }
    }

    /// Merges what is left.
    fn finish(mut self) {
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
            let (key, from_b) = lesser(self.a[self.a_front], self.b[self.b_front]);
            self.out[self.a_front + self.b_front] = key;
            self.a_front += usize::from(!from_b);
            self.b_front += usize::from(from_b);
        }
        // One of the two is used up: the rest of the other follows.
        let (a, b) = (&self.a[self.a_front..self.a_back], &self.b[self.b_front..self.b_back]);
        let out = &mut self.out[self.a_front + self.b_front..self.a_back + self.b_back];
        let (from_a, from_b) = out.split_at_mut(a.len());
        from_a.copy_from_slice(a);
        from_b.copy_from_slice(b);
    }
}

/// The lesser of a key of A and a key of B, A's if they are equal; and whether it is B's.
#[inline(always)]
fn lesser<K: Key>(x: K, y: K) -> (K, bool) {
    let from_b = y.to_ordered() < x.to_ordered();
    (choose(from_b, y, x), from_b)
}

/// The greater of a key of A and a key of B, B's if they are equal; and whether it is A's.
#[inline(always)]
fn greater<K: Key>(x: K, y: K) -> (K, bool) {
    let from_a = y.to_ordered() < x.to_ordered();
    (choose(from_a, x, y), from_a)
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
