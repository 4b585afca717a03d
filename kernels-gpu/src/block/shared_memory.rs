//! Shared memory of a kernel, declared once: what the kernel uses and what the host launches it with are made of the same declaration.
//!
//! A `struct` has its parts one after another, and a `union` has them in turn at the same place. A part is an array of a number of elements, or
//! another such memory, which may depend on arguments.
//!
//! ```text
//!   struct Tile(slots)  { keys: [u32; slots], values: [u64; slots] }     │ keys … │░│ values …         │     ░ to the next aligned byte
//!   union Either(slots) { keys: [u32; slots], values: [u64; slots] }     │ keys …   │
//!                                                                        │ values …         │     as long as the longest part
//! ```
//!
//! [`shared_memory!`] makes a struct whose fields are views of the parts, and of these functions, all for the compiler to compute:
//!
//! - `bytes(slots)`, how many bytes it has from the start of the block's shared memory on: what the host launches the kernel with,
//! - `end(at, slots)`, the byte at which it ends if it begins at byte `at`, or at the next one that is aligned,
//! - `at_start(slots)` and `at(at, slots)`, the views. They are unsafe: the launch must have the bytes, and barriers must order accesses as
//!   their documentation says.
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

/// The most bytes of shared memory of a block, on GPUs of compute capability 9.0 and 10.0.
pub const MOST_BYTES: u32 = 227 << 10;

/// Stops the compiler if a block cannot have `bytes` bytes of shared memory: kernels call it in a `const` block.
///
/// # Panics
/// If these are more than [`MOST_BYTES`].
pub const fn check(bytes: u32) {
    assert!(bytes <= MOST_BYTES, "a block has up to 227 KiB of shared memory");
}

/// The first byte from `at` on that an array of `T` can begin at.
#[doc(hidden)]
#[inline(always)]
pub const fn begin<T>(at: u32) -> u32 {
    at.next_multiple_of(align_of::<T>() as u32)
}

/// The byte at which an array of `len` elements ends.
#[doc(hidden)]
#[inline(always)]
pub const fn end<T>(at: u32, len: u32) -> u32 {
    begin::<T>(at) + len * size_of::<T>() as u32
}

/// The array.
///
/// # Safety
/// The launch has bytes of dynamic shared memory up to [`end`], and barriers come between the accesses to an element of which one writes it.
#[doc(hidden)]
#[inline(always)]
#[track_caller]
pub unsafe fn array<T: Word>(at: u32, len: u32) -> Shared<T> {
    // SAFETY: the array begins at a multiple of the alignment of `T`, which is its size for all words, and its `len`
    // elements end at `end`, as far as the caller promises memory. It promises the barriers, too.
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

    // Each part becomes a group: its attributes, its visibility, its name, the type of its view, and what it is.
    (
        @parse $head:tt [$($done:tt)*]
        $(#[$meta:meta])* $vis:vis $part:ident: [$element:ty; $len:expr], $($rest:tt)*
    ) => {
        $crate::__shared_memory! {
            @parse $head [$($done)* { [$(#[$meta])*] [$vis] $part [::cuda_std::Shared<$element>] (array [$element] [$len]) }] $($rest)*
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
            /// The byte at which it ends if it begins at byte `at`, or at the next one that is aligned.
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

            /// Bytes from the start of the block's shared memory on.
            #[inline(always)]
            $vis const fn bytes($($arg: $arg_type),*) -> u32 {
                Self::end(0, $($arg),*)
            }

            /// What begins at byte `at`, or at the next one that is aligned.
            ///
            /// # Safety
            /// The launch has bytes of dynamic shared memory up to the [`end`](Self::end), which nothing else uses meanwhile. Barriers come
            /// between the accesses to an element of which one writes it, and where this or a part of it is a union, between the last access
            /// to what has been used and the first one to what is used next.
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
                        // SAFETY: the part ends at `end`, which is no more than that of all parts, up to which the
                        // caller promises memory. Parts of a struct begin where the one before ends. For those of a
                        // union, and for elements, the caller promises barriers.
                        unsafe { $crate::__shared_memory!(@view at $what) }
                    },)*
                }
            }

            /// What begins at the start of the block's shared memory.
            ///
            /// # Safety
            /// As for [`at`](Self::at), with [`bytes`](Self::bytes) of dynamic shared memory.
            #[inline(always)]
            #[track_caller]
            $vis unsafe fn at_start($($arg: $arg_type),*) -> Self {
                // SAFETY: the contract is the same: `bytes` is the end of what begins at byte 0.
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

/// Calls a function of a memory that is generic over keys and values, for keys of `$key_bytes` bytes, 4 or 8, and values of `$value_bytes`, 0,
/// 4 or 8: what the host knows of them.
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
