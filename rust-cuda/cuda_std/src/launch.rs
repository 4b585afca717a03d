//! The arguments of a kernel's launch, with their names and types.
//!
//! For each kernel, `#[kernel]` makes a struct of its arguments, with the kernel's name in camel case, and a constant
//! that lists its instances:
//!
//! ```
//! use cuda_std::launch::Arguments;
//! use cuda_std::prelude::*;
//!
//! #[kernel(u32 = <u32>, u64 = <u64>)]
//! pub unsafe fn fill_all<T: Word>(out: *mut T, n: usize, value: T) {
//!     // …
//! }
//!
//! let mut numbers = [0u64; 4];
//! let arguments = FillAll { out: numbers.as_mut_ptr(), n: 4, value: 7 };
//! assert_eq!(FillAll::<u64>::KERNEL.name, "fill_all");
//! assert_eq!(arguments.pointers().as_ref().len(), 3);
//! // The instance for `u32` takes other arguments.
//! assert!(FillAll::<u64>::instance("u64").is_some());
//! assert!(FILL_ALL.instance("u32").is_some() && FillAll::<u64>::instance("u32").is_none());
//! ```

use core::any::TypeId;
use core::ffi::c_void;
#[cfg(feature = "emulator")]
use std::boxed::Box;

/// A kernel, for its host.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The function's name.
    pub name: &'static str,
    /// The compiled instances of the function.
    pub instances: &'static [Instance],
}

impl Kernel {
    /// The instance with this suffix, if any.
    pub fn instance(self, suffix: &str) -> Option<&'static Instance> {
        self.instances.iter().find(|instance| instance.suffix == suffix)
    }
}

/// An entry point of a compiled module: a kernel with its generic parameters chosen.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// The suffix of the entry point's name, after the kernel's name and `_`. Empty if the kernel is not generic.
    pub suffix: &'static str,
    arguments: fn() -> TypeId,
    #[cfg_attr(not(feature = "emulator"), allow(dead_code))]
    threads: Option<Threads>,
}

/// Reads the arguments at these pointers, and returns the work of a thread that has them.
#[cfg(feature = "emulator")]
type Threads = unsafe fn(*const *mut c_void) -> Box<dyn Fn() + Send + Sync>;
/// Not a value: without the emulator, the kernel is not compiled.
#[cfg(not(feature = "emulator"))]
type Threads = core::convert::Infallible;

impl Instance {
    /// Called by the expansion of `#[kernel]`.
    #[doc(hidden)]
    pub const fn new(suffix: &'static str, arguments: fn() -> TypeId, threads: Option<Threads>) -> Self {
        Self { suffix, arguments, threads }
    }

    /// Whether it is launched with the struct `A`.
    pub fn takes<A: Arguments>(&self) -> bool {
        (self.arguments)() == TypeId::of::<A>()
    }

    /// The work of each thread of a launch of the [emulator](crate::emulator), with the arguments at these pointers,
    /// which are read now.
    ///
    /// # Safety
    /// `pointers` has a pointer to each argument, in the kernel's order and with the types that this instance takes, as
    /// [`Arguments::pointers`] returns them. The arguments meet the kernel's `# Safety` section whenever the result is
    /// called.
    #[cfg(feature = "emulator")]
    pub unsafe fn threads(&self, pointers: *const *mut c_void) -> Box<dyn Fn() + Send + Sync> {
        let threads = self.threads.expect("this crate is compiled with its emulator");
        // SAFETY: the caller passes one pointer to each argument, with the types that this instance takes. The
        // arguments meet the kernel's `# Safety` section.
        unsafe { threads(pointers) }
    }
}

/// The arguments of a kernel.
pub trait Arguments: Copy + 'static {
    /// The kernel.
    const KERNEL: Kernel;
    /// An array of one pointer per argument.
    type Pointers: AsRef<[*mut c_void]>;
    /// Pointers to the arguments in the kernel's order, as `cuLaunchKernel` takes them. They are valid until `self` is
    /// moved.
    fn pointers(&self) -> Self::Pointers;

    /// The kernel's instance with this suffix, if it exists and takes these arguments.
    fn instance(suffix: &str) -> Option<&'static Instance> {
        Self::KERNEL.instance(suffix).filter(|instance| instance.takes::<Self>())
    }
}

/// All kernels of the program, of any crate.
#[cfg(feature = "emulator")]
#[linkme::distributed_slice]
pub static KERNELS: [Kernel];

/// The instance that a module has under this name, if a kernel of the program has it: `merge_basic_u32` is the instance
/// `u32` of the kernel `merge_basic`. Returns the kernel's name, too.
#[cfg(feature = "emulator")]
pub fn entry_point(name: &str) -> Option<(&'static str, &'static Instance)> {
    KERNELS.iter().find_map(|kernel| {
        let rest = name.strip_prefix(kernel.name)?;
        let suffix = if rest.is_empty() { rest } else { rest.strip_prefix('_')? };
        Some((kernel.name, kernel.instance(suffix)?))
    })
}

/// What runs a kernel, if this crate is compiled with its emulator: a function that reads the arguments and returns the
/// work of a thread.
#[cfg(feature = "emulator")]
#[doc(hidden)]
#[macro_export]
macro_rules! __emulated {
    ($threads:expr) => {
        ::core::option::Option::Some(|pointers| $crate::launch::boxed($threads(pointers)))
    };
}

/// `None`: without the emulator, the function that runs a kernel is not compiled.
#[cfg(not(feature = "emulator"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __emulated {
    ($threads:expr) => {
        ::core::option::Option::None
    };
}

#[cfg(feature = "emulator")]
#[doc(hidden)]
pub fn boxed(thread: impl Fn() + 'static) -> Box<dyn Fn() + Send + Sync> {
    /// A thread's work, with the arguments that it has copied.
    struct Sent<F>(F);
    // SAFETY: the arguments of a kernel are numbers and device pointers, which any thread of the host may pass on.
    unsafe impl<F> Send for Sent<F> {}
    // SAFETY: a kernel's thread only reads its arguments.
    unsafe impl<F> Sync for Sent<F> {}
    let thread = Sent(thread);
    Box::new(move || {
        let Sent(thread) = &thread;
        thread();
    })
}

/// Adds a kernel to [`KERNELS`](crate::launch::KERNELS), if this crate is compiled with its emulator.
#[cfg(feature = "emulator")]
#[doc(hidden)]
#[macro_export]
macro_rules! __registered {
    ($kernel:expr) => {
        const _: () = {
            #[$crate::launch::__linkme::distributed_slice($crate::launch::KERNELS)]
            #[linkme(crate = $crate::launch::__linkme)]
            static KERNEL: $crate::launch::Kernel = $kernel;
        };
    };
}

/// Without the emulator, there is no list of kernels.
#[cfg(not(feature = "emulator"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __registered {
    ($kernel:expr) => {};
}

#[cfg(feature = "emulator")]
#[doc(hidden)]
pub use linkme as __linkme;
