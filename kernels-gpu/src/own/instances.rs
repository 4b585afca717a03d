//! The kernels of user-defined orders in a crate's PTX, and the arguments that the host launches them with.

use super::merge_groups::Groups;
use super::order::Compare;
use bytemuck::Pod;

/// An order with kernels that [`kernels!`](super::kernels) has named, for items without values or with values of type
/// `V`.
///
/// # Safety
/// Implemented by the macro only: entry points with this suffix take arguments for this order and values.
#[diagnostic::on_unimplemented(
    message = "there are no kernels for the order `{Self}` with values of type `{V}`",
    label = "no kernels of this order",
    note = "name them in the kernel crate: `kernels! {{ a_name: {Self}; }}`, or with values `kernels! {{ a_name: {Self}, values {V}; }}`"
)]
pub unsafe trait Kernels<V: Pod + Send + Sync = ()>: Compare {
    /// The suffix of the entry points' names.
    const SUFFIX: &'static str;
}

/// Names the kernels of a crate's orders, for items without values or with values of a type. You choose the names; each
/// is used once.
///
/// ```
/// # use kernels_gpu::own::{Compare, kernels};
/// # #[derive(Clone, Copy)]
/// # pub struct Backwards;
/// # impl Compare for Backwards {
/// #     type Item = u32;
/// #     fn is_before(a: &u32, b: &u32) -> bool {
/// #         a > b
/// #     }
/// # }
/// kernels! {
///     backwards: Backwards;
///     backwards_u64: Backwards, values u64;
/// }
/// ```
///
/// A crate that is compiled for the GPU needs `#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx))]`. An item or a
/// value of an unsupported size is an error, on the GPU and on the host:
///
/// ```compile_fail,E0080
/// # use kernels_gpu::own::{Compare, kernels};
/// # #[derive(Clone, Copy)]
/// # pub struct OfBytes;
/// # impl Compare for OfBytes {
/// type Item = [u8; 7];
/// #     fn is_before(a: &[u8; 7], b: &[u8; 7]) -> bool {
/// #         a < b
/// #     }
/// # }
/// kernels! {
///     of_bytes: OfBytes;
/// }
/// ```
#[macro_export]
#[doc(hidden)]
macro_rules! own_kernels {
    () => {};
    ($name:ident: $order:ty; $($rest:tt)*) => {
        $crate::own_kernels!(@ $name, $order, ());
        $crate::own_kernels!($($rest)*);
    };
    ($name:ident: $order:ty, values $value:ty; $($rest:tt)*) => {
        $crate::own_kernels!(@ $name, $order, $value);
        $crate::own_kernels!($($rest)*);
    };
    (@ $name:ident, $order:ty, $value:ty) => {
        // SAFETY: the entry points with this suffix, below, take arguments for `$order` and `$value`.
        unsafe impl $crate::own::Kernels<$value> for $order {
            const SUFFIX: &'static str = ::core::stringify!($name);
        }

        const _: () = {
            type Item = <$order as $crate::own::Compare>::Item;
            // The compiler checks sizes here, and not only where the kernels are used.
            const _: () = $crate::own::items::check_size::<Item>();
            const _: () = $crate::own::items::check_size::<$value>();

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(export_name = ::core::concat!("own_sort_tiles_", ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn sort_tiles(
                from: *mut Item,
                from_values: *mut $value,
                to: *mut Item,
                to_values: *mut $value,
                n: usize,
            ) {
                // SAFETY: the host passes arguments that meet the kernel's `# Safety` section, here and in the entry
                // points below.
                unsafe {
                    $crate::own::sort_tiles::sort_tiles::<$order, $value>(from, from_values, to, to_values, n)
                }
            }

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(export_name = ::core::concat!("own_code_items_", ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn code_items(
                from: *const Item,
                from_values: *const $value,
                copy: *mut Item,
                copy_values: *mut $value,
                bits: *mut u64,
                n: usize,
            ) {
                unsafe {
                    $crate::own::by_bits::code_items::<$order, $value>(from, from_values, copy, copy_values, bits, n)
                }
            }

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(export_name = ::core::concat!("own_gather_items_", ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn gather_items(
                from: *const Item,
                from_values: *const $value,
                order: *const u32,
                to: *mut Item,
                to_values: *mut $value,
                n: usize,
            ) {
                unsafe {
                    $crate::own::by_bits::gather_items::<$order, $value>(from, from_values, order, to, to_values, n)
                }
            }

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(export_name = ::core::concat!("own_split_groups_", ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn split_groups(
                a: *const Item,
                m: usize,
                b: *const Item,
                n: usize,
                splits: *mut usize,
                groups: $crate::own::merge_groups::Groups,
                tile: usize,
            ) {
                unsafe { $crate::own::merge_groups::split_groups::<$order>(a, m, b, n, splits, groups, tile) }
            }

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(export_name = ::core::concat!("own_merge_groups_", ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn merge_groups(
                a: *const Item,
                a_values: *const $value,
                m: usize,
                b: *const Item,
                b_values: *const $value,
                n: usize,
                to: *mut Item,
                to_values: *mut $value,
                splits: *const usize,
                groups: $crate::own::merge_groups::Groups,
            ) {
                unsafe {
                    $crate::own::merge_groups::merge_groups::<$order, $value>(
                        a, a_values, m, b, b_values, n, to, to_values, splits, groups,
                    )
                }
            }

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(export_name = ::core::concat!("own_split_ragged_", ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn split_ragged(
                a: *const Item,
                a_offsets: *const usize,
                b: *const Item,
                b_offsets: *const usize,
                pairs: usize,
                splits: *mut usize,
                tiles: usize,
                tile: usize,
            ) {
                unsafe {
                    $crate::own::merge_ragged::split_ragged::<$order>(
                        a, a_offsets, b, b_offsets, pairs, splits, tiles, tile,
                    )
                }
            }

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(export_name = ::core::concat!("own_merge_ragged_", ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn merge_ragged(
                a: *const Item,
                a_values: *const $value,
                a_offsets: *const usize,
                b: *const Item,
                b_values: *const $value,
                b_offsets: *const usize,
                pairs: usize,
                to: *mut Item,
                to_values: *mut $value,
                total: usize,
                splits: *const usize,
            ) {
                unsafe {
                    $crate::own::merge_ragged::merge_ragged::<$order, $value>(
                        a, a_values, a_offsets, b, b_values, b_offsets, pairs, to, to_values, total, splits,
                    )
                }
            }

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(export_name = ::core::concat!("own_balance_sets_", ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn balance_sets(
                a: *const Item,
                m: usize,
                b: *const Item,
                n: usize,
                splits: *mut usize,
                tiles: usize,
                tile: usize,
            ) {
                unsafe { $crate::own::set_operation::balance_sets::<$order>(a, m, b, n, splits, tiles, tile) }
            }

            #[cfg(target_arch = "nvptx64")]
            #[unsafe(export_name = ::core::concat!("own_combine_sets_", ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn combine_sets(
                a: *const Item,
                a_values: *const $value,
                m: usize,
                b: *const Item,
                b_values: *const $value,
                n: usize,
                to: *mut Item,
                to_values: *mut $value,
                capacity: usize,
                count: *mut u64,
                tiles: *mut u64,
                splits: *const usize,
                kept: u32,
            ) {
                unsafe {
                    $crate::own::set_operation::combine_sets::<$order, $value>(
                        a, a_values, m, b, b_values, n, to, to_values, capacity, count, tiles, splits, kept,
                    )
                }
            }
        };
    };
}

/// Declares the arguments of a kernel's launch, for each order and type of values.
macro_rules! arguments {
    ($(#[$doc:meta])* $name:ident as $entry:literal runs $kernel:path { $($field:ident: $type:ty,)* }) => {
        $(#[$doc])*
        #[cfg(not(target_arch = "nvptx64"))]
        #[allow(missing_docs)]
        pub struct $name<C: Kernels<V>, V: Pod + Send + Sync> {
            $(pub $field: $type,)*
            /// The type of the values, which some arguments do not have.
            pub values: core::marker::PhantomData<V>,
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl<C: Kernels<V>, V: Pod + Send + Sync> Clone for $name<C, V> {
            fn clone(&self) -> Self {
                *self
            }
        }

        #[cfg(not(target_arch = "nvptx64"))]
        impl<C: Kernels<V>, V: Pod + Send + Sync> Copy for $name<C, V> {}

        #[cfg(not(target_arch = "nvptx64"))]
        impl<C: Kernels<V>, V: Pod + Send + Sync> cuda_std::launch::Arguments for $name<C, V> {
            const KERNEL: cuda_std::launch::Kernel = cuda_std::launch::Kernel {
                name: $entry,
                instances: &[cuda_std::launch::Instance::new(
                    C::SUFFIX,
                    || core::any::TypeId::of::<Self>(),
                    // SAFETY: the caller passes pointers to all arguments, in this order and with the declared types.
                    // The arguments meet the kernel's `# Safety` section.
                    cuda_std::__emulated!(|pointers: *const *mut core::ffi::c_void| unsafe {
                        arguments!(@run pointers, $kernel, ($($field: $type),*))
                    }),
                )],
            };
            type Pointers = [*mut core::ffi::c_void; [$(stringify!($field)),*].len()];
            fn pointers(&self) -> Self::Pointers {
                [$((&raw const self.$field).cast_mut().cast()),*]
            }
        }
    };
    (@run $pointers:ident, $kernel:path, ($($field:ident: $type:ty),*)) => {{
        let mut at = $pointers;
        $(
            let $field = (*at).cast::<$type>().read();
            #[allow(unused_assignments)]
            {
                at = at.add(1);
            }
        )*
        $kernel($($field),*)
    }};
}

arguments! {
    /// The arguments of [`sort_tiles`](super::sort_tiles::sort_tiles).
    SortTiles as "own_sort_tiles" runs super::sort_tiles::sort_tiles::<C, V> {
        from: *mut C::Item,
        from_values: *mut V,
        to: *mut C::Item,
        to_values: *mut V,
        n: usize,
    }
}
arguments! {
    /// The arguments of [`code_items`](super::by_bits::code_items).
    CodeItems as "own_code_items" runs super::by_bits::code_items::<C, V> {
        from: *const C::Item,
        from_values: *const V,
        copy: *mut C::Item,
        copy_values: *mut V,
        bits: *mut u64,
        n: usize,
    }
}
arguments! {
    /// The arguments of [`gather_items`](super::by_bits::gather_items).
    GatherItems as "own_gather_items" runs super::by_bits::gather_items::<C, V> {
        from: *const C::Item,
        from_values: *const V,
        order: *const u32,
        to: *mut C::Item,
        to_values: *mut V,
        n: usize,
    }
}
arguments! {
    /// The arguments of [`split_groups`](super::merge_groups::split_groups).
    SplitGroups as "own_split_groups" runs super::merge_groups::split_groups::<C> {
        a: *const C::Item,
        m: usize,
        b: *const C::Item,
        n: usize,
        splits: *mut usize,
        groups: Groups,
        tile: usize,
    }
}
arguments! {
    /// The arguments of [`merge_groups`](super::merge_groups::merge_groups).
    MergeGroups as "own_merge_groups" runs super::merge_groups::merge_groups::<C, V> {
        a: *const C::Item,
        a_values: *const V,
        m: usize,
        b: *const C::Item,
        b_values: *const V,
        n: usize,
        to: *mut C::Item,
        to_values: *mut V,
        splits: *const usize,
        groups: Groups,
    }
}
arguments! {
    /// The arguments of [`split_ragged`](super::merge_ragged::split_ragged).
    SplitRagged as "own_split_ragged" runs super::merge_ragged::split_ragged::<C> {
        a: *const C::Item,
        a_offsets: *const usize,
        b: *const C::Item,
        b_offsets: *const usize,
        pairs: usize,
        splits: *mut usize,
        tiles: usize,
        tile: usize,
    }
}
arguments! {
    /// The arguments of [`merge_ragged`](super::merge_ragged::merge_ragged).
    MergeRagged as "own_merge_ragged" runs super::merge_ragged::merge_ragged::<C, V> {
        a: *const C::Item,
        a_values: *const V,
        a_offsets: *const usize,
        b: *const C::Item,
        b_values: *const V,
        b_offsets: *const usize,
        pairs: usize,
        to: *mut C::Item,
        to_values: *mut V,
        total: usize,
        splits: *const usize,
    }
}
arguments! {
    /// The arguments of [`balance_sets`](super::set_operation::balance_sets).
    BalanceSets as "own_balance_sets" runs super::set_operation::balance_sets::<C> {
        a: *const C::Item,
        m: usize,
        b: *const C::Item,
        n: usize,
        splits: *mut usize,
        tiles: usize,
        tile: usize,
    }
}
arguments! {
    /// The arguments of [`combine_sets`](super::set_operation::combine_sets).
    CombineSets as "own_combine_sets" runs super::set_operation::combine_sets::<C, V> {
        a: *const C::Item,
        a_values: *const V,
        m: usize,
        b: *const C::Item,
        b_values: *const V,
        n: usize,
        to: *mut C::Item,
        to_values: *mut V,
        capacity: usize,
        count: *mut u64,
        tiles: *mut u64,
        splits: *const usize,
        kept: u32,
    }
}
