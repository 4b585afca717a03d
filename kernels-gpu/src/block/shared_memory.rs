//! Shared memory of a kernel, declared once: the kernel's views and the bytes of the host's launch come from the same
//! declaration.
//!
//! A `struct` holds its parts one after another; the parts of a `union` share the same bytes. A part is an array or
//! another declared memory, and its length may depend on arguments.
//!
//! ```text
//!   struct Tile(slots)  { keys: [u32; slots], values: [u64; slots] }     │ keys … │░│ values …         │  ░ padding
//!   union Either(slots) { keys: [u32; slots], values: [u64; slots] }     │ keys …   │
//!                                                                        │ values …         │  longest part
//! ```
//!
//! [`shared_memory!`] makes a struct with a view of each part as its fields. Its functions are evaluated at compile
//! time:
//!
//! - `bytes(slots)`: number of bytes from the start of the block's shared memory, for the host's launch,
//! - `end(at, slots)`: end of the memory, in bytes, if it begins at byte `at` or the next aligned byte,
//! - `at_start(slots)` and `at(at, slots)`: the views. They are unsafe: the launch must have the bytes, and barriers
//!   must order accesses as the functions document.
//!
//! ```
//! # use kernels_gpu::block::shared_memory::shared_memory;
//! shared_memory! {
//!     /// A tile of keys, with a value for each.
//!     struct Tile(slots: usize) {
//!         keys: [u32; slots],
//!         values: [u64; slots],
//!     }
//! }
//! shared_memory! {
//!     /// A tile is loaded first and then counted.
//!     union Memory(slots: usize) {
//!         tile: Tile { slots },
//!         counters: [u16; 256],
//!     }
//! }
//! assert_eq!(Tile::bytes(3), 12 + 4 + 24);
//! assert_eq!(Memory::bytes(3), 512);
//! ```

use cuda_std::prelude::*;

/// Maximum bytes of shared memory of a block on GPUs of compute capability 9.0 and 10.0.
pub const MOST_BYTES: u32 = 227 << 10;

/// Checks that a block can have `bytes` bytes of shared memory. Kernels call it in a `const` block, so that the
/// compiler reports the error.
///
/// # Panics
/// If `bytes` is above [`MOST_BYTES`].
pub const fn check(bytes: u32) {
    assert!(bytes <= MOST_BYTES, "a block has up to 227 KiB of shared memory");
}

/// The first byte from `at` that is aligned for `T`.
#[doc(hidden)]
#[inline(always)]
pub const fn begin<T>(at: u32) -> u32 {
    at.next_multiple_of(align_of::<T>() as u32)
}

/// The end, in bytes, of an array of `len` elements that begins at byte `at` or the next aligned byte.
#[doc(hidden)]
#[inline(always)]
pub const fn end<T>(at: u32, len: u32) -> u32 {
    begin::<T>(at) + len * size_of::<T>() as u32
}

/// The view of the array of `len` elements that begins at byte `at` or the next aligned byte.
///
/// # Safety
/// The launch has bytes of dynamic shared memory up to [`end`]. A barrier separates any two accesses to an element if
/// one of the two is a write.
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub unsafe fn array<T: Word>(at: u32, len: u32) -> Shared<T> {
    // SAFETY: the array begins at a multiple of the alignment of `T`, which is its size for all words. Its `len`
    // elements end at `end`, and the caller's launch has the bytes up to there. The caller also places the barriers
    // between accesses.
    unsafe { Shared::dynamic(begin::<T>(at), len) }
}

/// Declares shared memory: see the [page of the module](self).
#[macro_export]
#[doc(hidden)]
macro_rules! __shared_memory {
    (
        $(#[$meta:meta])* $vis:vis struct $name:ident $(<$($g:ident: $bound:ident),+>)?
        ($($arg:ident: $arg_type:ty),*) { $($parts:tt)* }
    ) => {
        $crate::__shared_memory! {
            @parse [struct [$(#[$meta])*] [$vis] $name [$($($g: $bound),+)?] [$($arg: $arg_type),*]] [] $($parts)*
        }
    };
    (
        $(#[$meta:meta])* $vis:vis union $name:ident $(<$($g:ident: $bound:ident),+>)?
        ($($arg:ident: $arg_type:ty),*) { $($parts:tt)* }
    ) => {
        $crate::__shared_memory! {
            @parse [union [$(#[$meta])*] [$vis] $name [$($($g: $bound),+)?] [$($arg: $arg_type),*]] [] $($parts)*
        }
    };

    // Each part becomes a group: attributes, visibility, name, type of the view, and kind.
    (
        @parse $head:tt [$($done:tt)*]
        $(#[$meta:meta])* $vis:vis $part:ident: [$element:ty; $len:expr], $($rest:tt)*
    ) => {
        $crate::__shared_memory! {
            @parse $head
            [$($done)* { [$(#[$meta])*] [$vis] $part [::cuda_std::Shared<$element>] (array [$element] [$len]) }]
            $($rest)*
        }
    };
    (
        @parse $head:tt [$($done:tt)*]
        $(#[$meta:meta])* $vis:vis $part:ident: $memory:ty { $($arg:expr),* }, $($rest:tt)*
    ) => {
        $crate::__shared_memory! {
            @parse $head [$($done)* { [$(#[$meta])*] [$vis] $part [$memory] (memory [$memory] [$($arg),*]) }] $($rest)*
        }
    };

    (
        @parse [
            $kind:ident [$($meta:tt)*] [$vis:vis] $name:ident
            [$($g:ident: $bound:ident),*] [$($arg:ident: $arg_type:ty),*]
        ]
        [$({ [$($part_meta:tt)*] [$part_vis:vis] $part:ident [$view:ty] $what:tt })*]
    ) => {
        $($meta)*
        #[derive(Clone, Copy)]
        $vis struct $name<$($g),*> {
            $($($part_meta)* $part_vis $part: $view,)*
        }

        #[allow(dead_code, reason = "of few memories all functions are called")]
        impl<$($g: $bound),*> $name<$($g),*> {
            /// The end, in bytes, of the memory if it begins at byte `at` or the next aligned byte.
            #[inline(always)]
            $vis const fn end(at: u32, $($arg: $arg_type),*) -> u32 {
                let (begin, mut end) = (at, at);
                $(
                    let at = $crate::__shared_memory!(@begin $kind begin end);
                    let part = $crate::__shared_memory!(@end at $what);
                    end = if part > end { part } else { end };
                )*
                let _ = begin;
                end
            }

            /// Number of bytes from the start of the block's shared memory.
            #[inline(always)]
            $vis const fn bytes($($arg: $arg_type),*) -> u32 {
                Self::end(0, $($arg),*)
            }

            /// The views of the memory that begins at byte `at` or the next aligned byte.
            ///
            /// # Safety
            /// The launch has bytes of dynamic shared memory up to the [`end`](Self::end), and nothing else uses them
            /// meanwhile. A barrier separates any two accesses to an element if one of the two is a write. In a union,
            /// a barrier also comes between the last access to one part and the first access to another.
            #[inline(always)]
            #[track_caller]
            #[allow(unused_assignments, reason = "nothing begins where the last part ends")]
            $vis unsafe fn at(at: u32, $($arg: $arg_type),*) -> Self {
                let (begin, mut end) = (at, at);
                let _ = (begin, end);
                Self {
                    $($part: {
                        let at = $crate::__shared_memory!(@begin $kind begin end);
                        end = $crate::__shared_memory!(@end at $what);
                        // SAFETY: the part ends at or before `Self::end`, and the caller's launch has all bytes below
                        // that. Parts of a struct are disjoint, since each begins at or after the end of the one
                        // before. The caller places the barriers between parts of a union and between accesses to an
                        // element.
                        unsafe { $crate::__shared_memory!(@view at $what) }
                    },)*
                }
            }

            /// The views of the memory at the start of the block's shared memory.
            ///
            /// # Safety
            /// The launch has [`bytes`](Self::bytes) of dynamic shared memory. All other requirements are the same as
            /// in [`at`](Self::at).
            #[inline(always)]
            #[track_caller]
            $vis unsafe fn at_start($($arg: $arg_type),*) -> Self {
                // SAFETY: `bytes` is `end(0, …)`, so that the launch has the bytes up to the end of the memory at byte
                // 0. The caller places the barriers that `at` requires.
                unsafe { Self::at(0, $($arg),*) }
            }
        }
    };

    (@begin struct $begin:ident $end:ident) => { $end };
    (@begin union $begin:ident $end:ident) => { $begin };

    (@end $at:ident (array [$element:ty] [$len:expr])) => {
        $crate::block::shared_memory::end::<$element>($at, ($len) as u32)
    };
    (@end $at:ident (memory [$memory:ty] [$($arg:expr),*])) => { <$memory>::end($at, $($arg),*) };

    (@view $at:ident (array [$element:ty] [$len:expr])) => {
        $crate::block::shared_memory::array::<$element>($at, ($len) as u32)
    };
    (@view $at:ident (memory [$memory:ty] [$($arg:expr),*])) => { <$memory>::at($at, $($arg),*) };
}

pub use __shared_memory as shared_memory;

/// Calls a function of a memory that is generic over keys and values, for widths that the host knows at run time. Keys
/// have `$key_bytes` bytes, 4 or 8, and values `$value_bytes` bytes, 0, 4 or 8.
macro_rules! of_widths {
    ($key_bytes:expr, $value_bytes:expr, $memory:ident::$function:ident($($arg:expr),*)) => {
        match ($key_bytes, $value_bytes) {
            (4, 0) => $memory::<u32, ()>::$function($($arg),*),
            (4, 4) => $memory::<u32, u32>::$function($($arg),*),
            (4, 8) => $memory::<u32, u64>::$function($($arg),*),
            (8, 0) => $memory::<u64, ()>::$function($($arg),*),
            (8, 4) => $memory::<u64, u32>::$function($($arg),*),
            (8, 8) => $memory::<u64, u64>::$function($($arg),*),
            _ => panic!("a key has 4 or 8 bytes, and a value 0, 4 or 8"),
        }
    };
}
pub(crate) use of_widths;
