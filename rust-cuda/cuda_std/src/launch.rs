//! What a host launches a kernel with: its arguments, with their names and types.
//!
//! `#[kernel]` makes a struct of the arguments of each kernel, named like the kernel but in camel case, and a constant that names
//! its instances:
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

/// A kernel, as its host knows it.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// The function's name.
    pub name: &'static str,
    /// What the function is compiled as.
    pub instances: &'static [Instance],
}

impl Kernel {
    /// The instance whose name ends in `suffix`, if there is one.
    pub fn instance(self, suffix: &str) -> Option<&'static Instance> {
        self.instances.iter().find(|instance| instance.suffix == suffix)
    }
}

/// An entry point of a compiled module: a kernel with its generic parameters chosen.
#[derive(Clone, Copy, Debug)]
pub struct Instance {
    /// How the entry point's name ends, after the kernel's name and `_`; empty if the kernel is not generic.
    pub suffix: &'static str,
    arguments: fn() -> TypeId,
    #[cfg_attr(not(feature = "emulator"), allow(dead_code))]
    run: Option<Run>,
}

/// Runs the kernel in the emulator, with the arguments at these pointers.
type Run = unsafe fn(*const *mut c_void);

impl Instance {
    /// What `#[kernel]` makes.
    #[doc(hidden)]
    pub const fn new(suffix: &'static str, arguments: fn() -> TypeId, run: Option<Run>) -> Self {
        Self { suffix, arguments, run }
    }

    /// Whether it is launched with the struct `A`.
    pub fn takes<A: Arguments>(&self) -> bool {
        (self.arguments)() == TypeId::of::<A>()
    }

    /// Runs it as a thread of a launch of the [emulator](crate::emulator).
    ///
    /// # Safety
    /// `pointers` point to the arguments that it [takes](Self::takes), as [`Arguments::pointers`] gives them, and these are what
    /// the kernel's documentation asks for.
    #[cfg(all(feature = "emulator", not(target_arch = "nvptx64")))]
    pub unsafe fn run(&self, pointers: &[*mut c_void]) {
        let run = self.run.expect("this crate is compiled with its emulator");
        // SAFETY: the pointers are those of the arguments, in number and types, and these are as the kernel demands, as the
        // caller promises.
        unsafe { run(pointers.as_ptr()) }
    }
}

/// The arguments of a kernel.
pub trait Arguments: Copy + 'static {
    /// The kernel.
    const KERNEL: Kernel;
    /// As many pointers as there are arguments.
    type Pointers: AsRef<[*mut c_void]>;
    /// Pointers to the arguments in the kernel's order, as `cuLaunchKernel` takes them. They are good as long as `self` is where
    /// it is.
    fn pointers(&self) -> Self::Pointers;

    /// The kernel's instance whose name ends in `suffix`, if there is one and it takes these arguments.
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

/// A function that runs a kernel, if this crate is compiled with its emulator: otherwise it is not compiled at all.
#[cfg(not(feature = "emulator"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __emulated {
    ($run:expr) => {
        ::core::option::Option::None
    };
}
