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
    run: Option<Run>,
}

/// Runs the kernel in the emulator, with the arguments at these pointers.
type Run = unsafe fn(*const *mut c_void);

impl Instance {
    /// Called by the expansion of `#[kernel]`.
    #[doc(hidden)]
    pub const fn new(suffix: &'static str, arguments: fn() -> TypeId, run: Option<Run>) -> Self {
        Self { suffix, arguments, run }
    }

    /// Whether it is launched with the struct `A`.
    pub fn takes<A: Arguments>(&self) -> bool {
        (self.arguments)() == TypeId::of::<A>()
    }

    /// Runs the instance as a thread of a launch of the [emulator](crate::emulator).
    ///
    /// # Safety
    /// `pointers` is the result of [`Arguments::pointers`] for arguments of the type that this instance
    /// [takes](Self::takes). The arguments meet the kernel's `# Safety` section.
    #[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
    pub unsafe fn run(&self, pointers: &[*mut c_void]) {
        let run = self.run.expect("this crate is compiled with its emulator");
        // SAFETY: the caller passes one pointer to each argument, with the types that this instance takes. The
        // arguments meet the kernel's `# Safety` section.
        unsafe { run(pointers.as_ptr()) }
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

/// A function that runs a kernel, if this crate is compiled with its emulator.
#[cfg(feature = "emulator")]
#[doc(hidden)]
#[macro_export]
macro_rules! __emulated {
    ($run:expr) => {
        ::core::option::Option::Some($run)
    };
}

/// `None`: without the emulator, the function that runs a kernel is not compiled.
#[cfg(not(feature = "emulator"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __emulated {
    ($run:expr) => {
        ::core::option::Option::None
    };
}
