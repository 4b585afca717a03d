//! The kernels of user-defined orders in a crate's PTX.

use super::order::Compare;
use bytemuck::Pod;

/// A kernel as a value: its arguments.
pub trait Entry: Copy {
    /// Runs the kernel, as a thread of a launch.
    ///
    /// # Safety
    /// The value meets the requirements in the `# Safety` section of its type.
    unsafe fn run(self);
}

/// An order with kernels that [`kernels!`](super::kernels) has named, for items without values or with values of type
/// `V`.
///
/// # Safety
/// Implemented by the macro only: entry points with this suffix take arguments for this order and values.
#[diagnostic::on_unimplemented(
    message = "there are no kernels for the order `{Self}` with values of type `{V}`",
    label = "no kernels of this order",
    note = "name them in the kernel crate: `kernels! {{ a_name: {Self}; }}`, or with values \
            `kernels! {{ a_name: {Self}, values {V}; }}`"
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

            $crate::own_kernels!(@entry "own_sort_tiles_", $name, sort_tiles::SortTiles<$order, $value>);
            $crate::own_kernels!(@entry "own_code_items_", $name, by_bits::CodeItems<$order, $value>);
            $crate::own_kernels!(@entry "own_gather_items_", $name, by_bits::GatherItems<$order, $value>);
            $crate::own_kernels!(@entry "own_split_groups_", $name, merge_groups::SplitGroups<$order, $value>);
            $crate::own_kernels!(@entry "own_merge_groups_", $name, merge_groups::MergeGroups<$order, $value>);
            $crate::own_kernels!(@entry "own_split_ragged_", $name, merge_ragged::SplitRagged<$order, $value>);
            $crate::own_kernels!(@entry "own_merge_ragged_", $name, merge_ragged::MergeRagged<$order, $value>);
            $crate::own_kernels!(@entry "own_balance_sets_", $name, set_operation::BalanceSets<$order, $value>);
            $crate::own_kernels!(@entry "own_combine_sets_", $name, set_operation::CombineSets<$order, $value>);
        };
    };
    (@entry $kernel:literal, $name:ident, $module:ident::$arguments:ident<$order:ty, $value:ty>) => {
        #[cfg(target_arch = "nvptx64")]
        const _: () = {
            #[unsafe(export_name = ::core::concat!($kernel, ::core::stringify!($name)))]
            unsafe extern "ptx-kernel" fn entry(arguments: $crate::own::$module::$arguments<$order, $value>) {
                // SAFETY: the host passes arguments that meet the kernel's `# Safety` section.
                unsafe { $crate::own::instances::Entry::run(arguments) }
            }
        };
    };
}

/// Implements the arguments of a launch for the value of each kernel.
macro_rules! arguments {
    ($($kernel:literal: $module:ident::$name:ident,)*) => {$(
        #[cfg(not(target_arch = "nvptx64"))]
        impl<C: Kernels<V>, V: Pod + Send + Sync> cuda_std::launch::Arguments for super::$module::$name<C, V> {
            const KERNEL: cuda_std::launch::Kernel = cuda_std::launch::Kernel {
                name: $kernel,
                instances: &[cuda_std::launch::Instance::new(
                    C::SUFFIX,
                    || core::any::TypeId::of::<Self>(),
                    cuda_std::__emulated!(|pointers: *const *mut core::ffi::c_void| {
                        // SAFETY: the caller passes a pointer to the value.
                        let arguments = unsafe { (*pointers).cast::<Self>().read() };
                        // SAFETY: the value meets the kernel's `# Safety` section whenever this is called.
                        move || unsafe { arguments.run() }
                    }),
                )],
            };
            type Pointers = [*mut core::ffi::c_void; 1];
            fn pointers(&self) -> Self::Pointers {
                [(&raw const *self).cast_mut().cast()]
            }
        }
    )*};
}
arguments! {
    "own_sort_tiles": sort_tiles::SortTiles,
    "own_code_items": by_bits::CodeItems,
    "own_gather_items": by_bits::GatherItems,
    "own_split_groups": merge_groups::SplitGroups,
    "own_merge_groups": merge_groups::MergeGroups,
    "own_split_ragged": merge_ragged::SplitRagged,
    "own_merge_ragged": merge_ragged::MergeRagged,
    "own_balance_sets": set_operation::BalanceSets,
    "own_combine_sets": set_operation::CombineSets,
}
