//! Records of a fixed size, ordered by fields in them.
//!
//! A record is moved once, from where it was read to where it is written. The sort is of the first bytes of its key, as a
//! number, with the record's index:
//!
//! ```text
//!   records      ...7...A...   ...3...B...   ...7...C...
//!   words        7             3             7                 a number of the key's first bytes
//!   indices      0             1             2
//!                              │ sort of words with indices, on an engine
//!   indices      1             0             2
//!                              │ where words are equal, the rest of the keys decides
//!   output       ...3...B...   ...7...A...   ...7...C...       gathered block by block while others are written
//! ```

mod gather;
mod key;
pub mod layout;
mod sorter;

pub use gather::gather;
pub use key::Key;
pub use layout::Layout;
pub use sorter::Sorter;

/// Has the processor fetch the line of memory at `index` of `bytes`, if there is one, while it goes on with other work.
#[inline(always)]
fn prefetch(bytes: &[u8], index: usize) {
    #[cfg(target_arch = "x86_64")]
    if index < bytes.len() {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program sees, and the address is one of `bytes`.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().add(index).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, index);
}
