//! Set operations on two multisets of ascending keys, in two launches that read and write each key once.
//!
//! ```text
//!   balance_path   A  1 1 2│2 2 2 5│6      the balanced path, divided into tiles: no pair of equal keys is divided
//!                  B  1 2  │2 2 3  │8 9
//!   combine_sets      1 1 2│2 2 3 5│…      each tile in shared memory: a thread walks its part of the path, and counts what it keeps
//!                     └ 3 ┘└── 7 ──        how many keys the tiles before it keep: a look-back over these
//!                  C  1 1 2 2 2 3 5 …      what is kept, side by side
//! ```
//!
//! On the [balanced path](crate::thread::balanced_path) a step is a pair of equal keys, one of A and one of B, or a key that has no
//! partner. The operations differ only in which of the three kinds of steps they [keep](Kept).

pub mod balance_path;
pub mod combine_sets;

/// Which steps of the path give a key of the result, as bits.
///
/// ```
/// # use kernels_gpu::kernels::set_operation::Kept;
/// let difference = Kept::new(true, false, false);
/// assert!(difference.keeps(true, false) && !difference.keeps(true, true) && !difference.keeps(false, true));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept(pub u32);

impl Kept {
    /// Keys of A without a partner, pairs of partners, keys of B without a partner.
    pub const fn new(a_alone: bool, partners: bool, b_alone: bool) -> Self {
        Self((a_alone as u32) << 1 | (b_alone as u32) << 2 | (partners as u32) << 3)
    }

    /// Whether a step that takes a key of A, or one of B, or both, gives a key. A step that takes none gives none.
    #[inline(always)]
    pub const fn keeps(self, of_a: bool, of_b: bool) -> bool {
        self.0 >> (of_a as u32 | (of_b as u32) << 1) & 1 != 0
    }
}

/// The beginning of a tile as it is in memory: twice the keys of A before it, and 1 more if the point is one key before the diagonal.
#[inline(always)]
const fn pack(a: usize, is_short: bool) -> usize {
    a << 1 | is_short as usize
}

/// The keys of A and of B before a tile that begins on diagonal `k`, from what [`pack`] has made.
#[inline(always)]
const fn unpack(packed: usize, k: usize) -> (usize, usize) {
    let (a, rank) = (packed >> 1, k - (packed & 1));
    (a, rank - a)
}
