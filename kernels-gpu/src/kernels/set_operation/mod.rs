//! Set operations on two multisets of ascending keys, in two launches that read and write each key once.
//!
//! ```text
//!   balance_path   A  1 1 2│2 2 2 5│6      the balanced path, divided into tiles between pairs of equal keys
//!                  B  1 2  │2 2 3  │8 9
//!   combine_sets      1 1 2│2 2 3 5│…      each tile in shared memory: a thread walks its part and counts kept keys
//!                     └ 3 ┘└── 7 ──        numbers of kept keys, which a look-back adds up over earlier tiles
//!                  C  1 1 2 2 2 3 5 …      the kept keys, without gaps
//! ```
//!
//! On the [balanced path](crate::thread::balanced_path) a step is a pair of equal keys, one of A and one of B, or an
//! unpaired key. The operations differ only in the kinds of steps (pairs, unpaired keys of A, unpaired keys of B) that
//! they [keep](Kept).

pub mod balance_path;
pub mod combine_sets;

/// The kinds of steps with a key in the result, as bits.
///
/// ```
/// # use kernels_gpu::kernels::set_operation::Kept;
/// let difference = Kept::new(true, false, false);
/// assert!(difference.keeps(true, false) && !difference.keeps(true, true) && !difference.keeps(false, true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept(pub u32);

impl Kept {
    /// Whether to keep unpaired keys of A, pairs, and unpaired keys of B.
    pub const fn new(a_alone: bool, partners: bool, b_alone: bool) -> Self {
        Self((a_alone as u32) << 1 | (b_alone as u32) << 2 | (partners as u32) << 3)
    }

    /// Whether a step is kept that takes a key of A (`of_a`), of B (`of_b`), or of both. A step that takes none is not
    /// kept.
    #[inline(always)]
    pub const fn keeps(self, of_a: bool, of_b: bool) -> bool {
        self.0 >> (of_a as u32 | (of_b as u32) << 1) & 1 != 0
    }
}

/// The start of a tile in memory: twice the number of A's keys before it, plus 1 if it is one key before the diagonal.
#[inline(always)]
const fn pack(a: usize, is_short: bool) -> usize {
    a << 1 | is_short as usize
}

/// The numbers of keys of A and of B before a tile on diagonal `k`: the inverse of [`pack`].
#[inline(always)]
const fn unpack(packed: usize, k: usize) -> (usize, usize) {
    let (a, rank) = (packed >> 1, k - (packed & 1));
    (a, rank - a)
}
